//! The final snapshot: what a deletion leaves.

use std::time::{SystemTime, UNIX_EPOCH};

use resource::{Call, Error, Result};

use crate::state::allows_no_snapshot;

/// Whether the user wants none.
pub(crate) fn is_skipped(call: &Call) -> bool {
    call.spec["skipFinalSnapshot"].as_bool().unwrap_or(false)
}

/// The name for it: another object of the same name, now or later, gets another one.
pub(crate) fn name(identifier: &str, uid: &str) -> String {
    let uid: String = uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{identifier}-final-{uid}").to_lowercase()
}

/// The name where this one is taken: by what the object had before it was made anew.
pub(crate) fn another(name: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{name}-{}", now.as_secs())
}

/// Fails in the states in which AWS would refuse.
pub(crate) fn check(operation: &str, state: Option<&str>) -> Result<()> {
    match state.filter(|state| allows_no_snapshot(state)) {
        None => Ok(()),
        Some(state) => Err(Error::invalid(
            operation,
            format!(
                "AWS's state of it is {state}, in which AWS deletes it without a final snapshot only: set \
                 skipFinalSnapshot to true to delete it so"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn its_name_is_the_objects_own() {
        let name = name("orders", "5B9F3A1C-7777-4e2b-9c7e-000000000000");
        assert_eq!(name, "orders-final-5b9f3a1c");
        assert!(another(&name).strip_prefix("orders-final-5b9f3a1c-").unwrap().parse::<u64>().is_ok());
    }

    #[test]
    fn a_broken_one_says_what_to_do() {
        let refused = check("DeleteDBInstance", Some("incompatible-restore")).unwrap_err();
        assert!(refused.message.contains("skipFinalSnapshot"), "{refused}");
        assert!(check("DeleteDBInstance", Some("available")).is_ok());
    }
}
