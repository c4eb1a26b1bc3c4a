//! Reads that lag behind a create, as AWS's do and no emulator's.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::answer::Answer;
use super::asked::Asked;
use super::resources::Resource;
use super::xml::Element;

#[derive(Default)]
pub(super) struct Lag(Mutex<State>);

#[derive(Default)]
struct State {
    time: Duration,
    hidden: HashMap<String, (&'static Resource, Instant)>,
}

impl Lag {
    pub fn set(&self, time: Duration) {
        self.0.lock().time = time;
    }

    /// What a create has just made stays hidden for a while.
    pub fn learn(&self, asked: &Asked, root: &Element) {
        let Some(resource) = Resource::created_by(&asked.operation) else {
            return;
        };
        let mut state = self.0.lock();
        if state.time.is_zero() {
            return;
        }
        let until = Instant::now() + state.time;
        for id in root.all(resource.id) {
            state.hidden.insert(id, (resource, until));
        }
    }

    /// The answer to a read that asks for something hidden by its id or name.
    pub fn refuse(&self, asked: &Asked) -> Option<Answer> {
        if asked.is_mutating() {
            return None;
        }
        let hidden = self.hidden();
        let (id, resource) = hidden.iter().find(|(id, resource)| {
            resource.service == asked.service && asked.values(resource.param).contains(&id.as_str())
        })?;
        Some(Answer::error(asked, not_found_status(resource), resource.not_found, &resource.missing(id)))
    }

    /// Takes what is hidden out of a list.
    pub fn filter(&self, asked: &Asked, root: &mut Element) {
        let hidden = self.hidden();
        let is_hidden = |id: Option<String>| id.is_some_and(|id| hidden.contains_key(&id));
        if let Some(resource) = Resource::described_by(&asked.operation)
            && let Some(set) = root.find_mut(resource.set)
        {
            set.retain(|item| !is_hidden(item.child_text(resource.id)));
        }
        if asked.operation == "DescribeTags"
            && let Some(set) = root.find_mut("tagSet")
        {
            set.retain(|item| !is_hidden(item.child_text("resourceId")));
        }
    }

    fn hidden(&self) -> HashMap<String, &'static Resource> {
        let mut state = self.0.lock();
        let now = Instant::now();
        state.hidden.retain(|_, (_, until)| *until > now);
        state.hidden.iter().map(|(id, (resource, _))| (id.clone(), *resource)).collect()
    }
}

/// EC2 answers 400 for what is not there, IAM 404.
pub(super) fn not_found_status(resource: &Resource) -> u16 {
    if resource.service == "ec2" { 400 } else { 404 }
}
