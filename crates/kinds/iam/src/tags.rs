//! Tags, between ours and IAM's.

use aws_sdk_iam::error::BuildError;
use aws_sdk_iam::types::Tag;
use resource::{Error, Result, Tags};

/// Ours, from IAM's.
pub(crate) fn from_iam(tags: &[Tag]) -> Tags {
    tags.iter().map(|tag| (tag.key().to_owned(), tag.value().to_owned())).collect()
}

/// IAM's, from ours.
pub(crate) fn to_iam(tags: &Tags) -> Result<Vec<Tag>> {
    let incomplete = |error: BuildError| Error::invalid("spec.tags", error.to_string());
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build().map_err(incomplete)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tags_convert_both_ways() {
        let tags: Tags = [("team".to_owned(), "net".to_owned()), ("empty".to_owned(), String::new())].into();
        assert_eq!(from_iam(&to_iam(&tags).unwrap()), tags);
    }
}
