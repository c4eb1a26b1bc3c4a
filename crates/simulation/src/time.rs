//! The time of a run: it goes on from one life of the engine to the next.

use std::time::Duration;

use engine::Clock;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::world::World;

/// Midnight of the first day, in seconds.
const EPOCH: i64 = 1_800_000_000;

/// How far a run has come.
#[derive(Debug, Default)]
pub struct Time(Mutex<Passed>);

#[derive(Debug, Default)]
struct Passed {
    /// By the end of the life before.
    before: Duration,
    /// When this life began, by the clock of its runtime.
    began: Option<Instant>,
    /// What the wall clock was set forward, in milliseconds.
    set_forward: i64,
}

impl Time {
    /// A life of the engine begins: to be called inside its runtime, as all the others here.
    pub fn begin(&self) {
        self.0.lock().began = Some(Instant::now());
    }

    /// A life ends.
    pub fn end(&self) {
        let mut passed = self.0.lock();
        let lasted = passed.began.take().map(|began| began.elapsed());
        passed.before += lasted.unwrap_or_default();
    }

    /// The time since the run began. Nothing sets it back.
    pub fn elapsed(&self) -> Duration {
        let passed = self.0.lock();
        passed.before + passed.began.map(|began| began.elapsed()).unwrap_or_default()
    }

    /// What the clock on the wall shows.
    pub fn wall(&self) -> Timestamp {
        let millis = i64::try_from(self.elapsed().as_millis()).unwrap_or_default();
        let shown = EPOCH * 1000 + millis + self.0.lock().set_forward;
        Timestamp::from_millisecond(shown).unwrap_or_default()
    }

    /// Sets the clock on the wall forward, or back.
    pub fn set_forward(&self, millis: i64) {
        self.0.lock().set_forward += millis;
    }

    /// Waits until so much time has passed since the run began.
    pub async fn reach(&self, elapsed: Duration) {
        tokio::time::sleep(elapsed.saturating_sub(self.elapsed())).await;
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        self.time.wall()
    }

    fn jitter(&self) -> f64 {
        let name = format!("jitter at {:?}", self.time.elapsed());
        self.state().chance.once(&name).within(0..1000) as f64 / 1000.0
    }
}
