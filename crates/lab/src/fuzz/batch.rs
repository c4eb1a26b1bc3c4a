//! Many objects at once: created, judged, a part of them changed and judged anew, deleted.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures::{StreamExt, TryStreamExt};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};

use super::change::Change;
use super::judge::{Word, repeated, word};
use super::send::{Answer, change, create};
use super::specimen::{Specimen, Stock};
use super::tally::{Reasons, Tally};
use crate::cluster;
use crate::subject::condition;
use crate::world::World;

/// By then something must have been said of every object.
const SPOKEN: Duration = Duration::from_secs(60);
/// So long is waited for the end of what is under way.
const SETTLED: Duration = Duration::from_secs(30);
/// By then all must be gone.
const GONE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(500);
/// How often one mutating call may be made anew while a batch lives: backoff doubles.
const REPEATED: usize = 25;
/// How many requests are sent at once.
const AT_ONCE: usize = 16;
/// How many failures of a batch are shown.
const SHOWN: usize = 5;
/// AWS calls for each object that was taken, on average.
const CALLS: usize = 80;

/// A batch of objects.
pub struct Batch<'a> {
    world: &'a World,
    stock: &'a Stock,
    label: String,
    taken: Vec<Specimen>,
}

impl<'a> Batch<'a> {
    /// Makes the objects of these seeds, has them judged, changes some, has these judged, and deletes all.
    ///
    /// # Errors
    /// With every seed that does not pass, and its manifest.
    pub async fn run(world: &'a World, stock: &'a Stock, seeds: std::ops::Range<u64>) -> Result<Tally> {
        let mut tally = Tally { made: seeds.clone().count(), ..Tally::default() };
        world.aws.clear();
        world.kube.clear();
        let label = format!("b{:x}", seeds.start);
        let mut batch = Self { world, stock, label, taken: Vec::new() };
        let specimens = seeds.map(|seed| stock.specimen(seed, &batch.label)).collect();
        batch.create(specimens, &mut tally).await?;
        tally.reasons = batch.judged(&batch.taken.iter().collect::<Vec<_>>()).await?;
        let changed = batch.change(&mut tally).await?;
        tally.reasons_then = batch.judged(&changed).await?;
        batch.delete().await?;
        batch.bounded(&mut tally)?;
        Ok(tally)
    }

