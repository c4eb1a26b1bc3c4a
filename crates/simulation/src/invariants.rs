//! What must be true after every single effect of the engine.

use resource::api::FINALIZER;
use resource::record::{Creation, Record};
use resource::tags::UID_TAG;
use resource::{Call, Protection, Role};
use serde_json::Value;

use crate::api::{Change, Key};
use crate::cloud::{Caller, Resource, Stage};
use crate::crds;
use crate::foreign::{is_marked_by, other_cluster, wish};
use crate::kinds::shape_of;
use crate::secrets::CANARY;
use crate::settled;
use crate::world::State;

/// How often in a row, in one life of the engine, AWS may be asked for what it has already done: replicas lag for
/// as long as five polls, and a difference is put right five times before it is taken for one that stays.
const IN_VAIN: u64 = 10;

/// An intent stands in the status before AWS is asked to create anything, and with the token that is sent.
pub fn before_create(state: &mut State, caller: &Caller, call: &Call) {
    at_once(state, &caller.uid, &Value::Null);
    let Some((key, object)) = state.api.by_uid(&caller.uid) else {
        let what = format!("{} is made, but its object does not exist any more", caller.object);
        return state.violate(what);
    };
    let shape = shape_of(&key.plural);
    let record = Record::of(&object["status"]).unwrap_or_default();
    let intent = record.creation(caller.role).filter(|creation| creation.id.is_none());
    let violation = match intent {
        None => Some(format!("{} is made without an intent in its status", caller.object)),
        Some(Creation { token, .. })
            if shape.is_some_and(|shape| shape.protection(caller.role) == Protection::Token)
                && call.token.as_ref() != Some(token) =>
        {
            Some(format!("{} is made with another token than its status holds", caller.object))
        }
        Some(_) => None,
    };
    violation.into_iter().for_each(|what| state.violate(what));
}

/// There is at most one resource for an object and role.
pub fn created(state: &mut State, caller: &Caller) {
    let alive: Vec<_> = state.cloud.alive_of(&caller.uid, caller.role).map(str::to_owned).collect();
    if alive.len() > 1 {
        let ids = alive.join(" and ");
        state.violate(format!("{} has two AWS resources as its {}: {ids}", caller.object, caller.role.0));
    }
}

/// Nothing is done to what, as AWS showed, belongs to another object that exists; nor to another cluster's, unless
/// the user said so.
pub fn owned(state: &mut State, caller: &Caller, found: &Resource, verb: &str) {
    let Some(owner) = found.tags.get(UID_TAG).filter(|owner| **owner != caller.uid) else {
        return;
    };
    let answer = state.cloud.last_answer(&found.id, &caller.uid);
    let was_seen = answer.is_some_and(|shown| shown.tags.get(UID_TAG) == Some(owner));
    let was_allowed = |from| {
        state.api.versions(&caller.uid).any(|version| wish(&version.object, "adopt-from") == Some(from))
    };
    let is_elsewhere = other_cluster(&found.tags).is_some_and(|from| !was_allowed(from));
    if was_seen && (state.api.by_uid(owner).is_some() || is_elsewhere) {
        state.violate(format!(
            "{verb} of {}, which belongs to {owner}, on behalf of {}",
            found.id, caller.uid
        ));
    }
}

/// A change changes something, as far as AWS's last answer tells.
pub fn updates(state: &mut State, caller: &Caller, before: &Resource, after: &Resource) {
    at_once(state, &caller.uid, &Value::Null);
    owned(state, caller, before, "Update");
    let is_same = before.is_as(after);
    let was_shown = state
        .cloud
        .last_answer(&before.id, &caller.uid)
        .is_some_and(|shown| shown.settings == before.settings && shown.tags == before.tags);
    // Nobody can read a password: started anew, the engine may send one again.
    let was_shown = was_shown && (before.password_told || !after.password_told);
    if is_same && was_shown {
        state.violate(format!("{} is changed, but nothing differs", before.id));
    }
    if is_same {
        in_vain(state, &before.id);
    } else {
        state.cloud.in_vain.remove(&before.id);
    }
}

/// A replica that lags may lead to a change that AWS has already; but not to one after the other.
pub fn in_vain(state: &mut State, id: &str) {
    let times = state.cloud.in_vain.entry(id.to_owned()).or_default();
    *times += 1;
    if *times > IN_VAIN {
        let what = format!("AWS is asked {times} times in a row for what it has already done to {id}");
        state.violate(what);
    }
}

