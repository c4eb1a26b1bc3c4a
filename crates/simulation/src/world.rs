//! What outlives the engine: the cluster, AWS, time and chance.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::pending;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::api::Store;
use crate::chance::{Chance, Dice};
use crate::cloud::Cloud;
use crate::time::Time;
use crate::trace::{Trace, Who};
use crate::weather::Weather;

/// A world, shared by all who act in it.
#[derive(Clone)]
pub struct World(Arc<Shared>);

/// What a world consists of.
pub struct Shared {
    /// Its time.
    pub time: Time,
    /// Rings when something in the cluster has changed.
    pub bell: Notify,
    /// Rings when this life of the engine is over.
    pub over: Notify,
    state: Mutex<State>,
}

/// Everything in it that changes.
pub struct State {
    /// Its chance.
    pub chance: Chance,
    /// What goes wrong now.
    pub weather: Weather,
    /// What happened.
    pub trace: Trace,
    /// The cluster.
    pub api: Store,
    /// AWS.
    pub cloud: Cloud,
    /// Where the engine is to crash.
    pub trap: Option<Trap>,
    /// The engine is no more: whatever it had begun does not go on.
    pub crashed: bool,
    /// The first invariant that was violated.
    pub violation: Option<String>,
    /// What the engine was told of, by the uid of its object, and has not recorded yet.
    pub unrecorded: BTreeMap<String, String>,
    /// The uids of objects that are being deleted because their CRD is.
    pub held: BTreeSet<String>,
    /// A CRD was gone: watches may be on their way back at any time.
    pub crd_was_gone: bool,
    /// How often the engine had an effect.
    pub effects: u64,
}

/// The engine is to crash at an effect of its own.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// How many effects come before.
    pub left: u64,
    /// Once it is done, not before.
    pub after: bool,
}

impl Deref for World {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

impl World {
    /// An empty world.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Shared {
            time: Time::default(),
            bell: Notify::new(),
            over: Notify::new(),
            state: Mutex::new(State {
                chance: Chance::new(seed),
                weather: Weather::default(),
                trace: Trace::default(),
                api: Store::default(),
                cloud: Cloud::default(),
                trap: None,
                crashed: false,
                violation: None,
                unrecorded: BTreeMap::new(),
                held: BTreeSet::new(),
                crd_was_gone: false,
                effects: 0,
            }),
        }))
    }

    /// A person, or chance, does something.
    pub fn note(&self, what: impl fmt::Display) {
        let at = self.time.elapsed();
        self.state().trace.add(at, Who::World, what);
    }

    /// An effect of the engine, unless it crashes before or after it. It happens at once, and what it
    /// leads to is looked at.
    pub async fn effect<T>(&self, who: Who, act: impl FnOnce(&mut State) -> (String, T)) -> T {
        let done = {
            let mut state = self.state();
            if state.is_over() || state.falls(false) {
                None
            } else {
                let (what, done) = act(&mut state);
                state.effects += 1;
                state.trace.add(self.time.elapsed(), who, what);
                (!state.falls(true) && state.violation.is_none()).then_some(done)
            }
        };
        self.bell.notify_waiters();
        match done {
            Some(done) => done,
            None => {
                self.over.notify_one();
                pending().await
            }
        }
    }
}

impl Shared {
    /// Everything that changes; not to be held across an await.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The dice of a decision that comes again and again.
    pub fn dice(&self, name: &str) -> Dice {
        self.state().chance.again(name)
    }
}

impl State {
    /// Whether the engine has come to its end.
    pub fn is_over(&self) -> bool {
        self.crashed || self.violation.is_some()
    }

    /// From now on, this goes wrong.
    pub fn set_weather(&mut self, weather: Weather) {
        (self.weather, self.cloud.stale) = (weather, Duration::from_millis(weather.stale));
    }

    /// An invariant is violated; the first counts.
    pub fn violate(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert(what.into());
    }

    /// Whether the engine crashes at this side of an effect.
    fn falls(&mut self, after: bool) -> bool {
        let Some(trap) = &mut self.trap else { return false };
        if trap.left == 0 && trap.after == after {
            self.crashed = true;
        } else if after {
            trap.left = trap.left.saturating_sub(1);
        }
        self.crashed
    }
}
