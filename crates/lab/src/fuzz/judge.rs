//! Whether what the operator says of an object, and does about it, is as it should be.

use std::collections::BTreeMap;

use kube::api::DynamicObject;

use crate::proxy::aws::Call;
use crate::subject::condition;

const REASONS: [&str; 7] =
    ["Synced", "Creating", "Updating", "Deleting", "DependencyNotReady", "Error", "Throttled"];

/// The bytes of a message that fit into a status.
const MESSAGE: usize = 1024;

/// How far the operator is with an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// It has said nothing of this generation yet.
    None,
    /// It is still at it, for this reason.
    Under(String),
    /// It has come to an end, for this reason.
    Final(String),
    /// What it says is not as it should be.
    Wrong(String),
}

/// Reads what is said of an object.
pub fn word(object: &DynamicObject) -> Word {
    let ready = condition(object, "Ready");
    if ready.is_null() || ready["observedGeneration"].as_i64() != object.metadata.generation {
        return Word::None;
    }
    let text = |field: &str| ready[field].as_str().unwrap_or_default();
    let (status, reason, message) = (text("status"), text("reason"), text("message"));
    let wrong = match (status, reason) {
        (_, reason) if !REASONS.contains(&reason) => Some("an unknown reason"),
        ("True", reason) if reason != "Synced" => Some("Ready for another reason than Synced"),
        ("False", "Synced") => Some("Synced and not Ready"),
        ("True" | "False", _) if message.len() > MESSAGE => Some("a message of more than 1 KiB"),
        ("False", _) if message.trim().is_empty() => Some("nothing about why it isn't Ready"),
        ("True" | "False", _) => None,
        _ => Some("neither True nor False"),
    };
    match (wrong, reason) {
        (Some(wrong), _) => Word::Wrong(format!("{wrong}: {ready}")),
        (None, "Synced" | "Error" | "DependencyNotReady") => Word::Final(reason.to_owned()),
        _ => Word::Under(reason.to_owned()),
    }
}

/// The mutating calls that were made more than so many times with the same parameters.
pub fn repeated(calls: &[Call], most: usize) -> Vec<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.mutating) {
        let is_token = |name: &str| name.to_lowercase().contains("token");
        let params: Vec<_> = call.params.iter().filter(|(name, _)| !is_token(name)).collect();
        *times.entry(format!("{} {} {params:?}", call.service, call.operation)).or_default() += 1;
    }
    let often = times.into_iter().filter(|(_, times)| *times > most);
    often
        .map(|(call, times)| format!("{times} times {}", call.chars().take(400).collect::<String>()))
        .collect()
}
