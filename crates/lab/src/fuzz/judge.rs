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
    if is_paused(object) {
        // Nothing further is said of it then, and what was said before stays.
        return Word::Final("Paused".to_owned());
    }
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

/// Paused, as the object asks for and the operator says.
fn is_paused(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    let asks =
        annotations.and_then(|all| all.get("aws.konfig.io/paused")).is_some_and(|value| value == "true");
    asks && condition(object, "Paused")["status"] == "True"
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(annotations: Value, conditions: Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "aws.konfig.io/v1alpha1", "kind": "VPC",
            "metadata": {"name": "a", "generation": 2, "annotations": annotations},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    /// What is read from a Ready condition of this generation.
    fn said(generation: i64, status: &str, reason: &str, message: &str) -> Word {
        let ready = json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "observedGeneration": generation,
        });
        word(&object(json!({}), json!([ready])))
    }

    #[test]
    fn what_is_said_is_clear_or_wrong() {
        let long = "m".repeat(MESSAGE + 1);
        for (status, reason, message, expected) in [
            ("True", "Synced", "", Word::Final("Synced".to_owned())),
            ("False", "Error", "AWS refuses it", Word::Final("Error".to_owned())),
            ("False", "DependencyNotReady", "VPC net", Word::Final("DependencyNotReady".to_owned())),
            ("False", "Updating", "soon", Word::Under("Updating".to_owned())),
        ] {
            assert_eq!(said(2, status, reason, message), expected);
            // A change has come since: of that, nothing is said yet.
            assert_eq!(said(1, status, reason, message), Word::None, "{reason}");
        }
        for (status, reason, message) in [
            ("False", "Confused", "what?"),
            ("True", "Error", ""),
            ("False", "Synced", "well"),
            ("False", "Error", " "),
            ("False", "Error", &long),
            ("Unknown", "Error", "perhaps"),
        ] {
            let word = said(2, status, reason, message);
            assert!(matches!(word, Word::Wrong(_)), "{status} {reason}: {word:?}");
        }
        assert_eq!(word(&object(json!({}), json!([]))), Word::None);
    }

    #[test]
    fn what_is_paused_need_not_be_spoken_of_if_it_was_asked_for() {
        let paused = json!([{"type": "Paused", "status": "True"}]);
        let asked = |value: &str| json!({"aws.konfig.io/paused": value});
        assert_eq!(word(&object(asked("true"), paused.clone())), Word::Final("Paused".to_owned()));
        assert_eq!(word(&object(asked("True"), paused.clone())), Word::None);
        assert_eq!(word(&object(json!({}), paused)), Word::None);
        assert_eq!(word(&object(asked("true"), json!([]))), Word::None);
    }
}
