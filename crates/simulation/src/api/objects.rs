//! The objects of the cluster, their versions, and the rules of writing to them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// An object, by its resource's plural, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Of its resource.
    pub plural: String,
    /// Empty where there is none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" | "default" => write!(f, "{}/{}", self.plural, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.plural, self.name),
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// Kubernetes' word for it.
    pub reason: &'static str,
}

impl Refusal {
    /// There is no such object.
    pub const NOT_FOUND: Self = Self { code: 404, reason: "NotFound" };
    /// It is another version, or another object, than the request says.
    pub const CONFLICT: Self = Self { code: 409, reason: "Conflict" };
    /// The name is taken.
    pub const EXISTS: Self = Self { code: 409, reason: "AlreadyExists" };
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It came.
    Added,
    /// It was changed.
    Modified,
    /// It went.
    Deleted,
}

/// One version in the history of the cluster.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its number: they count for all objects together.
    pub version: u64,
    /// When it came about.
    pub at: Duration,
    /// Of which object.
    pub key: Key,
    /// What happened to it.
    pub verb: Verb,
    /// The object since, or as it was last.
    pub object: Value,
}

/// All objects, and how they came to be as they are.
#[derive(Clone, Debug, Default)]
pub struct Store {
    version: u64,
    objects: BTreeMap<Key, Value>,
    history: Vec<Change>,
    born: BTreeMap<Key, u64>,
}

type Written = Result<Value, Refusal>;

impl Store {
    /// The version of the newest change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key)
    }

    /// All objects of a resource.
    pub fn list<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a Key, &'a Value)> {
        self.objects.iter().filter(move |(key, _)| key.plural == plural)
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<(&Key, &Value)> {
        self.objects.iter().find(|(_, object)| object["metadata"]["uid"] == uid)
    }

    /// All versions of the object with this uid, oldest first.
    pub fn versions<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Change> {
        self.history.iter().filter(move |change| change.object["metadata"]["uid"] == uid)
    }

    /// The changes of a resource's objects after a version, oldest first.
    pub fn since<'a>(&'a self, plural: &'a str, version: u64) -> impl Iterator<Item = &'a Change> {
        let first = self.history.partition_point(|change| change.version <= version);
        self.history[first..].iter().filter(move |change| change.key.plural == plural)
    }

    /// Makes an object. A time is RFC 3339.
    pub fn create(&mut self, key: Key, mut object: Value, at: Duration, time: &str) -> Written {
        if self.objects.contains_key(&key) {
            return Err(Refusal::EXISTS);
        }
        let born = self.born.entry(key.clone()).or_default();
        *born += 1;
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(key.name);
        if !key.namespace.is_empty() {
            metadata["namespace"] = json!(key.namespace);
        }
        // Readable, and the same whatever else happens.
        metadata["uid"] = json!(format!("{key}#{born}"));
        metadata["generation"] = json!(1);
        metadata["creationTimestamp"] = json!(time);
        Ok(self.put(key, Verb::Added, object, at))
    }

    /// Merges into an object, or into its status alone.
    pub fn patch(&mut self, key: &Key, patch: &Value, is_status: bool, at: Duration) -> Written {
        let before = self.objects.get(key).ok_or(Refusal::NOT_FOUND)?.clone();
        let expected = &patch["metadata"]["resourceVersion"];
        if !expected.is_null() && *expected != before["metadata"]["resourceVersion"] {
            return Err(Refusal::CONFLICT);
        }
        let uid = &patch["metadata"]["uid"];
        // (A write to the status ignores it.)
        if !is_status && !uid.is_null() && *uid != before["metadata"]["uid"] {
            return Err(Refusal::CONFLICT);
        }
        let mut after = before.clone();
        if is_status {
            merge(&mut after["status"], &patch["status"]);
        } else {
            merge(&mut after["metadata"], &without_identity(&patch["metadata"]));
            merge(&mut after["spec"], &patch["spec"]);
        }
        if after["spec"] != before["spec"] {
            raise_generation(&mut after);
        }
        Ok(self.replace(key, &before, after, at))
    }

    /// Puts an object in the place of another version of it, whatever that was.
    pub fn set(&mut self, key: &Key, object: Value, at: Duration) {
        if let Some(before) = self.objects.get(key).cloned() {
            self.replace(key, &before, object, at);
        }
    }

    /// Begins to delete an object; without a finalizer that ends it.
    pub fn delete(&mut self, key: &Key, at: Duration, time: &str) -> Written {
        let before = self.objects.get(key).ok_or(Refusal::NOT_FOUND)?.clone();
        let mut after = before.clone();
        if before["metadata"]["deletionTimestamp"].is_null() {
            after["metadata"]["deletionTimestamp"] = json!(time);
            raise_generation(&mut after);
        }
        Ok(self.replace(key, &before, after, at))
    }

    /// A write that changes nothing is none.
    fn replace(&mut self, key: &Key, before: &Value, after: Value, at: Duration) -> Value {
        let metadata = &after["metadata"];
        let held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if !metadata["deletionTimestamp"].is_null() && !held {
            self.objects.remove(key);
            return self.put(key.clone(), Verb::Deleted, after, at);
        }
        if after == *before { after } else { self.put(key.clone(), Verb::Modified, after, at) }
    }

    fn put(&mut self, key: Key, verb: Verb, mut object: Value, at: Duration) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if verb != Verb::Deleted {
            self.objects.insert(key.clone(), object.clone());
        }
        self.history.push(Change { version: self.version, at, key, verb, object: object.clone() });
        object
    }
}

fn raise_generation(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    object["metadata"]["generation"] = json!(generation + 1);
}

fn without_identity(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("resourceVersion");
        fields.remove("uid");
    }
    metadata
}

/// A JSON merge patch (RFC 7386). Null as a whole stands for no patch at all.
fn merge(target: &mut Value, patch: &Value) {
    if patch.is_null() {
        return;
    }
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (field, value) in fields {
        if let Some(target) = target.as_object_mut() {
            if value.is_null() {
                target.remove(field);
            } else {
                merge(target.entry(field.clone()).or_insert(Value::Null), value);
            }
        }
    }
}
