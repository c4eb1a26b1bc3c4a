//! S3Bucket.

mod accelerate;
mod access;
mod cors;
mod encryption;
mod ids;
mod lifecycle;
mod lifecycle_convert;
mod logging;
mod notification;
mod object_lock;
mod parts;
#[cfg(test)]
mod properties;
mod public_access_block;
mod schema;
mod tags;
mod versioning;
mod website;

use aws::{Answer, Clients};
use aws_sdk_s3::Client;
use aws_sdk_s3::types::{BucketLocationConstraint, CreateBucketConfiguration};
use resource::record::Made;
use resource::schema::{clearable, default_to, immutable, matches, rule};
use resource::tags::UID_TAG;
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Resource, Result, Role, Tags,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use access::{ABSENT, Bucket, ask};
use object_lock::ObjectLockConfig;

/// The region that takes no location constraint, and answers success to a second CreateBucket.
const FIRST_REGION: &str = "us-east-1";

/// A bucket of S3 with everything that is configured on it.
pub(crate) struct S3Bucket(pub(crate) Clients<Client>);

/// A bucket and what is configured on it. AWS deletes it only when it is empty; it is never emptied
/// for you.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.accelerateStatus) || self.accelerateStatus == 'Suspended' || !self.bucketName.contains('.')",
    "AWS accelerates no bucket with a dot in its name; choose a name without, or leave accelerateStatus out",
))]
#[schemars(transform = rule(
    "!has(self.versioning) || self.versioning || !has(self.objectLockConfig) || \
     !has(self.objectLockConfig.objectLockEnabled) || !self.objectLockConfig.objectLockEnabled",
    "Object Lock needs versioning: set versioning to true, or leave it out",
))]
pub(crate) struct Spec {
    /// The name in AWS, unique among all accounts.
    #[schemars(length(min = 3, max = 63), transform = schema::bucket_name)]
    bucket_name: String,
    /// The region that the bucket is in. Left out, it is the operator's.
    #[schemars(length(max = 32), transform = immutable, transform = matches(
        r"^[a-z]{2,}(-[a-z]+)+-[0-9]+$",
        "must be a region, such as eu-central-1",
    ))]
    region: Option<String>,
    /// Whether the versions of objects are kept. AWS keeps none; once kept, it can only be suspended.
    #[schemars(transform = default_to(false))]
    versioning: Option<bool>,
    /// How objects are encrypted where the uploader does not say. AWS takes AES256.
    server_side_encryption: Option<encryption::ServerSideEncryption>,
    /// What keeps the bucket from becoming public. AWS gives all four to a new bucket.
    block_public_access: Option<public_access_block::PublicAccessBlock>,
    /// What becomes of objects as they age. The list is the full list: rules that others added are
    /// taken away. Empty is none; left out, the rules are not managed.
    #[schemars(length(max = 1000), transform = resource::schema::set, transform = clearable)]
    lifecycle_rules: Option<Vec<lifecycle::LifecycleRule>>,
    /// Which web pages of other origins may use the bucket. The list is the full list, in order:
    /// the first rule that fits counts. Empty is none; left out, the rules are not managed.
    #[schemars(length(max = 100), transform = clearable)]
    cors_rules: Option<Vec<cors::CorsRule>>,
    /// Who is told of what happens to the bucket's objects. Each list that is set is the full list.
    notification_config: Option<notification::NotificationConfig>,
    /// The bucket as a static web site: pages of its own, or a redirect of everything.
    website_config: Option<website::WebsiteConfig>,
    /// Enabled or Suspended: transfers through AWS's edge locations. A new bucket has none.
    #[schemars(transform = schema::one_of(&["Enabled", "Suspended"]))]
    #[schemars(transform = default_to(accelerate::SUSPENDED))]
    accelerate_status: Option<String>,
    /// Versions that nobody can delete before their time. It needs versioning, which AWS turns on
    /// with it in a new bucket.
    object_lock_config: Option<ObjectLockConfig>,
    /// Where the log of requests goes.
    logging_config: Option<logging::LoggingConfig>,
    /// Tags of the bucket. Tags that others put on it stay.
    #[schemars(transform = resource::schema::tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a bucket.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The ARN: arn:aws:s3:::….
    arn: Option<String>,
    /// The host that serves the bucket.
    domain_name: Option<String>,
    /// Where the web site is reached, while websiteConfig makes one.
    website_endpoint: Option<String>,
    /// The fields that the credentials are not allowed to read.
    unread: Option<Vec<String>>,
}

