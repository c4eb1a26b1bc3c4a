//! What the conditions say, and that they say it to kstatus too.
#![allow(clippy::unwrap_used, clippy::panic)]

use jiff::Timestamp;
use resource::condition::{Reason, Verdict, conditions, find, is_ready, with_paused};
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn write(before: &Value, verdict: &Verdict, second: i64) -> Value {
    conditions(before, verdict, false, 3, at(second))
}

fn types(conditions: &Value) -> Vec<&str> {
    conditions.as_array().unwrap().iter().map(|condition| condition["type"].as_str().unwrap()).collect()
}

#[test]
fn each_verdict_has_its_conditions() {
    for (verdict, ready, reason, beside) in [
        (Verdict::synced("fine"), "True", "Synced", None),
        (Verdict::progressing(Reason::Creating, "m"), "False", "Creating", Some("Reconciling")),
        (Verdict::progressing(Reason::Updating, "m"), "False", "Updating", Some("Reconciling")),
        (Verdict::progressing(Reason::Deleting, "m"), "False", "Deleting", Some("Reconciling")),
        (
            Verdict::progressing(Reason::DependencyNotReady, "m"),
            "False",
            "DependencyNotReady",
            Some("Reconciling"),
        ),
        (Verdict::progressing(Reason::Throttled, "m"), "False", "Throttled", Some("Reconciling")),
        (Verdict::progressing(Reason::Error, "m"), "False", "Error", Some("Reconciling")),
        (Verdict::stalled("m"), "False", "Error", Some("Stalled")),
    ] {
        let written = write(&Value::Null, &verdict, 0);
        let is = find(&written, "Ready").unwrap();
        assert_eq!((is["status"].as_str(), is["reason"].as_str()), (Some(ready), Some(reason)));
        assert_eq!(is["observedGeneration"], 3);
        assert_eq!(types(&written), ["Ready"].into_iter().chain(beside).collect::<Vec<_>>());
    }
}

#[test]
fn a_transition_has_a_time_of_its_own() {
    let created = write(&Value::Null, &Verdict::progressing(Reason::Creating, "a"), 0);
    let failed = write(&created, &Verdict::stalled("b"), 10);
    let since = |written: &Value, kind| find(written, kind).unwrap()["lastTransitionTime"].clone();
    assert_eq!(since(&failed, "Ready"), since(&created, "Ready"), "False stays False");
    assert_ne!(since(&failed, "Stalled"), since(&created, "Reconciling"));
    let synced = write(&failed, &Verdict::synced("c"), 20);
    assert_ne!(since(&synced, "Ready"), since(&failed, "Ready"));
}

#[test]
fn pausing_leaves_ready_alone() {
    let synced = write(&Value::Null, &Verdict::synced("fine"), 0);
    let paused = with_paused(&synced, true, 4, at(5));
    assert_eq!(types(&paused), ["Ready", "Paused"]);
    assert_eq!(find(&paused, "Ready"), find(&synced, "Ready"));
    assert_eq!(with_paused(&paused, false, 4, at(9)), synced);
}

#[test]
fn ready_counts_for_its_generation() {
    let status = json!({"conditions": write(&Value::Null, &Verdict::synced("fine"), 0)});
    assert!(is_ready(&status, 3));
    assert!(!is_ready(&status, 4));
    assert!(!is_ready(&Value::Null, 3));
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let written = write(&Value::Null, &Verdict::stalled("ü".repeat(2000)), 0);
    let message = find(&written, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(message.len() <= 1024 && message.ends_with('…'));
}
