//! What becomes of objects as they age.

use async_trait::async_trait;
use aws_sdk_s3::types::BucketLifecycleConfiguration;
use resource::schema::{rule, set};
use resource::{Error, Result, Tags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::lifecycle_convert::{from_s3, to_s3};
use super::schema::{day, one_of};
use super::{ids, parts};

const CLASSES: &[&str] =
    &["STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"];

/// What becomes of some objects as they age.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.expirationDays) || has(self.expirationDate) || has(self.expiredObjectDeleteMarker) || \
     has(self.noncurrentVersionExpirationDays) || has(self.transitions) || \
     has(self.noncurrentVersionTransitions) || has(self.abortIncompleteMultipartUploadDays)",
    "a rule needs something to do: an expiration, a transition or abortIncompleteMultipartUploadDays",
))]
#[schemars(transform = rule(
    "[has(self.expirationDays), has(self.expirationDate), \
     has(self.expiredObjectDeleteMarker) && self.expiredObjectDeleteMarker].filter(x, x).size() <= 1",
    "only one of expirationDays, expirationDate and expiredObjectDeleteMarker is possible in a rule",
))]
#[schemars(transform = rule(
    "!has(self.newerNoncurrentVersions) || has(self.noncurrentVersionExpirationDays)",
    "newerNoncurrentVersions needs noncurrentVersionExpirationDays",
))]
pub(super) struct LifecycleRule {
    /// The name of the rule. Left out, AWS makes one up, and the rule is known by what it says.
    #[schemars(length(min = 1, max = 255))]
    pub(super) id: Option<String>,
    /// Enabled or Disabled. Left out, it is Enabled.
    #[schemars(transform = one_of(&["Enabled", "Disabled"]))]
    pub(super) status: Option<String>,
    /// Only objects whose names begin with this. Left out, all.
    #[schemars(length(max = 1024))]
    pub(super) prefix: Option<String>,
    /// Only objects with all of these tags.
    #[schemars(extend("maxProperties" = 10))]
    pub(super) tags: Option<Tags>,
    /// Only objects of more bytes than this.
    #[schemars(range(min = 1))]
    pub(super) object_size_greater_than: Option<i64>,
    /// Only objects of fewer bytes than this.
    #[schemars(range(min = 1))]
    pub(super) object_size_less_than: Option<i64>,
    /// Delete objects this many days after they were made.
    #[schemars(range(min = 1))]
    pub(super) expiration_days: Option<i32>,
    /// Delete objects on this day, such as 2030-01-31, at midnight UTC.
    #[schemars(transform = day)]
    pub(super) expiration_date: Option<String>,
    /// Take away delete markers behind which no version is left.
    pub(super) expired_object_delete_marker: Option<bool>,
    /// Delete a version this many days after a newer one took its place.
    #[schemars(range(min = 1))]
    pub(super) noncurrent_version_expiration_days: Option<i32>,
    /// Keep this many noncurrent versions all the same.
    #[schemars(range(min = 1, max = 100))]
    pub(super) newer_noncurrent_versions: Option<i32>,
    /// When objects move to another storage class.
    #[schemars(length(max = 10), transform = set)]
    pub(super) transitions: Option<Vec<Transition>>,
    /// When versions move to another storage class after a newer one took their place.
    #[schemars(length(max = 10), transform = set)]
    pub(super) noncurrent_version_transitions: Option<Vec<NoncurrentTransition>>,
    /// Drop uploads that are unfinished after this many days.
    #[schemars(range(min = 1))]
    pub(super) abort_incomplete_multipart_upload_days: Option<i32>,
}

/// A move to another storage class.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule("has(self.days) != has(self.date)", "write either days or date, not both"))]
pub(super) struct Transition {
    /// How many days after the object was made.
    #[schemars(range(min = 0))]
    pub(super) days: Option<i32>,
    /// On which day, such as 2030-01-31, at midnight UTC.
    #[schemars(transform = day)]
    pub(super) date: Option<String>,
    /// The storage class.
    #[schemars(transform = one_of(CLASSES))]
    pub(super) storage_class: String,
}

/// A move of noncurrent versions to another storage class.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NoncurrentTransition {
    /// How many days after a newer version took its place.
    #[schemars(range(min = 0))]
    pub(super) days: i32,
    /// The storage class.
    #[schemars(transform = one_of(CLASSES))]
    pub(super) storage_class: String,
    /// Leave this many noncurrent versions where they are.
    #[schemars(range(min = 1, max = 100))]
    pub(super) newer_noncurrent_versions: Option<i32>,
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "lifecycleRules"
    }

    async fn read(&self, bucket: &Bucket, wanted: &Spec, live: &mut Spec) -> Result<()> {
        let unset = &["NoSuchLifecycleConfiguration"];
        let answer = bucket.answer_or_unset(ask!(bucket, get_bucket_lifecycle_configuration), unset)?;
        let rules = answer.and_then(|answer| answer.rules).unwrap_or_default();
        let rules = rules.iter().map(from_s3).collect::<Result<_>>()?;
        let wanted = wanted.lifecycle_rules.as_deref().unwrap_or_default();
        live.lifecycle_rules = Some(ids::without_made_up(rules, wanted, |rule| &mut rule.id));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let rules = after.lifecycle_rules.as_deref().unwrap_or_default();
        if rules.is_empty() {
            return bucket.answer(ask!(bucket, delete_bucket_lifecycle)).map(drop);
        }
        let configuration = BucketLifecycleConfiguration::builder()
            .set_rules(Some(rules.iter().map(to_s3).collect::<Result<_>>()?))
            .build()
            .map_err(|error| Error::invalid("spec.lifecycleRules", error.to_string()))?;
        let answer =
            ask!(bucket, put_bucket_lifecycle_configuration, lifecycle_configuration = configuration);
        bucket.answer(answer).map(drop)
    }
}
