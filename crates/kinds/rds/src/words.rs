//! AWS's values in the user's words, where both mean the same.

/// AWS's value, or the user's where that is only another way to write it.
pub(crate) fn as_wanted(
    wanted: Option<&String>,
    live: Option<String>,
    same: impl Fn(&str, &str) -> bool,
) -> Option<String> {
    match (wanted, &live) {
        (Some(wanted), Some(have)) if same(wanted, have) => Some(wanted.clone()),
        _ => live,
    }
}

/// Whether a KMS key, which AWS names by its ARN, is the one that the user means by id, alias or ARN.
/// What an alias stands for, only KMS knows.
pub(crate) fn same_key(wanted: &str, live: &str) -> bool {
    let is_alias = wanted.starts_with("alias/") || wanted.contains(":alias/");
    is_alias || wanted == live || live.rsplit_once("key/").is_some_and(|(_, id)| id == wanted)
}

/// Whether two names are the same to an engine that keeps no case.
pub(crate) fn same_name(wanted: &str, live: &str) -> bool {
    wanted.eq_ignore_ascii_case(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_words_stay_where_they_mean_the_same() {
        let (wanted, live) = ("ORDERS".to_owned(), Some("orders".to_owned()));
        assert_eq!(as_wanted(Some(&wanted), live.clone(), same_name), Some(wanted));
        assert_eq!(as_wanted(Some(&"other".to_owned()), live.clone(), same_name), live);
        assert_eq!(as_wanted(None, live.clone(), same_name), live);
    }

    #[test]
    fn a_key_is_known_by_id_and_arn_and_taken_for_its_alias() {
        let arn = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd";
        assert!(same_key("1234abcd", arn) && same_key(arn, arn) && same_key("alias/db", arn));
        assert!(!same_key("abcd", arn) && !same_key("arn:aws:kms:eu-west-1:123456789012:key/other", arn));
    }
}
