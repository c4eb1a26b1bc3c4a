//! What must hold of versions, storage and names, whatever a user writes or AWS reports.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use crate::storage::{growth, shown};
use crate::version::{satisfied, upgrade};
use crate::words::{same_key, same_name};

const ENGINES: [&str; 6] = ["mysql", "mariadb", "postgres", "aurora-postgresql", "oracle-ee", "sqlserver-ex"];

fn engine() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&ENGINES[..])
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..40u64, 1..5)
}

fn version(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

proptest! {
    #[test]
    fn a_version_and_what_it_begins_with_are_met(engine in engine(), live in numbers(), length in 1..5usize) {
        let wanted = version(&live[..length.min(live.len())]);
        prop_assert!(satisfied(engine, &wanted, &version(&live)), "{wanted}");
    }

    #[test]
    fn what_is_met_is_never_below(engine in engine(), wanted in numbers(), live in numbers()) {
        let common = wanted.len().min(live.len());
        if satisfied(engine, &version(&wanted), &version(&live)) {
            prop_assert!(live[..common] >= wanted[..common]);
        }
    }

    #[test]
    fn an_upgrade_goes_up_and_then_is_met(engine in engine(), wanted in numbers(), live in numbers(), major: bool) {
        let (wanted_text, live_text) = (version(&wanted), version(&live));
        if satisfied(engine, &wanted_text, &live_text) {
            return Ok(());
        }
        let common = wanted.len().min(live.len());
        match upgrade(engine, &wanted_text, &live_text, major) {
            Ok(()) => {
                prop_assert!(wanted[..common] >= live[..common]);
                prop_assert!(satisfied(engine, &wanted_text, &wanted_text));
            }
            Err(error) => {
                prop_assert!(!error.message.is_empty());
                // With that word, only a way back is refused.
                prop_assert!(!major || live[..common] > wanted[..common], "{error}");
            }
        }
    }

    #[test]
    fn any_texts_are_versions(engine in any::<String>(), wanted in any::<String>(), live in any::<String>(), major: bool) {
        prop_assert!(satisfied(&engine, &live, &live));
        satisfied(&engine, &wanted, &live);
        let _ = upgrade(&engine, &wanted, &live, major);
    }

    #[test]
    fn storage_is_shown_as_it_is_or_as_it_is_wanted(wanted: Option<i32>, limit: Option<i32>, live: Option<i32>) {
        let shown = shown(wanted, limit, live);
        prop_assert!(shown == live || shown == wanted);
        // Only growth is passed over.
        prop_assert!(shown == live || live >= wanted);
    }

    #[test]
    fn storage_never_shrinks(live in 20..65_536i32, by in -2..=2i32) {
        prop_assert_eq!(growth(live + by, live).is_ok(), by >= 0);
    }

    #[test]
    fn any_names_can_be_compared(one in any::<String>(), other in any::<String>()) {
        prop_assert!(same_key(&one, &one) && same_name(&one, &one));
        prop_assert_eq!(same_name(&one, &other), same_name(&other, &one));
        same_key(&one, &other);
    }
}
