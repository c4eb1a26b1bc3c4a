//! What must hold of the comparison with AWS and of the patch, for any JSON.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use resource::diff::diff;
use resource::schema::FREE_FORM;
use resource::tags::Ownership;
use resource::{Call, Scope, Secrets, Tags};
use serde_json::{Map, Value, json};

use crate::compare::{as_desired, reported, without_nulls};
use crate::patch;
use crate::schema::TypeSchema;

const TYPE: &str = "AWS::Logs::LogGroup";

fn schema() -> Arc<TypeSchema> {
    TypeSchema::of(TYPE).unwrap()
}

/// JSON of any shape, with texts that read as numbers and documents.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["", "7", "true", "{\"a\":1}", "a~/b", "é"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-b~/]{1,2}|RetentionInDays", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A state: an object without fields that hold nothing.
fn state() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map("[a-d~/]{1,2}|RetentionInDays", json(), 0..5).prop_map(|fields| {
        without_nulls(Value::Object(fields.into_iter().collect())).as_object().unwrap().clone()
    })
}

fn call() -> Call {
    let scope = Scope {
        provider: String::new(),
        account_id: "123456789012".to_owned(),
        region: "eu-west-1".to_owned(),
        partition: "aws".to_owned(),
    };
    Call {
        scope,
        ownership: Ownership::new("c", "ns", "CloudControlResource", "name", "uid"),
        token: None,
        request: None,
        attempted_since: None,
        tags: Tags::new(),
        spec: Value::Null,
        managed: BTreeSet::new(),
        secrets: Secrets::default(),
    }
}

/// What differs, as the engine sees it, and the state that is to be reached.
fn difference(
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
    managed: &BTreeSet<String>,
) -> resource::diff::Difference {
    let kind = json!({"properties": {"desiredState": {FREE_FORM: true}}});
    let shown = as_desired(&schema(), desired, live);
    diff(&kind, &json!({"desiredState": desired}), &json!({"desiredState": shown}), managed, &BTreeSet::new())
}

proptest! {
    #[test]
    fn what_is_there_as_wanted_does_not_differ(desired in state(), more in state()) {
        // AWS may have more.
        let mut live = more;
        live.extend(desired.clone());
        let found = difference(&desired, &live, &BTreeSet::new());
        prop_assert!(found.changes.is_empty(), "{:#?}", found.changes);
    }

    #[test]
    fn the_patch_leads_to_what_is_wanted(desired in state(), live in state(), before in state()) {
        let kind = json!({"properties": {"desiredState": {FREE_FORM: true}}});
        let managed = resource::diff::managed_paths(&kind, &json!({"desiredState": before}));
        let found = difference(&desired, &live, &managed);
        let patch = patch::document(&schema(), TYPE, &call(), &found.target, &found.changes).unwrap();
        let patch: json_patch::Patch = serde_json::from_value(patch.into()).unwrap();
        let mut made = Value::Object(live.clone());
        json_patch::patch(&mut made, &patch).unwrap_or_else(|error| panic!("{error}: {patch} of {made}"));
        let again = difference(&desired, made.as_object().unwrap(), &managed);
        prop_assert!(again.changes.is_empty(), "{:#?}\nafter {}", again.changes, patch);
    }

    #[test]
    fn any_report_can_be_shown(desired in state(), live in state()) {
        let shown = reported(&desired, live);
        as_desired(&schema(), &desired, &shown);
    }
}
