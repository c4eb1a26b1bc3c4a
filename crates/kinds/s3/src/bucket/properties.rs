//! What must hold of lifecycle rules and ids, whatever a user writes.
#![allow(clippy::unwrap_used)]

use proptest::option::of;
use proptest::prelude::*;
use resource::Tags;

use super::ids::without_made_up;
use super::lifecycle::{LifecycleRule, NoncurrentTransition, Transition};
use super::lifecycle_convert::{canonical, from_s3, to_s3};
use super::tags;

fn class() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["STANDARD_IA", "GLACIER", "DEEP_ARCHIVE"]).prop_map(str::to_owned)
}

/// A day in one of the ways that admission takes, also one that no calendar has.
fn day() -> impl Strategy<Value = String> {
    (1970..9999u32, 1..13u32, 1..29u32, prop::sample::select(vec!["", "T00:00:00Z", "T00:00:00.000Z"]))
        .prop_map(|(year, month, day, rest)| format!("{year:04}-{month:02}-{day:02}{rest}"))
}

fn transition() -> impl Strategy<Value = Transition> {
    let when = prop_oneof![(0..999i32).prop_map(Ok), day().prop_map(Err)];
    (when, class()).prop_map(|(when, storage_class)| Transition {
        days: when.as_ref().ok().copied(),
        date: when.err(),
        storage_class,
    })
}

fn noncurrent() -> impl Strategy<Value = NoncurrentTransition> {
    (0..999i32, class(), of(1..100i32)).prop_map(|(days, storage_class, newer_noncurrent_versions)| {
        NoncurrentTransition { days, storage_class, newer_noncurrent_versions }
    })
}

fn some_tags() -> impl Strategy<Value = Tags> {
    prop::collection::btree_map("[a-c]{1,2}", any::<String>(), 0..4)
}

/// Rules that pass admission.
fn rule() -> impl Strategy<Value = LifecycleRule> {
    let filter = (
        of("[a-z]{1,4}"),
        of("Enabled|Disabled"),
        of("\\PC{0,4}"),
        of(some_tags()),
        of(1..99i64),
        of(1..99i64),
    );
    let expiration = prop_oneof![
        Just((None, None, None)),
        (1..999i32).prop_map(|days| (Some(days), None, None)),
        day().prop_map(|date| (None, Some(date), None)),
        any::<bool>().prop_map(|marker| (None, None, Some(marker))),
    ];
    let lists =
        (of(prop::collection::vec(transition(), 0..4)), of(prop::collection::vec(noncurrent(), 0..4)));
    let kept = of((1..99i32, of(1..99i32)));
    (filter, expiration, lists, kept, of(1..99i32)).prop_map(|(filter, expiration, lists, kept, abort)| {
        let (id, status, prefix, tags, object_size_greater_than, object_size_less_than) = filter;
        let (expiration_days, expiration_date, expired_object_delete_marker) = expiration;
        LifecycleRule {
            id,
            status,
            prefix,
            tags,
            object_size_greater_than,
            object_size_less_than,
            expiration_days,
            expiration_date,
            expired_object_delete_marker,
            noncurrent_version_expiration_days: kept.map(|(days, _)| days),
            newer_noncurrent_versions: kept.and_then(|(_, newer)| newer),
            transitions: lists.0,
            noncurrent_version_transitions: lists.1,
            abort_incomplete_multipart_upload_days: abort,
        }
    })
}

proptest! {
    #[test]
    fn a_canonical_rule_is_that_already(rule in rule()) {
        let once = canonical(rule).unwrap();
        prop_assert_eq!(canonical(once.clone()).unwrap(), once);
    }

    #[test]
    fn a_rule_survives_the_way_to_s3_and_back(rule in rule()) {
        let rule = canonical(rule).unwrap();
        prop_assert_eq!(from_s3(&to_s3(&rule).unwrap()).unwrap(), rule);
    }

    #[test]
    fn any_text_is_a_day_or_refused_with_an_example(date in "\\PC{0,32}|[0-9]{4}-[0-9]{2}-[0-9]{2}") {
        let rule = LifecycleRule { expiration_date: Some(date), ..LifecycleRule::default() };
        match canonical(rule) {
            Ok(rule) => {
                to_s3(&rule).unwrap();
            }
            Err(error) => prop_assert!(error.message.contains("such as 2030-01-31"), "{}", error),
        }
    }

    #[test]
    fn tags_survive_the_way_to_s3_and_back(all in prop::collection::btree_map(any::<String>(), any::<String>(), 0..4)) {
        prop_assert_eq!(tags::from_s3(&tags::to_s3(&all).unwrap()), all);
    }

    #[test]
    fn ids_are_taken_off_once_and_nothing_else(
        live in prop::collection::vec((of(0..4u8), 0..3u8), 0..6), wanted in prop::collection::vec((of(0..4u8), 0..3u8), 0..6),
    ) {
        let named = |items: Vec<(Option<u8>, u8)>| -> Vec<(Option<String>, u8)> {
            items.into_iter().map(|(id, value)| (id.map(|id| id.to_string()), value)).collect()
        };
        let (live, wanted) = (named(live), named(wanted));
        let shown = without_made_up(live.clone(), &wanted, |item| &mut item.0);
        prop_assert_eq!(shown.len(), live.len());
        for (shown, live) in shown.iter().zip(&live) {
            prop_assert!(shown.1 == live.1 && (shown.0 == live.0 || shown.0.is_none()));
        }
        // What is as wanted, but for ids that AWS made up, is shown as wanted.
        let asked: Vec<_> = wanted.iter().map(|(id, value)| (id.clone().or(Some("aws".to_owned())), *value)).collect();
        let mut shown = without_made_up(asked, &wanted, |item| &mut item.0);
        let mut wanted = wanted;
        shown.sort();
        wanted.sort();
        prop_assert_eq!(shown, wanted);
    }
}
