//! One object under test: what is said of it in the cluster, and done to it there.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::proxy::aws::{Call, Table};
use crate::wait::eventually;
use crate::world::World;

const SOON: Duration = Duration::from_secs(30);

/// A trust policy for a role of any test.
pub const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;

/// A manifest, with these annotations of ours by their name without the prefix.
#[must_use]
pub fn manifest(kind: &str, name: &str, annotations: &[(&str, &str)], spec: Value) -> String {
    let annotations = annotations.iter().map(|(key, value)| (format!("aws.konfig.io/{key}"), json!(value)));
    json!({
        "apiVersion": "aws.konfig.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "annotations": Value::Object(annotations.collect())},
        "spec": spec,
    })
    .to_string()
}

/// Several manifests as one.
#[must_use]
pub fn manifests(all: &[String]) -> String {
    all.join("\n---\n")
}

/// An object of ours in the test's namespace, by kind and name.
pub struct Subject<'a> {
    world: &'a World,
    kind: &'a str,
    name: &'a str,
}

impl World {
    /// An object of the test's namespace, whether it exists or not.
    #[must_use]
    pub fn subject<'a>(&'a self, kind: &'a str, name: &'a str) -> Subject<'a> {
        Subject { world: self, kind, name }
    }

    /// The mutating calls since the mark in which this text (an id, a name, a uid) occurs.
    #[must_use]
    pub fn changes_of(&self, mark: u64, text: &str) -> Vec<Call> {
        self.calls_about(mark, text).into_iter().filter(|call| call.mutating).collect()
    }

    /// The calls since the mark in which this text occurs.
    #[must_use]
    pub fn calls_about(&self, mark: u64, text: &str) -> Vec<Call> {
        let is_about = |call: &Call| call.params.values().any(|value| value.contains(text));
        self.aws.calls_since(mark).into_iter().filter(is_about).collect()
    }

    /// Ensures that these are the operations of the mutating calls about something, in any order.
    pub fn ensure_changes(&self, mark: u64, text: &str, operations: &[&str]) -> Result<()> {
        let calls = self.changes_of(mark, text);
        let mut made: Vec<_> = calls.iter().map(|call| call.operation.as_str()).collect();
        let mut expected = operations.to_vec();
        made.sort_unstable();
        expected.sort_unstable();
        ensure!(made == expected, "{text}: expected {expected:?}, but:\n{}", Table(&calls));
        Ok(())
    }
}

impl Subject<'_> {
    /// The object as it is now.
    pub async fn get(&self) -> Result<DynamicObject> {
        Ok(self.world.api(self.kind).get(self.name).await?)
    }

    /// Its uid.
    pub async fn uid(&self) -> Result<String> {
        Ok(self.get().await?.metadata.uid.unwrap_or_default())
    }

    /// A field of its status, as text; fails where there is none.
    pub async fn status(&self, pointer: &str) -> Result<String> {
        let object = self.get().await?;
        match object.data.pointer(&format!("/status{pointer}")) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) if !other.is_null() => Ok(other.to_string()),
            _ => bail!("no status{pointer} in {object:#?}"),
        }
    }

    /// The owner that names it in AWS.
    #[must_use]
    pub fn owner(&self) -> String {
        format!("lab/{}/{}/{}", self.world.namespace, self.kind, self.name)
    }

    /// Waits until it is Ready, as of its newest generation.
    pub async fn ready(&self) -> Result<DynamicObject> {
        eventually(SOON, &format!("{} {} to be Ready", self.kind, self.name), async || {
            let object = self.get().await?;
            let ready = condition(&object, "Ready");
            let is_current = ready["observedGeneration"] == json!(object.metadata.generation);
            ensure!(ready["status"] == "True" && is_current, "{ready}");
            Ok(object)
        })
        .await
    }

    /// Waits until Ready has this reason, and a message with all of these parts; gives the message.
    pub async fn says(&self, reason: &str, parts: &[&str]) -> Result<String> {
        eventually(SOON, &format!("{} {}: {reason} {parts:?}", self.kind, self.name), async || {
            let ready = condition(&self.get().await?, "Ready");
            let message = ready["message"].as_str().unwrap_or_default().to_owned();
            let has_parts = parts.iter().all(|part| message.contains(part));
            ensure!(ready["reason"] == reason && has_parts, "{ready}");
            Ok(message)
        })
        .await
    }

    /// Waits until an event of this reason was published; gives the notes of all of them.
    pub async fn event(&self, reason: &str) -> Result<Vec<String>> {
        eventually(SOON, &format!("an event {reason} of {} {}", self.kind, self.name), async || {
            let notes = self.events(reason).await?;
            ensure!(!notes.is_empty(), "none");
            Ok(notes)
        })
        .await
    }

    /// The notes of its events of this reason.
    pub async fn events(&self, reason: &str) -> Result<Vec<String>> {
        let api = Api::<Event>::namespaced(self.world.client.clone(), &self.world.namespace);
        let events = api.list(&ListParams::default().fields(&format!("reason={reason}"))).await?;
        let is_its = |event: &Event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            regarding.kind.as_deref() == Some(self.kind) && regarding.name.as_deref() == Some(self.name)
        };
        Ok(events.items.into_iter().filter(is_its).filter_map(|event| event.note).collect())
    }

    /// Sets an annotation of ours; null takes it away.
    pub async fn annotate(&self, annotation: &str, value: Value) -> Result<()> {
        self.world.annotate(self.kind, self.name, annotation, value).await.map(drop)
    }

    /// Merges into its spec.
    pub async fn change(&self, spec: Value) -> Result<()> {
        self.world.merge(self.kind, self.name, json!({"spec": spec})).await.map(drop)
    }

    /// Asks for its deletion; does not wait for it.
    pub async fn delete(&self) -> Result<()> {
        self.world.api(self.kind).delete(self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until it is gone.
    pub async fn gone(&self) -> Result<()> {
        eventually(SOON, &format!("{} {} to go", self.kind, self.name), async || {
            match self.world.api(self.kind).get_opt(self.name).await? {
                None => Ok(()),
                Some(left) => bail!("still there: {}", left.data["status"]["conditions"]),
            }
        })
        .await
    }

    /// Deletes it past its finalizer. An operator that runs would notice: stop it first.
    pub async fn remove_by_force(&self) -> Result<()> {
        self.delete().await?;
        self.world.merge(self.kind, self.name, json!({"metadata": {"finalizers": null}})).await?;
        self.gone().await
    }
}

/// A condition of an object; null if it has none of that type.
#[must_use]
pub fn condition(object: &DynamicObject, kind: &str) -> Value {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}
