//! What time it is, and what chance says.

use std::fmt::Debug;

use jiff::Timestamp;

/// Where the engine takes time and chance from; waiting is tokio's.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time now, as status and schedules use it.
    fn now(&self) -> Timestamp;

    /// A number from 0 to 1, by which retries are spread.
    fn jitter(&self) -> f64;
}

/// The system's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn jitter(&self) -> f64 {
        rand::random()
    }
}