impl Resource for S3Bucket {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "S3Bucket",
        plural: "s3buckets",
        short_names: &["bucket"],
        about: "An S3 bucket and what is configured on it.",
        identifier: "arn",
        deletion: Deletion::Blockable,
        reads: Reads::OneByOne,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: true,
        // One bucket takes another's log.
        woken_by: &["S3Bucket"],
        permissions: &[
            "s3:CreateBucket",
            "s3:DeleteBucket",
            "s3:DeleteBucketWebsite",
            "s3:GetAccelerateConfiguration",
            "s3:GetBucketCORS",
            "s3:GetBucketLogging",
            "s3:GetBucketNotification",
            "s3:GetBucketObjectLockConfiguration",
            "s3:GetBucketPublicAccessBlock",
            "s3:GetBucketTagging",
            "s3:GetBucketVersioning",
            "s3:GetBucketWebsite",
            "s3:GetEncryptionConfiguration",
            "s3:GetLifecycleConfiguration",
            "s3:ListAllMyBuckets",
            "s3:PutAccelerateConfiguration",
            "s3:PutBucketCORS",
            "s3:PutBucketLogging",
            "s3:PutBucketNotification",
            "s3:PutBucketObjectLockConfiguration",
            "s3:PutBucketPublicAccessBlock",
            "s3:PutBucketTagging",
            "s3:PutBucketVersioning",
            "s3:PutBucketWebsite",
            "s3:PutEncryptionConfiguration",
            "s3:PutLifecycleConfiguration",
            "s3:TagResource",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        Protection::UniqueName
    }

