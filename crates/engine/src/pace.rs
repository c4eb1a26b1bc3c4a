//! How fast AWS is changed: slower after each throttle, faster again as calls go through.
//!
//! The wait stands before the intent: a create call that waited after it would be sent when the
//! settle window, which counts from the intent, is half over.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use resource::{Class, Error, Meta, Result, Scope};
use tokio::time::{Instant, sleep_until};

/// The gap between two changes after the first throttle; half of it is none.
const SHORTEST: Duration = Duration::from_millis(50);
/// AWS refills its slowest limits at least once a second.
const LONGEST: Duration = Duration::from_secs(1);
/// Who would wait longer comes back later.
const PATIENCE: Duration = Duration::from_secs(20);

/// The changes under way, by account, region and service. What is not in it is not slowed down.
#[derive(Default)]
pub struct Pace(Mutex<HashMap<Flow, Gap>>);

type Flow = (Scope, &'static str);

struct Gap {
    length: Duration,
    /// The first moment that nobody has taken.
    next: Instant,
    /// When it last grew: throttles that come together count as one.
    grew: Option<Instant>,
}

impl Pace {
    /// Waits for a turn to change something.
    ///
    /// # Errors
    /// Throttled, when too many others wait already.
    pub async fn turn(&self, scope: &Scope, meta: &Meta) -> Result<()> {
        if let Some(turn) = self.take(scope, meta, Instant::now())? {
            sleep_until(turn).await;
        }
        Ok(())
    }

    /// Learns from how a change ended.
    pub fn answered<T>(&self, scope: &Scope, meta: &Meta, answer: &Result<T>) {
        self.learn(scope, meta, answer, Instant::now());
    }

    /// A turn of one's own; none where nobody need wait.
    fn take(&self, scope: &Scope, meta: &Meta, now: Instant) -> Result<Option<Instant>> {
        let mut flows = self.0.lock();
        let Some(gap) = flows.get_mut(&flow(scope, meta)) else { return Ok(None) };
        let turn = gap.next.max(now);
        if turn - now > PATIENCE {
            let message = format!("not sent: AWS throttles {}, and others wait already", scope.region);
            return Err(Error::new(Class::Throttled, service(meta), message));
        }
        gap.next = turn + gap.length;
        Ok(Some(turn))
    }

    fn learn<T>(&self, scope: &Scope, meta: &Meta, answer: &Result<T>, now: Instant) {
        let mut flows = self.0.lock();
        let flow = flow(scope, meta);
        match answer {
            Err(error) if error.class == Class::Throttled => {
                flows.entry(flow).or_insert_with(|| Gap::new(now)).grow(now);
            }
            Ok(_) if flows.get_mut(&flow).is_some_and(Gap::shrinks_to_none) => drop(flows.remove(&flow)),
            _ => {}
        }
    }
}

impl Gap {
    fn new(now: Instant) -> Self {
        Self { length: SHORTEST / 2, next: now, grew: None }
    }

    fn grow(&mut self, now: Instant) {
        if self.grew.is_none_or(|grew| now.duration_since(grew) >= self.length) {
            self.length = (self.length * 2).min(LONGEST);
            self.next = self.next.max(now + self.length);
            self.grew = Some(now);
        }
    }

    fn shrinks_to_none(&mut self) -> bool {
        self.length = self.length.mul_f64(0.8);
        self.length < SHORTEST / 2
    }
}

fn flow(scope: &Scope, meta: &Meta) -> Flow {
    (scope.clone(), service(meta))
}

/// The service, as its IAM actions name it.
fn service(meta: &Meta) -> &'static str {
    meta.permissions.first().and_then(|action| action.split(':').next()).unwrap_or(meta.kind)
}

#[cfg(test)]
mod tests {
    use resource::{Deletion, Polling, Reads};

    use super::*;

    fn kind(permissions: &'static [&'static str]) -> Meta {
        Meta {
            kind: "Thing",
            plural: "things",
            short_names: &[],
            about: "",
            identifier: "id",
            deletion: Deletion::Immediate,
            reads: Reads::Batched,
            polling: Polling::default(),
            precious: false,
            woken_by: &[],
            permissions,
        }
    }

    fn scope() -> Scope {
        let text = |text: &str| text.to_owned();
        Scope {
            provider: text(""),
            account_id: text("123456789012"),
            region: text("eu-west-1"),
            partition: text("aws"),
        }
    }

    fn throttled() -> Result<()> {
        Err(Error::new(Class::Throttled, "CreateThing", "slow down"))
    }

    /// How long the last of so many must wait who come now; they come again when all have had their turn.
    fn wait(pace: &Pace, meta: &Meta, turns: usize, now: &mut Instant) -> Duration {
        let taken = (0..turns).map(|_| pace.take(&scope(), meta, *now).unwrap()).last().flatten();
        let wait = taken.map_or(Duration::ZERO, |turn| turn - *now);
        *now += wait + LONGEST;
        wait
    }

    fn throttle(pace: &Pace, meta: &Meta, times: usize, now: &mut Instant) {
        for _ in 0..times {
            *now += LONGEST;
            pace.learn(&scope(), meta, &throttled(), *now);
        }
        *now += LONGEST;
    }

    #[test]
    fn throttles_slow_down_their_service_alone_and_success_speeds_it_up_again() {
        let (pace, things, others) = (Pace::default(), kind(&["ec2:CreateThing"]), kind(&["iam:CreateRole"]));
        let now = &mut Instant::now();
        assert_eq!(wait(&pace, &things, 100, now), Duration::ZERO);
        // Many at once are one.
        (0..50).for_each(|_| pace.learn(&scope(), &things, &throttled(), *now));
        *now += LONGEST;
        assert_eq!(wait(&pace, &things, 11, now), SHORTEST * 10);
        assert_eq!(wait(&pace, &others, 100, now), Duration::ZERO);
        throttle(&pace, &things, 20, now);
        assert_eq!(wait(&pace, &things, 11, now), LONGEST * 10);
        (0..20).for_each(|_| pace.learn(&scope(), &things, &Ok(()), *now));
        assert_eq!(wait(&pace, &things, 100, now), Duration::ZERO);
    }

    #[test]
    fn who_would_wait_too_long_comes_back_later() {
        let (pace, things) = (Pace::default(), kind(&["ec2:CreateThing"]));
        let now = &mut Instant::now();
        throttle(&pace, &things, 20, now);
        let turns: Vec<_> = (0..100).map(|_| pace.take(&scope(), &things, *now)).collect();
        let refused: Vec<_> = turns.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 79);
        assert_eq!(refused[0].class, Class::Throttled);
    }
}
