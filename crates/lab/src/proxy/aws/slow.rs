//! States that take time: the emulators finish at once.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::answer::Answer;
use super::asked::Asked;
use super::resources::Resource;
use super::xml::Element;

#[derive(Default)]
pub(super) struct Slow(Mutex<State>);

#[derive(Default)]
struct State {
    /// By operation: for how many describes its effect is not finished.
    polls: HashMap<String, usize>,
    /// By id: describes that still show it pending.
    rising: HashMap<String, usize>,
    /// By id. The emulator has it until the last describe, so that dependants and filters find it.
    falling: HashMap<String, Falling>,
}

#[derive(Clone, Copy)]
enum Falling {
    /// So many describes still show it deleting.
    Left(usize),
    /// The emulator is being told.
    Due,
    /// A describe that was under way meanwhile must not bring it back.
    Done,
}

impl Slow {
    pub fn set(&self, operation: &str, polls: usize) {
        let resource = Resource::created_by(operation).or_else(|| Resource::deleted_by(operation));
        let has_state = resource.is_some_and(|resource| resource.state.is_some());
        assert!(has_state, "{operation} is not known to be slow: see the proxy's resources");
        self.0.lock().polls.insert(operation.to_owned(), polls);
    }

    /// Answers a slow delete without having it done; [`Slow::show`] tells when it is due.
    pub fn postpone(&self, asked: &Asked, resource: &Resource, id: &str) -> Option<Answer> {
        let mut state = self.0.lock();
        let polls = *state.polls.get(&asked.operation).filter(|polls| **polls > 0)?;
        state.rising.remove(id);
        state.falling.entry(id.to_owned()).or_insert(Falling::Left(polls));
        Some(Answer::ec2(&asked.operation, &[(resource.id, id)]))
    }

    /// Whether a delete of this operation is slow.
    pub fn is_slow(&self, operation: &str) -> bool {
        self.0.lock().polls.get(operation).is_some_and(|polls| *polls > 0)
    }

    /// What a slow create has made is pending, from its own answer on.
    pub fn learn(&self, asked: &Asked, root: &mut Element) {
        let Some(resource) = Resource::created_by(&asked.operation) else {
            return;
        };
        let mut state = self.0.lock();
        let Some(polls) = state.polls.get(&asked.operation).copied().filter(|polls| *polls > 0) else {
            return;
        };
        if let (Some(made), Some(name)) = (root.holder_mut(resource.id), resource.state)
            && let Some(id) = made.child_text(resource.id)
        {
            made.set(name, "pending");
            state.rising.insert(id, polls);
        }
    }

    /// The emulator has deleted it.
    pub fn done(&self, id: &str) {
        self.0.lock().falling.insert(id.to_owned(), Falling::Done);
    }

    /// Shows the unfinished states in a list, and gives the ids whose deletion is now due.
    pub fn show(&self, resource: &Resource, root: &mut Element) -> Vec<String> {
        let mut due = Vec::new();
        let (Some(set), Some(name)) = (root.find_mut(resource.set), resource.state) else {
            return due;
        };
        let mut state = self.0.lock();
        for item in set.children_mut() {
            let Some(id) = item.child_text(resource.id) else {
                continue;
            };
            if let Some(falling) = state.falling.get_mut(&id) {
                item.set(name, if matches!(falling, Falling::Done) { "deleted" } else { "deleting" });
                match *falling {
                    Falling::Left(left) if left > 1 => *falling = Falling::Left(left - 1),
                    Falling::Left(_) => {
                        *falling = Falling::Due;
                        due.push(id);
                    }
                    Falling::Due | Falling::Done => {}
                }
            } else if let Some(left) = state.rising.get_mut(&id) {
                item.set(name, "pending");
                *left -= 1;
                if *left == 0 {
                    state.rising.remove(&id);
                }
            }
        }
        due
    }
}
