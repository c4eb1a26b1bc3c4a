//! What AWS holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use resource::tags::UID_TAG;
use resource::{Role, Tags};
use serde_json::{Map, Value};

use super::replicas::{Answers, Past};
use crate::foreign::THEIRS;

/// How far a resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// AWS is at it until then; it may come to nothing.
    Busy {
        /// Until when.
        until: Duration,
        /// AWS will give up on it.
        spoils: bool,
    },
    /// In working order.
    Ready,
    /// AWS gave up on it.
    Failed,
    /// It goes at that time.
    Deleting(Duration),
}

/// One resource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// AWS's id.
    pub id: String,
    /// The Kubernetes kind that stands for it, and the role.
    pub kind: &'static str,
    /// Its role.
    pub role: Role,
    /// Its settings, as a spec names them.
    pub settings: Map<String, Value>,
    /// Its tags.
    pub tags: Tags,
    /// Its password, which nobody can read.
    pub password: Option<String>,
    /// This life of the engine knows that this password was set: it was told so.
    pub password_told: bool,
    /// How far it is.
    pub stage: Stage,
    /// From when on reads show it.
    pub visible: Duration,
    /// The uid of the object for which it was made; empty if somebody else made it.
    pub made_for: String,
    /// Let go by its object, as its user wished.
    pub released: bool,
    /// The tags that an object left on it when it let it go: nobody's since.
    pub left: BTreeSet<String>,
    /// Its tags before somebody put another owner there.
    pub stolen: Option<Tags>,
    /// When somebody else last changed it.
    pub meddled: Duration,
}

impl Resource {
    /// Whether it still is what an object may stand for.
    pub fn is_alive(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Busy { .. })
    }

    /// Whether it is this object's: made for it or, since, marked with its uid.
    pub fn is_of(&self, uid: &str) -> bool {
        match self.stolen.as_ref().unwrap_or(&self.tags).get(UID_TAG) {
            Some(tagged) => tagged == uid,
            None => self.made_for == uid,
        }
    }

    /// Whether nothing about it is different.
    pub fn is_as(&self, other: &Self) -> bool {
        self.settings == other.settings && self.tags == other.tags && self.password == other.password
    }

    /// Its object lets it go, and leaves it as it is.
    pub fn release(&mut self) {
        self.released = true;
        self.left.extend(self.tags.keys().cloned());
        self.password = self.password.take().map(|_| THEIRS.to_owned());
    }

    /// What it refers to.
    pub fn network(&self) -> Option<&str> {
        self.settings.get("networkRef")?.get("id")?.as_str()
    }

    /// The name that is unique among its kind.
    pub fn name(&self) -> Option<&str> {
        self.settings.get("name")?.as_str()
    }
}

/// A request that AWS works off.
#[derive(Clone, Debug)]
pub struct Request {
    /// The resource, as it is when the request is done. None: it is being deleted.
    pub leads_to: Option<Resource>,
    /// Its id.
    pub id: String,
    /// When it is done.
    pub done: Duration,
    /// It will come to nothing.
    pub spoils: bool,
    /// It makes a resource.
    pub creates: bool,
}

/// All that AWS holds.
#[derive(Clone, Debug, Default)]
pub struct Cloud {
    /// Resources by id.
    pub resources: BTreeMap<String, Resource>,
    /// Requests by handle.
    pub requests: BTreeMap<String, Request>,
    /// What a token led to: the settings and the id or handle.
    pub tokens: BTreeMap<String, (Map<String, Value>, String)>,
    /// How many were made for each object and role, whatever became of them.
    pub made: BTreeMap<String, u64>,
    /// How often each operation was called, by whom.
    pub calls: BTreeMap<String, u64>,
    /// The calls that change something.
    pub changes: u64,
    /// What somebody else has deleted.
    pub meddled: BTreeSet<String>,
    /// Requests that are over.
    pub worked_off: BTreeSet<String>,
    /// For how long reads may show what was before a change or a deletion.
    pub stale: Duration,
    /// What was, by id.
    pub pasts: BTreeMap<String, Past>,
    /// What the engine was shown.
    pub answers: Answers,
    /// The changes in a row that changed nothing, by id.
    pub in_vain: BTreeMap<String, u64>,
}

impl Cloud {
    /// Time goes on: what is done by now is done.
    pub fn advance(&mut self, now: Duration) {
        for resource in self.resources.values_mut() {
            if let Stage::Busy { until, spoils } = resource.stage
                && until <= now
            {
                resource.stage = if spoils { Stage::Failed } else { Stage::Ready };
            }
        }
        let gone = self.resources.values().filter_map(|one| match one.stage {
            Stage::Deleting(at) if at <= now => Some((one.id.clone(), at)),
            _ => None,
        });
        gone.collect::<Vec<_>>().iter().for_each(|(id, at)| self.remove(id, *at));
        let due = self
            .requests
            .iter()
            .filter(|(handle, request)| request.done <= now && !self.worked_off.contains(*handle));
        for (handle, request) in
            due.map(|(handle, request)| (handle.clone(), request.clone())).collect::<Vec<_>>()
        {
            self.worked_off.insert(handle);
            if request.spoils {
                continue;
            }
            match request.leads_to {
                Some(resource) if request.creates || self.resources.contains_key(&request.id) => {
                    self.leave_behind(&request.id, request.done);
                    self.resources.insert(request.id, resource);
                }
                Some(_) => {}
                None => self.remove(&request.id, request.done),
            }
        }
    }

    /// Whether this request is still being worked off.
    pub fn is_under_way(&self, handle: &str) -> bool {
        self.requests.contains_key(handle) && !self.worked_off.contains(handle)
    }

    /// Whether a request for this resource is being worked off.
    pub fn is_requested(&self, id: &str) -> bool {
        self.requests.iter().any(|(handle, request)| request.id == id && self.is_under_way(handle))
    }

    /// What still refers to a resource.
    pub fn users(&self, id: &str) -> Vec<&Resource> {
        self.resources.values().filter(|other| other.network() == Some(id)).collect()
    }

    /// The resources of an object, alive or about to be made.
    pub fn alive_of<'a>(&'a self, uid: &'a str, role: Role) -> impl Iterator<Item = &'a str> {
        let there = self.resources.values();
        let there =
            there.filter(move |one| one.is_alive() && one.is_of(uid) && one.role == role && !one.released);
        let coming = self.requests.iter().filter(move |(handle, request)| {
            let made = request.leads_to.as_ref().filter(|_| request.creates && !request.spoils);
            self.is_under_way(handle) && made.is_some_and(|made| made.made_for == uid && made.role == role)
        });
        there.map(|one| one.id.as_str()).chain(coming.map(|(handle, _)| handle.as_str()))
    }
}
