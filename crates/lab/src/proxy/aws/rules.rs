//! Which AWS calls a fault strikes, and what it does to them.

use std::time::Duration;

use super::super::faults::{Schedule, glob};
use super::asked::Asked;

/// Calls to strike. By default all; each method narrows it.
///
/// ```
/// # use lab::proxy::aws::Match;
/// let second_tagged_create = Match::op("Create*").service("ec2").param("*", "konfig.io/owner").nth(2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Match {
    service: Option<String>,
    operation: Option<String>,
    params: Vec<(String, String)>,
    mutating: bool,
    pub(super) schedule: Schedule,
}

impl Match {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Calls of this operation; `*` and `?` stand for anything.
    pub fn op(pattern: &str) -> Self {
        Self { operation: Some(pattern.to_owned()), ..Self::default() }
    }

    /// Every mutating call.
    pub fn mutating() -> Self {
        Self { mutating: true, ..Self::default() }
    }

    /// Only calls of this service.
    #[must_use]
    pub fn service(mut self, service: &str) -> Self {
        self.service = Some(service.to_owned());
        self
    }

    /// Only calls with a parameter of this name (`*` stands for anything) whose value contains the text.
    #[must_use]
    pub fn param(mut self, name: &str, contains: &str) -> Self {
        self.params.push((name.to_owned(), contains.to_owned()));
        self
    }

    /// Only the nth matching call, counted from 1; with [`Match::times`], from that one on.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.schedule.nth = Some(nth);
        self
    }

    /// Only this share of the matching calls, by the proxy's seeded dice.
    #[must_use]
    pub fn percent(mut self, percent: u8) -> Self {
        self.schedule.percent = Some(percent);
        self
    }

    /// At most so many times.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.schedule.times = Some(times);
        self
    }

    pub(super) fn matches(&self, asked: &Asked) -> bool {
        let has = |(name, text): &(String, String)| {
            asked.params.iter().any(|(key, value)| glob(name, key) && value.contains(text.as_str()))
        };
        self.service.as_ref().is_none_or(|service| *service == asked.service)
            && self.operation.as_ref().is_none_or(|operation| glob(operation, &asked.operation))
            && (!self.mutating || asked.is_mutating())
            && self.params.iter().all(has)
    }
}

/// What a fault does to a call.
#[derive(Debug, Clone)]
pub enum Action {
    /// Answer as the service does when calls come too fast.
    Throttle,
    /// Answer as the service does when temporary credentials have run out.
    Expire,
    /// Answer with this error; nothing reaches the emulator.
    Error {
        /// The HTTP status.
        status: u16,
        /// AWS's code.
        code: String,
        /// AWS's message.
        message: String,
    },
    /// Answer 500 or 503; nothing reaches the emulator.
    ServerError(u16),
    /// Close the connection; nothing reaches the emulator.
    ResetBefore,
    /// Let the effect happen, then close the connection without an answer.
    ResetAfter,
    /// Let the effect happen, then answer 500 or 503.
    ServerErrorAfter(u16),
    /// Let the effect happen, then hang for that long and close the connection.
    TimeoutAfterEffect(Duration),
    /// Let the effect happen, and hold the answer back for
    /// [`Fault::release`](crate::proxy::Fault::release).
    HoldAnswer,
    /// Let the call wait for that long.
    Delay(Duration),
    /// Let the call wait, unforwarded, for [`Fault::release`](crate::proxy::Fault::release).
    Hold,
}

impl Action {
    /// [`Action::Error`] in short.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self::Error { status, code: code.to_owned(), message: message.to_owned() }
    }
}
