//! What the calls of instances and clusters have in common.

use resource::{Changes, Error, NameRef, Ref, Result};

/// A value that the update is about.
pub(crate) fn changed<T: Clone>(changes: &Changes, field: &str, value: &Option<T>) -> Option<T> {
    changes.touch(field).then(|| value.clone()).flatten()
}

/// Whether the update is about anything but tags and these fields.
pub(crate) fn is_needed(changes: &Changes, but: &[&str]) -> bool {
    let is_left_out = |path: &str| path.starts_with("/tags/") || but.iter().any(|field| path[1..] == **field);
    changes.iter().any(|change| !is_left_out(&change.path))
}

/// Fails with all of these refusals: what was refused held up nothing else.
pub(crate) fn all(operation: &str, refused: &[Error]) -> Result<()> {
    if refused.is_empty() {
        return Ok(());
    }
    let messages: Vec<_> = refused.iter().map(|error| error.message.as_str()).collect();
    Err(Error::invalid(operation, messages.join("; ")))
}

/// The name that a reference stands for.
pub(crate) fn name<T>(reference: Option<&NameRef<T>>) -> Option<String> {
    reference.map(|reference| reference.id().to_owned())
}

/// The ids that references stand for.
pub(crate) fn ids<T>(references: Option<&Vec<Ref<T>>>) -> Option<Vec<String>> {
    references.map(|references| references.iter().map(|reference| reference.id().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_refused_is_all_said() {
        assert!(all("ModifyDBInstance", &[]).is_ok());
        let refused = ["one", "two"].map(|message| Error::invalid("field", message));
        assert_eq!(all("ModifyDBInstance", &refused).unwrap_err().to_string(), "ModifyDBInstance: one; two");
    }

    #[test]
    fn tags_need_no_modification() {
        let changes = Changes::of_secrets(["/tags/team".to_owned(), "/engineVersion".to_owned()]);
        assert!(is_needed(&changes, &[]));
        assert!(!is_needed(&changes, &["engineVersion"]));
    }
}
