//! What AWS does when it is asked.

use std::collections::BTreeSet;
use std::time::Duration;

use resource::tags::UID_TAG;
use resource::{Class, Progress, Result, Role, Tags};
use serde_json::{Map, Value};

use super::call::refuse;
use super::resources::{Request, Resource, Stage};
use super::{Caller, Cloud};
use crate::chance::Dice;
use crate::kinds::{Pace, Shape};

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its settings.
    pub settings: Map<String, Value>,
    /// Its tags.
    pub tags: Tags,
    /// Its password.
    pub password: Option<String>,
    /// The idempotency token.
    pub token: Option<String>,
    /// How long its reads lag behind, at most.
    pub lag: u64,
    /// In how many of a hundred cases AWS gives up on it.
    pub spoiled: u64,
}

impl Cloud {
    /// What bears the tag of an object, or a unique name.
    pub fn find(
        &mut self,
        shape: &Shape,
        role: Role,
        uid: &str,
        name: Option<&str>,
        lags: &mut dyn FnMut(&str) -> bool,
        now: Duration,
    ) -> Vec<Resource> {
        self.advance(now);
        let fits = |one: &Resource| {
            let named = name.is_some() && one.name() == name;
            let tagged = one.tags.get(UID_TAG).is_some_and(|tagged| tagged == uid);
            let is_dead = matches!(one.stage, Stage::Deleting(_) | Stage::Failed);
            one.kind == shape.meta.kind && one.role == role && !is_dead && (named || tagged)
        };
        let ids = self.known_ids();
        let shown = ids.iter().filter_map(|id| self.read(id, lags(id), now));
        shown.map(|seen| seen.resource).filter(fits).collect()
    }

    /// Makes a resource, or takes the order for it.
    pub fn create(
        &mut self,
        shape: &Shape,
        caller: &Caller,
        order: Order,
        now: Duration,
        dice: &mut Dice,
    ) -> Result<String> {
        let operation = shape.operation("Create", caller.role);
        if let Some(token) = &order.token
            && let Some((settings, id)) = self.tokens.get(token)
        {
            if *settings != order.settings {
                return Err(refuse(
                    Class::TokenMismatch,
                    &operation,
                    "the token was used for something else",
                ));
            }
            return Ok(id.clone());
        }
        let name = order.settings.get("name").and_then(Value::as_str);
        let bears = |one: &&Resource| one.kind == shape.meta.kind && name.is_some() && one.name() == name;
        if let Some(holder) = self.resources.values().find(bears) {
            return Err(refuse(Class::Exists, &operation, &format!("{} has this name", holder.id)));
        }
        if let Some(network) = order.settings.get("networkRef").and_then(|network| network["id"].as_str())
            && self.resources.get(network).is_none_or(|network| network.visible > now)
        {
            return Err(refuse(Class::NotFound, &operation, &format!("there is no network {network}")));
        }
        let made = self.made.entry(format!("{}/{}", caller.object, caller.role.0)).or_default();
        *made += 1;
        let id = format!("{}-{}-{made}", caller.object.replace('/', "-").to_lowercase(), caller.role.0);
        let until = now + dice.millis(2_000..40_000);
        let spoils = dice.percent(order.spoiled);
        let stage = match shape.pace(caller.role) {
            Pace::Background => Stage::Busy { until, spoils },
            Pace::Immediate | Pace::Requests => Stage::Ready,
        };
        let resource = Resource {
            id: id.clone(),
            kind: shape.meta.kind,
            role: caller.role,
            settings: order.settings.clone(),
            tags: order.tags,
            password: order.password,
            password_told: false,
            stage,
            visible: now + dice.millis(0..order.lag.max(1)),
            made_for: caller.uid.clone(),
            released: false,
            left: BTreeSet::new(),
            stolen: None,
            meddled: Duration::ZERO,
        };
        let answer = if shape.pace(caller.role) == Pace::Requests {
            let request = Request {
                leads_to: Some(Resource { visible: until, ..resource }),
                id,
                done: until,
                spoils,
                creates: true,
            };
            self.accept(request)
        } else {
            self.resources.insert(id.clone(), resource);
            id
        };
        if let Some(token) = order.token {
            self.tokens.insert(token, (order.settings, answer.clone()));
        }
        Ok(answer)
    }

    /// Accepts a request; the answer is its handle.
    pub fn accept(&mut self, request: Request) -> String {
        let before = self.requests.values().filter(|other| other.id == request.id).count();
        let handle = format!("request-{}-{}", request.id, before + 1);
        self.requests.insert(handle.clone(), request);
        handle
    }

    /// A resource that can be changed now.
    pub fn at_hand(&self, id: &str, operation: &str) -> Result<Resource> {
        let found = self.resources.get(id);
        let found = found.ok_or_else(|| refuse(Class::NotFound, operation, &format!("there is no {id}")))?;
        if self.is_requested(id) || found.stage != Stage::Ready {
            return Err(refuse(Class::Busy, operation, &format!("{id} is {:?}", found.stage)));
        }
        Ok(found.clone())
    }

    /// Changes a resource to this.
    pub fn update(
        &mut self,
        pace: Pace,
        mut after: Resource,
        spoiled: u64,
        now: Duration,
        dice: &mut Dice,
    ) -> Progress {
        let until = now + dice.millis(2_000..30_000);
        let id = after.id.clone();
        after.released &= !after.tags.contains_key(UID_TAG);
        match pace {
            Pace::Immediate => {}
            Pace::Background => after.stage = Stage::Busy { until, spoils: false },
            Pace::Requests => {
                let spoils = dice.percent(spoiled);
                let request = Request { leads_to: Some(after), id, done: until, spoils, creates: false };
                return Progress::Pending(self.accept(request));
            }
        }
        if self.resources.get(&id).is_some_and(|before| !before.is_as(&after)) {
            self.leave_behind(&id, now);
        }
        self.resources.insert(id, after);
        if pace == Pace::Immediate { Progress::Done } else { Progress::Busy }
    }

    /// Deletes a resource.
    pub fn delete(
        &mut self,
        pace: Pace,
        found: &Resource,
        operation: &str,
        now: Duration,
        dice: &mut Dice,
    ) -> Result<Progress> {
        if let Some(user) = self.users(&found.id).first() {
            return Err(refuse(Class::Dependency, operation, &format!("{} still lies in it", user.id)));
        }
        if matches!(found.stage, Stage::Deleting(_)) {
            return Ok(Progress::Busy);
        }
        if found.stage != Stage::Failed {
            self.at_hand(&found.id, operation)?;
        }
        let until = now + dice.millis(2_000..30_000);
        Ok(match pace {
            Pace::Immediate => {
                self.remove(&found.id, now);
                Progress::Done
            }
            Pace::Background => {
                self.leave_behind(&found.id, now);
                if let Some(found) = self.resources.get_mut(&found.id) {
                    found.stage = Stage::Deleting(until);
                }
                Progress::Busy
            }
            Pace::Requests => {
                let request = Request {
                    leads_to: None,
                    id: found.id.clone(),
                    done: until,
                    spoils: false,
                    creates: false,
                };
                Progress::Pending(self.accept(request))
            }
        })
    }
}
