//! The tags of a bucket, which also tell whether it exists and whose it is.

use async_trait::async_trait;
use aws_sdk_s3::error::BuildError;
use aws_sdk_s3::types::{Tag, Tagging};
use resource::{Error, Result, Tags};

use super::Spec;
use super::access::{ABSENT, Bucket, ask};
use super::parts;

/// Their field in the spec.
pub(super) const FIELD: &str = "tags";

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        FIELD
    }

    async fn read(&self, bucket: &Bucket, _: &Spec, live: &mut Spec) -> Result<()> {
        live.tags = read(bucket).await?;
        Ok(())
    }

    /// AWS replaces the whole set: everybody's tags are in it.
    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        write(bucket, after.tags.clone().unwrap_or_default()).await
    }
}

/// All tags of the bucket; None when there is no such bucket.
pub(super) async fn read(bucket: &Bucket) -> Result<Option<Tags>> {
    match bucket.answer_or_unset(ask!(bucket, get_bucket_tagging), ABSENT) {
        Ok(answer) => Ok(answer.map(|answer| from_s3(answer.tag_set()))),
        Err(error) if error.code == "NoSuchTagSet" => Ok(Some(Tags::new())),
        Err(error) => Err(error),
    }
}

/// Makes these all the tags that the bucket has.
pub(super) async fn write(bucket: &Bucket, tags: Tags) -> Result<()> {
    if tags.is_empty() {
        return bucket.answer(ask!(bucket, delete_bucket_tagging)).map(drop);
    }
    let tagging = Tagging::builder().set_tag_set(Some(to_s3(&tags)?)).build().map_err(incomplete)?;
    bucket.answer(ask!(bucket, put_bucket_tagging, tagging = tagging)).map(drop)
}

/// S3's, from ours.
pub(super) fn to_s3(tags: &Tags) -> Result<Vec<Tag>> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build().map_err(incomplete)).collect()
}

/// Ours, from S3's.
pub(super) fn from_s3(tags: &[Tag]) -> Tags {
    tags.iter().map(|tag| (tag.key().to_owned(), tag.value().to_owned())).collect()
}

fn incomplete(error: BuildError) -> Error {
    Error::invalid("spec.tags", error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tags_convert_both_ways() {
        let tags: Tags = [("team".to_owned(), "net".to_owned()), ("empty".to_owned(), String::new())].into();
        assert_eq!(from_s3(&to_s3(&tags).unwrap()), tags);
    }
}
