//! The way of a call to AWS: it takes its time, fails, or its answer is lost.

use std::time::Duration;

use resource::{Call, Class, Error, Result, Role};

use crate::trace::Who;
use crate::world::{State, World};

/// What the operator panics with, as an answer arrives.
pub struct Bug;

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// `<Kind>/<name>`, after the namespace where that is not the usual one.
    pub object: String,
    /// Its uid.
    pub uid: String,
    /// On behalf of which role.
    pub role: Role,
}

impl Caller {
    /// Who makes this call.
    pub fn of(call: &Call, role: Role) -> Self {
        let owner = call.ownership.owner.split_once('/').map(|(_, object)| object).unwrap_or_default();
        let owner = owner.strip_prefix("default/").unwrap_or(owner);
        Self { object: owner.to_owned(), uid: call.ownership.uid.clone(), role }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The operation, such as `CreateNetwork`.
    pub operation: String,
    /// Who asks, for the trace.
    pub by: String,
    /// It changes something.
    pub changes: bool,
    /// A secret that it carries: AWS's words may quote it.
    pub quotes: Option<String>,
}

impl World {
    /// Makes a call. `act` is what AWS does; it gets the state and the time.
    pub async fn call<T>(
        &self,
        asked: Asked,
        act: impl FnOnce(&mut State, Duration) -> Result<(String, T)>,
        unclear: impl FnOnce(&mut State),
    ) -> Result<T> {
        let name = format!("{} {}", asked.operation, asked.by);
        let mut dice = self.dice(&name);
        let weather = self.state().weather;
        tokio::time::sleep(dice.millis(2..60)).await;
        if dice.percent(weather.slow) {
            tokio::time::sleep(dice.millis(500..20_000)).await;
        }
        let fails = [(weather.throttled, Class::Throttled), (weather.failed, Class::Transient)];
        let fails = fails.into_iter().find(|(percent, _)| dice.percent(*percent)).map(|(_, class)| class);
        let (is_lost, back) = (dice.percent(weather.lost), dice.millis(2..60));
        let is_bug = dice.within(0..1_000) < weather.bugs;
        let is_lost = fails.is_none() && (is_lost || is_bug);
        let done = self.turn(&asked, &name, fails, is_lost, act, unclear).await;
        if is_bug {
            #[expect(clippy::panic, reason = "the bug that is simulated")]
            std::panic::panic_any(Bug);
        }
        tokio::time::sleep(back).await;
        done
    }

    /// The instant in which the call has its effect, or fails to.
    async fn turn<T>(
        &self,
        asked: &Asked,
        name: &str,
        fails: Option<Class>,
        is_lost: bool,
        act: impl FnOnce(&mut State, Duration) -> Result<(String, T)>,
        unclear: impl FnOnce(&mut State),
    ) -> Result<T> {
        let now = self.time.elapsed();
        let turn = |state: &mut State| {
            state.cloud.advance(now);
            *state.cloud.calls.entry(name.to_owned()).or_default() += 1;
            if let Some(class) = fails {
                let quoted = asked.quotes.as_deref().unwrap_or("nothing");
                let message = format!("not now: you sent {quoted}");
                return (format!("{name} → {class:?}"), Err(refuse(class, &asked.operation, &message)));
            }
            state.cloud.changes += u64::from(asked.changes);
            match act(state, now) {
                Ok((_, _)) if is_lost => {
                    unclear(state);
                    let lost = refuse(Class::Transient, &asked.operation, "connection reset");
                    (format!("{name} → done, but the answer is lost"), Err(lost))
                }
                Ok((what, done)) => (format!("{name} → {what}"), Ok(done)),
                Err(error) => (format!("{name} → {:?}: {}", error.class, error.message), Err(error)),
            }
        };
        if asked.changes {
            return self.effect(Who::Aws, turn).await;
        }
        let mut state = self.state();
        let (what, done) = turn(&mut state);
        state.trace.add(now, Who::Aws, what);
        done
    }
}

/// A failure, as AWS words it.
pub(super) fn refuse(class: Class, operation: &str, message: &str) -> Error {
    Error { code: format!("{class:?}"), ..Error::new(class, operation, message) }
}
