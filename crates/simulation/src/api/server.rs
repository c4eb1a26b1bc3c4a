//! The API server as a service: slow, overloaded, cut off, and right.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::Client;
use serde_json::{Value, json};
use tower::BoxError;

use super::request::Asked;
use super::watch::{Body, next_step, watch};
use super::{Key, Refusal};
use crate::crds;
use crate::invariants;
use crate::trace::Who;
use crate::world::{State, World};

/// A client of this world's API server.
pub fn client(world: &World) -> Client {
    let world = world.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let world = world.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(BoxError::from)?.to_bytes();
            match Asked::of(&parts.method, &parts.uri, &body) {
                Some(asked) => serve(&world, asked).await,
                None => Err(BoxError::from(format!("unforeseen: {} {}", parts.method, parts.uri))),
            }
        }
    });
    Client::new(service, "default")
}

async fn serve(world: &World, asked: Asked) -> Result<Response<Body>, BoxError> {
    let name = asked.name();
    let mut dice = world.dice(&name);
    let weather = world.state().weather;
    tokio::time::sleep(dice.millis(1..15)).await;
    if dice.percent(weather.slow) {
        tokio::time::sleep(dice.millis(100..5_000)).await;
    }
    let is_read_often = matches!(asked, Asked::Watch(..) | Asked::List(_));
    if is_read_often && world.state().crd_was_gone {
        world.time.reach(next_step(world.time.elapsed())).await;
    }
    if !crds::is_installed(&world.state(), asked.plural()) {
        return Ok(answer(&Err(Refusal::NOT_FOUND)));
    }
    if !is_read_often && dice.percent(weather.api_failed) {
        return Ok(answer(&Err(Refusal { code: 500, reason: "InternalError" })));
    }
    match asked {
        Asked::Watch(plural, seen) => Ok(watch(world, plural, seen)),
        Asked::List(plural) => {
            if world.state().weather.gone > 0 {
                world.time.reach(next_step(world.time.elapsed())).await;
            }
            Ok(list(&world.state(), &plural))
        }
        Asked::Get(key) => {
            let found = world.state().api.get(&key).cloned().ok_or(Refusal::NOT_FOUND);
            tokio::time::sleep(dice.millis(1..15)).await;
            Ok(answer(&found))
        }
        Asked::Create(..) | Asked::Patch(..) => {
            let conflicts = dice.percent(weather.conflicts);
            let at = world.time.elapsed();
            let written =
                world.effect(Who::Api, |state| write(state, &name, asked, conflicts, at, world)).await;
            tokio::time::sleep(dice.millis(1..15)).await;
            if dice.percent(weather.api_lost) {
                world.note(format!("the answer to {name} is lost"));
                return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            }
            Ok(answer(&written))
        }
    }
}

/// A write of the engine's; somebody else may have come first.
fn write(
    state: &mut State,
    name: &str,
    asked: Asked,
    conflicts: bool,
    at: Duration,
    world: &World,
) -> (String, Result<Value, Refusal>) {
    let (key, body) = match &asked {
        Asked::Create(key, body) | Asked::Patch(key, body, _) => (key.clone(), body.clone()),
        _ => return (name.to_owned(), Err(Refusal::NOT_FOUND)),
    };
    if conflicts && matches!(asked, Asked::Patch(..)) {
        let touched = json!({"metadata": {"labels": {"touched": at.as_millis().to_string()}}});
        // What isn't there isn't touched.
        let _ = state.api.patch(&key, &touched, false, at);
    }
    let before = state.api.get(&key).cloned();
    let written = match asked {
        Asked::Patch(_, body, is_status) => state.api.patch(&key, &body, is_status, at),
        _ => state.api.create(key.clone(), body.clone(), at, &wall(world)),
    };
    if written.is_ok() {
        invariants::written(state, &key, before.as_ref(), &body);
        crds::sweep(state, at);
    }
    let outcome = match &written {
        Ok(_) => String::new(),
        Err(refusal) => format!(" → {} {}", refusal.code, refusal.reason),
    };
    (format!("{name}{}{outcome}", told(&key, &body)), written)
}

/// Now, as Kubernetes writes it.
pub fn wall(world: &World) -> String {
    resource::condition::time(world.time.wall())
}

/// What a write says, in short.
fn told(key: &Key, body: &Value) -> String {
    if key.plural == "events" {
        return format!(" {}", body["note"].as_str().unwrap_or_default());
    }
    if let Some(finalizers) = body["metadata"]["finalizers"].as_array() {
        return format!(" finalizers: {}", finalizers.len());
    }
    let Some(status) = body["status"].as_object() else { return String::new() };
    let parts = status.iter().map(|(field, value)| match field.as_str() {
        "conditions" => format!("Ready={} ({})", value[0]["status"], value[0]["reason"]).replace('"', ""),
        "creation" | "sync" | "secrets" | "managed" => brief(field, value),
        _ => field.clone(),
    });
    format!(" {}", parts.collect::<Vec<_>>().join(" "))
}

fn brief(field: &str, value: &Value) -> String {
    match field {
        "creation" => {
            let roles = value.as_object().into_iter().flatten().map(|(role, creation)| {
                let known = ["attempt", "id", "request", "refused"].into_iter().filter_map(|part| {
                    let value = creation.get(part)?;
                    Some(format!("{part}={}", value.to_string().replace('"', "")))
                });
                let known: Vec<_> = known.collect();
                if creation.is_null() {
                    format!("{role}=null")
                } else {
                    format!("{role}[{}]", known.join(" "))
                }
            });
            format!("creation.{}", roles.collect::<Vec<_>>().join(","))
        }
        _ => field.to_owned(),
    }
}

fn list(state: &State, plural: &str) -> Response<Body> {
    let items: Vec<_> = state.api.list(plural).map(|(_, object)| object.clone()).collect();
    let list = json!({
        "kind": "List", "apiVersion": "v1",
        "metadata": {"resourceVersion": state.api.version().to_string()}, "items": items,
    });
    answer(&Ok(list))
}

fn answer(outcome: &Result<Value, Refusal>) -> Response<Body> {
    let (code, body) = match outcome {
        Ok(value) => (200, value.to_string()),
        Err(Refusal { code, reason }) => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": reason, "message": format!("{reason}, says the model"), "metadata": {},
            });
            (*code, status.to_string())
        }
    };
    let mut response =
        Response::new(Full::new(Bytes::from(body)).map_err(|never: Infallible| never).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
