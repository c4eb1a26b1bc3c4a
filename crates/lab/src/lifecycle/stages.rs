//! The stages of a life, each with what must be true of it.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::data::{Change, Drift, Loss, Sees};
use super::drive::Drive;
use super::expect::ensure_calls;
use super::record;
use crate::evidence::Told;
use crate::history::Version;
use crate::proxy::aws::{Call, Table};
use crate::wait::throughout;
use crate::world::World;

/// Long enough for a write that should not be made to be seen.
const QUIET: Duration = Duration::from_millis(700);

impl Drive<'_> {
    /// All of them, in order.
    pub async fn live(&self) -> Result<()> {
        self.prepare().await.context("prerequisites")?;
        self.born().await.context("creation")?;
        self.put_on_by_others().await.context("what others put on it")?;
        self.checked_without_a_change().await.context("a check of what is as it should be")?;
        self.left_alone().await.context("a wake-up without a cause")?;
        for (index, change) in self.life.changes.iter().enumerate() {
            self.changed(change).await.with_context(|| format!("change {index}: {}", change.spec))?;
        }
        for (index, drift) in self.life.drifts.iter().enumerate() {
            self.drifted(index, drift)
                .await
                .with_context(|| format!("drift {index} of {:?}", drift.paths))?;
        }
        for (index, removal) in self.life.removals.iter().enumerate() {
            self.changed(removal).await.with_context(|| format!("removal {index}: {}", removal.spec))?;
        }
        self.refused().await?;
        self.foreign_stays().await.context("what others put on it, after everything")?;
        for (index, loss) in self.life.losses.iter().enumerate() {
            self.lost(index, loss).await.with_context(|| format!("loss {index}"))?;
        }
        self.gone().await.context("deletion")?;
        let errors = self.told(true, "Error", "").await?;
        ensure!(errors == self.life.errors(), "{errors} events tell of an error");
        let versions = self.history.versions(self.life.object());
        record::ensure_kstatus(&versions).await.context("kstatus")
    }

    async fn born(&self) -> Result<()> {
        let mark = self.world.aws.mark();
        self.apply().await?;
        let ready = self.until_ready().await?;
        for field in self.life.status.iter().chain([&self.life.identifier]) {
            let value = ready.field(&format!("/status/{field}"));
            ensure!(
                value.is_some_and(|value| !value.is_null()),
                "status.{field} is missing: {:#}",
                ready.object.data
            );
        }
        record::last_sync(&ready)?;
        let reasons = self.history.reasons(self.life.object());
        ensure!(reasons.contains(&"Creating".to_owned()), "it became Ready through {reasons:?}");
        self.ensure_step(mark, &self.life.create.calls, &self.life.create.sees).await?;
        ensure!(self.told(false, "Created", &self.made()?).await? == 1, "no event says that it was created");
        self.ensure_tally(true).await
    }

    /// What others do to it.
    pub async fn put_on_by_others(&self) -> Result<()> {
        match &self.life.foreign {
            Some(foreign) => self.by_hand(&foreign.by).await,
            None => Ok(()),
        }
    }

    /// Fails unless what others did is still there.
    pub async fn foreign_stays(&self) -> Result<()> {
        match &self.life.foreign {
            Some(foreign) => self.ensure_seen(&foreign.sees).await,
            None => Ok(()),
        }
    }

    /// Twice: what the first one does must not be what the next one undoes.
    async fn checked_without_a_change(&self) -> Result<()> {
        for word in ["first", "second"] {
            let before = record::last_sync(&self.until_ready().await?)?;
            // The time is kept in seconds.
            tokio::time::sleep(Duration::from_millis(1100)).await;
            let mark = self.world.aws.mark();
            let after = record::last_sync(&self.observe(word).await?)?;
            ensure!(after > before, "lastSyncTime was {before} and is {after}");
            ensure_calls(&self.world.aws.calls_since(mark), &self.life.check)
                .with_context(|| word.to_owned())?;
        }
        self.foreign_stays().await
    }

    /// Wakes it by a label and by an update that says what it said before.
    async fn left_alone(&self) -> Result<()> {
        let mark = self.world.aws.mark();
        let before = self.object()?.data["status"].clone();
        let (kind, name) = (self.life.kind(), self.life.object());
        self.world.merge(kind, name, json!({"metadata": {"labels": {"touched": "by-somebody"}}})).await?;
        self.world
            .merge(kind, name, json!({"metadata": {"annotations": {"touched": "by-somebody"}}}))
            .await?;
        self.apply().await?;
        throughout(QUIET, "nothing happens", async || {
            let calls = self.world.aws.calls_since(mark);
            ensure!(calls.is_empty(), "it cost calls:\n{}", Table(&calls));
            let now = &self.object()?.data["status"];
            ensure!(*now == before, "the status was {before:#} and is {now:#}");
            Ok(())
        })
        .await
    }

    async fn changed(&self, change: &Change) -> Result<()> {
        let (seen, told) = (self.seen(), self.told(false, "Updated", "").await?);
        let mark = self.world.aws.mark();
        self.change(&change.spec).await?;
        self.until_ready().await?;
        self.ensure_step(mark, &change.calls, &change.sees).await?;
        // What asks nothing of AWS shows no work and is worth no event.
        let asks = !change.calls.is_empty();
        let versions = self.history.versions(self.life.object());
        let updating = |version: &Version| version.condition("Ready", "reason") == Some("Updating");
        ensure!(versions[seen..].iter().any(updating) == asks, "it shows Updating: {}", !asks);
        let events = self.told(false, "Updated", "").await? - told;
        ensure!(events == usize::from(asks), "{events} events say that it was updated");
        Ok(())
    }

    async fn drifted(&self, index: usize, drift: &Drift) -> Result<()> {
        self.by_hand(&drift.by).await?;
        let says = format!(": {}", drift.paths.join(", "));
        let told = self.told(false, "DriftCorrected", &says).await?;
        let mark = self.world.aws.mark();
        self.observe(&format!("drift-{index}")).await?;
        self.ensure_step(mark, &drift.calls, &drift.sees).await?;
        let now_told = self.told(false, "DriftCorrected", &says).await?;
        ensure!(now_told == told + 1, "one event should say {says:?}, and {} do", now_told - told);
        let mark = self.world.aws.mark();
        self.observe(&format!("after-drift-{index}")).await?;
        ensure_calls(&mutating(self.world, mark), &[]).context("once more")
    }

    async fn refused(&self) -> Result<()> {
        let mark = self.world.aws.mark();
        for refusal in &self.life.immutable {
            match self.change(&refusal.spec).await {
                Ok(_) => bail!("{} was not refused", refusal.spec),
                Err(error) => {
                    let message = format!("{error:#}");
                    ensure!(message.contains(&refusal.says), "{} was refused with {message}", refusal.spec);
                }
            }
        }
        let calls = self.world.aws.calls_since(mark);
        ensure!(calls.is_empty(), "what was refused cost calls:\n{}", Table(&calls));
        Ok(())
    }

    async fn lost(&self, index: usize, loss: &Loss) -> Result<()> {
        if !self.life.precious {
            return self
                .lost_and_made_again(loss, async || self.observe(&format!("loss-{index}")).await)
                .await;
        }
        self.lost_and_made_again(loss, async || {
            self.waits_for_a_word(index).await.context("waiting for a word")?;
            self.annotate("recreate", json!("true")).await
        })
        .await?;
        // As long as the word stands, it holds.
        self.lost_and_made_again(loss, async || self.observe(&format!("loss-{index}-again")).await)
            .await
            .context("while the word stands")?;
        self.annotate("recreate", json!(null)).await?;
        Ok(())
    }

    /// Something precious was lost: nothing is made until somebody says so, and it says how.
    async fn waits_for_a_word(&self, index: usize) -> Result<()> {
        let mark = self.world.aws.mark();
        self.observe_error(&format!("loss-{index}"), "annotation aws.konfig.io/recreate to \"true\"").await?;
        throughout(QUIET, "it waits", async || {
            let calls = mutating(self.world, mark);
            ensure!(calls.is_empty(), "it was made all the same:\n{}", Table(&calls));
            Ok(())
        })
        .await?;
        self.ensure_tally(false).await
    }

    async fn lost_and_made_again(
        &self,
        loss: &Loss,
        healed: impl AsyncFnOnce() -> Result<Version>,
    ) -> Result<()> {
        let (before, made) = (self.identifier()?, self.made()?);
        let told = self.told(true, "DeletedInAWS", &made).await?;
        let mark = self.world.aws.mark();
        self.by_hand(&loss.by).await?;
        healed().await?;
        self.ensure_step(mark, &loss.calls, &loss.sees).await?;
        let now_told = self.told(true, "DeletedInAWS", &made).await?;
        ensure!(now_told == told + 1, "{} events warn that {made} was deleted", now_told - told);
        self.ensure_tally(true).await?;
        let after = self.identifier()?;
        ensure!(
            loss.same_identifier == (before == after),
            "{} was {before} and is {after}",
            self.life.identifier
        );
        Ok(())
    }

    async fn gone(&self) -> Result<()> {
        let mark = self.world.aws.mark();
        self.delete().await?;
        let reasons = self.history.reasons(self.life.object());
        ensure!(reasons.last().is_some_and(|last| last == "Deleting"), "it went through {reasons:?}");
        self.ensure_step(mark, &self.life.delete.calls, &self.life.delete.sees).await?;
        ensure!(self.told(false, "Deleted", "").await? == 1, "no event says that it was deleted");
        self.ensure_tally(false).await
    }

    async fn ensure_step(&self, mark: u64, calls: &[String], sees: &Sees) -> Result<()> {
        ensure_calls(&mutating(self.world, mark), calls)?;
        self.ensure_seen(sees).await
    }

    /// How many versions of it there are so far.
    fn seen(&self) -> usize {
        self.history.versions(self.life.object()).len()
    }

    /// How many events of that class and reason say this.
    async fn told(&self, warning: bool, reason: &str, says: &str) -> Result<usize> {
        let events = self.world.events(self.life.kind(), self.life.object()).await?;
        let meant =
            |told: &&Told| told.warning == warning && told.reason == reason && told.note.contains(says);
        Ok(events.iter().filter(meant).count())
    }
}

fn mutating(world: &World, mark: u64) -> Vec<Call> {
    world.aws.calls_since(mark).into_iter().filter(|call| call.mutating).collect()
}
