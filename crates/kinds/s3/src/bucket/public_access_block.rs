//! What keeps a bucket from becoming public.

use async_trait::async_trait;
use aws_sdk_s3::types::PublicAccessBlockConfiguration;
use resource::Result;
use resource::schema::default_to;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;

/// What keeps the bucket from becoming public. AWS gives all four to a new bucket.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublicAccessBlock {
    /// Refuse new ACLs that grant public access.
    #[schemars(transform = default_to(true))]
    pub(super) block_public_acls: Option<bool>,
    /// Refuse bucket policies that grant public access.
    #[schemars(transform = default_to(true))]
    pub(super) block_public_policy: Option<bool>,
    /// Ignore ACLs that grant public access.
    #[schemars(transform = default_to(true))]
    pub(super) ignore_public_acls: Option<bool>,
    /// Let only AWS services and users of the account in, as long as the policy is public.
    #[schemars(transform = default_to(true))]
    pub(super) restrict_public_buckets: Option<bool>,
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "blockPublicAccess"
    }

    async fn read(&self, bucket: &Bucket, _: &Spec, live: &mut Spec) -> Result<()> {
        let unset = &["NoSuchPublicAccessBlockConfiguration"];
        let answer = bucket.answer_or_unset(ask!(bucket, get_public_access_block), unset)?;
        let block = answer.and_then(|answer| answer.public_access_block_configuration);
        live.block_public_access = Some(from_s3(block.as_ref()));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let block = to_s3(&after.block_public_access.clone().unwrap_or_default());
        let answer = ask!(bucket, put_public_access_block, public_access_block_configuration = block);
        bucket.answer(answer).map(drop)
    }
}

/// Nothing is blocked where nothing is set.
fn from_s3(block: Option<&PublicAccessBlockConfiguration>) -> PublicAccessBlock {
    let is =
        |flag: fn(&PublicAccessBlockConfiguration) -> Option<bool>| Some(block.and_then(flag) == Some(true));
    PublicAccessBlock {
        block_public_acls: is(PublicAccessBlockConfiguration::block_public_acls),
        block_public_policy: is(PublicAccessBlockConfiguration::block_public_policy),
        ignore_public_acls: is(PublicAccessBlockConfiguration::ignore_public_acls),
        restrict_public_buckets: is(PublicAccessBlockConfiguration::restrict_public_buckets),
    }
}

fn to_s3(block: &PublicAccessBlock) -> PublicAccessBlockConfiguration {
    PublicAccessBlockConfiguration::builder()
        .set_block_public_acls(block.block_public_acls)
        .set_block_public_policy(block.block_public_policy)
        .set_ignore_public_acls(block.ignore_public_acls)
        .set_restrict_public_buckets(block.restrict_public_buckets)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_converts_both_ways() {
        let block = PublicAccessBlock {
            block_public_acls: Some(true),
            block_public_policy: Some(false),
            ignore_public_acls: Some(true),
            restrict_public_buckets: Some(false),
        };
        assert_eq!(from_s3(Some(&to_s3(&block))), block);
    }

    #[test]
    fn what_is_not_set_blocks_nothing() {
        let nothing = from_s3(None);
        assert_eq!(nothing.block_public_acls, Some(false));
        assert_eq!(from_s3(Some(&to_s3(&PublicAccessBlock::default()))), nothing);
    }
}
