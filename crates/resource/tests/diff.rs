//! `diff` as a table: annotation, what is wanted, what is live, what follows.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use resource::diff::{Difference, diff, managed_paths};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "fixed": {"type": "string", "x-konfig-immutable": true},
        "plain": {"type": "string"},
        "number": {"type": "integer"},
        "defaulted": {"type": "boolean", "x-konfig-default": false},
        "clearable": {"type": "string", "x-konfig-clearable": true},
        "policy": {"type": "string", "x-konfig-policy": true},
        "secret": {"type": "string", "x-konfig-write-only": true},
        "set": {"type": "array", "x-konfig-list": "set", "x-konfig-clearable": true, "items": {"type": "string"}},
        "keyed": {"type": "array", "x-konfig-list": {"key": "name"}, "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "value": {"type": "integer"}, "zones": {"type": "array", "x-konfig-list": "set"},
        }}},
        "sequence": {"type": "array", "items": {"type": "string"}},
        "ref": {"type": "object", "x-konfig-ref": {"kind": "VPC"}, "properties": {"id": {"type": "string"}}},
        "nested": {"type": "object", "properties": {
            "on": {"type": "boolean", "x-konfig-default": true}, "fixed": {"type": "string", "x-konfig-immutable": true},
            "size": {"type": "integer"},
        }},
        "free": {"type": "object", "x-konfig-free-form": true},
        "tags": {"type": "object", "x-konfig-tags": true},
    }})
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn compare(want: Value, live: Value, managed: &[&str]) -> Difference {
    diff(&schema(), &want, &live, &set(managed), &BTreeSet::new())
}

fn paths(difference: &Difference) -> Vec<String> {
    difference.changes.paths()
}

#[test]
fn only_what_the_user_set_is_compared() {
    for (want, live, changed) in [
        (json!({}), json!({"plain": "a", "set": ["x"], "tags": {"other": "1"}}), vec![]),
        (json!({"plain": "a"}), json!({"plain": "a", "number": 3}), vec![]),
        (json!({"plain": "a"}), json!({"plain": "b"}), vec!["/plain"]),
        (json!({"plain": "a"}), json!({}), vec!["/plain"]),
        (json!({"plain": ""}), json!({}), vec![]),
        (json!({"number": 3}), json!({"number": 3.0}), vec![]),
        (json!({"number": 0}), json!({}), vec!["/number"]),
        (json!({"ref": {"id": "vpc-1"}}), json!({"ref": {"id": "vpc-1"}}), vec![]),
        (json!({"ref": {"id": "vpc-1"}}), json!({"ref": {"id": ""}}), vec!["/ref"]),
        (json!({"secret": "s"}), json!({}), vec![]),
        (json!({"nested": {"on": false}}), json!({"nested": {"on": true, "size": 1}}), vec!["/nested/on"]),
        (json!({"nested": {"size": 2}}), json!({}), vec!["/nested/size"]),
    ] {
        assert_eq!(paths(&compare(want.clone(), live.clone(), &[])), changed, "{want} against {live}");
    }
}

#[test]
fn what_cannot_be_changed_is_reported_and_the_rest_goes_on() {
    let difference = compare(
        json!({"fixed": "a", "plain": "a", "nested": {"fixed": "x"}}),
        json!({"fixed": "b", "plain": "b", "nested": {"fixed": "y"}}),
        &[],
    );
    assert_eq!(paths(&difference), ["/plain"]);
    let forbidden: Vec<_> = difference.forbidden.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(forbidden, ["/fixed", "/nested/fixed"]);
}

#[test]
fn what_left_the_spec_goes_back_is_cleared_or_becomes_unmanaged() {
    let live = json!({
        "plain": "a", "defaulted": true, "clearable": "text", "set": ["x"],
        "nested": {"on": false, "size": 1}, "tags": {"ours": "1", "theirs": "2"},
    });
    let managed = ["/plain", "/defaulted", "/clearable", "/set", "/nested/on", "/nested/size", "/tags/ours"];
    let difference = compare(json!({}), live.clone(), &managed);
    let changes: Vec<_> =
        difference.changes.iter().map(|change| (change.path.as_str(), &change.want)).collect();
    assert_eq!(
        changes,
        [
            ("/clearable", &Value::Null),
            ("/defaulted", &json!(false)),
            ("/nested/on", &json!(true)),
            ("/set", &json!([])),
            ("/tags/ours", &Value::Null),
        ]
    );
    assert_eq!(difference.target, json!({"defaulted": false, "nested": {"on": true}, "set": []}));
    assert!(paths(&compare(json!({}), live, &[])).is_empty(), "what was never set is not ours");
}

