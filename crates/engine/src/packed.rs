//! An object as the cache holds it: as text. As a tree of JSON it would take ten times as much, and most
//! objects are looked at every five minutes only.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kube::core::{DynamicObject, ObjectMeta};
use kube::{Resource, ResourceExt};
use resource::Meta;
use resource::api::{GROUP, VERSION};
use serde::Deserialize;

use crate::graph::Key;
use crate::object::Object;

/// The spec once more, which no one here asks for.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What there is to see of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Face {
    /// A hash of what others take from it.
    pub for_others: u64,
    /// A hash of what can make a difference to its own reconcile.
    pub for_itself: u64,
    /// Whether we hold it. To lose that makes a difference; to gain it is our own doing.
    pub is_held: bool,
}

impl Face {
    /// The face of an object from which others take what the pointers lead to.
    fn of(object: &DynamicObject, taken: &BTreeSet<String>) -> Self {
        let (mut others, mut itself) = (DefaultHasher::new(), DefaultHasher::new());
        object.uid().hash(&mut others);
        object.is_ready().hash(&mut others);
        // Those who wait say what for.
        object.ready_reason().hash(&mut others);
        object.is_deleting().hash(&mut others);
        for pointer in taken {
            object.data.pointer(pointer).map(ToString::to_string).hash(&mut others);
        }
        // Status is not among these: we write it.
        object.uid().hash(&mut itself);
        object.metadata.generation.hash(&mut itself);
        object.is_deleting().hash(&mut itself);
        object.annotations().hash(&mut itself);
        Self { for_others: others.finish(), for_itself: itself.finish(), is_held: object.has_finalizer() }
    }
}

/// An object, packed; beside it, what is asked of many objects at once.
#[derive(Clone, Debug, Deserialize)]
pub struct Packed {
    /// Name, namespace, uid and resource version; nothing else.
    metadata: ObjectMeta,
    // kube's controller wants to be able to read what it runs from the API server, and never does.
    #[serde(skip)]
    text: Arc<[u8]>,
    #[serde(skip)]
    pub face: Face,
    pub is_ready: bool,
    pub is_waiting: bool,
}

impl Packed {
    /// An object from the API server, without what the engine has no use for. Others take from it what
    /// the pointers lead to.
    ///
    /// # Errors
    /// When it cannot be written as JSON, from which it came.
    pub fn new(mut object: DynamicObject, taken: &BTreeSet<String>) -> serde_json::Result<Self> {
        object.metadata.managed_fields = None;
        object.metadata.annotations.iter_mut().for_each(|all| drop(all.remove(LAST_APPLIED)));
        Ok(Self {
            text: serde_json::to_vec(&object)?.into(),
            is_ready: object.is_ready(),
            is_waiting: object.is_waiting(),
            face: Face::of(&object, taken),
            metadata: ObjectMeta {
                name: object.metadata.name,
                namespace: object.metadata.namespace,
                uid: object.metadata.uid,
                resource_version: object.metadata.resource_version,
                ..ObjectMeta::default()
            },
        })
    }

    /// The object. There always is one: the text was written here.
    pub fn open(&self) -> Option<DynamicObject> {
        let opened = serde_json::from_slice(&self.text);
        opened.inspect_err(|error| tracing::error!(%error, "a cached object cannot be read")).ok()
    }

    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn key(&self, kind: &str) -> Key {
        Key { kind: kind.to_owned(), namespace: self.namespace().unwrap_or_default(), name: self.name_any() }
    }
}

/// How Kubernetes names a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Names {
    pub kind: &'static str,
    pub plural: &'static str,
}

impl Names {
    pub fn of(meta: &Meta) -> Self {
        Self { kind: meta.kind, plural: meta.plural }
    }
}

impl Resource for Packed {
    type DynamicType = Names;
    type Scope = kube::core::NamespaceResourceScope;

    fn kind(names: &Names) -> Cow<'_, str> {
        names.kind.into()
    }

    fn group(_: &Names) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version(_: &Names) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural(names: &Names) -> Cow<'_, str> {
        names.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_comes_out_as_it_went_in() {
        let value = json!({
            "apiVersion": "aws.konfig.io/v1alpha1", "kind": "Thing",
            "metadata": {
                "name": "main", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 2,
                "annotations": {"aws.konfig.io/paused": "true"}, "finalizers": ["aws.konfig.io/finalizer"],
            },
            "spec": {"ratio": 0.123_456_789_012_345_68, "name": "\u{1F600} \" \\ \n", "none": null},
            "status": {"observedGeneration": 2},
        });
        let mut object: DynamicObject = serde_json::from_value(value.clone()).unwrap();
        object.annotations_mut().insert(LAST_APPLIED.to_owned(), "{}".to_owned());
        object.metadata.managed_fields = Some(Vec::new());
        let packed = Packed::new(object, &BTreeSet::new()).unwrap();
        assert_eq!(json!(packed.open().unwrap()), value);
        assert_eq!(packed.key("Thing").to_string(), "Thing default/main");
        assert!(!packed.is_ready && !packed.is_waiting);
    }
}
