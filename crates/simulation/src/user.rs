//! What people do in the cluster and in AWS.

use std::collections::BTreeSet;
use std::time::Duration;

use resource::Role;
use resource::api::{GROUP, VERSION};
use resource::tags::{Ownership, UID_TAG, is_reserved};
use serde_json::{Map, Value, json};

use crate::api::{Key, wall};
use crate::cloud::Resource;
use crate::crds;
use crate::foreign;
use crate::kinds::{SHAPES, Shape};
use crate::script::{APART, Action, Actor};
use crate::secrets;
use crate::world::{State, Trap, World};

impl Actor {
    /// Its kind.
    pub fn shape(self) -> &'static Shape {
        &SHAPES[self.shape]
    }

    /// Its key.
    pub fn key(self) -> Key {
        key_of(self.shape(), self.namespace, self.name)
    }
}

/// The key of an object.
pub fn key_of(shape: &Shape, namespace: &str, name: &str) -> Key {
    Key { plural: shape.meta.plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// An object that is paused for ever: it does nothing, but it exists.
pub const BYSTANDER: (&str, &str) = ("policies", "bystander");

/// Installs the CRDs, and the bystander.
pub fn install(world: &World) {
    let time = wall(world);
    for shape in SHAPES {
        crds::install(&mut world.state(), shape, Duration::ZERO, &time);
        if shape.meta.plural == BYSTANDER.0 {
            let mut state = world.state();
            let key = key_of(shape, "default", BYSTANDER.1);
            make(&mut state, shape, &key, &json!({}), Duration::ZERO, &time);
            annotate(&mut state, &key, "paused", Some("true"), Duration::ZERO);
        }
    }
}

/// Does it. Whether the engine goes on.
pub fn act(world: &World, action: &Action) -> bool {
    world.note(format!("{action:?}"));
    let (at, time) = (world.time.elapsed(), wall(world));
    let mut state = world.state();
    let state = &mut *state;
    state.cloud.advance(at);
    match *action {
        Action::Apply(actor, number) => apply(state, actor, number, at, &time),
        Action::ChangeFixed(actor, size) => merge(state, &actor.key(), &json!({"spec": {"size": size}}), at),
        Action::Annotate(actor, name, value) => annotate(state, &actor.key(), name, value, at),
        Action::Delete(actor) => delete(state, &actor.key(), at, &time),
        Action::Drift(actor, number) => drift(state, actor, number, at),
        Action::Steal(actor) => steal(state, actor, at),
        Action::DeleteInAws(actor) => delete_in_aws(state, actor, at),
        Action::MakeInAws(actor, holder) => foreign::make(state, actor, holder, at),
        Action::AdoptById(actor, number) => foreign::adopt_by_id(state, actor, number, at),
        Action::AdoptFrom(actor) => foreign::adopt_from(state, actor, at),
        Action::ChangeSecret(name, number) => secrets::change(state, name, number, at, &time),
        // The bystander stays.
        Action::RemoveCrd(actor, _) if actor.shape().meta.plural == BYSTANDER.0 => {}
        Action::RemoveCrd(actor, is_allowed) => {
            if is_allowed {
                crds::allow(state, actor.shape(), at);
            }
            crds::remove(state, actor.shape(), at, &time);
        }
        Action::AllowCrd(actor) => crds::allow(state, actor.shape(), at),
        Action::Weather(weather) => state.set_weather(weather),
        Action::Crash(left, after) => state.trap = Some(Trap { left, after }),
        Action::Restart => return false,
        Action::SetClock(millis) => world.time.set_forward(millis),
    }
    crds::sweep(state, at);
    true
}

/// Makes an object, or changes some of it.
fn apply(state: &mut State, actor: Actor, number: u64, at: Duration, time: &str) {
    let (shape, key) = (actor.shape(), actor.key());
    crds::install(state, shape, at, time);
    let modes = [json!("plain"), json!("fast"), json!("slow"), Value::Null];
    let mut spec = json!({
        "mode": modes[(number % 4) as usize],
        "note": if number.is_multiple_of(3) { Value::Null } else { json!(format!("note {}", number % 5)) },
        "tags": {"team": if number % 7 < 4 { json!(format!("team {}", number % 3)) } else { Value::Null }},
    });
    if state.api.get(&key).is_some() {
        return merge(state, &key, &json!({"spec": spec}), at);
    }
    spec["size"] = json!(1);
    if shape.named {
        spec["name"] = json!(actor.name);
    }
    if shape.in_network {
        spec["networkRef"] = json!({
            "name": if number.is_multiple_of(2) { "a" } else { "b" },
            "namespace": if number.is_multiple_of(3) { json!(APART) } else { Value::Null },
        });
    }
    if shape.has_password {
        spec["passwordRef"] = json!({"name": secrets::key_of(actor.name).name, "key": "password"});
    }
    make(state, shape, &key, &spec, at, time);
    // What is there already is meant, whosever it is.
    if number % 3 == 1 {
        foreign::adopt_by_id(state, actor, number, at);
        foreign::adopt_from(state, actor, at);
    }
}

/// The network that an object refers to.
pub fn network_of(key: &Key, object: &Value) -> Option<Key> {
    let reference = &object["spec"]["networkRef"];
    let namespace = reference["namespace"].as_str().unwrap_or(&key.namespace);
    let networks = SHAPES.iter().find(|shape| shape.meta.kind == "Network")?;
    Some(key_of(networks, namespace, reference["name"].as_str()?))
}

/// Makes an object.
pub fn make(state: &mut State, shape: &Shape, key: &Key, spec: &Value, at: Duration, time: &str) {
    let object = json!({
        "apiVersion": format!("{GROUP}/{}", VERSION), "kind": shape.meta.kind,
        "metadata": {}, "spec": without_nulls(spec), "status": {"observedGeneration": -1},
    });
    // If it is there, it stays as it is.
    if crds::is_open(state, shape) {
        let _ = state.api.create(key.clone(), object, at, time);
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| !value.is_null());
            set.map(|(field, value)| (field.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Changes an object, if it is there.
pub fn merge(state: &mut State, key: &Key, patch: &Value, at: Duration) {
    let _ = state.api.patch(key, patch, false, at);
}

/// Sets or takes away an annotation of ours.
pub fn annotate(state: &mut State, key: &Key, name: &str, value: Option<&str>, at: Duration) {
    let annotations = json!({format!("aws.konfig.io/{name}"): value});
    merge(state, key, &json!({"metadata": {"annotations": annotations}}), at);
}

/// Deletes an object, if it is there.
pub fn delete(state: &mut State, key: &Key, at: Duration, time: &str) {
    let _ = state.api.delete(key, at, time);
}

/// The main resource of an object in AWS.
fn resource_of(state: &mut State, actor: Actor) -> Option<&mut Resource> {
    let uid = state.api.get(&actor.key())?["metadata"]["uid"].as_str()?.to_owned();
    state.cloud.resources.values_mut().find(|one| one.role == Role::MAIN && one.is_of(&uid) && one.is_alive())
}

fn drift(state: &mut State, actor: Actor, number: u64, at: Duration) {
    let Some(found) = resource_of(state, actor) else { return };
    found.meddled = at;
    match number {
        0 => drop(found.settings.insert("mode".to_owned(), json!("drifted"))),
        1 => drop(found.tags.insert("foreign".to_owned(), "tag".to_owned())),
        2 => drop(found.tags.remove(UID_TAG)),
        _ => drop(found.settings.insert("note".to_owned(), json!("drifted"))),
    }
}

/// The uid of [`BYSTANDER`].
fn bystander_uid(state: &State) -> Option<String> {
    let (_, object) = state.api.list(BYSTANDER.0).find(|(key, _)| key.name == BYSTANDER.1)?;
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

fn steal(state: &mut State, actor: Actor, at: Duration) {
    let Some(thief) = bystander_uid(state) else { return };
    let Some(found) = resource_of(state, actor).filter(|found| found.stolen.is_none()) else { return };
    (found.stolen, found.meddled) = (Some(found.tags.clone()), at);
    let owner = Ownership::new("simulation", "default", "Policy", BYSTANDER.1, &thief);
    found.tags.extend(owner.tags());
}

/// Whoever put another's owner tags on something takes them back.
pub fn give_back(state: &mut State, at: Duration) {
    let objects = SHAPES.iter().flat_map(|shape| state.api.list(shape.meta.plural));
    let uids: BTreeSet<_> =
        objects.filter_map(|(_, object)| object["metadata"]["uid"].as_str().map(str::to_owned)).collect();
    for found in state.cloud.resources.values_mut() {
        if let Some(mut tags) = found.stolen.take() {
            if !tags.get(UID_TAG).is_some_and(|uid| uids.contains(uid)) {
                // Released meanwhile: nobody's tags are put back.
                tags.retain(|key, _| !is_reserved(key));
            }
            (found.tags, found.meddled) = (tags, at);
        }
    }
}

fn delete_in_aws(state: &mut State, actor: Actor, at: Duration) {
    let Some(id) = resource_of(state, actor).map(|found| found.id.clone()) else { return };
    if state.cloud.users(&id).is_empty() {
        state.cloud.remove(&id, at);
        state.cloud.meddled.insert(id);
    }
}
