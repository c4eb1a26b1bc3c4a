//! Transfer acceleration: uploads and downloads through AWS's edge locations.

use async_trait::async_trait;
use aws_sdk_s3::types::{AccelerateConfiguration, BucketAccelerateStatus};
use resource::Result;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;

/// What a bucket that never had it is the same as.
pub(super) const SUSPENDED: &str = "Suspended";

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "accelerateStatus"
    }

    async fn read(&self, bucket: &Bucket, _: &Spec, live: &mut Spec) -> Result<()> {
        let answer = bucket.answer(ask!(bucket, get_bucket_accelerate_configuration))?;
        let status = answer.status.as_ref().map_or(SUSPENDED, BucketAccelerateStatus::as_str);
        live.accelerate_status = Some(status.to_owned());
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let status = after.accelerate_status.as_deref().unwrap_or(SUSPENDED);
        let configuration = AccelerateConfiguration::builder().status(status.into()).build();
        let answer =
            ask!(bucket, put_bucket_accelerate_configuration, accelerate_configuration = configuration);
        bucket.answer(answer).map(drop)
    }
}
