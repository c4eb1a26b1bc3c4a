//! What goes wrong, and how often.

use crate::chance::Dice;

/// What goes wrong, in so many of a hundred cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// AWS asks to slow down.
    pub throttled: u64,
    /// AWS fails without having done anything.
    pub failed: u64,
    /// AWS's answer is lost: it did what it was asked.
    pub lost: u64,
    /// Of a thousand calls, so many meet a bug of the operator: it panics.
    pub bugs: u64,
    /// An answer takes long.
    pub slow: u64,
    /// AWS gives up on something that it made in the background.
    pub spoiled: u64,
    /// What was created shows in reads only after this many milliseconds at most.
    pub lag: u64,
    /// The API server fails without having done anything.
    pub api_failed: u64,
    /// The API server's answer is lost: it did what it was asked.
    pub api_lost: u64,
    /// Somebody else writes to the object just before.
    pub conflicts: u64,
    /// A watch is cut soon.
    pub cuts: u64,
    /// A watch that comes back is told that its place is gone.
    pub gone: u64,
    /// Changes reach a watch after this many milliseconds at most.
    pub watch_lag: u64,
    /// What was changed or deleted shows in reads as it was for so many milliseconds.
    pub stale: u64,
}

impl Weather {
    /// The weather of chance: mostly some of it, at times all at once.
    pub fn of(dice: &mut Dice) -> Self {
        let mut some =
            |percent: u64, most: u64| if dice.percent(percent) { dice.within(1..most + 1) } else { 0 };
        Self {
            throttled: some(30, 40),
            failed: some(40, 40),
            lost: some(50, 50),
            slow: some(30, 20),
            spoiled: some(20, 30),
            lag: some(50, 25_000),
            api_failed: some(30, 30),
            api_lost: some(40, 30),
            conflicts: some(30, 40),
            cuts: some(40, 80),
            gone: some(40, 60),
            watch_lag: some(50, 8_000),
            stale: some(50, 25_000),
            bugs: some(20, 30),
        }
    }
}
