//! A watch: the changes of one resource, as late and as incomplete as they may be.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use serde_json::{Value, json};

use super::objects::{Change, Verb};
use crate::crds;
use crate::world::{State, World};

/// A watch that errs is tried again after a while that is up to kube's own dice: what it asks then is
/// answered at a full quarter of a minute.
const STEP: Duration = Duration::from_secs(15);
/// The API server ends every watch after some minutes.
const LONGEST: Duration = Duration::from_secs(290);

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The next full step.
pub(super) fn next_step(now: Duration) -> Duration {
    STEP * u32::try_from(now.as_millis() / STEP.as_millis() + 1).unwrap_or(u32::MAX)
}

/// Where a watch is.
struct Watch {
    world: World,
    plural: String,
    seen: u64,
    ends: Duration,
    /// Its place is gone: it says so, and ends.
    gone: bool,
}

/// Begins a watch.
pub(super) fn watch(world: &World, plural: String, seen: u64) -> Response<Body> {
    let now = world.time.elapsed();
    let mut dice = world.dice(&format!("watch {plural}"));
    let weather = world.state().weather;
    let lasts = if dice.percent(weather.cuts) { dice.millis(500..40_000) } else { LONGEST };
    let gone = dice.percent(weather.gone);
    let watch = Watch { world: world.clone(), plural, seen, ends: now + lasts, gone };
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames(watch))));
    *response.status_mut() = StatusCode::OK;
    response
}

fn frames(watch: Watch) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((Ok(Frame::data(Bytes::from(format!("{line}\n")))), watch))
    })
}

impl Watch {
    /// The next event; None once the watch is cut.
    async fn next(&mut self) -> Option<Value> {
        if self.gone {
            self.world.time.reach(next_step(self.world.time.elapsed())).await;
            let status = json!({"kind": "Status", "code": 410, "reason": "Expired", "status": "Failure", "message": "too old"});
            (self.gone, self.ends) = (false, Duration::ZERO);
            return Some(json!({"type": "ERROR", "object": status}));
        }
        loop {
            let now = self.world.time.elapsed();
            if now >= self.ends || !crds::is_installed(&self.world.state(), &self.plural) {
                return None;
            }
            let wait = match self.due(&self.world.state()) {
                Some((due, change)) if due <= now => {
                    self.seen = change.version;
                    return Some(event(&change));
                }
                Some((due, _)) => due.min(self.ends),
                None => self.ends,
            };
            tokio::select! {
                biased;
                () = self.world.bell.notified() => {}
                () = self.world.time.reach(wait) => {}
            }
        }
    }

    /// The next change, and when it gets here. All that is known of an object by then comes as one.
    fn due(&self, state: &State) -> Option<(Duration, Change)> {
        let mut changes = state.api.since(&self.plural, self.seen);
        let first = changes.next()?;
        let mut dice = state.chance.once(&format!("lag {} {}", first.key, first.at.as_millis()));
        let due = first.at + dice.millis(0..state.weather.watch_lag.max(1));
        let skips = dice.percent(50);
        let later = changes.take_while(|later| skips && later.key == first.key && later.at <= due);
        let last = later.take_while(|later| later.verb == Verb::Modified).last();
        Some((due, last.unwrap_or(first).clone()))
    }
}

fn event(change: &Change) -> Value {
    let verb = match change.verb {
        Verb::Added => "ADDED",
        Verb::Modified => "MODIFIED",
        Verb::Deleted => "DELETED",
    };
    json!({"type": verb, "object": change.object})
}