/// Only what nobody wants any more is deleted; and what existed before, or is to stay, only if the user ever said so
/// since the object is being deleted.
pub fn deletes(state: &mut State, caller: &Caller, found: &Resource) {
    at_once(state, &caller.uid, &Value::Null);
    owned(state, caller, found, "Delete");
    let object = state.api.by_uid(&caller.uid).map(|(_, object)| object);
    let is_wanted = object.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_null());
    let is_adopted = object.is_some_and(|object| object["status"]["adopted"] == true);
    let leaving = state.api.versions(&caller.uid).map(|version| &version.object);
    let leaving = leaving.filter(|object| !object["metadata"]["deletionTimestamp"].is_null());
    let policies: Vec<_> = leaving.map(|object| wish(object, "deletion-policy")).collect();
    let existed = is_adopted || found.made_for.is_empty();
    // What is going already is only asked to go once more: a replica may still show it as it was.
    let is_working = !matches!(found.stage, Stage::Failed | Stage::Deleting(_));
    let violation = if crds::is_held(state, &caller.uid) {
        Some(format!("{} is deleted, because a CRD was", found.id))
    } else if is_wanted && is_working {
        Some(format!("{} is deleted, but {} is wanted", found.id, caller.object))
    } else if existed && !policies.contains(&Some("delete")) {
        Some(format!("{} is deleted, but it existed before {}", found.id, caller.object))
    } else if !is_wanted && policies.iter().all(|policy| *policy == Some("abandon")) {
        Some(format!("{} is deleted, but {} was to leave it", found.id, caller.object))
    } else {
        None
    };
    violation.into_iter().for_each(|what| state.violate(what));
}

/// A write of the engine's to the cluster.
pub fn written(state: &mut State, key: &Key, before: Option<&Value>, body: &Value) {
    if key.plural != "secrets" && body.to_string().contains(CANARY) {
        state.violate(format!("a secret stands in a write to {key}"));
    }
    let (Some(before), Some(_)) = (before, shape_of(&key.plural)) else {
        return at_once(state, body["regarding"]["uid"].as_str().unwrap_or_default(), body);
    };
    at_once(state, before["metadata"]["uid"].as_str().unwrap_or_default(), body);
    let after = state.api.get(key).cloned();
    if has_finalizer(before) && !after.as_ref().is_some_and(has_finalizer) {
        return let_go(state, key, before);
    }
    let Some(after) = after else { return };
    kept(state, key, before, &after);
    claimed(state, &after);
    given_up(state, before, &after);
    if !body["status"]["lastSyncTime"].is_null() {
        told_in_sync(state, key, &after);
    }
}

/// An id that AWS told comes before anything else.
fn at_once(state: &mut State, uid: &str, body: &Value) {
    let Some(id) = state.unrecorded.remove(uid) else { return };
    let roles = body["status"]["creation"].as_object();
    if !roles.is_some_and(|roles| roles.values().any(|creation| creation["id"] == *id)) {
        state.violate(format!("AWS told {uid} of {id}, but something else is written first"));
    }
}

fn has_finalizer(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().any(|one| one == FINALIZER)
}

/// The finalizer goes when nothing of the object's lives in AWS, or when it is to stay there.
fn let_go(state: &mut State, key: &Key, before: &Value) {
    let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
    let policy = wish(before, "deletion-policy");
    let is_adopted = before["status"]["adopted"] == true && policy != Some("delete");
    if policy == Some("abandon") || is_adopted {
        unmarked(state, key, before);
        let recorded = before["status"]["creation"][Role::MAIN.0]["id"].as_str().unwrap_or_default();
        for one in state.cloud.resources.values_mut().filter(|one| one.is_of(uid) || one.id == recorded) {
            if one.is_of(uid) || !one.tags.contains_key(UID_TAG) {
                one.release();
            }
        }
        return;
    }
    let left = state.cloud.resources.values().find(|one| one.is_of(uid) && !one.released);
    let left = left.map(|one| one.id.clone()).or_else(|| {
        let roles = shape_of(&key.plural).into_iter().flat_map(|shape| shape.roles);
        roles.flat_map(|(role, ..)| state.cloud.alive_of(uid, *role)).next().map(str::to_owned)
    });
    if let Some(left) = left {
        state.violate(format!("the finalizer of {key} goes, but {left} lives"));
    }
}

