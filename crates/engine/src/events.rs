//! Kubernetes events: what happened to an object, each once.

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use kube::core::DynamicObject;
use kube::{Client, Resource};
use resource::api::OPERATOR;
use tokio::sync::Semaphore;

use crate::object::api_resource;

/// Something worth an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    pub reason: &'static str,
    pub note: String,
    pub warning: bool,
}

impl Happening {
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { reason, note: note.into(), warning: false }
    }

    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { reason, note: note.into(), warning: true }
    }
}

/// How many events are published at once; each takes a connection.
const AT_ONCE: usize = 4;

/// Publishes events.
pub struct Events {
    client: Client,
    turns: Semaphore,
}

impl Events {
    pub fn new(client: Client) -> Self {
        Self { client, turns: Semaphore::new(AT_ONCE) }
    }

    /// Publishes one. A failure is logged: an event is no reason to hold up AWS.
    pub async fn publish(&self, event: Event) {
        let _turn = self.turns.acquire().await;
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if let Err(error) = api.create(&PostParams::default(), &event).await {
            tracing::warn!(%error, reason = event.reason, "cannot publish an event");
        }
    }
}

/// What happened to an object, as an event.
///
/// Not with kube's recorder: it names an event by the whole name of the object, which may be as long as
/// the event's own, and takes what has the same reason for a repetition, whatever the note says.
pub fn event(meta: &resource::Meta, object: &DynamicObject, happening: &Happening) -> Event {
    let (now, regarding) = (Timestamp::now(), object.object_ref(&api_resource(meta)));
    Event {
        metadata: ObjectMeta {
            name: Some(name(regarding.name.as_deref().unwrap_or(OPERATOR), now)),
            namespace: regarding.namespace.clone(),
            ..ObjectMeta::default()
        },
        type_: Some(if happening.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(happening.reason.to_owned()),
        note: Some(shorten(&happening.note)),
        action: Some("Reconcile".to_owned()),
        event_time: Some(MicroTime(now)),
        regarding: Some(regarding),
        reporting_controller: Some(OPERATOR.to_owned()),
        reporting_instance: Some(OPERATOR.to_owned()),
        ..Event::default()
    }
}

/// The longest name of an object in Kubernetes.
const NAME_LIMIT: usize = 253;

/// The name of an event: the object's, as far as it fits, and the time.
fn name(object: &str, now: Timestamp) -> String {
    let time = format!("{:x}", now.as_nanosecond());
    let kept = object.get(..NAME_LIMIT - 1 - time.len()).unwrap_or(object);
    // Each part of a name ends in a letter or digit.
    format!("{}.{time}", kept.trim_end_matches(['-', '.']))
}

/// Kubernetes' limit on a note, in bytes.
const NOTE_LIMIT: usize = 1024;

fn shorten(note: &str) -> String {
    let mut end = note.len().min(NOTE_LIMIT);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_legal_name_whatever_the_objects_is() {
        let cut_at_a_hyphen = format!("{}-{}", "n".repeat(235), "m".repeat(17));
        for (object, kept) in [
            ("main", "main."),
            (&"n".repeat(253), "nnn"),
            (&cut_at_a_hyphen, &format!("{}.", "n".repeat(235))),
        ] {
            let name = name(object, Timestamp::now());
            assert!(name.starts_with(kept) && name.len() <= NAME_LIMIT, "{name}");
        }
    }
}