#[test]
fn lists_compare_as_their_annotation_says() {
    let keyed = |value: i64, zones: [&str; 2]| json!({"name": "n", "value": value, "zones": zones});
    for (field, want, live, add, remove) in [
        ("set", json!(["a", "b"]), json!(["b", "a"]), json!([]), json!([])),
        ("set", json!(["a", "a"]), json!(["a"]), json!([]), json!([])),
        ("set", json!(["a", "b"]), json!(["b", "c"]), json!(["a"]), json!(["c"])),
        ("set", json!([]), json!(["c"]), json!([]), json!(["c"])),
        ("set", json!([]), json!(null), json!([]), json!([])),
        ("keyed", json!([keyed(1, ["a", "b"])]), json!([keyed(1, ["b", "a"])]), json!([]), json!([])),
        (
            "keyed",
            json!([keyed(2, ["a", "b"])]),
            json!([keyed(1, ["a", "b"])]),
            json!([keyed(2, ["a", "b"])]),
            json!([]),
        ),
        ("keyed", json!([]), json!([keyed(1, ["a", "b"])]), json!([]), json!([keyed(1, ["a", "b"])])),
    ] {
        let difference = compare(json!({field: want}), json!({field: live}), &[]);
        let change = difference.changes.iter().next();
        let sides = change.map_or((json!([]), json!([])), |change| (json!(change.add), json!(change.remove)));
        assert_eq!(sides, (add, remove), "{field}: {want} against {live}");
    }
    let sequence =
        |want: Value| paths(&compare(json!({"sequence": want}), json!({"sequence": ["a", "b"]}), &[]));
    assert!(sequence(json!(["a", "b"])).is_empty());
    assert_eq!(sequence(json!(["b", "a"])), ["/sequence"]);
}

#[test]
fn a_list_of_which_a_part_is_held_up_is_only_added_to() {
    let (want, live) = (json!({"set": ["a"]}), json!({"set": ["b"]}));
    let difference = diff(&schema(), &want, &live, &BTreeSet::new(), &set(&["/set"]));
    let change = difference.changes.iter().next().unwrap();
    assert_eq!((json!(change.add), json!(change.remove)), (json!(["a"]), json!([])));
}

#[test]
fn tags_of_others_stay() {
    let live = json!({"tags": {
        "aws:cloudformation:stack-name": "s", "team": "old", "gone": "1", "theirs": "2", "a/b": "3",
    }});
    let difference =
        compare(json!({"tags": {"team": "new"}}), live, &["/tags/team", "/tags/gone", "/tags/a~1b"]);
    assert_eq!(difference.changes.tags_to_set(), [("team".to_owned(), "new".to_owned())].into());
    assert_eq!(difference.changes.tags_to_remove(), ["a/b", "gone"]);
}

#[test]
fn policies_compare_as_policies() {
    let one = r#"{"Statement":[{"Effect":"Allow","Action":"s3:Get*","Resource":"*"}]}"#;
    let same = r#"{ "Statement": {"Resource": ["*"], "Action": ["s3:get*"], "Effect": "Allow"} }"#;
    let other = one.replace("Get", "Put");
    assert!(paths(&compare(json!({"policy": one}), json!({"policy": same}), &[])).is_empty());
    assert_eq!(paths(&compare(json!({"policy": one}), json!({"policy": other}), &[])), ["/policy"]);
}

#[test]
fn managed_are_the_paths_that_are_set() {
    let want = json!({"plain": "a", "nested": {"on": true}, "set": [], "ref": {"id": "x"}, "tags": {
        "team": "a", "a/b": "c", "konfig.io/uid": "u",
    }});
    let managed = managed_paths(&schema(), &want);
    assert_eq!(managed, set(&["/nested/on", "/plain", "/ref", "/set", "/tags/a~1b", "/tags/team"]));
}

#[test]
fn of_free_form_json_only_what_it_names_is_compared() {
    let live = json!({"free": {"a": 1, "b": {"c": [1, 2], "d": "x"}, "e": true, "password": "***"}});
    for (want, managed, changed) in [
        (json!({"a": 1, "b": {"c": [1, 2]}}), vec![], vec![]),
        (
            json!({"a": 2, "b": {"c": [2, 1]}}),
            vec![],
            vec![("/free/a", json!(2)), ("/free/b/c", json!([2, 1]))],
        ),
        (json!({"new": {"x": 1}}), vec![], vec![("/free/new", json!({"x": 1}))]),
        (json!({"password": {"$secret": {"name": "s", "key": "k"}}}), vec![], vec![]),
        // An object that is no longer named at all goes as a whole: what is left of it would mean nothing.
        (json!({"a": 1}), vec!["/free/a", "/free/b/d", "/free/gone"], vec![("/free/b", Value::Null)]),
        (json!({"a": 1, "b": {"c": [1, 2]}}), vec!["/free/b/d"], vec![("/free/b/d", Value::Null)]),
        // What is replaced takes with it what stood in it.
        (json!({"b": [1]}), vec!["/free/b/d"], vec![("/free/b", json!([1]))]),
    ] {
        let difference = compare(json!({"free": want}), live.clone(), &managed);
        let changes: Vec<_> =
            difference.changes.iter().map(|change| (change.path.as_str(), change.want.clone())).collect();
        assert_eq!(changes, changed, "{want}");
    }
    let managed = managed_paths(&schema(), &json!({"free": {"a": 1, "b": {"c": [1], "d/e": "x"}}}));
    assert_eq!(managed, set(&["/free/a", "/free/b/c", "/free/b/d~1e"]));
}
