//! Many seeds, and what to show of one that fails.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::run::{Outcome, run};

/// A seed that violates an invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The run of its shortest failing prefix.
    pub outcome: Outcome,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, steps) = (self.seed, self.outcome.steps);
        let violation = self.outcome.violation.as_deref().unwrap_or_default();
        writeln!(f, "{}", self.outcome.trace)?;
        writeln!(f, "seed {seed}, after {steps} steps of its script: {violation}")?;
        write!(f, "replay with: make simulate SEED={seed}")
    }
}

/// Runs seeds until one fails, and says which; `progress` is told how many are done.
///
/// # Errors
/// When a run cannot be started.
pub fn search(seeds: Range<u64>, progress: impl Fn(u64) + Sync) -> anyhow::Result<Option<u64>> {
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let ended: Mutex<Vec<anyhow::Result<u64>>> = Mutex::default();
    let work = || {
        while ended.lock().is_empty() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            match run(seed, usize::MAX) {
                Ok(outcome) if outcome.violation.is_some() => ended.lock().push(Ok(seed)),
                Ok(_) => progress(done.fetch_add(1, Ordering::Relaxed) + 1),
                Err(error) => ended.lock().push(Err(error)),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    ended.into_inner().into_iter().next().transpose()
}

/// Runs one seed; if it fails, the shortest part of its script that still does.
///
/// # Errors
/// When a run cannot be started.
pub fn check(seed: u64) -> anyhow::Result<Option<Failure>> {
    let whole = run(seed, usize::MAX)?;
    if whole.violation.is_none() {
        return Ok(None);
    }
    for steps in 0..whole.steps {
        let outcome = run(seed, steps)?;
        if outcome.violation.is_some() {
            return Ok(Some(Failure { seed, outcome }));
        }
    }
    Ok(Some(Failure { seed, outcome: whole }))
}
