//! What must be true once the world has come to rest: everything is as somebody wants it, and nothing is left over.

use resource::condition;
use resource::tags::{UID_TAG, is_reserved};
use serde_json::{Value, json};

use crate::api::Key;
use crate::cloud::{Resource, Stage};
use crate::foreign::{THEIRS, other_cluster};
use crate::kinds::{DEFAULT_MODE, SHAPES, Shape};
use crate::secrets;
use crate::user::{BYSTANDER, network_of};
use crate::world::State;

/// What is not yet as it should be. None: the world has settled.
pub fn unsettled(state: &State) -> Option<String> {
    let objects =
        SHAPES.iter().flat_map(|shape| state.api.list(shape.meta.plural).map(move |found| (shape, found)));
    for (shape, (key, object)) in objects.filter(|(_, (key, _))| key.name != BYSTANDER.1) {
        if let Some(what) = unsettled_object(state, shape, key, object) {
            return Some(what);
        }
    }
    let stray = state.cloud.resources.values().find(|one| {
        let owner = one.tags.get(UID_TAG).unwrap_or(&one.made_for);
        let is_ours = !owner.is_empty() && !one.released && other_cluster(&one.tags).is_none();
        is_ours && state.api.by_uid(owner).is_none()
    });
    stray.map(|one| format!("{} is left over: its object {} is gone", one.id, one.made_for))
}

fn unsettled_object(state: &State, shape: &Shape, key: &Key, object: &Value) -> Option<String> {
    let metadata = &object["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return Some(format!("{key} is still being deleted{}", why(object)));
    }
    if !condition::is_ready(&object["status"], metadata["generation"].as_i64().unwrap_or_default()) {
        return Some(format!("{key} is not Ready{}", why(object)));
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    for (role, ..) in shape.roles {
        let alive: Vec<_> = state.cloud.alive_of(uid, *role).collect();
        let recorded = &object["status"]["creation"][role.0]["id"];
        let is_adopted = object["status"]["adopted"] == true;
        if alive.len() != 1 || alive[0] != *recorded && !is_adopted {
            return Some(format!("{key} has {alive:?} as its {}, and records {recorded}", role.0));
        }
    }
    let id = object["status"]["id"].as_str().unwrap_or_default();
    let found = state.cloud.resources.get(id).filter(|found| found.stage == Stage::Ready);
    let Some(found) = found else { return Some(format!("{key} shows {id:?}, which is not there")) };
    if found.tags.get(UID_TAG).map(String::as_str) != Some(uid) {
        return Some(format!("{key} is Ready, but {id} lacks its uid"));
    }
    let differs = setting_that_differs(object, found).or_else(|| elsewhere(state, key, object, found));
    differs.map(|what| format!("{key} is Ready, but {what}"))
}

fn why(object: &Value) -> String {
    let ready = condition::find(&object["status"]["conditions"], "Ready");
    ready
        .map(|ready| format!(": {} {}", ready["reason"], ready["message"]).replace('"', ""))
        .unwrap_or_default()
}

/// What of a resource is not as its object's spec says.
pub fn setting_that_differs(object: &Value, found: &Resource) -> Option<String> {
    let spec = &object["spec"];
    let has = |field: &str| match (field, found.settings.get(field)) {
        ("mode", None) => json!(DEFAULT_MODE),
        (_, has) => has.cloned().unwrap_or_default(),
    };
    let settings = ["mode", "note", "size", "name"].into_iter().filter(|field| !spec[field].is_null());
    for field in settings {
        if spec[field] != has(field) {
            return Some(format!("{field} of {} is {}, not {}", found.id, has(field), spec[field]));
        }
    }
    let wanted = spec["tags"].as_object().cloned().unwrap_or_default();
    let lacking = wanted
        .iter()
        .find(|(key, value)| found.tags.get(*key).map(|has| json!(has)) != Some((*value).clone()));
    if let Some((key, _)) = lacking {
        return Some(format!("{} lacks the tag {key}", found.id));
    }
    let is_others = |key: &str| is_reserved(key) || key.starts_with("foreign") || found.left.contains(key);
    let unwanted = |key: &&String| !wanted.contains_key(*key) && !is_others(key);
    found.tags.keys().find(unwanted).map(|key| format!("{} still has the tag {key}", found.id))
}

/// What of a resource depends on other objects, and is not as they say.
fn elsewhere(state: &State, key: &Key, object: &Value, found: &Resource) -> Option<String> {
    let spec = &object["spec"];
    if let Some(network) = network_of(key, object) {
        let id = state.api.get(&network)?["status"]["id"].as_str();
        if found.network() != id {
            return Some(format!("{} lies in {:?}, not in {id:?}", found.id, found.network()));
        }
    }
    let secret = spec["passwordRef"]["name"].as_str()?.strip_suffix("-password")?;
    // The password of what existed before is not touched until its Secret changes.
    let is_untouched = found.password.as_deref() == Some(THEIRS);
    let differs = !is_untouched && found.password != secrets::value(state, secret);
    differs.then(|| format!("{} has another password than its Secret", found.id))
}
