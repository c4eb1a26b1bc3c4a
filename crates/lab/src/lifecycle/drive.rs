//! One object of a data file in a world of its own, step by step.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};

use super::data::{Hand, Lifecycle, Sees};
use super::expect::Witness;
use super::fill::Objects;
use crate::history::{History, Version};
use crate::wait::eventually;
use crate::world::World;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Drives the object of a data file. Knows nothing of the operator, which may die meanwhile.
pub struct Drive<'a> {
    /// Where it lives.
    pub world: &'a World,
    /// The data file.
    pub life: &'a Lifecycle,
    /// All that happens to the objects of its kind.
    pub history: History,
}

impl<'a> Drive<'a> {
    /// Starts to watch; applies nothing yet.
    pub async fn new(world: &'a World, life: &'a Lifecycle) -> Result<Self> {
        Ok(Self { world, life, history: world.history(life.kind()).await? })
    }

    /// What comes before the object: what others make in AWS, and the prerequisites, until Ready.
    pub async fn prepare(&self) -> Result<()> {
        for (operation, &polls) in &self.life.slow {
            self.world.aws.slow(operation, polls);
        }
        let nothing = Objects::default();
        for hand in &self.life.prepare {
            self.witness(&nothing).act(hand).await?;
        }
        let manifests: Vec<_> = self.life.prerequisites.iter().map(Value::to_string).collect();
        if !manifests.is_empty() {
            self.world.apply(&manifests.join("\n---\n")).await?;
        }
        for (kind, name) in self.life.required() {
            eventually(PATIENCE, &format!("{kind}/{name} to be Ready"), async || {
                let object = self.world.api(kind).get(name).await?;
                ensure!(is_ready(&object), "{:#}", object.data["status"]);
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Creates the object.
    pub async fn apply(&self) -> Result<()> {
        self.world.apply(&self.life.manifest.to_string()).await?;
        Ok(())
    }

    /// Waits until it is Ready as it is now, not as the watch last saw it.
    pub async fn until_ready(&self) -> Result<Version> {
        let (kind, name) = (self.life.kind(), self.life.object());
        let newest = self.world.api(kind).get(name).await?.metadata.generation;
        let is_ready =
            |version: &Version| version.object.metadata.generation >= newest && is_ready(&version.object);
        self.history.until(PATIENCE, name, "Ready", is_ready).await
    }

    /// Merges into its spec.
    pub async fn change(&self, spec: &Value) -> Result<DynamicObject> {
        self.world.merge(self.life.kind(), self.life.object(), json!({"spec": spec})).await
    }

    /// Has it observed now, and waits until that is done.
    pub async fn observe(&self, word: &str) -> Result<Version> {
        self.annotate("reconcile", json!(word)).await
    }

    /// Sets one of the annotations that lead to an observe, and waits until that is done.
    pub async fn annotate(&self, annotation: &str, value: Value) -> Result<Version> {
        let inputs = |object: &DynamicObject| object.data.pointer("/status/sync/inputs").cloned();
        let before = inputs(&self.object()?);
        self.world.annotate(self.life.kind(), self.life.object(), annotation, value).await?;
        self.history
            .until(PATIENCE, self.life.object(), "observed", |version| {
                is_ready(&version.object) && inputs(&version.object) != before
            })
            .await
    }

    /// Has it observed now, and waits for an Error that says this.
    pub async fn observe_error(&self, word: &str, says: &str) -> Result<Version> {
        self.world.observe(self.life.kind(), self.life.object(), word).await?;
        self.history
            .until(PATIENCE, self.life.object(), &format!("Error: {says}"), |version| {
                version.condition("Ready", "reason") == Some("Error")
                    && version.condition("Ready", "message").is_some_and(|message| message.contains(says))
            })
            .await
    }

    /// Deletes it and waits until it is gone.
    pub async fn delete(&self) -> Result<()> {
        self.begin_delete().await?;
        self.until_deleted().await
    }

    /// Deletes it.
    pub async fn begin_delete(&self) -> Result<()> {
        let api = self.world.api(self.life.kind());
        api.delete(self.life.object(), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until it is gone.
    pub async fn until_deleted(&self) -> Result<()> {
        self.history.until_deleted(PATIENCE, self.life.object()).await?;
        Ok(())
    }

    /// It, as it was last seen: also once it is gone.
    pub fn object(&self) -> Result<DynamicObject> {
        let last = self.history.versions(self.life.object()).pop();
        Ok(last.context("the object was never seen")?.object)
    }

    /// The AWS id of it.
    pub fn identifier(&self) -> Result<String> {
        let object = self.object()?;
        let id = object.data["status"][&self.life.identifier].as_str();
        Ok(id.with_context(|| format!("no {} in {:#}", self.life.identifier, object.data))?.to_owned())
    }

    /// What the operator calls it: mostly the AWS id, for some kinds a name.
    pub fn made(&self) -> Result<String> {
        let object = self.object()?;
        let id = object.data.pointer("/status/creation/main/id").and_then(Value::as_str);
        Ok(id.with_context(|| format!("nothing was made: {:#}", object.data))?.to_owned())
    }

    /// It and its prerequisites.
    pub async fn objects(&self) -> Result<Objects> {
        let mut objects = Objects::new(&self.object()?)?;
        for (kind, name) in self.life.required() {
            if let Some(object) = self.world.api(kind).get_opt(name).await? {
                objects.add(kind, name, &object)?;
            }
        }
        Ok(objects)
    }

    /// Does something in AWS as somebody else.
    pub async fn by_hand(&self, hands: &[Hand]) -> Result<()> {
        let objects = self.objects().await?;
        for hand in hands {
            self.witness(&objects).act(hand).await?;
        }
        Ok(())
    }

    /// Fails unless AWS holds this.
    pub async fn ensure_seen(&self, sees: &Sees) -> Result<()> {
        self.witness(&self.objects().await?).ensure(sees).await
    }

    /// Fails unless AWS holds exactly one of it, or, once it is gone, nothing.
    pub async fn ensure_tally(&self, alive: bool) -> Result<()> {
        let objects = self.objects().await?;
        for (look, &count) in &self.life.tally {
            let (found, expected) =
                (self.witness(&objects).count(look).await?, if alive { count } else { 0 });
            ensure!(found == expected, "AWS holds {found} of {look} and should hold {expected}");
        }
        Ok(())
    }

    fn witness<'b>(&'b self, objects: &'b Objects) -> Witness<'b> {
        Witness { boto: &self.world.boto, looks: &self.life.looks, objects }
    }
}

fn is_ready(object: &DynamicObject) -> bool {
    let version = Version { object: object.clone(), deleted: false };
    version.condition("Ready", "status") == Some("True")
        && version.field("/status/observedGeneration").and_then(Value::as_i64) == object.metadata.generation
}
