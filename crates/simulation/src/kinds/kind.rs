//! A kind as the engine runs it, on the model of AWS.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws::Batch;
use resource::record::Made;
use resource::schema::pointer;
use resource::{
    Call, Candidate, Changes, Class, Created, Error, Kind, Live, Meta, Observed, Phase, Progress, Protection,
    Result, Role, Scope,
};
use serde_json::{Map, Value, json};

use super::shapes::{DEFAULT_MODE, Pace, SHAPES, Shape};
use crate::chance::Chance;
use crate::cloud::{Asked, Caller, Order, Resource, Seen, Stage};
use crate::world::{State, World};
use crate::{cloud, invariants};

/// All kinds of the model, for one life of the engine.
pub fn all(world: &World) -> Vec<Arc<dyn Kind>> {
    SHAPES.iter().map(|shape| Arc::new(SimulatedKind::new(world, shape)) as Arc<dyn Kind>).collect()
}

/// A kind.
pub struct SimulatedKind {
    world: World,
    shape: &'static Shape,
    schema: Value,
    status_schema: Value,
    batch: Batch<Seen>,
}

impl SimulatedKind {
    fn new(world: &World, shape: &'static Shape) -> Self {
        let reader = world.clone();
        let batch = Batch::new(move |_: Scope, ids: Vec<String>| {
            let world = reader.clone();
            async move { describe(&world, shape, ids).await }
        });
        let status_schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        Self { world: world.clone(), shape, schema: shape.schema(), status_schema, batch }
    }

    fn asked(&self, verb: &str, caller: &Caller, call: &Call) -> Asked {
        Asked {
            operation: self.shape.operation(verb, caller.role),
            by: caller.object.clone(),
            changes: ["Create", "Update", "Delete", "Untag"].contains(&verb),
            quotes: password(call),
        }
    }

    async fn read(&self, call: &Call, role: Role, id: &str) -> Result<Option<Resource>> {
        let seen = self.seen(call, role, id).await?;
        self.world.state().cloud.answered(id, &call.ownership.uid, seen.as_ref());
        Ok(seen.map(|seen| seen.resource))
    }

    async fn seen(&self, call: &Call, role: Role, id: &str) -> Result<Option<Seen>> {
        if self.shape.meta.reads == resource::Reads::Batched {
            let found = self.batch.get(&call.scope, id).await?;
            if let Some(found) = found.into_iter().next() {
                return Ok(Some(found));
            }
        }
        // What a filter leaves out is asked for once more, alone.
        let asked = self.asked("Describe", &Caller::of(call, role), call);
        let read = |state: &mut State, now| {
            let lags = lags(&mut state.chance, id);
            let found = state.cloud.read(id, lags, now);
            Ok((found.as_ref().map_or("absent".to_owned(), told), found))
        };
        self.world.call(asked, read, |_| {}).await
    }

    /// How a request goes that is recorded: None once it is done well.
    async fn progress(&self, call: &Call, role: Role, handle: &str) -> Result<Option<Observed>> {
        let asked = self.asked("AskFor", &Caller::of(call, role), call);
        let ask = |state: &mut State, _: Duration| {
            let under_way = state.cloud.is_under_way(handle);
            let Some(request) = state.cloud.requests.get(handle).cloned() else {
                return Err(Error::new(Class::NotFound, "AskFor", "no such request"));
            };
            let (told, observed) = if under_way {
                ("under way", Some(Observed::Live(under_work(&request))))
            } else if request.spoils {
                let error = Error::new(Class::Transient, "AskFor", "the request came to nothing");
                ("failed", Some(Observed::Refused(error)))
            } else if request.creates {
                ("done", Some(Observed::Became(request.id)))
            } else {
                ("done", None)
            };
            Ok((told.to_owned(), observed))
        };
        self.world.call(asked, ask, |_| {}).await
    }
}

/// The resources with these ids, as a filter finds them.
async fn describe(world: &World, shape: &Shape, ids: Vec<String>) -> Result<Vec<(String, Seen)>> {
    let operation = shape.operation("DescribeMany", Role::MAIN);
    let asked = Asked { operation, by: ids.join(","), changes: false, quotes: None };
    let read = |state: &mut State, now| {
        let read = |id: &String| {
            let lags = lags(&mut state.chance, id);
            Some((id.clone(), state.cloud.read(id, lags, now)?))
        };
        let found: Vec<_> = ids.iter().filter_map(read).collect();
        let told = found.iter().map(|(_, seen)| told(seen)).collect::<Vec<_>>().join("; ");
        Ok((told, found))
    };
    world.call(asked, read, |_| {}).await
}

