//! The conditions of an object, by the Kubernetes API conventions and for kstatus.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Messages are cut at this many bytes: status is read by people, and stored in etcd.
const MESSAGE_LIMIT: usize = 1024;

/// The reason of the `Ready` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// AWS is as the spec says.
    Synced,
    /// It is being created.
    Creating,
    /// It is being changed.
    Updating,
    /// It is being deleted.
    Deleting,
    /// Something it refers to is missing or not ready.
    DependencyNotReady,
    /// It failed; the message says what to do.
    Error,
    /// AWS asks to slow down.
    Throttled,
}

impl Reason {
    /// As written in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Synced => "Synced",
            Reason::Creating => "Creating",
            Reason::Updating => "Updating",
            Reason::Deleting => "Deleting",
            Reason::DependencyNotReady => "DependencyNotReady",
            Reason::Error => "Error",
            Reason::Throttled => "Throttled",
        }
    }
}

/// What the conditions are to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The reason of `Ready`; only [`Reason::Synced`] is True.
    pub reason: Reason,
    /// What a person should know.
    pub message: String,
    /// It does not heal by itself soon (kstatus: Failed rather than InProgress).
    pub stalled: bool,
}

impl Verdict {
    /// AWS is as the spec says.
    pub fn synced(message: impl Into<String>) -> Self {
        Self { reason: Reason::Synced, message: message.into(), stalled: false }
    }

    /// Under way, for this reason.
    pub fn progressing(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stalled: false }
    }

    /// Failed until somebody does something.
    pub fn stalled(message: impl Into<String>) -> Self {
        Self { reason: Reason::Error, message: message.into(), stalled: true }
    }
}

/// The conditions to write. A condition whose status stays keeps its transition time.
///
/// Beside `Ready`: `Reconciling` while under way and `Stalled` once stuck, both only while true
/// (kstatus reads their mere presence); `Paused` while paused.
pub fn conditions(before: &Value, verdict: &Verdict, paused: bool, generation: i64, now: Timestamp) -> Value {
    let ready = verdict.reason == Reason::Synced;
    let reason = verdict.reason.as_str();
    let message = shorten(&verdict.message);
    let mut list = vec![("Ready", ready, reason, message.as_str())];
    if verdict.stalled {
        list.push(("Stalled", true, reason, &message));
    } else if !ready {
        list.push(("Reconciling", true, reason, &message));
    }
    if paused {
        list.push(("Paused", true, "Paused", PAUSED));
    }
    list.into_iter()
        .map(|(kind, status, reason, message)| {
            let status = if status { "True" } else { "False" };
            let since = since(before, kind, status).unwrap_or_else(|| time(now));
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "observedGeneration": generation, "lastTransitionTime": since,
            })
        })
        .collect()
}

const PAUSED: &str = "the annotation aws.konfig.io/paused is set: AWS is neither read nor changed";

/// The conditions with `Paused` added or taken away, all others untouched.
pub fn with_paused(before: &Value, paused: bool, generation: i64, now: Timestamp) -> Value {
    let others =
        before.as_array().into_iter().flatten().filter(|condition| condition["type"] != "Paused").cloned();
    let mut list: Vec<Value> = others.collect();
    if paused {
        let since = since(before, "Paused", "True").unwrap_or_else(|| time(now));
        list.push(json!({
            "type": "Paused", "status": "True", "reason": "Paused", "message": PAUSED,
            "observedGeneration": generation, "lastTransitionTime": since,
        }));
    }
    list.into()
}

/// A condition of this type.
pub fn find<'a>(conditions: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions.as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether `Ready` is True, for this generation.
pub fn is_ready(status: &Value, generation: i64) -> bool {
    find(&status["conditions"], "Ready")
        .is_some_and(|ready| ready["status"] == "True" && ready["observedGeneration"] == generation)
}

/// RFC 3339 in whole seconds, as Kubernetes writes times.
pub fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn since(before: &Value, kind: &str, status: &str) -> Option<String> {
    let condition = find(before, kind).filter(|condition| condition["status"] == status)?;
    Some(condition["lastTransitionTime"].as_str()?.to_owned())
}

fn shorten(message: &str) -> String {
    if message.len() <= MESSAGE_LIMIT {
        return message.to_owned();
    }
    let mut end = MESSAGE_LIMIT - '…'.len_utf8();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}