/// What existed before is released without a mark of ours; unless a replica that lags still shows another's there.
fn unmarked(state: &mut State, key: &Key, before: &Value) {
    let kind = before["kind"].as_str().unwrap_or_default();
    let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
    let mut theirs = state.cloud.resources.values().filter(|one| one.made_for.is_empty());
    let Some(marked) = theirs.find(|one| is_marked_by(one, key, kind, uid)).map(|one| one.id.clone()) else {
        return;
    };
    let shown = state.cloud.last_answer(&marked, uid).and_then(|shown| shown.tags.get(UID_TAG));
    if shown.is_none_or(|shown| shown == uid) {
        return state.violate(format!("{marked} is released, but still bears the tags of {key}"));
    }
    // For whoever reads these tags, the object has made it.
    if let Some(marked) = state.cloud.resources.get_mut(&marked) {
        marked.made_for = uid.to_owned();
    }
}

/// An id that was recorded stays until what it names is gone.
fn kept(state: &mut State, key: &Key, before: &Value, after: &Value) {
    let roles = before["status"]["creation"].as_object().into_iter().flatten();
    let ids = roles.filter_map(|(role, creation)| Some((role, creation["id"].as_str()?)));
    let mut lost = ids.filter(|(role, id)| {
        let lives = state.cloud.resources.get(*id).is_some_and(|one| one.is_alive() && !one.released);
        lives && after["status"]["creation"][role.as_str()]["id"] != **id
    });
    if let Some((_, id)) = lost.next_back() {
        let what = format!("the status of {key} loses {id}, which lives");
        state.violate(what);
    }
}

/// What was stolen before its id was known is another's, as far as anybody can tell: an intent that is struck
/// gives it up.
fn given_up(state: &mut State, before: &Value, after: &Value) {
    let main = |object: &Value| object["status"]["creation"][Role::MAIN.0].clone();
    if main(before).is_null() || !main(before)["id"].is_null() || !main(after).is_null() {
        return;
    }
    let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
    let resources = state.cloud.resources.values_mut();
    resources.filter(|one| one.is_of(uid) && one.stolen.is_some()).for_each(Resource::release);
}

/// Before an intent, it was looked whether something bears the unique name. What bears it, untagged, under an
/// intent whose answer is open counts as made by it; somebody who makes it at that very time is out of luck.
fn claimed(state: &mut State, after: &Value) {
    let creation = &after["status"]["creation"][Role::MAIN.0];
    let Some(id) = creation["id"].as_str().filter(|_| after["status"]["adopted"] != true) else { return };
    let uid = after["metadata"]["uid"].as_str().unwrap_or_default();
    let intended = |version: &&Change| !version.object["status"]["creation"][Role::MAIN.0].is_null();
    let Some(intent) = state.api.versions(uid).find(intended).map(|version| version.at) else { return };
    let is_open = creation["token"].as_str().is_some_and(|token| !token.is_empty());
    if let Some(found) = state.cloud.resources.get_mut(id)
        && found.made_for.is_empty()
        && is_open
        && found.visible >= intent
    {
        found.made_for = uid.to_owned();
    }
}

/// What is said to be in sync is as the spec says; unless somebody meddled since AWS was read.
fn told_in_sync(state: &mut State, key: &Key, after: &Value) {
    let Some(id) = after["status"]["creation"][Role::MAIN.0]["id"].as_str() else { return };
    let uid = after["metadata"]["uid"].as_str().unwrap_or_default();
    if after["metadata"]["generation"] != after["status"]["observedGeneration"]
        || state.cloud.meddled.contains(id)
    {
        return;
    }
    if !state.cloud.resources.contains_key(id) && state.cloud.is_ghost(id, uid) {
        return;
    }
    let Some(found) = state.cloud.resources.get(id) else {
        return state.violate(format!("{key} is said to be in sync, but there is no {id}"));
    };
    let mut shown = found.clone();
    if let Some(answer) = state.cloud.last_answer(id, uid) {
        if answer.as_of < found.meddled {
            return;
        }
        (shown.settings, shown.tags) = (answer.settings.clone(), answer.tags.clone());
    }
    // No more can be said than what was shown: the replica may lag.
    let is_as_shown = settled::setting_that_differs(after, &shown).is_none();
    let difference = settled::setting_that_differs(after, found).filter(|_| !is_as_shown);
    if let Some(difference) = difference {
        state.violate(format!("{key} is said to be in sync, but {difference}"));
    }
}