    fn canonical(mut spec: Spec) -> Result<Spec> {
        let rules =
            spec.lifecycle_rules.map(|rules| rules.into_iter().map(lifecycle_convert::canonical).collect());
        spec.lifecycle_rules = rules.transpose()?;
        spec.notification_config = spec.notification_config.map(notification::canonical);
        Ok(spec)
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let bucket = Bucket::reach(&self.0, call, id).await?;
        let Some(tags) = tags::read(&bucket).await? else { return Ok(Observed::Absent) };
        let mut live = bare(&bucket);
        let unread = match spec {
            Some(wanted) => parts::read(&bucket, call, wanted, &mut live).await?,
            None => Vec::new(),
        };
        let unread = Some(unread).filter(|fields| !fields.is_empty());
        let status = Status { unread, ..status(&bucket, &live) };
        Ok(Live { spec: live, status, phase: Phase::Ready, tags }.into())
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        let Some(spec) = spec else { return Ok(Vec::new()) };
        let bucket = Bucket::reach(&self.0, call, &spec.bucket_name).await?;
        match tags::read(&bucket).await {
            Ok(tags) => {
                let candidate = |tags| Candidate { id: bucket.name.clone(), tags, by_name: true };
                Ok(tags.map(candidate).into_iter().collect())
            }
            // Another account's bucket is nothing of ours; CreateBucket says so in better words.
            Err(error) if error.class == Class::Denied && !may_be_ours(&bucket).await => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let bucket = Bucket::reach(&self.0, call, &spec.bucket_name).await?;
        let is_first = bucket.region == FIRST_REGION;
        let constraint = BucketLocationConstraint::from(bucket.region.as_str());
        let configuration = CreateBucketConfiguration::builder()
            .set_location_constraint((!is_first).then_some(constraint))
            .set_tags(Some(tags::to_s3(&call.tags)?))
            .build();
        let is_locked = ObjectLockConfig::is_on(spec.object_lock_config.as_ref());
        let create = bucket
            .client
            .create_bucket()
            .bucket(&bucket.name)
            .create_bucket_configuration(configuration)
            .set_object_lock_enabled_for_bucket(is_locked.then_some(true));
        bucket.answer(create.send().await).map_err(|error| taken(error, &bucket.name))?;
        if is_first {
            ensure_made_by_us(&bucket, call).await?;
        }
        let live = fresh(&bucket, is_locked, call.tags.clone());
        Ok(Created { id: bucket.name, live: Some(live) })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let bucket = Bucket::reach(&self.0, call, id).await?;
        let unread = live.status.unread.as_deref().unwrap_or_default();
        parts::write(&bucket, &live.spec, unread, target, changes).await?;
        Ok(Progress::Done)
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, _: &Live<Spec, Status>) -> Result<Progress> {
        let bucket = Bucket::reach(&self.0, call, id).await?;
        bucket.answer_or_unset(ask!(bucket, delete_bucket), ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        let bucket = Bucket::reach(&self.0, call, id).await?;
        let Some(mut tags) = tags::read(&bucket).await? else { return Ok(()) };
        let before = tags.len();
        tags.retain(|key, _| !keys.contains(key));
        if tags.len() == before { Ok(()) } else { tags::write(&bucket, tags).await }
    }
}

/// In the first region, success may mean that the account had it before: only a bucket that was made
/// bears the tags that it was made with.
async fn ensure_made_by_us(bucket: &Bucket, call: &Call) -> Result<()> {
    let unclear = |error: Error| error.class(Class::Transient);
    let tags = tags::read(bucket).await.map_err(unclear)?.unwrap_or_default();
    if tags.get(UID_TAG) == Some(&call.ownership.uid) {
        return Ok(());
    }
    let message = format!("the bucket {} was there before", bucket.name);
    Err(Error::new(Class::Exists, "CreateBucket", message))
}

/// Whether a bucket that we may not look at can be one of the account's own. Where even that
/// cannot be told, it can.
async fn may_be_ours(bucket: &Bucket) -> bool {
    let pages = bucket.client.list_buckets().prefix(&bucket.name).into_paginator();
    let pages: std::result::Result<Vec<_>, _> = pages.send().try_collect().await;
    pages.answer().map_or(true, |pages| {
        let mut names = pages.iter().flat_map(|page| page.buckets()).filter_map(|one| one.name());
        names.any(|name| name == bucket.name)
    })
}

/// Names are unique among all accounts: another's is nothing that goes away by itself.
fn taken(error: Error, name: &str) -> Error {
    if error.code != "BucketAlreadyExists" {
        return error;
    }
    let message = format!(
        "{} The name {name} belongs to another AWS account: delete this object and create one with another \
         bucketName",
        error.message
    );
    Error { class: Class::Invalid, message, ..error }
}

/// A bucket of which nothing but its place is known.
fn bare(bucket: &Bucket) -> Spec {
    Spec { bucket_name: bucket.name.clone(), region: Some(bucket.region.clone()), ..Spec::default() }
}

/// A bucket just made: what AWS documents of a new one.
fn fresh(bucket: &Bucket, is_locked: bool, tags: Tags) -> Live<Spec, Status> {
    let spec = Spec {
        versioning: Some(is_locked),
        lifecycle_rules: Some(Vec::new()),
        cors_rules: Some(Vec::new()),
        accelerate_status: Some(accelerate::SUSPENDED.to_owned()),
        object_lock_config: Some(ObjectLockConfig::of(is_locked)),
        ..bare(bucket)
    };
    Live { status: status(bucket, &spec), spec, phase: Phase::Ready, tags }
}

fn status(bucket: &Bucket, live: &Spec) -> Status {
    let Bucket { name, region, partition, .. } = bucket;
    let suffix = if partition == "aws-cn" { "amazonaws.com.cn" } else { "amazonaws.com" };
    let partition = if partition.is_empty() { "aws" } else { partition };
    let site = live.website_config.as_ref();
    Status {
        arn: Some(format!("arn:{partition}:s3:::{name}")),
        domain_name: Some(format!("{name}.s3.{region}.{suffix}")),
        website_endpoint: site.map(|_| website::endpoint(name, region, suffix)),
        unread: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_taken_by_another_account_needs_a_person() {
        let error =
            |code: &str| Error { code: code.to_owned(), ..Error::new(Class::Exists, "CreateBucket", "No.") };
        let others = taken(error("BucketAlreadyExists"), "pictures");
        assert_eq!(others.class, Class::Invalid);
        assert!(others.message.contains("pictures belongs to another AWS account"), "{others}");
        assert_eq!(taken(error("BucketAlreadyOwnedByYou"), "pictures").class, Class::Exists);
    }

    #[test]
    fn every_part_of_the_schema_is_an_object_or_a_list_of_its_own() {
        let schema = resource::schema_of::<Spec>();
        for field in ["serverSideEncryption", "websiteConfig", "objectLockConfig", "notificationConfig"] {
            let part = &schema["properties"][field];
            assert_eq!(part["type"], json!("object"), "{field}: {part}");
            assert!(part["properties"].is_object(), "{field}: {part}");
        }
        let retention =
            schema.pointer("/properties/objectLockConfig/properties/rule/properties/defaultRetention");
        assert_eq!(retention.map(|retention| &retention["required"]), Some(&json!(["mode"])));
    }
}
