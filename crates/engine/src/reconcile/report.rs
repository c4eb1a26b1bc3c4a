//! Step five: status, event, metrics; and when to come back.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use resource::condition::{self, Reason, Verdict, conditions};
use resource::schedule::{self, PROPAGATION};
use resource::{Class, Error, Live, Secrets, schema};
use serde_json::{Map, Value, json};

use super::{Ended, Inputs, Job, Next, secrets};
use crate::cluster::ClusterError;
use crate::events::{Happening, event};
use crate::metrics::of_kind;
use crate::object::Object;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Read,
    Create,
    Update,
    Delete,
}

impl Job<'_> {
    /// AWS is as the spec says.
    pub(super) async fn synced(
        &mut self,
        live: Option<&Live>,
        inputs: &Inputs,
        managed: Value,
        corrections: Value,
        interval: Duration,
    ) -> Result<Ended, ClusterError> {
        let time = self.cx.now();
        self.memory.failures = 0;
        self.memory.failing_since = None;
        self.memory.last_event.clear();
        self.memory.carried = Secrets::default();
        if self.record.last_sync.is_none() {
            self.count_time_to_ready(time);
        }
        let mut status = self.status(&Verdict::synced("AWS is as the spec says"), live);
        status.insert("lastSyncTime".to_owned(), json!(condition::time(time)));
        status.insert("managed".to_owned(), managed);
        let corrections = replaced(&self.object.status()["sync"]["corrections"], corrections);
        if !inputs.fingerprints.is_empty() {
            status.insert("secrets".to_owned(), json!(secrets::applied(&inputs.fingerprints)));
        }
        status.insert("sync".to_owned(), json!({"inputs": inputs.hash, "corrections": corrections}));
        self.write_changed(status).await?;
        let due = schedule::next_check(time, interval, self.meta().reads, &self.ownership.uid);
        let wait = Duration::try_from(due.duration_since(self.cx.now())).unwrap_or(interval);
        Ok(("Synced", Next::After(wait)))
    }

    /// Reports anything but success.
    pub(super) async fn report(
        &mut self,
        verdict: Verdict,
        live: Option<&Live>,
        next: Next,
    ) -> Result<Ended, ClusterError> {
        // What AWS says of a resource's state comes here without having failed.
        let message = match verdict.reason {
            Reason::Error => self.without_secrets(&verdict.message).await,
            _ => self.scrubbed(&verdict.message),
        };
        let verdict = Verdict { message, ..verdict };
        if verdict.reason == Reason::Error {
            self.publish_once(Happening::warning("Error", verdict.message.clone()));
        }
        tracing::info!(reason = verdict.reason.as_str(), message = verdict.message, "not synced");
        let status = self.status(&verdict, live);
        self.write_changed(status).await?;
        Ok((verdict.reason.as_str(), next))
    }

    /// Shows what is about to be done, before it is.
    pub(super) async fn announce(&mut self, reason: Reason, message: &str) -> Result<(), ClusterError> {
        let shown = condition::find(&self.object.status()["conditions"], "Ready");
        if shown.is_some_and(|ready| ready["reason"] == reason.as_str()) {
            return Ok(());
        }
        let status = self.status(&Verdict::progressing(reason, message), None);
        self.write_changed(status).await
    }

    /// A call failed: what that means for the object, and when to try again.
    pub(super) async fn fail(&mut self, error: Error, verb: Verb) -> Result<Ended, ClusterError> {
        self.fail_seeing(None, error, verb).await
    }

    /// The same where something is live: what is known of it is shown, for others may need no more.
    pub(super) async fn fail_seeing(
        &mut self,
        live: Option<&Live>,
        error: Error,
        verb: Verb,
    ) -> Result<Ended, ClusterError> {
        let error = Error { message: self.without_secrets(&error.message).await, ..error };
        tracing::warn!(
            operation = error.operation,
            code = error.code,
            request_id = error.request_id,
            class = ?error.class,
            message = error.message,
            "a call failed"
        );
        if error.class == Class::Fenced {
            return Err(ClusterError::Fenced);
        }
        let next = match error.class {
            Class::Busy => Next::After(self.cx.scaled(self.meta().polling.0)),
            class => self.backoff(class),
        };
        if error.class == Class::Throttled && verb == Verb::Read && self.is_fresh() {
            return Ok(("Throttled", next));
        }
        let verdict = self.judge(&error, verb);
        self.report(verdict, live, next).await
    }

    fn judge(&self, error: &Error, verb: Verb) -> Verdict {
        let message = error.to_string();
        match error.class {
            Class::Throttled => Verdict::progressing(Reason::Throttled, message),
            Class::Busy => Verdict::progressing(self.under_way(), message),
            Class::Dependency if verb == Verb::Delete => {
                Verdict::progressing(Reason::Error, self.blocked(message))
            }
            Class::Dependency | Class::NotFound if verb != Verb::Read => {
                Verdict::progressing(Reason::DependencyNotReady, message)
            }
            Class::NotPropagated if self.failing_for() < self.cx.scaled(PROPAGATION) => {
                Verdict::progressing(self.under_way(), format!("not known everywhere in AWS yet: {message}"))
            }
            class if class.heals_by_itself() && class != Class::NotPropagated => {
                Verdict::progressing(Reason::Error, message)
            }
            _ => Verdict::stalled(message),
        }
    }

    /// What AWS is at with this object.
    fn under_way(&self) -> Reason {
        if self.object.is_deleting() {
            Reason::Deleting
        } else if self.record.last_sync.is_some() {
            Reason::Updating
        } else {
            Reason::Creating
        }
    }

    /// AWS's message, and from the references what still uses it.
    fn blocked(&self, message: String) -> String {
        let users: Vec<_> = self.cx.graph.referrers(&self.key).iter().map(ToString::to_string).collect();
        if users.is_empty() {
            return format!("{message}. It goes on by itself once nothing uses it");
        }
        format!("{message}. Still used by {}; it goes on by itself once they are gone", users.join(", "))
    }

    fn failing_for(&self) -> Duration {
        let since = self.memory.failing_since.unwrap_or_else(|| self.cx.now());
        Duration::try_from(self.cx.now().duration_since(since)).unwrap_or_default()
    }

    /// In sync, and checked within the last two intervals.
    fn is_fresh(&self) -> bool {
        let interval = self.interval().unwrap_or(self.cx.options.drift_interval);
        self.object.is_ready()
            && self.record.last_sync.is_some_and(|last| self.cx.now() < last + interval * 2)
    }

    pub(super) fn status(&self, verdict: &Verdict, live: Option<&Live>) -> Map<String, Value> {
        let generation = self.generation;
        let before = &self.object.status()["conditions"];
        let mut status = Map::new();
        if let Some(live) = live {
            // A field that AWS no longer shows goes.
            for (field, _) in schema::properties(self.kind.status_schema()) {
                let shown = live.status.get(field).cloned().unwrap_or_default();
                status.insert(field.clone(), replaced(&self.object.status()[field], shown));
            }
        }
        if let Some(creation) = self.record.creation.values().next() {
            let place = json!({"accountId": creation.account_id, "region": creation.region});
            status.insert("awsProvider".to_owned(), place);
        }
        status.insert("conditions".to_owned(), conditions(before, verdict, false, generation, self.cx.now()));
        status.insert("observedGeneration".to_owned(), json!(generation));
        status
    }

    /// Writes what differs from the status as it is; nothing, if nothing does.
    async fn write_changed(&mut self, status: Map<String, Value>) -> Result<(), ClusterError> {
        let before = self.object.status();
        let differs = |field: &str, value: &Value| before.get(field).unwrap_or(&Value::Null) != value;
        let changed: Map<_, _> = status.into_iter().filter(|(field, value)| differs(field, value)).collect();
        if changed.is_empty() { Ok(()) } else { self.write_status(Value::Object(changed)).await }
    }

    fn count_time_to_ready(&self, time: Timestamp) {
        let Some(created) = self.object.creation_timestamp() else { return };
        let seconds = time.duration_since(created.0).as_secs_f64();
        self.cx.metrics.time_to_ready.get_or_create(&of_kind(self.meta().kind)).observe(seconds);
    }

    pub(super) fn publish_created(&mut self, id: &str) {
        self.publish(Happening::normal("Created", format!("created {id}")));
    }

    pub(super) fn publish(&mut self, happening: Happening) {
        tracing::info!(reason = happening.reason, note = happening.note, "event");
        let (cx, event) = (self.cx.clone(), event(self.meta(), &self.object, &happening));
        self.cx.tasks.spawn(async move { cx.events.publish(event).await });
    }

    /// Publishes unless a retry of the same already did.
    fn publish_once(&mut self, happening: Happening) {
        // Request ids differ from retry to retry; what is said before them does not.
        let said = happening.note.split(" (request id").next().unwrap_or_default();
        let event = format!("{}: {said}", happening.reason);
        if self.memory.last_event != event {
            self.memory.last_event = event;
            self.publish(happening);
        }
    }
}

/// A map that takes another's place in a merge patch: what is no longer in it is struck out.
fn replaced(before: &Value, after: Value) -> Value {
    match (before, after) {
        (Value::Object(before), Value::Object(mut after)) => {
            for (key, before) in before {
                let value = after.remove(key).map(|after| replaced(before, after));
                after.insert(key.clone(), value.unwrap_or_default());
            }
            Value::Object(after)
        }
        (_, after) => after,
    }
}
