//! How many objects of a kind are under way at once: each holds its spec and AWS's answers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use resource::Reads;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Where one call reads many objects.
const JOINED: usize = 128;
/// How long an ended turn waits for others before it is handed on.
const LONGEST: Duration = Duration::from_secs(1);

/// The turns of a kind. What users changed does not wait behind checks, nor behind another kind.
pub struct Turns {
    checks: Line,
    changes: Line,
}

/// Whether an object is due because of somebody, or of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Change,
    Clock,
}

impl Turns {
    /// Where each read is a call of its own, there are as many turns as workers.
    pub fn new(reads: Reads, workers: usize) -> Self {
        let line = || match reads {
            Reads::OneByOne => Line::new(workers.max(1), 1),
            Reads::Batched => Line::new(JOINED, JOINED / 2),
        };
        Self { checks: line(), changes: line() }
    }

    /// Waits for a turn. None only while the engine is torn down.
    pub async fn take(&self, cause: Cause) -> Option<Turn> {
        match cause {
            Cause::Change => self.changes.take().await,
            Cause::Clock => self.checks.take().await,
        }
    }
}

/// Turns that are handed on several at a time: those that begin together can share a read, and one
/// after the other they would share none.
#[derive(Clone)]
struct Line {
    free: Arc<Semaphore>,
    ended: Arc<Mutex<usize>>,
    together: usize,
}

/// A turn, until it is dropped.
pub struct Turn {
    line: Line,
    permit: Option<OwnedSemaphorePermit>,
}

impl Line {
    fn new(turns: usize, together: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(turns)), ended: Arc::default(), together }
    }

    async fn take(&self) -> Option<Turn> {
        let permit = self.free.clone().acquire_owned().await.ok()?;
        Some(Turn { line: self.clone(), permit: Some(permit) })
    }

    /// A turn is over: it is handed on with others.
    fn end(&self, permit: OwnedSemaphorePermit) {
        permit.forget();
        let mut ended = self.ended.lock();
        *ended += 1;
        if *ended >= self.together {
            self.free.add_permits(std::mem::take(&mut ended));
        } else if *ended == 1 {
            let line = self.clone();
            tokio::spawn(async move {
                sleep(LONGEST).await;
                line.free.add_permits(std::mem::take(&mut line.ended.lock()));
            });
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.line.end(permit);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_handed_on_together() {
        let line = Line::new(4, 3);
        let mut turns = Vec::new();
        for _ in 0..4 {
            turns.push(line.take().now_or_never().unwrap().unwrap());
        }
        turns.truncate(2);
        assert!(line.take().now_or_never().is_none(), "two have ended, three go on together");
        turns.truncate(1);
        assert_eq!(line.free.available_permits(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn no_turn_is_held_back_for_long() {
        let line = Line::new(2, 2);
        let (first, _second) = (line.take().await, line.take().await);
        drop(first);
        let asked = tokio::time::Instant::now();
        line.take().await.unwrap();
        assert_eq!(asked.elapsed(), LONGEST);
    }

    #[tokio::test]
    async fn alone_a_turn_is_handed_on_at_once() {
        let line = Line::new(1, 1);
        drop(line.take().await);
        assert!(line.take().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_change_does_not_wait_behind_checks() {
        let turns = Turns::new(Reads::OneByOne, 1);
        let _check = turns.take(Cause::Clock).await;
        assert!(turns.take(Cause::Clock).now_or_never().is_none());
        assert!(turns.take(Cause::Change).now_or_never().is_some());
    }
}
