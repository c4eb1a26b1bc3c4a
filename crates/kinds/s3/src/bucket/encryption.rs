//! How objects are encrypted where the uploader does not say.

use async_trait::async_trait;
use aws_sdk_s3::types::{
    ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration, ServerSideEncryptionRule,
};
use resource::schema::{clearable, default_to, rule};
use resource::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;
use super::schema::one_of;

/// What AWS does where nothing else is set.
const AES256: &str = "AES256";

/// How objects are encrypted where the uploader does not say.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.kmsKeyId) || self.sseAlgorithm != 'AES256'",
    "kmsKeyId needs sseAlgorithm aws:kms: AES256 uses S3's own keys",
))]
pub(super) struct ServerSideEncryption {
    /// AES256 (S3's own keys), aws:kms or aws:kms:dsse (keys of KMS; dsse encrypts twice).
    #[schemars(required, transform = one_of(&["AES256", "aws:kms", "aws:kms:dsse"]))]
    #[schemars(transform = default_to(AES256))]
    pub(super) sse_algorithm: Option<String>,
    /// The KMS key: its id, ARN or alias. AWS takes aws/s3, the account's own key for S3.
    #[schemars(length(min = 1, max = 2048), transform = clearable)]
    pub(super) kms_key_id: Option<String>,
    /// Make fewer calls to KMS, by a key for the bucket.
    #[schemars(transform = default_to(false))]
    pub(super) bucket_key_enabled: Option<bool>,
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "serverSideEncryption"
    }

    async fn read(&self, bucket: &Bucket, wanted: &Spec, live: &mut Spec) -> Result<()> {
        let unset = &["ServerSideEncryptionConfigurationNotFoundError"];
        let answer = bucket.answer_or_unset(ask!(bucket, get_bucket_encryption), unset)?;
        let configuration = answer.and_then(|answer| answer.server_side_encryption_configuration);
        let rule = configuration.as_ref().and_then(|configuration| configuration.rules().first());
        let wanted = wanted.server_side_encryption.as_ref();
        live.server_side_encryption = rule.map(|rule| in_terms_of(wanted, from_s3(rule)));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let configuration = to_s3(&after.server_side_encryption.clone().unwrap_or_default())?;
        let answer =
            ask!(bucket, put_bucket_encryption, server_side_encryption_configuration = configuration);
        bucket.answer(answer).map(drop)
    }
}

fn from_s3(rule: &ServerSideEncryptionRule) -> ServerSideEncryption {
    let default = rule.apply_server_side_encryption_by_default();
    ServerSideEncryption {
        sse_algorithm: default.map(|default| default.sse_algorithm().as_str().to_owned()),
        kms_key_id: default.and_then(|default| default.kms_master_key_id.clone()),
        bucket_key_enabled: Some(rule.bucket_key_enabled() == Some(true)),
    }
}

/// A key's id and its ARN name the same key.
fn in_terms_of(
    wanted: Option<&ServerSideEncryption>,
    mut live: ServerSideEncryption,
) -> ServerSideEncryption {
    let wanted = wanted.and_then(|wanted| wanted.kms_key_id.as_deref());
    if let (Some(wanted), Some(key)) = (wanted, live.kms_key_id.as_deref()) {
        let id = |key: &str| key.rsplit_once(":key/").map_or(key, |(_, id)| id).to_owned();
        let both_arns = wanted.starts_with("arn:") && key.starts_with("arn:");
        if !both_arns && id(wanted) == id(key) {
            live.kms_key_id = Some(wanted.to_owned());
        }
    }
    live
}

fn to_s3(encryption: &ServerSideEncryption) -> Result<ServerSideEncryptionConfiguration> {
    let incomplete =
        |error: aws_sdk_s3::error::BuildError| Error::invalid("spec.serverSideEncryption", error.to_string());
    let algorithm = encryption.sse_algorithm.as_deref().unwrap_or(AES256);
    let default = ServerSideEncryptionByDefault::builder()
        .sse_algorithm(algorithm.into())
        // AWS refuses a key with S3's own.
        .set_kms_master_key_id(encryption.kms_key_id.clone().filter(|_| algorithm != AES256))
        .build()
        .map_err(incomplete)?;
    let rule = ServerSideEncryptionRule::builder()
        .apply_server_side_encryption_by_default(default)
        .set_bucket_key_enabled(encryption.bucket_key_enabled)
        .build();
    ServerSideEncryptionConfiguration::builder().rules(rule).build().map_err(incomplete)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ARN: &str = "arn:aws:kms:eu-west-1:123456789012:key/1234";

    fn encryption(algorithm: &str, key: Option<&str>) -> ServerSideEncryption {
        ServerSideEncryption {
            sse_algorithm: Some(algorithm.to_owned()),
            kms_key_id: key.map(str::to_owned),
            bucket_key_enabled: Some(true),
        }
    }

    #[test]
    fn encryption_converts_both_ways() {
        for encryption in
            [encryption("AES256", None), encryption("aws:kms", Some(ARN)), encryption("aws:kms", None)]
        {
            assert_eq!(from_s3(&to_s3(&encryption).unwrap().rules()[0]), encryption);
        }
    }

    #[test]
    fn s3s_own_keys_go_without_a_key_of_kms() {
        let back = from_s3(&to_s3(&encryption("AES256", Some(ARN))).unwrap().rules()[0]);
        assert_eq!(back, encryption("AES256", None));
        let default = from_s3(&to_s3(&ServerSideEncryption::default()).unwrap().rules()[0]);
        assert_eq!(default.sse_algorithm.as_deref(), Some(AES256));
    }

    #[test]
    fn id_and_arn_of_a_key_are_the_same() {
        let key = |wanted: &str, live: &str| {
            let wanted = encryption("aws:kms", Some(wanted));
            in_terms_of(Some(&wanted), encryption("aws:kms", Some(live))).kms_key_id.unwrap()
        };
        assert_eq!(key("1234", ARN), "1234");
        assert_eq!(key(ARN, "1234"), ARN);
        assert_eq!(key("5678", ARN), ARN);
        let other_region = "arn:aws:kms:us-east-1:123456789012:key/1234";
        assert_eq!(key(other_region, ARN), ARN);
    }
}
