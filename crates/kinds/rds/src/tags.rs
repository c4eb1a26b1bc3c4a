//! Tags, between ours and RDS's. RDS tags by ARN.

use aws::Answer;
use aws_sdk_rds::Client;
use aws_sdk_rds::types::Tag;
use resource::{Changes, Result, Tags};

/// Ours, from RDS's.
pub(crate) fn from_rds(tags: &[Tag]) -> Tags {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    tags.iter().map(|tag| (text(tag.key()), text(tag.value()))).collect()
}

/// RDS's, from ours.
pub(crate) fn to_rds(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

/// Sets and removes the tags that differ.
pub(crate) async fn retag(client: &Client, arn: &str, absent: &[&str], changes: &Changes) -> Result<()> {
    let set = changes.tags_to_set();
    if !set.is_empty() {
        let add = client.add_tags_to_resource().resource_name(arn).set_tags(Some(to_rds(&set)));
        add.send().await.answer()?;
    }
    untag(client, arn, absent, &changes.tags_to_remove()).await
}

/// Removes tags; of something that is gone, as one of the codes says, they are too.
pub(crate) async fn untag(client: &Client, arn: &str, absent: &[&str], keys: &[String]) -> Result<()> {
    if !keys.is_empty() {
        let remove = client.remove_tags_from_resource().resource_name(arn);
        remove.set_tag_keys(Some(keys.to_vec())).send().await.answer_or_absent(absent)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_convert_both_ways() {
        let tags: Tags = [("team".to_owned(), "data".to_owned()), ("empty".to_owned(), String::new())].into();
        assert_eq!(from_rds(&to_rds(&tags)), tags);
    }
}
