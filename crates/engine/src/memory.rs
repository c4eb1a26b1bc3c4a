//! What the operator remembers of an object between reconciles. All of it can be lost: after a
//! restart everything that matters is in the object's status.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use resource::Secrets;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

/// What is remembered of one object.
#[derive(Default)]
pub struct Memory {
    /// Failures in a row.
    pub failures: u32,
    /// Since when it fails.
    pub failing_since: Option<Timestamp>,
    /// The inputs it fails with: others are tried afresh.
    pub inputs: String,
    /// The ids whose deletion AWS answered with success, after they were seen alive.
    pub deleted: HashSet<String>,
    /// When a create call was last answered, by the clock on the wall and by one that nobody sets.
    pub created: Option<(Timestamp, Instant)>,
    /// The fingerprints of the secrets that were sent, by path.
    pub sent: HashMap<String, String>,
    /// The secrets that went to AWS since it was last in sync, by fingerprint.
    pub carried: Secrets,
    /// The change that AWS was last asked for.
    pub asked: Asked,
    /// The paths that a request under way takes away.
    pub removing: BTreeSet<String>,
    /// The resource version of our last write: an older cache has not seen it.
    pub written: u64,
    /// The last event published, so that a retry does not repeat it.
    pub last_event: String,
}

impl Memory {
    /// The time for what must have settled: a clock that is set forward does not make AWS's reads any fresher.
    pub fn settled_now(&self, now: Timestamp) -> Timestamp {
        self.created.map_or(now, |(at, since)| now.min(at + since.elapsed()))
    }
}

/// How often AWS took one and the same change.
#[derive(Default)]
pub struct Asked {
    /// A hash of it.
    pub change: String,
    /// How often, in a row.
    pub times: u32,
    /// When it was last.
    pub last: Option<Timestamp>,
}

impl Asked {
    /// AWS took this change.
    pub fn count(&mut self, change: String, now: Timestamp) {
        self.times = if self.change == change { self.times + 1 } else { 1 };
        (self.change, self.last) = (change, Some(now));
    }
}

/// Memories by uid, each with the lock that keeps an object from being reconciled twice at once,
/// even while its kind's watch is restarted.
#[derive(Default)]
pub struct Memories {
    memories: Mutex<HashMap<String, Arc<AsyncMutex<Memory>>>>,
    /// Those that something has changed for, and that were not looked at since.
    woken: Mutex<HashSet<String>>,
}

impl Memories {
    /// The memory of an object.
    pub fn of(&self, uid: &str) -> Arc<AsyncMutex<Memory>> {
        self.memories.lock().entry(uid.to_owned()).or_default().clone()
    }

    /// Something has changed for the object.
    pub fn wake(&self, uid: &str) {
        self.woken.lock().insert(uid.to_owned());
    }

    /// Whether something has changed for the object since this was last asked.
    pub fn take_woken(&self, uid: &str) -> bool {
        self.woken.lock().remove(uid)
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.memories.lock().remove(uid);
        self.woken.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_settles_nothing() {
        let noon: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let seconds = Duration::from_secs;
        let fresh = Memory::default();
        assert_eq!(fresh.settled_now(noon), noon, "nothing was created by this process");
        let memory = Memory { created: Some((noon, Instant::now())), ..Memory::default() };
        tokio::time::advance(seconds(20)).await;
        assert_eq!(memory.settled_now(noon + seconds(20)), noon + seconds(20));
        assert_eq!(memory.settled_now(noon + seconds(3600)), noon + seconds(20), "set forward");
        assert_eq!(memory.settled_now(noon - seconds(3600)), noon - seconds(3600), "set back");
    }
}
