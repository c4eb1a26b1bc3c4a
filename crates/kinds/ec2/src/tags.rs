//! Tags, between ours and EC2's.

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use resource::Tags;

/// Ours, from EC2's.
pub(crate) fn from_ec2(tags: &[Tag]) -> Tags {
    tags.iter()
        .map(|tag| (tag.key().unwrap_or_default().to_owned(), tag.value().unwrap_or_default().to_owned()))
        .collect()
}

/// EC2's, from ours.
pub(crate) fn to_ec2(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

/// The tags of a create call.
pub(crate) fn at_creation(of: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder().resource_type(of).set_tags(Some(to_ec2(tags))).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_convert_both_ways() {
        let tags: Tags = [("team".to_owned(), "net".to_owned()), ("empty".to_owned(), String::new())].into();
        assert_eq!(from_ec2(&to_ec2(&tags)), tags);
    }

    #[test]
    fn a_tag_without_a_value_is_an_empty_one() {
        let tags = from_ec2(&[Tag::builder().key("team").build()]);
        assert_eq!(tags, [("team".to_owned(), String::new())].into());
    }
}
