//! AWS's states of instances and clusters, which differ in few.

use resource::Phase;

/// States in which it serves and can be changed: what else AWS does then, it does on the side.
const WORKING: &[&str] = &["available", "backing-up", "storage-optimization", "storage-initialization"];

/// States that end only when a person does something, and what that is.
const HELPLESS: &[(&str, &str)] = &[
    ("stopped", "it is stopped: start it to have it in working order and changes applied"),
    ("failed", "AWS failed to create or restore it and cannot recover it: delete it, or ask AWS Support"),
    ("restore-error", "AWS failed to restore it: delete it"),
    ("storage-full", "its storage is used up: raise allocatedStorage"),
    ("inaccessible-encryption-credentials", "AWS cannot use its KMS key, for good: restore it from a backup"),
    (
        "inaccessible-encryption-credentials-recoverable",
        "AWS cannot use its KMS key: enable the key again, then start it",
    ),
    (
        "incompatible-create",
        "AWS cannot create it with these settings: delete it and create it anew with others",
    ),
    ("incompatible-network", "its subnets lack free addresses, or their VPC lacks DNS: correct the network"),
    ("incompatible-option-group", "AWS cannot apply its option group: correct that"),
    ("incompatible-parameters", "its parameter group holds values that do not fit it: correct them there"),
    ("incompatible-restore", "AWS cannot restore to that point in time: delete it and restore another way"),
    ("insufficient-capacity", "AWS has no capacity for its class there: delete it and choose another class"),
    ("cloning-failed", "AWS failed to clone it: delete it"),
    ("migration-failed", "AWS failed to migrate the snapshot to it: delete it"),
];

/// The phase of something in this state, whose password may be about to change.
pub(crate) fn phase(state: Option<&str>, is_password_pending: bool) -> Phase {
    match of(state.unwrap_or_default()) {
        Phase::Ready if is_password_pending => Phase::Busy(PASSWORD.to_owned()),
        phase => phase,
    }
}

fn of(state: &str) -> Phase {
    match state {
        "deleting" | "delete-precheck" => Phase::Deleting,
        "creating" => Phase::Busy("AWS is creating it".to_owned()),
        "resetting-master-credentials" => Phase::Busy(PASSWORD.to_owned()),
        _ if WORKING.contains(&state) => Phase::Ready,
        _ => match HELPLESS.iter().find(|(helpless, _)| *helpless == state) {
            Some((state, help)) => {
                Phase::Failed { why: format!("AWS's state of it is {state}: {help}"), replace: false }
            }
            None => Phase::Busy(format!("AWS's state of it is {state}")),
        },
    }
}

/// What is said while AWS applies a password.
const PASSWORD: &str = "AWS is changing the master password";

/// States in which AWS deletes without a final snapshot only.
pub(crate) fn allows_no_snapshot(state: &str) -> bool {
    state == "failed" || state.starts_with("incompatible-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    #[test]
    fn what_works_can_be_changed() {
        for state in ["available", "storage-optimization", "backing-up"] {
            assert_eq!(phase(Some(state), false), Phase::Ready, "{state}");
        }
    }

    #[test]
    fn what_aws_is_at_is_waited_for() {
        for state in
            ["creating", "modifying", "upgrading", "rebooting", "resetting-master-credentials", "new"]
        {
            assert!(matches!(phase(Some(state), false), Phase::Busy(_)), "{state}");
        }
        assert_eq!(phase(Some("deleting"), false), Phase::Deleting);
        assert_eq!(phase(Some("available"), true), Phase::Busy(PASSWORD.to_owned()));
    }

    #[test]
    fn what_needs_a_person_says_so_and_is_never_replaced() {
        for (state, help) in
            [("failed", "delete it"), ("stopped", "start it"), ("incompatible-network", "VPC")]
        {
            let Phase::Failed { why, replace } = phase(Some(state), false) else { panic!("{state}") };
            assert!(why.contains(state) && why.contains(help), "{why}");
            assert!(!replace);
        }
    }

    #[test]
    fn a_broken_one_has_no_final_snapshot() {
        assert!(allows_no_snapshot("failed") && allows_no_snapshot("incompatible-restore"));
        assert!(!allows_no_snapshot("available") && !allows_no_snapshot("stopped"));
    }
}
