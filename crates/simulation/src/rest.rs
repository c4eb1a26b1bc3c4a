//! The end of a run: faults stop, people put right what only they can, and the world comes to rest.

use std::time::Duration;

use resource::Role;
use serde_json::{Value, json};

use crate::api::{Key, wall};
use crate::crds;
use crate::foreign;
use crate::kinds::{SHAPES, Shape, shape_of};
use crate::run::DRIFT_INTERVAL;
use crate::secrets;
use crate::settled::unsettled;
use crate::user::{BYSTANDER, annotate, delete, give_back, make, merge, network_of};
use crate::weather::Weather;
use crate::world::{State, World};

/// By then it has settled: a correction that was made too often waits for an hour.
const WITHIN: Duration = Duration::from_secs(3 * 3600);
/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(30);
/// What one object may cost until it has settled, and in one interval after that.
const CALLS: (u64, u64) = (400, 8);

/// Waits until the world has settled, and goes on settled.
pub async fn rest(world: &World) {
    world.note("faults stop");
    {
        let mut state = world.state();
        state.set_weather(Weather::default());
        state.trap = None;
    }
    let began = (world.time.elapsed(), calls(&world.state()));
    loop {
        put_right(world);
        tokio::time::sleep(LOOK).await;
        let mut state = world.state();
        state.cloud.advance(world.time.elapsed());
        let Some(what) = unsettled(&state) else { break };
        if world.time.elapsed() > began.0 + WITHIN {
            return state.violate(format!("it does not come to rest: {what}"));
        }
    }
    world.note("settled");
    let spent = calls(&world.state()) - began.1;
    if spent > CALLS.0 * objects(&world.state()).max(2) {
        return world.state().violate(format!("coming to rest took {spent} calls"));
    }
    stay(world).await;
}

/// Nothing happens any more but the periodic checks.
async fn stay(world: &World) {
    // What somebody did in AWS at the last moment is put back at the next check.
    tokio::time::sleep(DRIFT_INTERVAL.mul_f64(1.2)).await;
    let spending = |state: &State| (state.cloud.changes, calls(state));
    let before = spending(&world.state());
    tokio::time::sleep(DRIFT_INTERVAL * 2).await;
    let mut state = world.state();
    let spent = calls(&state) - before.1;
    if state.cloud.changes > before.0 {
        state.violate("it is at rest, but AWS is told to change something");
    } else if spent > 2 * CALLS.1 * objects(&state) {
        state.violate(format!("it is at rest, but two intervals take {spent} calls"));
    } else if let Some(what) = unsettled(&state) {
        state.violate(format!("it was at rest, but does not stay so: {what}"));
    }
}

fn calls(state: &State) -> u64 {
    state.cloud.calls.values().sum()
}

fn objects(state: &State) -> u64 {
    SHAPES.iter().map(|shape| state.api.list(shape.meta.plural).count() as u64).sum()
}

/// People do what the engine waits for.
fn put_right(world: &World) {
    let (at, time) = (world.time.elapsed(), wall(world));
    let mut state = world.state();
    let state = &mut *state;
    state.cloud.advance(at);
    give_back(state, at);
    crds::put_right(state, at, &time);
    for shape in SHAPES {
        let objects: Vec<_> =
            state.api.list(shape.meta.plural).map(|(key, object)| (key.clone(), object.clone())).collect();
        let acting = objects.into_iter().filter(|(key, _)| key.name != BYSTANDER.1);
        for (key, object) in acting {
            put_object_right(state, shape, &key, &object, at, &time);
        }
    }
    world.bell.notify_waiters();
}

fn put_object_right(state: &mut State, shape: &Shape, key: &Key, object: &Value, at: Duration, time: &str) {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        foreign::give_up(state, key, object, at, time);
        return make_room(state, shape, key, object, at, time);
    }
    annotate(state, key, "paused", None, at);
    foreign::put_right(state, shape, key, object, at);
    foreign::give_up(state, key, object, at, time);
    if shape.meta.precious {
        annotate(state, key, "recreate", Some("true"), at);
    }
    if shape.has_password && state.api.get(&secrets::key_of(&key.name)).is_none() {
        secrets::change(state, &key.name, 0, at, time);
    }
    let id = object["status"]["creation"][Role::MAIN.0]["id"].as_str().unwrap_or_default();
    if let Some(found) = state.cloud.resources.get(id).cloned() {
        merge(state, key, &json!({"spec": {"size": found.settings.get("size")}}), at);
    }
    if let Some(network) = network_of(key, object)
        && let Some(networks) = shape_of(&network.plural)
    {
        make(state, networks, &network, &json!({"size": 1}), at, time);
    }
}

/// What lies in a network that is to go, goes.
fn make_room(state: &mut State, shape: &Shape, key: &Key, object: &Value, at: Duration, time: &str) {
    if shape.meta.kind != "Network" {
        return;
    }
    let id = object["status"]["creation"][Role::MAIN.0]["id"].as_str().unwrap_or_default();
    let owners: Vec<_> = state.cloud.users(id).iter().map(|user| user.made_for.clone()).collect();
    let refers = |user: &Key, object: &Value| {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        network_of(user, object).as_ref() == Some(key) || owners.iter().any(|owner| owner == uid)
    };
    let users: Vec<_> = SHAPES
        .iter()
        .flat_map(|shape| state.api.list(shape.meta.plural))
        .filter(|(key, object)| refers(key, object))
        .map(|(key, _)| key.clone())
        .collect();
    users.iter().for_each(|user| delete(state, user, at, time));
    // What nobody manages any more is taken away by hand.
    state.cloud.resources.retain(|_, one| !(one.released && one.network() == Some(id)));
}
