//! What is new in each object of a kind: for those that refer to it, and for its own reconcile.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::runtime::watcher::Event;
use resource::Kind;
use tokio::sync::watch::{Receiver, Sender};

use crate::context::Context;
use crate::graph::Key;
use crate::packed::{Face, Packed};

/// What is known of each object of a kind, to tell what is new.
pub struct Faces {
    cx: Arc<Context>,
    kind: Arc<dyn Kind>,
    is_listed: Sender<bool>,
    seen: HashMap<Key, Face>,
    /// While the watch starts anew: what the list holds. What is missing from it went unseen.
    listed: BTreeSet<Key>,
}

impl Faces {
    pub fn new(cx: Arc<Context>, kind: Arc<dyn Kind>, is_listed: Sender<bool>) -> Self {
        Self { cx, kind, is_listed, seen: HashMap::new(), listed: BTreeSet::new() }
    }

    /// Turns true once all objects are known.
    pub fn is_listed(&self) -> Receiver<bool> {
        self.is_listed.subscribe()
    }

    /// Takes note of an event, and wakes those whom it concerns. The object, where it is to be reconciled.
    pub fn see(&mut self, event: Event<Packed>) -> Option<Packed> {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(self.key(&object));
                return self.show(object);
            }
            Event::Apply(object) => return self.show(object),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<_> = self.seen.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                gone.iter().for_each(|key| self.gone(key));
                self.is_listed.send_replace(true);
            }
            Event::Delete(object) => {
                self.cx.memories.forget(object.uid());
                self.gone(&self.key(&object));
            }
        }
        None
    }

    fn show(&mut self, object: Packed) -> Option<Packed> {
        let (key, face) = (self.key(&object), object.face);
        let before = self.seen.insert(key.clone(), face);
        if before.is_none_or(|before| before.for_others != face.for_others) {
            self.cx.graph.wake_referrers(&key);
            if object.is_ready {
                self.wake_hopeful();
            }
        }
        let matters = before
            .is_none_or(|before| before.for_itself != face.for_itself || (before.is_held && !face.is_held));
        matters.then_some(object)
    }

    fn gone(&mut self, key: &Key) {
        self.seen.remove(key);
        self.cx.graph.gone(key);
        self.wake_hopeful();
    }

    /// Wakes objects of other kinds that may have waited for one of this kind without naming it.
    fn wake_hopeful(&self) {
        let kind = self.kind.meta().kind;
        let others = self.cx.kinds.values().filter(|other| other.meta().woken_by.contains(&kind));
        for other in others {
            let Some(store) = self.cx.stores.read().get(other.meta().kind).cloned() else { continue };
            for object in store.state_filter(|object| object.is_waiting) {
                self.cx.graph.wake(&object.key(other.meta().kind));
            }
        }
    }

    fn key(&self, object: &Packed) -> Key {
        object.key(self.kind.meta().kind)
    }
}
