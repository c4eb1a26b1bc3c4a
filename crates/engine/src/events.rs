//! Kubernetes events: what happened to an object, each once.

use kube::core::DynamicObject;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};

use crate::CONTROLLER;
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

/// Publishes events.
pub struct Events(Client);

impl Events {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// Publishes one. A failure is logged: an event is no reason to hold up AWS.
    pub async fn publish(&self, meta: &resource::Meta, object: &DynamicObject, happening: &Happening) {
        let event = Event {
            type_: if happening.warning { EventType::Warning } else { EventType::Normal },
            reason: happening.reason.to_owned(),
            note: Some(shorten(&happening.note)),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // A recorder of its own for each: a shared one takes what has the same reason for a repetition
        // within six minutes, whatever the note says.
        let reporter = Reporter { controller: CONTROLLER.to_owned(), instance: None };
        let recorder = Recorder::new(self.0.clone(), reporter);
        let regarding = object.object_ref(&api_resource(meta));
        if let Err(error) = recorder.publish(&event, &regarding).await {
            tracing::warn!(%error, reason = happening.reason, "cannot publish an event");
        }
    }
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
