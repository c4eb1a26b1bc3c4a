//! The CustomResourceDefinitions: installed, deleted with all their objects, and installed again.

use std::time::Duration;

use resource::api::GROUP;
use serde_json::{Value, json};

use crate::api::Key;
use crate::foreign::wish;
use crate::kinds::{SHAPES, Shape, shape_of};
use crate::world::State;

/// With it, Kubernetes holds a CRD until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn key_of(shape: &Shape) -> Key {
    let name = format!("{}.{GROUP}", shape.meta.plural);
    Key { plural: "customresourcedefinitions".to_owned(), namespace: String::new(), name }
}

/// Installs a CRD, unless it is there.
pub fn install(state: &mut State, shape: &Shape, at: Duration, time: &str) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"finalizers": [CLEANUP]},
    });
    let _ = state.api.create(key_of(shape), crd, at, time);
}

/// Deletes a CRD: Kubernetes deletes its objects, and it goes with the last of them.
pub fn remove(state: &mut State, shape: &Shape, at: Duration, time: &str) {
    if !is_open(state, shape) {
        return;
    }
    let _ = state.api.delete(&key_of(shape), at, time);
    let objects: Vec<_> =
        state.api.list(shape.meta.plural).map(|(key, object)| (key.clone(), object.clone())).collect();
    for (key, object) in objects {
        let metadata = &object["metadata"];
        if metadata["deletionTimestamp"].is_null() {
            state.held.extend(metadata["uid"].as_str().map(str::to_owned));
            let _ = state.api.delete(&key, at, time);
        }
    }
    sweep(state, at);
}

/// The user says that what is in AWS may go with the CRD.
pub fn allow(state: &mut State, shape: &Shape, at: Duration) {
    let annotations = json!({"metadata": {"annotations": {"aws.konfig.io/allow-deletion": "true"}}});
    let _ = state.api.patch(&key_of(shape), &annotations, false, at);
}

/// People allow what goes to go, and put back what is gone.
pub fn put_right(state: &mut State, at: Duration, time: &str) {
    for shape in SHAPES {
        if is_installed(state, shape.meta.plural) && !is_open(state, shape) {
            allow(state, shape, at);
        }
        install(state, shape, at, time);
    }
}

/// CRDs that are being deleted go with the last of their objects.
pub fn sweep(state: &mut State, at: Duration) {
    for shape in SHAPES {
        let is_leaving = is_installed(state, shape.meta.plural) && !is_open(state, shape);
        if is_leaving && state.api.list(shape.meta.plural).next().is_none() {
            let _ = state.api.patch(&key_of(shape), &json!({"metadata": {"finalizers": []}}), false, at);
            state.crd_was_gone = true;
        }
    }
}

/// Whether objects of a resource can exist. Of what is no kind of the model, they always can.
pub fn is_installed(state: &State, plural: &str) -> bool {
    shape_of(plural).is_none_or(|shape| state.api.get(&key_of(shape)).is_some())
}

/// Whether objects can be made.
pub fn is_open(state: &State, shape: &Shape) -> bool {
    let crd = state.api.get(&key_of(shape));
    crd.is_some_and(|crd| crd["metadata"]["deletionTimestamp"].is_null())
}

/// Whether an object is only deleted because its CRD is, and nobody has allowed that.
pub fn is_held(state: &State, uid: &str) -> bool {
    let crd = |object: &Value| {
        let shape = SHAPES.iter().find(|shape| object["kind"] == shape.meta.kind)?;
        state.api.get(&key_of(shape))
    };
    let crd = state.api.by_uid(uid).and_then(|(_, object)| crd(object));
    let is_leaving = |crd: &Value| !crd["metadata"]["deletionTimestamp"].is_null();
    let holds = crd.is_some_and(|crd| is_leaving(crd) && wish(crd, "allow-deletion") != Some("true"));
    holds && state.held.contains(uid)
}