    async fn create(&mut self, specimens: Vec<Specimen>, tally: &mut Tally) -> Result<()> {
        let client = &self.world.client;
        let answers = futures::stream::iter(specimens).map(|specimen| async move {
            let answer =
                create(client, &specimen).await.map_err(|error| failed(&specimen, &format!("{error:#}")))?;
            anyhow::Ok((specimen, answer))
        });
        let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).try_collect().await?;
        for (specimen, answer) in answers {
            match answer {
                Answer::Taken => self.taken.push(specimen),
                Answer::Refused => tally.refused += 1,
            }
        }
        Ok(())
    }

    /// Changes those that are to be changed; gives those whose change was taken.
    async fn change(&self, tally: &mut Tally) -> Result<Vec<&Specimen>> {
        let changes: Vec<_> = self.taken.iter().filter_map(|it| Some((it, it.change.as_ref()?))).collect();
        tally.changed = changes.len();
        let answers = futures::stream::iter(changes).map(|(specimen, of_it)| async move {
            let answer = change(&self.world.client, specimen, of_it).await;
            anyhow::Ok((specimen, answer.map_err(|error| failed(specimen, &format!("{error:#}")))?))
        });
        let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).try_collect().await?;
        let taken = answers.iter().filter(|(_, answer)| *answer == Answer::Taken);
        let changed: Vec<_> = taken.map(|(specimen, _)| *specimen).collect();
        tally.refused_changes = answers.len() - changed.len();
        Ok(changed)
    }

    /// Waits until something clear is said of each of these, and gives how many ended how.
    async fn judged(&self, specimens: &[&Specimen]) -> Result<Reasons> {
        let start = Instant::now();
        loop {
            let words = self.words(specimens).await?;
            let wrong = words.iter().filter_map(|(specimen, word)| match word {
                Word::Wrong(wrong) => Some(failed(specimen, wrong)),
                Word::None if start.elapsed() > SPOKEN => Some(failed(specimen, "nothing is said of it")),
                _ => None,
            });
            let wrong: Vec<_> = wrong.take(SHOWN).map(|error| error.to_string()).collect();
            ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
            let all_end = words.iter().all(|(_, word)| matches!(word, Word::Final(_)));
            let all_spoken = words.iter().all(|(_, word)| *word != Word::None);
            if all_end || (all_spoken && start.elapsed() > SETTLED) {
                let mut reasons = Reasons::new();
                for (_, word) in words {
                    if let Word::Final(reason) | Word::Under(reason) = word {
                        *reasons.entry(reason).or_default() += 1;
                    }
                }
                return Ok(reasons);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn words<'b>(&self, specimens: &[&'b Specimen]) -> Result<Vec<(&'b Specimen, Word)>> {
        let objects = self.objects().await?;
        let find = |specimen: &Specimen| {
            objects.iter().find(|object| {
                object.metadata.name.as_ref() == Some(&specimen.name)
                    && object.metadata.namespace.as_ref() == Some(&specimen.namespace)
            })
        };
        let word = |specimen: &&'b Specimen| match find(specimen) {
            Some(object) => Ok((*specimen, word(object))),
            None => Err(failed(specimen, "it vanished")),
        };
        specimens.iter().map(word).collect()
    }

    async fn objects(&self) -> Result<Vec<DynamicObject>> {
        let mut objects = Vec::new();
        for (kind, namespace) in self.stock.places() {
            let list = cluster::api(&self.world.client, namespace, kind).list(&self.mine()).await?;
            objects.extend(list.items);
        }
        Ok(objects)
    }

    fn mine(&self) -> ListParams {
        ListParams::default().labels(&format!("batch={}", self.label))
    }

    async fn delete(&self) -> Result<()> {
        self.let_go().await?;
        for (kind, namespace) in self.stock.places() {
            let api = cluster::api(&self.world.client, namespace, kind);
            api.delete_collection(&DeleteParams::default(), &self.mine()).await?;
        }
        let start = Instant::now();
        loop {
            let left = self.objects().await?;
            let Some(first) = left.first() else { return Ok(()) };
            if start.elapsed() > GONE {
                let is_it = |specimen: &&Specimen| Some(&specimen.name) == first.metadata.name.as_ref();
                let ready = condition(first, "Ready");
                match self.taken.iter().find(is_it) {
                    Some(specimen) => {
                        return Err(failed(specimen, &format!("of {} that don't go: {ready}", left.len())));
                    }
                    None => bail!("{first:?} does not go"),
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Takes away what keeps objects, or what they have made, from going: what AWS is asked to protect stays
    /// until it no longer is, and annotations may say to leave it.
    async fn let_go(&self) -> Result<()> {
        for specimen in &self.taken {
            let mut patch = json!({});
            if specimen.is_protected() {
                patch["spec"] = json!({"deletionProtection": false});
            }
            if let Some(Change::Merge(change)) = &specimen.change
                && let Some(annotations) = change["metadata"]["annotations"].as_object()
            {
                let none = annotations.keys().map(|name| (name.clone(), Value::Null));
                patch["metadata"] = json!({"annotations": Value::Object(none.collect())});
            }
            if patch != json!({}) {
                let api = cluster::api(&self.world.client, &specimen.namespace, &specimen.kind);
                let patch = kube::api::Patch::Merge(patch);
                let patched = api.patch(&specimen.name, &kube::api::PatchParams::default(), &patch).await;
                patched.map_err(|error| failed(specimen, &format!("it can't be let go: {error}")))?;
            }
        }
        Ok(())
    }

    /// Nothing was asked of AWS over and over.
    fn bounded(&self, tally: &mut Tally) -> Result<()> {
        let calls = self.world.aws.calls();
        tally.calls = calls.len();
        for call in
            calls.iter().filter(|call| call.forwarded && call.status.is_some_and(|status| status >= 500))
        {
            *tally.emulator.entry(format!("{} {}", call.service, call.operation)).or_default() += 1;
        }
        let repeated = repeated(&calls, REPEATED);
        ensure!(
            repeated.is_empty(),
            "batch {}: the same call over and over:\n{}",
            self.label,
            repeated.join("\n")
        );
        let most = CALLS * (self.taken.len() + 10);
        ensure!(
            calls.len() <= most,
            "batch {}: {} calls for {} objects",
            self.label,
            calls.len(),
            self.taken.len()
        );
        Ok(())
    }
}

fn failed(specimen: &Specimen, why: &str) -> anyhow::Error {
    let Specimen { seed, manifest, strict, change, .. } = specimen;
    let change = match change {
        None => "not to be changed".to_owned(),
        Some(Change::Merge(patch)) => format!("then to be merged with\n{patch:#}"),
        Some(Change::Replace(spec)) => format!("then to get another spec:\n{spec:#}"),
    };
    anyhow::anyhow!(
        "seed {seed}: {why}\nmake fuzz SEED={seed} COUNT=1 does it again; sent {}, it was\n{manifest:#}\n{change}",
        if *strict { "strictly" } else { "with unknown fields dropped" }
    )
}
