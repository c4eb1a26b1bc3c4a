//! Who refers to whom, so that a change wakes those who wait for it, without polling.

use std::collections::{BTreeSet, HashMap};

use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::packed::{Names, Packed};

/// An object, by kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// How kube's caches and queues name the object.
    pub fn object_ref(&self, names: Names) -> ObjectRef<Packed> {
        ObjectRef::new_with(&self.name, names).within(&self.namespace)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// The references between objects, both ways, and the doors to each kind's queue.
#[derive(Default)]
pub struct Graph(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    targets: HashMap<Key, BTreeSet<Key>>,
    referrers: HashMap<Key, BTreeSet<Key>>,
    queues: HashMap<&'static str, (Names, UnboundedSender<ObjectRef<Packed>>)>,
}

impl Graph {
    /// A kind is watched from now on; wake-ups for it come out here.
    pub fn open(&self, names: Names) -> UnboundedReceiver<ObjectRef<Packed>> {
        let (sender, receiver) = unbounded_channel();
        self.0.lock().queues.insert(names.kind, (names, sender));
        receiver
    }

    /// These are all the objects that `referrer` refers to. Whether that is news: then what was
    /// read of them before may have changed without a wake-up.
    pub fn set(&self, referrer: &Key, targets: BTreeSet<Key>) -> bool {
        let mut inner = self.0.lock();
        if inner.targets.get(referrer) == Some(&targets) {
            return false;
        }
        inner.unlink(referrer);
        for target in &targets {
            inner.referrers.entry(target.clone()).or_default().insert(referrer.clone());
        }
        inner.targets.insert(referrer.clone(), targets);
        true
    }

    /// Who refers to this object.
    pub fn referrers(&self, target: &Key) -> BTreeSet<Key> {
        self.0.lock().referrers.get(target).cloned().unwrap_or_default()
    }

    /// Looks at an object again.
    pub fn wake(&self, key: &Key) {
        let inner = self.0.lock();
        if let Some((names, queue)) = inner.queues.get(key.kind.as_str()) {
            // A closed queue belongs to a kind that is no longer watched.
            let _ = queue.send(key.object_ref(*names));
        }
    }

    /// What an object shows others has changed: those who refer to it may go on.
    pub fn wake_referrers(&self, target: &Key) {
        for referrer in self.referrers(target) {
            self.wake(&referrer);
        }
    }

    /// An object is gone: those it referred to may be deletable now.
    pub fn gone(&self, key: &Key) {
        let targets = self.0.lock().unlink(key);
        for target in targets {
            self.wake(&target);
        }
        self.wake_referrers(key);
    }
}

impl Inner {
    fn unlink(&mut self, referrer: &Key) -> BTreeSet<Key> {
        let targets = self.targets.remove(referrer).unwrap_or_default();
        for target in &targets {
            if let Some(referrers) = self.referrers.get_mut(target) {
                referrers.remove(referrer);
                if referrers.is_empty() {
                    self.referrers.remove(target);
                }
            }
        }
        targets
    }
}
