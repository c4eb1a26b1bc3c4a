//! When an object is looked at again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::{Class, Reads};

/// How long AWS's reads may lag behind a create.
pub const SETTLE: Duration = Duration::from_secs(60);
/// How long a role or principal may be unknown to the rest of AWS.
pub const PROPAGATION: Duration = Duration::from_secs(120);
/// How often a lost answer is looked for within the settle window.
pub const SETTLE_POLL: Duration = Duration::from_secs(5);
/// The bounds of the annotation `reconcile-interval`.
pub const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(30)..=Duration::from_secs(24 * 3600);

/// Reads `30s`, `5m`, `1h30m`.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let hint = || format!("{text:?} is no duration between 30s and 24h; write it like 30s, 5m or 2h");
    let signed: SignedDuration = text.trim().parse().map_err(|_| hint())?;
    let interval = Duration::try_from(signed).map_err(|_| hint())?;
    if INTERVALS.contains(&interval) { Ok(interval) } else { Err(hint()) }
}

/// When an object that was synced at `last` is checked again: within 10 % of the interval.
///
/// Kinds that are read in batches share instants (slots of a tenth of the interval), so that what
/// falls due together is read together; the others are spread by a jitter of their own.
pub fn next_check(last: Timestamp, interval: Duration, reads: Reads, uid: &str) -> Timestamp {
    match reads {
        Reads::OneByOne => last + interval.mul_f64(0.9 + 0.2 * fraction(uid)),
        Reads::Batched => {
            let slot = (interval / 10).as_millis().max(1) as i64;
            let earliest = (last + interval.mul_f64(0.9)).as_millisecond();
            let due = (earliest + slot - 1).div_euclid(slot) * slot;
            Timestamp::from_millisecond(due).unwrap_or(last)
        }
    }
}

/// How long to wait after the `failures`-th failure in a row. `jitter` is from 0 to 1.
///
/// What only a person can heal is retried slowly; what waits for something else in AWS from 15 s
/// (mostly it is woken before); everything else from 1 s, doubling to 5 min.
pub fn backoff(class: Class, failures: u32, jitter: f64) -> Duration {
    let (first, most) = match class {
        Class::Dependency | Class::NotFound => (15.0, 300.0),
        class if class.heals_by_itself() => (1.0, 300.0),
        _ => (30.0, 1800.0),
    };
    let doubled = first * 2f64.powi(failures.saturating_sub(1).min(16) as i32);
    Duration::from_secs_f64(f64::min(doubled, most) * (0.8 + 0.4 * jitter))
}

/// A number from 0 to 1 that follows from the object.
fn fraction(uid: &str) -> f64 {
    let digest = Sha256::digest(uid);
    f64::from(u16::from_be_bytes([digest[0], digest[1]])) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_falls_due_within_a_tenth_of_the_interval() {
        let interval = Duration::from_secs(300);
        for second in 0..600 {
            let last = Timestamp::from_second(1_800_000_000 + second).unwrap();
            for reads in [Reads::Batched, Reads::OneByOne] {
                let due = next_check(last, interval, reads, &format!("uid-{second}"));
                let waited = Duration::try_from(due.duration_since(last)).unwrap();
                assert!(waited >= interval.mul_f64(0.9) && waited <= interval.mul_f64(1.1), "{waited:?}");
            }
        }
    }

    #[test]
    fn what_is_read_in_batches_falls_due_together() {
        let interval = Duration::from_secs(300);
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let due = |second: u64| next_check(start + Duration::from_secs(second), interval, Reads::Batched, "");
        let instants: std::collections::BTreeSet<_> = (1..30).map(due).collect();
        assert_eq!(instants.len(), 1);
    }

    #[test]
    fn intervals_are_bounded() {
        assert_eq!(parse_interval("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_interval("1h30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "5", "29s", "25h", "-5m", "soon"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_real_times() {
        assert_eq!(SETTLE.as_secs(), 60);
        assert_eq!(PROPAGATION.as_secs(), 120);
    }

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let seconds = |class, failures| backoff(class, failures, 0.5).as_secs();
        assert_eq!([1, 2, 3, 30].map(|n| seconds(Class::Transient, n)), [1, 2, 4, 300]);
        assert_eq!([1, 2, 30].map(|n| seconds(Class::Denied, n)), [30, 60, 1800]);
    }
}
