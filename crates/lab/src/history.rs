//! Everything that happened to objects, from a watch: sampling would miss short states.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::wait::eventually;

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Version {
    /// The object.
    pub object: DynamicObject,
    /// Whether this is how it went.
    pub deleted: bool,
}

impl Version {
    /// A condition's field, such as `condition("Ready", "reason")`.
    #[must_use]
    pub fn condition(&self, kind: &str, field: &str) -> Option<&str> {
        let conditions = self.object.data.pointer("/status/conditions")?.as_array()?;
        conditions.iter().find(|condition| condition["type"] == kind)?[field].as_str()
    }

    /// A field by JSON pointer from the object's root (`spec` and `status`, not `metadata`).
    #[must_use]
    pub fn field(&self, pointer: &str) -> Option<&Value> {
        self.object.data.pointer(pointer)
    }
}

/// Records each version of the objects it watches, from its start to its drop.
#[derive(Debug)]
pub struct History {
    versions: Arc<Mutex<Vec<Version>>>,
    watch: JoinHandle<()>,
}

impl History {
    /// Starts to watch the objects of an API (of a kind in a namespace, say); returns when the
    /// watch is up, so that nothing after this is missed.
    pub async fn of(api: Api<DynamicObject>) -> Result<Self> {
        let versions = Arc::new(Mutex::new(Vec::new()));
        let (up, is_up) = tokio::sync::oneshot::channel();
        let watch = tokio::spawn(record(api, Arc::clone(&versions), up));
        tokio::time::timeout(Duration::from_secs(30), is_up).await.context("the watch did not start")??;
        Ok(Self { versions, watch })
    }

    /// All versions so far of the object of that name, oldest first.
    #[must_use]
    pub fn versions(&self, name: &str) -> Vec<Version> {
        let versions = self.versions.lock();
        let named = |version: &&Version| version.object.metadata.name.as_deref() == Some(name);
        versions.iter().filter(named).cloned().collect()
    }

    /// All versions so far of all objects, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Version> {
        self.versions.lock().clone()
    }

    /// The reasons that its Ready condition went through, each run of equal ones once.
    #[must_use]
    pub fn reasons(&self, name: &str) -> Vec<String> {
        let versions = self.versions(name);
        let reasons = versions.iter().filter_map(|version| version.condition("Ready", "reason"));
        let mut reasons: Vec<_> = reasons.map(str::to_owned).collect();
        reasons.dedup();
        reasons
    }

    /// Waits until the newest version satisfies `wanted`.
    pub async fn until(
        &self,
        timeout: Duration,
        name: &str,
        what: &str,
        wanted: impl Fn(&Version) -> bool,
    ) -> Result<Version> {
        eventually(timeout, &format!("{name}: {what}"), async || {
            let last = self.versions(name).pop().context("never seen")?;
            ensure!(wanted(&last), "last seen {last:#?}");
            Ok(last)
        })
        .await
    }

    /// Waits for Ready=True at the newest generation.
    pub async fn until_ready(&self, timeout: Duration, name: &str) -> Result<Version> {
        self.until(timeout, name, "Ready", |version| {
            let observed = version.field("/status/observedGeneration").and_then(Value::as_i64);
            version.condition("Ready", "status") == Some("True")
                && observed == version.object.metadata.generation
        })
        .await
    }

    /// Waits for Ready=True once the watch has seen this change of the object.
    pub async fn until_ready_after(&self, timeout: Duration, change: &DynamicObject) -> Result<Version> {
        let name = change.metadata.name.as_deref().unwrap_or_default();
        self.until(timeout, name, "the change", |version| {
            version.object.metadata.generation >= change.metadata.generation
        })
        .await?;
        self.until_ready(timeout, name).await
    }

    /// Waits for a reason of Ready.
    pub async fn until_reason(&self, timeout: Duration, name: &str, reason: &str) -> Result<Version> {
        self.until(timeout, name, reason, |version| version.condition("Ready", "reason") == Some(reason))
            .await
    }

    /// Waits until the object is gone.
    pub async fn until_deleted(&self, timeout: Duration, name: &str) -> Result<Version> {
        self.until(timeout, name, "deleted", |version| version.deleted).await
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

async fn record(
    api: Api<DynamicObject>,
    versions: Arc<Mutex<Vec<Version>>>,
    up: tokio::sync::oneshot::Sender<()>,
) {
    let mut up = Some(up);
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let (mut object, deleted) = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
            Ok(Event::Delete(object)) => (object, true),
            Ok(Event::InitDone) => {
                if let Some(up) = up.take() {
                    up.send(()).ok();
                }
                continue;
            }
            Ok(Event::Init) => continue,
            // The API server is away; the watcher goes on from where it was.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Nobody asserts on these, and they would fill every message.
        object.metadata.managed_fields = None;
        versions.lock().push(Version { object, deleted });
    }
}