/// Whether the replica that answers is one that lags behind, where any does. Of some resources, all do.
fn lags(chance: &mut Chance, id: &str) -> bool {
    let share = *chance.once(&format!("replicas for {id}")).one_of(&[60, 100]);
    chance.again(&format!("replica for {id}")).percent(share)
}

fn told(Seen { resource, .. }: &Seen) -> String {
    let mode = resource.settings.get("mode").and_then(Value::as_str).unwrap_or(DEFAULT_MODE);
    format!("{} {:?} mode={mode}", resource.id, resource.stage)
}

fn password(call: &Call) -> Option<String> {
    call.secret("/passwordRef").ok().map(|secret| secret.expose().to_owned())
}

/// What a request that is worked off shows.
fn under_work(request: &cloud::Request) -> Live {
    let phase = match &request.leads_to {
        Some(_) => Phase::Busy("the request is worked off".to_owned()),
        None => Phase::Deleting,
    };
    Live { spec: json!({}), status: json!({}), phase, tags: Default::default() }
}

/// A resource as AWS shows it.
fn live(resource: &Resource) -> Live {
    let mut spec = Value::Object(resource.settings.clone());
    if spec["mode"].is_null() {
        spec["mode"] = json!(DEFAULT_MODE);
    }
    spec["tags"] = json!(resource.tags);
    let phase = match resource.stage {
        Stage::Ready => Phase::Ready,
        Stage::Busy { .. } => Phase::Busy("modifying".to_owned()),
        Stage::Deleting(_) => Phase::Deleting,
        Stage::Failed => Phase::Failed { why: "AWS gave up on it".to_owned(), replace: true },
    };
    Live { spec, status: json!({"id": resource.id}), phase, tags: resource.tags.clone() }
}

