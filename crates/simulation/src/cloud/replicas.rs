//! Reads that lag: what AWS has changed or deleted, some of its replicas still show as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use resource::Tags;
use serde_json::{Map, Value};

use super::{Cloud, Resource};

/// What a resource was before its last change, or before it went.
#[derive(Clone, Debug)]
pub struct Past {
    /// As it was.
    resource: Resource,
    /// When it was that last.
    ended: Duration,
    /// Until when a read may show it.
    until: Duration,
}

/// A resource as a read shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// As the replica has it.
    pub resource: Resource,
    /// When it was so: at the time of the read, or before the change that the replica lacks.
    pub as_of: Duration,
}

/// What an answer showed of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// When it was so.
    pub as_of: Duration,
    /// Its settings then.
    pub settings: Map<String, Value>,
    /// Its tags then.
    pub tags: Tags,
}

/// What AWS's last answers to this life of the engine showed, by the id of the resource and the uid of the
/// object that asked.
pub type Answers = BTreeMap<(String, String), Shown>;

impl Cloud {
    /// A resource is about to change or to go: for a while, replicas show what it was. One that is behind
    /// by two changes shows the last but one.
    pub(super) fn leave_behind(&mut self, id: &str, now: Duration) {
        let Some(resource) = self.resources.get(id).cloned().filter(|one| one.visible <= now) else { return };
        if !self.stale.is_zero() {
            let past = Past { resource, ended: now, until: now + self.stale };
            self.pasts.insert(id.to_owned(), past);
        }
    }

    /// It is gone, though replicas may not know yet.
    pub fn remove(&mut self, id: &str, now: Duration) {
        self.leave_behind(id, now);
        self.resources.remove(id);
    }

    /// A resource as a read shows it, from a replica that lags behind or from one that does not.
    pub fn read(&mut self, id: &str, lags: bool, now: Duration) -> Option<Seen> {
        self.advance(now);
        let current = self.resources.get(id).filter(|one| one.visible <= now);
        let past = self.pasts.get(id).filter(|past| lags && now < past.until);
        match past {
            Some(past) => Some(Seen { resource: past.resource.clone(), as_of: past.ended }),
            None => current.map(|one| Seen { resource: one.clone(), as_of: now }),
        }
    }

    /// Whether it is gone, and the engine was told otherwise.
    pub fn is_ghost(&self, id: &str, uid: &str) -> bool {
        self.pasts.contains_key(id) && self.last_answer(id, uid).is_some()
    }

    /// The ids that reads may show: of what is there, and of what was.
    pub(super) fn known_ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.resources.keys().chain(self.pasts.keys()).cloned().collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// What AWS last showed an object of a resource.
    pub fn last_answer(&self, id: &str, uid: &str) -> Option<&Shown> {
        self.answers.get(&(id.to_owned(), uid.to_owned()))
    }

    /// An answer about a resource reaches an object.
    pub fn answered(&mut self, id: &str, uid: &str, seen: Option<&Seen>) {
        let key = (id.to_owned(), uid.to_owned());
        match seen {
            Some(Seen { resource, as_of }) => {
                let (settings, tags) = (resource.settings.clone(), resource.tags.clone());
                self.answers.insert(key, Shown { as_of: *as_of, settings, tags });
            }
            None => drop(self.answers.remove(&key)),
        }
    }

    /// An object knows that this has changed in what it was shown, as AWS says so.
    pub fn told(&mut self, id: &str, uid: &str, changed: impl FnOnce(&Resource) -> Resource) {
        let shown = self.answers.get_mut(&(id.to_owned(), uid.to_owned()));
        let (Some(shown), Some(current)) = (shown, self.resources.get(id)) else { return };
        let (settings, tags) = (shown.settings.clone(), shown.tags.clone());
        let after = changed(&Resource { settings, tags, ..current.clone() });
        (shown.settings, shown.tags) = (after.settings, after.tags);
    }

    /// The answer to a creation shows an object what came of it.
    pub fn show(&mut self, id: &str, uid: &str, now: Duration) {
        let seen = self.resources.get(id).map(|one| Seen { resource: one.clone(), as_of: now });
        self.answered(id, uid, seen.as_ref());
    }

    /// What was shown to an object counts no longer: an answer was lost.
    pub fn forget_shown(&mut self, uid: &str) {
        self.answers.retain(|(_, told), _| told != uid);
        self.resources.values_mut().filter(|one| one.is_of(uid)).for_each(|one| one.password_told = false);
    }

    /// Nothing that was shown counts any longer: the engine was started anew.
    pub fn forget_all_shown(&mut self) {
        self.answers.clear();
        self.in_vain.clear();
        self.resources.values_mut().for_each(|one| one.password_told = false);
    }
}
