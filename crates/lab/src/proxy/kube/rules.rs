//! Which requests to the API server a fault strikes, and what it does to them.

use std::time::Duration;

use super::super::faults::{Schedule, glob};
use super::write::{Target, Verb};

/// Requests to strike. By default all; each method narrows it.
#[derive(Debug, Clone, Default)]
pub struct Match {
    verb: Option<Verb>,
    writes: bool,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
    pub(super) schedule: Schedule,
}

impl Match {
    /// Every request, reads too.
    pub fn any() -> Self {
        Self::default()
    }

    /// Every write.
    pub fn writes() -> Self {
        Self { writes: true, ..Self::default() }
    }

    /// Requests with this verb.
    pub fn verb(verb: Verb) -> Self {
        Self { verb: Some(verb), ..Self::default() }
    }

    /// Only for this plural resource (`vpcs`); here and below `*` and `?` stand for anything.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only for objects of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only for this subresource; the empty one is the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only the nth matching request, counted from 1; with [`Match::times`], from that one on.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.schedule.nth = Some(nth);
        self
    }

    /// Only this share of the matching requests, by the proxy's seeded dice.
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

    pub(super) fn matches(&self, target: &Target) -> bool {
        let fits =
            |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| glob(pattern, text));
        self.verb.is_none_or(|verb| verb == target.verb)
            && (!self.writes || target.verb.is_write())
            && fits(&self.resource, &target.resource)
            && fits(&self.namespace, target.namespace.as_deref().unwrap_or_default())
            && fits(&self.name, target.name.as_deref().unwrap_or_default())
            && fits(&self.subresource, target.subresource.as_deref().unwrap_or_default())
    }
}

/// What a fault does to a request.
#[derive(Debug, Clone)]
pub enum Action {
    /// Answer with this status (409, 429, 500, …) and Kubernetes' reason for it.
    Status(u16),
    /// Close the connection; nothing reaches the API server.
    ResetBefore,
    /// Let the effect happen, then close the connection without an answer.
    ResetAfter,
    /// Let the request wait for that long.
    Delay(Duration),
    /// Let the request wait, unforwarded, for [`Fault::release`](crate::proxy::Fault::release).
    Hold,
}