/// The settings in a spec.
fn settings(spec: &Value) -> Map<String, Value> {
    let fields = spec.as_object().into_iter().flatten();
    let settings = fields.filter(|(field, _)| !["tags", "passwordRef"].contains(&field.as_str()));
    settings.map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// A resource after these changes.
fn changed(before: &Resource, target: &Value, changes: &Changes, password: Option<String>) -> Resource {
    let mut after = before.clone();
    for field in
        ["mode", "note", "size", "name", "networkRef"].into_iter().filter(|field| changes.touch(field))
    {
        match target.get(field).filter(|value| !value.is_null()) {
            Some(value) => after.settings.insert(field.to_owned(), value.clone()),
            None => after.settings.remove(field),
        };
    }
    changes.tags_to_remove().iter().for_each(|key| {
        after.tags.remove(key);
    });
    after.tags.extend(changes.tags_to_set());
    if changes.iter().any(|change| change.path == pointer("", "passwordRef")) {
        (after.password, after.password_told) = (password, true);
    }
    after
}

#[async_trait]
impl Kind for SimulatedKind {
    fn meta(&self) -> &Meta {
        &self.shape.meta
    }

    fn schema(&self) -> &Value {
        &self.schema
    }

    fn status_schema(&self) -> &Value {
        &self.status_schema
    }

    fn roles(&self, _: Option<&Value>) -> Vec<Role> {
        self.shape.roles.iter().map(|(role, _, _)| *role).collect()
    }

    fn protection(&self, role: Role, _: Option<&Value>) -> Protection {
        self.shape.protection(role)
    }

    fn is_handle(&self, id: &str) -> bool {
        id.starts_with("request-")
    }

    fn canonical(&self, spec: Value) -> Result<Value> {
        Ok(spec)
    }

    async fn observe(&self, call: &Call, role: Role, id: &str, _: Option<&Value>) -> Result<Observed> {
        let handle = if self.is_handle(id) { Some(id) } else { call.request.as_deref() };
        if let Some(handle) = handle
            && let Some(observed) = self.progress(call, role, handle).await?
        {
            return Ok(observed);
        }
        Ok(match self.read(call, role, id).await? {
            Some(found) => Observed::Live(live(&found)),
            None => Observed::Absent,
        })
    }

    async fn find(&self, call: &Call, role: Role, spec: Option<&Value>) -> Result<Vec<Candidate>> {
        let asked = self.asked("Find", &Caller::of(call, role), call);
        let named = spec.filter(|_| self.shape.named && role == Role::MAIN);
        let name = named.and_then(|spec| spec["name"].as_str());
        let find = |state: &mut State, now| {
            let (cloud, chance) = (&mut state.cloud, &mut state.chance);
            let uid = &call.ownership.uid;
            let found = cloud.find(self.shape, role, uid, name, &mut |id| lags(chance, id), now);
            let told = found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>().join(", ");
            let candidates = found.into_iter().map(|found| {
                let by_name = name.is_some() && found.name() == name;
                Candidate { by_name, tags: found.tags, id: found.id }
            });
            Ok((format!("[{told}]"), candidates.collect()))
        };
        self.world.call(asked, find, |_| {}).await
    }

    async fn create(&self, call: &Call, role: Role, spec: &Value, _: &Made) -> Result<Created> {
        let caller = Caller::of(call, role);
        let asked = self.asked("Create", &caller, call);
        let mut dice = self.world.dice(&format!("make {} {}", asked.operation, caller.object));
        let weather = self.world.state().weather;
        let order = Order {
            settings: settings(spec),
            tags: call.tags.clone(),
            password: password(call),
            token: call.token.clone().filter(|_| self.shape.protection(role) == Protection::Token),
            lag: weather.lag,
            spoiled: weather.spoiled,
        };
        let in_full = self.shape.answers_in_full;
        let create = |state: &mut State, now| {
            invariants::before_create(state, &caller, call);
            let id = state.cloud.create(self.shape, &caller, order, now, &mut dice)?;
            invariants::created(state, &caller);
            if in_full {
                state.cloud.show(&id, &caller.uid, now);
            }
            let shown = state.cloud.resources.get(&id).filter(|_| in_full).map(live);
            Ok((id.clone(), Created { id, live: shown }))
        };
        let created = self.world.call(asked, create, |state| state.cloud.forget_shown(&caller.uid)).await?;
        self.world.state().unrecorded.insert(caller.uid, created.id.clone());
        Ok(created)
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        _: &Live,
        target: &Value,
        changes: &Changes,
    ) -> Result<Progress> {
        let caller = Caller::of(call, Role::MAIN);
        let asked = self.asked("Update", &caller, call);
        let mut dice = self.world.dice(&format!("work {} {}", asked.operation, caller.object));
        let spoiled = self.world.state().weather.spoiled;
        let update = |state: &mut State, now| {
            let before = state.cloud.at_hand(id, &asked.operation)?;
            let after = changed(&before, target, changes, password(call));
            invariants::updates(state, &caller, &before, &after);
            let progress = state.cloud.update(self.shape.pace, after, spoiled, now, &mut dice);
            if progress == Progress::Done {
                state.cloud.told(id, &caller.uid, |shown| changed(shown, target, changes, None));
            }
            Ok((format!("{} {progress:?}", changes.paths().join(", ")), progress))
        };
        self.world.call(asked.clone(), update, |state| state.cloud.forget_shown(&caller.uid)).await
    }

    async fn delete(&self, call: &Call, role: Role, id: &str, _: &Live) -> Result<Progress> {
        let caller = Caller::of(call, role);
        let asked = self.asked("Delete", &caller, call);
        let mut dice = self.world.dice(&format!("work {} {}", asked.operation, caller.object));
        // What was never in the background goes at once.
        let pace = if self.shape.pace(role) == Pace::Immediate { Pace::Immediate } else { self.shape.pace };
        let delete = |state: &mut State, now| {
            let Some(found) = state.cloud.resources.get(id).cloned() else {
                invariants::in_vain(state, id);
                return Ok(("it is gone".to_owned(), Progress::Done));
            };
            invariants::deletes(state, &caller, &found);
            let progress = state.cloud.delete(pace, &found, &asked.operation, now, &mut dice)?;
            Ok((format!("{progress:?}"), progress))
        };
        self.world.call(asked.clone(), delete, |_| {}).await
    }

    async fn untag(&self, call: &Call, role: Role, id: &str, keys: &[String]) -> Result<()> {
        let caller = Caller::of(call, role);
        let asked = self.asked("Untag", &caller, call);
        let untag = |state: &mut State, _| {
            if let Some(found) = state.cloud.resources.get(id).cloned() {
                invariants::owned(state, &caller, &found, "Untag");
                if state.cloud.is_requested(id) {
                    return Err(Error::new(Class::Busy, &asked.operation, "one request at a time"));
                }
            }
            if let Some(found) = state.cloud.resources.get_mut(id) {
                keys.iter().for_each(|key| {
                    found.tags.remove(key);
                });
            }
            Ok((keys.join(", "), ()))
        };
        self.world.call(asked.clone(), untag, |_| {}).await
    }
}
