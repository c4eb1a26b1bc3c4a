//! What others have in AWS, and what the user says of it: which is to be adopted, and what is to stay.

use std::collections::BTreeSet;
use std::time::Duration;

use resource::tags::{OWNER_TAG, Ownership, UID_TAG};
use resource::{Role, Tags};
use serde_json::{Map, Value, json};

use crate::api::Key;
use crate::cloud::{Resource, Stage};
use crate::kinds::Shape;
use crate::script::Actor;
use crate::user::{annotate, delete};
use crate::world::State;

/// The password of a database that existed before, or was let go by its object.
pub const THEIRS: &str = "theirs";
/// The name of another cluster, in whose name things lie in AWS.
const ELSEWHERE: &str = "elsewhere";

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// It bears no owner's tags.
    Nobody,
    /// An object of another cluster.
    Elsewhere,
    /// Nobody's, and AWS has given up on it.
    Broken,
}

/// The other cluster's object of the same kind and name.
fn owner(shape: &Shape, name: &str) -> Ownership {
    Ownership::new(ELSEWHERE, "default", shape.meta.kind, name, &format!("{ELSEWHERE}#{name}"))
}

/// The owner that a resource names, if that is of another cluster.
pub fn other_cluster(tags: &Tags) -> Option<&str> {
    let owner = tags.get(OWNER_TAG)?;
    owner.starts_with(&format!("{ELSEWHERE}/")).then_some(owner)
}

/// Somebody makes, in AWS, what this object would be.
pub fn make(state: &mut State, actor: Actor, holder: Holder, at: Duration) {
    let (shape, name) = (actor.shape(), actor.name);
    let id = format!("{}-{name}-foreign-{}", shape.meta.kind.to_lowercase(), at.as_millis());
    let mut settings = Map::from_iter([("size".to_owned(), json!(1)), ("mode".to_owned(), json!("foreign"))]);
    if shape.named {
        settings.insert("name".to_owned(), json!(name));
    }
    let mut others = state.cloud.resources.values();
    let is_taken = others.any(|one| one.kind == shape.meta.kind && shape.named && one.name() == Some(name));
    // (What lies in a network could lie in another one than the object says, for ever.)
    if is_taken || shape.in_network {
        return;
    }
    let mut tags = Tags::from([("foreign".to_owned(), "made".to_owned())]);
    if holder == Holder::Elsewhere {
        tags.extend(owner(shape, name).tags());
    }
    let resource = Resource {
        id: id.clone(),
        kind: shape.meta.kind,
        role: Role::MAIN,
        settings,
        tags,
        password: shape.has_password.then(|| THEIRS.to_owned()),
        password_told: false,
        stage: if holder == Holder::Broken { Stage::Failed } else { Stage::Ready },
        visible: at,
        made_for: String::new(),
        released: false,
        left: BTreeSet::new(),
        stolen: None,
        meddled: at,
    };
    state.cloud.resources.insert(id, resource);
}

/// The user points at something in AWS, be it anybody's, that could be this object's.
pub fn adopt_by_id(state: &mut State, actor: Actor, number: u64, at: Duration) {
    let shape = actor.shape();
    let fits = |one: &&Resource| {
        let may_bear = !shape.named || one.name() == Some(actor.name);
        one.kind == shape.meta.kind && one.role == Role::MAIN && may_bear && !shape.in_network
    };
    let ids: Vec<_> = state.cloud.resources.values().filter(fits).map(|one| one.id.clone()).collect();
    if let Some(id) = ids.get(number as usize % ids.len().max(1)) {
        annotate(state, &actor.key(), "external-id", Some(id), at);
    }
}

/// The user takes over what another cluster's object of that name has.
pub fn adopt_from(state: &mut State, actor: Actor, at: Duration) {
    annotate(state, &actor.key(), "adopt-from", Some(&owner(actor.shape(), actor.name).owner), at);
}

/// An annotation of ours.
pub fn wish<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][format!("aws.konfig.io/{name}")].as_str()
}

/// What a resource that is released says of the object that held it.
pub fn is_marked_by(one: &Resource, key: &Key, kind: &str, uid: &str) -> bool {
    let ours = Ownership::new("simulation", &key.namespace, kind, &key.name, uid).owner;
    let is_ours = one.tags.get(UID_TAG).is_none_or(|tagged| tagged == uid);
    one.stolen.is_none() && is_ours && one.tags.get(OWNER_TAG) == Some(&ours)
}

/// People sort out whose is what.
pub fn put_right(state: &mut State, shape: &Shape, key: &Key, object: &Value, at: Duration) {
    let recorded = object["status"]["creation"][Role::MAIN.0]["id"].as_str();
    let named = wish(object, "external-id");
    let name = object["spec"]["name"].as_str();
    let is_meant = |one: &&Resource| {
        let is_named = named == Some(&one.id) || name.is_some() && one.name() == name;
        one.kind == shape.meta.kind && recorded.map_or(is_named, |id| id == one.id)
    };
    let meant = state.cloud.resources.values().find(is_meant).cloned();
    if named.is_some_and(|id| !state.cloud.resources.contains_key(id)) {
        annotate(state, key, "external-id", None, at);
    }
    let Some(meant) = meant else { return };
    if let Some(owner) = other_cluster(&meant.tags) {
        return annotate(state, key, "adopt-from", Some(owner), at);
    }
    if meant.stage == Stage::Failed && meant.made_for.is_empty() {
        state.cloud.remove(&meant.id, at);
        state.cloud.meddled.insert(meant.id);
        return;
    }
    let uid = object["metadata"]["uid"].as_str();
    let is_anothers = meant.tags.get(UID_TAG).is_some_and(|tagged| Some(tagged.as_str()) != uid);
    if is_anothers && recorded.is_none() {
        annotate(state, key, "external-id", None, at);
    }
}

/// Of two objects that hold the same resource, the one that lost it goes, and leaves it alone.
pub fn give_up(state: &mut State, key: &Key, object: &Value, at: Duration, time: &str) {
    let recorded = object["status"]["creation"][Role::MAIN.0]["id"].as_str().unwrap_or_default();
    let tagged = state.cloud.resources.get(recorded).and_then(|one| one.tags.get(UID_TAG));
    let is_anothers = tagged.is_some_and(|tagged| object["metadata"]["uid"] != **tagged);
    let lives = tagged.is_some_and(|tagged| state.api.by_uid(tagged).is_some());
    if is_anothers && lives {
        annotate(state, key, "deletion-policy", Some("abandon"), at);
        delete(state, key, at, time);
    }
}
