//! An object as the engine sees it, whatever its kind.

use kube::ResourceExt;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use resource::api::{FINALIZER, GROUP, VERSION};
use resource::condition::Reason;
use resource::decide::Allowed;
use resource::record::Record;
use resource::{Meta, condition};
use serde_json::Value;

/// How Kubernetes addresses a kind.
pub fn api_resource(meta: &Meta) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, meta.kind), meta.plural)
}

/// The annotations on any object that say how it is to be treated.
pub struct Wishes<'a>(&'a DynamicObject);

impl<'a> Wishes<'a> {
    /// An annotation of ours, by its name without the prefix.
    fn get(&self, name: &str) -> Option<&'a str> {
        let key = format!("{GROUP}/{name}");
        self.0.annotations().get(&key).map(String::as_str)
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    pub fn paused(&self) -> bool {
        self.is_true("paused")
    }

    pub fn external_id(&self) -> Option<&'a str> {
        self.get("external-id")
    }

    /// The owner in another cluster from which it is taken over.
    pub fn adopt_from(&self) -> Option<&'a str> {
        self.get("adopt-from")
    }

    pub fn interval(&self) -> Option<&'a str> {
        self.get("reconcile-interval")
    }

    /// What is wrong with what would decide over the AWS resource: guessed, it could cost a database.
    pub fn misspelt(&self) -> Option<String> {
        let policy = self.get("deletion-policy").filter(|policy| !["abandon", "delete"].contains(policy))?;
        Some(format!(
            "annotation aws.konfig.io/deletion-policy: {policy:?} is neither abandon (the AWS resource stays) \
             nor delete; nothing is done until it is one of these or taken away"
        ))
    }

    /// What the user allows, of an object that was or wasn't adopted.
    pub fn allowed(&self, adopted: bool, precious: bool, adopt_unowned: bool) -> Allowed<'a> {
        let policy = self.get("deletion-policy");
        Allowed {
            adopt_unowned,
            external_id: self.external_id().is_some(),
            adopt_from: self.adopt_from(),
            recreate: !precious || self.is_true("recreate"),
            release: policy == Some("abandon") || (adopted && policy != Some("delete")),
        }
    }

    /// The annotations whose change makes an object worth observing anew.
    pub fn fingerprint(&self) -> Vec<(&'static str, Option<&'a str>)> {
        ["external-id", "adopt-from", "recreate", "reconcile"].map(|name| (name, self.get(name))).into()
    }
}

/// Readings of a [`DynamicObject`].
pub trait Object {
    fn wishes(&self) -> Wishes<'_>;
    fn spec(&self) -> &Value;
    fn status(&self) -> &Value;
    fn record(&self) -> Result<Record, serde_json::Error>;
    fn generation(&self) -> i64;
    fn is_deleting(&self) -> bool;
    fn is_ready(&self) -> bool;
    fn ready_reason(&self) -> Option<&str>;
    fn is_waiting(&self) -> bool;
    fn has_finalizer(&self) -> bool;
    fn version(&self) -> u64;
}

static NULL: Value = Value::Null;

impl Object for DynamicObject {
    fn wishes(&self) -> Wishes<'_> {
        Wishes(self)
    }

    fn spec(&self) -> &Value {
        self.data.get("spec").unwrap_or(&NULL)
    }

    fn status(&self) -> &Value {
        self.data.get("status").unwrap_or(&NULL)
    }

    fn record(&self) -> Result<Record, serde_json::Error> {
        Record::of(self.status())
    }

    fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }

    fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn is_ready(&self) -> bool {
        condition::is_ready(self.status(), self.generation())
    }

    fn ready_reason(&self) -> Option<&str> {
        condition::find(&self.status()["conditions"], "Ready")?["reason"].as_str()
    }

    /// Whether it said that something is in its way. One that is on its way needs no waking: a
    /// thousand new ones would wake each other a million times.
    fn is_waiting(&self) -> bool {
        let waits = [Reason::DependencyNotReady.as_str(), Reason::Error.as_str()];
        !self.is_ready() && self.ready_reason().is_some_and(|reason| waits.contains(&reason))
    }

    fn has_finalizer(&self) -> bool {
        self.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// Resource versions of one kind grow: of two states of an object, the larger is newer.
    fn version(&self) -> u64 {
        self.metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}
