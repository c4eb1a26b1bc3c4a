//! Intervals, owners, references.

use std::time::Duration;

use proptest::prelude::*;
use resource::schedule::{INTERVALS, parse_interval};
use resource::tags::{Ownership, parse_owner};
use resource::{Error, Ref, targets};
use serde_json::json;

const KINDS: [&str; 3] = ["VPC", "S3Bucket", "CloudControlResource"];

/// Cluster, namespace, kind and name, as Kubernetes has them.
fn owned() -> impl Strategy<Value = (String, String, &'static str, String)> {
    // A cluster may be called by its ARN; the others are names of Kubernetes.
    let cluster = "[a-zA-Z0-9:/._-]{1,120}";
    (cluster, "[a-z0-9]{1,63}", prop::sample::select(&KINDS[..]), "[a-z0-9][a-z0-9.-]{0,251}[a-z0-9]")
}

fn owner((cluster, namespace, kind, name): &(String, String, &str, String)) -> String {
    Ownership::new(cluster, namespace, kind, name, "uid").owner
}

proptest! {
    #[test]
    fn an_interval_is_within_its_bounds_or_refused(text in any::<String>()) {
        match parse_interval(&text) {
            Ok(interval) => prop_assert!(INTERVALS.contains(&interval)),
            Err(message) => prop_assert!(message.contains("write it like 30s, 5m or 2h")),
        }
    }

    #[test]
    fn an_interval_is_read_as_it_is_meant(hours in 0..30u64, minutes in 0..60u64, seconds in 0..60u64) {
        let meant = Duration::from_secs(hours * 3600 + minutes * 60 + seconds);
        let read = parse_interval(&format!("{hours}h{minutes}m{seconds}s"));
        prop_assert_eq!(read.ok(), Some(meant).filter(|meant| INTERVALS.contains(meant)));
    }

    #[test]
    fn an_owner_fits_into_a_tag_of_any_service(parts in owned()) {
        let owner = owner(&parts);
        prop_assert!(owner.len() <= 256);
        // IAM is the narrowest.
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.:/=+-@".contains(c);
        prop_assert!(owner.chars().all(is_legal), "{owner}");
        let (cluster, namespace, kind, name) = &parts;
        let whole = format!("{cluster}/{namespace}/{kind}/{name}");
        match parse_owner(&owner) {
            Some(read) => prop_assert_eq!(read, [cluster, namespace, *kind, name.as_str()]),
            None => prop_assert!(whole.len() >= 256),
        }
    }

    #[test]
    fn two_owners_are_never_one(one in owned(), other in owned(), shared: bool) {
        // Mostly they differ at the very end, if at all.
        let other = if shared { (one.0.clone(), one.1.clone(), one.2, format!("{}{}", one.3, other.3)) } else { other };
        prop_assert_eq!(owner(&one) == owner(&other), one == other);
    }

    #[test]
    fn any_cluster_name_makes_an_owner(cluster in any::<String>(), long in "é{0,200}", tag in any::<String>()) {
        let owner = Ownership::new(&format!("{cluster}{long}"), "ns", "VPC", "name", "uid").owner;
        prop_assert!(owner.len() <= 256);
        parse_owner(&tag);
    }

    #[test]
    fn a_reference_reads_as_it_was_written(name in any::<Option<String>>(), id in any::<Option<String>>(), other in crate::diffs::json()) {
        let mut fields = json!({"other": other});
        for (field, value) in [("name", &name), ("id", &id)] {
            if let Some(value) = value {
                fields[field] = json!(value);
            }
        }
        let reference: Ref<targets::Vpc> = serde_json::from_value(fields).unwrap();
        prop_assert_eq!(reference.id(), id.as_deref().unwrap_or_default());
        let written = serde_json::to_value(&reference).unwrap();
        prop_assert_eq!(written["name"].as_str(), name.as_deref());
        // Whatever else stands there is an error or nothing, not a panic.
        let _ = serde_json::from_value::<Ref<targets::Vpc>>(other);
    }

    #[test]
    fn an_error_of_any_text_has_a_text(operation in any::<String>(), message in any::<String>()) {
        prop_assert!(Error::invalid(&operation, &message).to_string().contains(&message));
    }
}
