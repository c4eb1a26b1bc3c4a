//! Whether a bucket keeps the versions of its objects.

use async_trait::async_trait;
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use resource::Result;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "versioning"
    }

    async fn read(&self, bucket: &Bucket, _: &Spec, live: &mut Spec) -> Result<()> {
        let answer = bucket.answer(ask!(bucket, get_bucket_versioning))?;
        // A bucket that never had it has no status at all.
        live.versioning = Some(answer.status == Some(BucketVersioningStatus::Enabled));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let status = match after.versioning {
            Some(true) => BucketVersioningStatus::Enabled,
            _ => BucketVersioningStatus::Suspended,
        };
        let configuration = VersioningConfiguration::builder().status(status).build();
        let answer = ask!(bucket, put_bucket_versioning, versioning_configuration = configuration);
        bucket.answer(answer).map(drop)
    }
}
