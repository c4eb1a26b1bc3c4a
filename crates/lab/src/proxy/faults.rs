//! Faults by rule: which calls one strikes, and the handle a test keeps of it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Which of the matching calls a fault strikes. By default all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schedule {
    /// Strike from the nth matching call on, counted from 1; alone, only that one.
    pub nth: Option<usize>,
    /// Strike that share of the matching calls, by the proxy's seeded dice.
    pub percent: Option<u8>,
    /// Strike so many times at most.
    pub times: Option<usize>,
}

impl Schedule {
    fn strikes(&self, seen: usize, struck: usize, dice: &mut Dice) -> bool {
        let limit = self.times.or(self.nth.map(|_| 1)).unwrap_or(usize::MAX);
        seen >= self.nth.unwrap_or(1)
            && struck < limit
            && self.percent.is_none_or(|percent| dice.percent() < u64::from(percent))
    }
}

/// An armed fault. Dropping the handle leaves the fault armed.
#[derive(Debug, Clone)]
pub struct Fault(Arc<Gate>);

#[derive(Debug)]
struct Gate {
    hits: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Fault {
    fn new() -> Self {
        Self(Arc::new(Gate { hits: watch::Sender::new(0), open: watch::Sender::new(false) }))
    }

    /// How many calls it has struck.
    pub fn hits(&self) -> usize {
        *self.0.hits.borrow()
    }

    /// Waits until it has struck `n` calls; false when that takes longer than `limit`.
    pub async fn reached(&self, n: usize, limit: Duration) -> bool {
        let mut hits = self.0.hits.subscribe();
        tokio::time::timeout(limit, hits.wait_for(|hits| *hits >= n)).await.is_ok()
    }

    /// Strikes no more, and lets go the calls it holds.
    pub fn release(&self) {
        self.0.open.send_replace(true);
    }

    /// Waits for [`Fault::release`].
    pub(super) async fn released(&self) {
        let _ = self.0.open.subscribe().wait_for(|open| *open).await;
    }
}

/// The armed faults of one proxy: the first that strikes a call decides.
pub(super) struct Faults<M, A> {
    armed: Mutex<Vec<Armed<M, A>>>,
    dice: Mutex<Dice>,
}

struct Armed<M, A> {
    matcher: M,
    schedule: Schedule,
    action: A,
    fault: Fault,
    seen: usize,
}

impl<M, A: Clone> Faults<M, A> {
    pub fn new() -> Self {
        Self { armed: Mutex::new(Vec::new()), dice: Mutex::new(Dice(1)) }
    }

    pub fn seed(&self, seed: u64) {
        *self.dice.lock() = Dice(seed);
    }

    pub fn arm(&self, matcher: M, schedule: Schedule, action: A) -> Fault {
        let fault = Fault::new();
        self.armed.lock().push(Armed { matcher, schedule, action, fault: fault.clone(), seen: 0 });
        fault
    }

    /// Disarms all, and lets go what they hold.
    pub fn clear(&self) {
        self.armed.lock().drain(..).for_each(|armed| armed.fault.release());
    }

    pub fn strike(&self, matches: impl Fn(&M) -> bool) -> Option<(A, Fault)> {
        let mut dice = self.dice.lock();
        let mut armed = self.armed.lock();
        armed.retain(|armed| !*armed.fault.0.open.borrow());
        armed.iter_mut().filter(|armed| matches(&armed.matcher)).find_map(|armed| {
            armed.seen += 1;
            if !armed.schedule.strikes(armed.seen, armed.fault.hits(), &mut dice) {
                return None;
            }
            armed.fault.0.hits.send_modify(|hits| *hits += 1);
            Some((armed.action.clone(), armed.fault.clone()))
        })
    }
}

/// SplitMix64: the same seed throws the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn percent(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % 100
    }
}

/// Matches `*` and `?` as AWS's filters and shells do.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    fn matches(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                matches(rest, text) || text.split_first().is_some_and(|(_, text)| matches(pattern, text))
            }
            (Some((b'?', rest)), Some((_, text))) => matches(rest, text),
            (Some((p, rest)), Some((t, text))) => p == t && matches(rest, text),
            _ => false,
        }
    }
    matches(pattern.as_bytes(), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(schedule: Schedule, calls: usize) -> Vec<usize> {
        let faults = Faults::new();
        faults.arm((), schedule, ());
        (1..=calls).filter(|_| faults.strike(|()| true).is_some()).collect()
    }

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("Create*", "CreateVpc", true),
            ("Create*", "DescribeVpcs", false),
            ("*Vpc", "CreateVpc", true),
            ("Create?pc", "CreateVpc", true),
            ("CreateVpc", "CreateVpcEndpoint", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn schedules() {
        assert_eq!(struck(Schedule::default(), 3), [1, 2, 3]);
        assert_eq!(struck(Schedule { nth: Some(2), ..Schedule::default() }, 4), [2]);
        assert_eq!(struck(Schedule { times: Some(2), ..Schedule::default() }, 4), [1, 2]);
        assert_eq!(struck(Schedule { nth: Some(2), times: Some(2), ..Schedule::default() }, 5), [2, 3]);
        let some = struck(Schedule { percent: Some(30), ..Schedule::default() }, 1000);
        assert!((200..400).contains(&some.len()), "{}", some.len());
        assert_eq!(some, struck(Schedule { percent: Some(30), ..Schedule::default() }, 1000));
    }
}
