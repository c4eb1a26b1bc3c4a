//! Buckets where AWS says no: each part holds up only itself, nothing is written blind, and what
//! stands in the way is named.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Match, Table};
use lab::proxy::{Stage, Verdict};
use lab::subject::{Subject, condition, manifest};
use lab::wait::throughout;
use lab::{Operator, World, eventually};
use serde_json::{Value, json};

const KIND: &str = "S3Bucket";
const SOON: Duration = Duration::from_secs(30);
/// Long enough for several retries.
const QUIET: Duration = Duration::from_secs(2);

async fn world() -> Result<(World, Operator)> {
    let world = World::prepare(Flavor::Ministack).await?;
    let operator = world.operator(&[]).await?;
    Ok((world, operator))
}

/// A bucket whose object bears the same name.
async fn apply<'a>(world: &'a World, name: &'a str, mut spec: Value) -> Result<Subject<'a>> {
    spec["bucketName"] = json!(name);
    world.apply(&manifest(KIND, name, &[], spec)).await?;
    Ok(world.subject(KIND, name))
}

async fn s3(world: &World, operation: &str, params: Value) -> Result<Value> {
    world.boto.call("s3", operation, params).await.with_context(|| operation.to_owned())
}

/// Asks for an observe and waits for the calls of one.
async fn observe(world: &World, name: &str, word: &str) -> Result<()> {
    let mark = world.aws.mark();
    world.observe(KIND, name, word).await?;
    eventually(SOON, "an observe", async || {
        let calls = world.calls_about(mark, name);
        ensure!(calls.iter().any(|call| call.operation == "GetBucketTagging"));
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_few() -> Result<()> {
    let (world, _operator) = world().await?;
    // The first region answers a second creation with success, so the tags are read back.
    for (name, region, create) in [("few-here", "eu-west-1", 3), ("few-there", "us-east-1", 4)] {
        let spec = json!({"region": region, "versioning": true, "tags": {"team": "data"}});
        let mark = world.aws.mark();
        let bucket = apply(&world, name, spec).await?;
        bucket.ready().await?;
        let calls = world.calls_about(mark, name);
        ensure!(calls.len() == create && create <= 6, "{region}: {}", Table(&calls));
        let mark = world.aws.mark();
        observe(&world, name, "check").await?;
        // It is Ready throughout: what ends a check is its last call.
        eventually(SOON, "the calls of a check", async || {
            let calls = world.calls_about(mark, name);
            let mut operations: Vec<_> = calls.iter().map(|call| call.operation.as_str()).collect();
            operations.sort_unstable();
            ensure!(operations == ["GetBucketTagging", "GetBucketVersioning"], "{}", Table(&calls));
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_fails_holds_up_only_itself() -> Result<()> {
    let (world, _operator) = world().await?;
    what_may_not_be_read_is_not_written(&world).await.context("a read denied")?;
    what_was_removed_and_may_not_be_read_is_not_forgotten(&world).await.context("a removal denied")?;
    what_may_not_be_written_is_named(&world).await.context("writes denied")?;
    a_target_that_is_not_there_yet_is_waited_for(&world).await.context("a notification target")?;
    a_bucket_that_may_not_be_looked_at_is_left_alone(&world).await.context("the first read denied")
}

async fn what_may_not_be_read_is_not_written(world: &World) -> Result<()> {
    let name = "unread";
    let encryption = |bucket_key: bool| json!({"sseAlgorithm": "aws:kms", "bucketKeyEnabled": bucket_key});
    let bucket =
        apply(world, name, json!({"versioning": true, "serverSideEncryption": encryption(true)})).await?;
    bucket.ready().await?;
    let denied = Action::error(403, "AccessDenied", "Access Denied");
    let fault = world.aws.fault(Match::op("GetBucketEncryption").param("Bucket", name), denied);
    let mark = world.aws.mark();
    bucket.change(json!({"versioning": false, "serverSideEncryption": encryption(false)})).await?;
    let parts = [
        "serverSideEncryption: GetBucketEncryption: AccessDenied",
        "the credentials need the permission s3:GetEncryptionConfiguration",
        "request id",
    ];
    bucket.says("Error", &parts).await?;
    ensure!(bucket.get().await?.data["status"]["unread"] == json!(["serverSideEncryption"]));
    throughout(QUIET, "only what could be read is written", async || {
        world.ensure_changes(mark, name, &["PutBucketVersioning"])
    })
    .await?;
    // Neither is drift put right blindly, nor does it keep the rest from being put right.
    s3(
        world,
        "put_bucket_versioning",
        json!({
            "Bucket": name, "VersioningConfiguration": {"Status": "Enabled"},
        }),
    )
    .await?;
    observe(world, name, "drift").await?;
    eventually(SOON, "the versioning put back", async || {
        world.ensure_changes(mark, name, &["PutBucketVersioning", "PutBucketVersioning"])
    })
    .await?;
    let mark = world.aws.mark();
    fault.release();
    let ready = bucket.ready().await?;
    ensure!(ready.data["status"].get("unread").is_none(), "{:#}", ready.data["status"]);
    world.ensure_changes(mark, name, &["PutBucketEncryption"])
}

async fn what_was_removed_and_may_not_be_read_is_not_forgotten(world: &World) -> Result<()> {
    let name = "unremoved";
    let cors = json!([{"allowedMethods": ["GET"], "allowedOrigins": ["*"]}]);
    let site = json!({"indexDocument": "index.html", "errorDocument": "error.html"});
    let bucket =
        apply(world, name, json!({"versioning": true, "websiteConfig": site, "corsRules": cors})).await?;
    bucket.ready().await?;
    let faults = ["GetBucketWebsite", "GetBucketCors"].map(|read| {
        let denied = Action::error(403, "AccessDenied", "Access Denied");
        world.aws.fault(Match::op(read).param("Bucket", name), denied)
    });
    let mark = world.aws.mark();
    bucket.change(json!({"versioning": false, "websiteConfig": null, "corsRules": null})).await?;
    let parts = ["websiteConfig: GetBucketWebsite: AccessDenied", "corsRules: GetBucketCors: AccessDenied"];
    bucket.says("Error", &parts).await?;
    ensure!(bucket.get().await?.data["status"]["unread"] == json!(["corsRules", "websiteConfig"]));
    throughout(QUIET, "only what could be read is written", async || {
        world.ensure_changes(mark, name, &["PutBucketVersioning"])
    })
    .await?;
    let mark = world.aws.mark();
    faults.iter().for_each(|fault| fault.release());
    bucket.ready().await?;
    world.ensure_changes(mark, name, &["DeleteBucketCors", "DeleteBucketWebsite"])?;
    let site = world.boto.call("s3", "get_bucket_website", json!({"Bucket": name})).await;
    ensure!(site.as_ref().is_err_and(|error| error.code == "NoSuchWebsiteConfiguration"), "{site:?}");
    Ok(())
}

async fn what_may_not_be_written_is_named(world: &World) -> Result<()> {
    let name = "unwritten";
    let cors = json!([{"allowedMethods": ["GET"], "allowedOrigins": ["*"]}]);
    let fault = world.aws.fault(
        Match::op("PutBucketCors").param("Bucket", name),
        Action::error(403, "AccessDenied", "Access Denied"),
    );
    let spec = json!({"versioning": true, "corsRules": cors, "accelerateStatus": "Enabled"});
    let bucket = apply(world, name, spec).await?;
    bucket.says("Error", &["corsRules: PutBucketCors: AccessDenied", "permission s3:PutBucketCORS"]).await?;
    let accelerated = s3(world, "get_bucket_accelerate_configuration", json!({"Bucket": name})).await?;
    let versioned = s3(world, "get_bucket_versioning", json!({"Bucket": name})).await?;
    ensure!(accelerated["Status"] == "Enabled" && versioned["Status"] == "Enabled");
    fault.release();
    bucket.ready().await.map(drop)
}

async fn a_target_that_is_not_there_yet_is_waited_for(world: &World) -> Result<()> {
    let name = "untold";
    let queue =
        json!({"queueARN": "arn:aws:sqs:eu-west-1:000000000000:later", "events": ["s3:ObjectCreated:*"]});
    let spec = json!({
        "notificationConfig": {"queueConfigurations": [queue]},
        "corsRules": [{"allowedMethods": ["GET"], "allowedOrigins": ["*"]}],
        "websiteConfig": {"indexDocument": "index.html"},
    });
    let bucket = apply(world, name, spec).await?;
    let parts = ["notificationConfig: PutBucketNotificationConfiguration", "InvalidArgument", ":later"];
    let message = bucket.says("DependencyNotReady", &parts).await?;
    ensure!(!message.contains("corsRules") && !message.contains("websiteConfig"), "{message}");
    s3(world, "get_bucket_cors", json!({"Bucket": name})).await?;
    s3(world, "get_bucket_website", json!({"Bucket": name})).await?;
    // Once it is there, the rest goes by itself.
    world.boto.call("sqs", "create_queue", json!({"QueueName": "later"})).await?;
    bucket.ready().await?;
    let told = s3(world, "get_bucket_notification_configuration", json!({"Bucket": name})).await?;
    ensure!(told["QueueConfigurations"][0]["QueueArn"].to_string().contains(":later"), "{told}");
    Ok(())
}

async fn a_bucket_that_may_not_be_looked_at_is_left_alone(world: &World) -> Result<()> {
    let name = "unseen";
    let bucket = apply(world, name, json!({"versioning": true})).await?;
    bucket.ready().await?;
    let fault = world.aws.fault(
        Match::op("GetBucketTagging").param("Bucket", name),
        Action::error(403, "AccessDenied", "Access Denied"),
    );
    let mark = world.aws.mark();
    bucket.change(json!({"versioning": false})).await?;
    bucket.says("Error", &["GetBucketTagging: AccessDenied", "permission s3:GetBucketTagging"]).await?;
    throughout(QUIET, "nothing is written", async || world.ensure_changes(mark, name, &[])).await?;
    fault.release();
    bucket.ready().await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_regions_that_are_taken_are_told() -> Result<()> {
    let (world, _operator) = world().await?;
    another_accounts_bucket_is_left_alone(&world).await.context("another account's")?;
    a_bucket_made_just_before_ours_is_adopted(&world, "eu-west-1").await.context("just before ours")?;
    a_bucket_made_just_before_ours_is_adopted(&world, "us-east-1").await.context("in the first region")?;
    a_bucket_in_another_region_is_named(&world).await.context("another region")?;
    what_the_region_refuses_is_told(&world).await.context("an illegal region")
}

async fn another_accounts_bucket_is_left_alone(world: &World) -> Result<()> {
    let name = "theirs";
    let others = world.boto.as_account("222222222222");
    let place = json!({"LocationConstraint": "eu-west-1"});
    others.call("s3", "create_bucket", json!({"Bucket": name, "CreateBucketConfiguration": place})).await?;
    let mark = world.aws.mark();
    let bucket = apply(world, name, json!({"versioning": true, "tags": {"team": "data"}})).await?;
    let parts = ["CreateBucket: BucketAlreadyExists", "belongs to another AWS account", "another bucketName"];
    bucket.says("Error", &parts).await?;
    let ready = condition(&bucket.get().await?, "Stalled");
    ensure!(ready["status"] == "True", "{ready}");
    let writes = world.changes_of(mark, name);
    ensure!(writes.iter().all(|call| call.operation == "CreateBucket"), "{}", Table(&writes));
    let theirs = others.call("s3", "get_bucket_versioning", json!({"Bucket": name})).await?;
    ensure!(theirs.get("Status").is_none(), "{theirs}");
    bucket.delete().await?;
    bucket.gone().await?;
    others.call("s3", "get_bucket_versioning", json!({"Bucket": name})).await.map(drop)?;
    ensure!(world.changes_of(mark, name).iter().all(|call| call.operation == "CreateBucket"));
    Ok(())
}

/// Between our look and our call, somebody of the same account makes it.
async fn a_bucket_made_just_before_ours_is_adopted(world: &World, region: &str) -> Result<()> {
    let name = &format!("just-before-{region}");
    let (boto, made) = (world.boto.in_region(region), name.clone());
    let mut params = json!({"Bucket": name});
    if region != "us-east-1" {
        params["CreateBucketConfiguration"] = json!({"LocationConstraint": region});
    }
    world.aws.on_call(move |stage, call| {
        let (boto, params, made) = (boto.clone(), params.clone(), made.clone());
        async move {
            if stage == Stage::Before && call.operation == "CreateBucket" {
                // Only the first time: then it exists.
                if boto.call("s3", "create_bucket", params).await.is_ok() {
                    let tags = json!({"TagSet": [{"Key": "made-by", "Value": "hand"}]});
                    boto.call("s3", "put_bucket_tagging", json!({"Bucket": made, "Tagging": tags}))
                        .await
                        .unwrap();
                }
            }
            Verdict::Continue
        }
    });
    let mark = world.aws.mark();
    let bucket = apply(world, name, json!({"region": region, "versioning": true})).await?;
    let adopted = bucket.event("Adopted").await.map_err(|error| error.context(world.aws.table()))?;
    world.aws.clear_hook();
    ensure!(adopted.len() == 1 && adopted[0].contains(name.as_str()), "{adopted:?}");
    bucket.ready().await?;
    ensure!(bucket.status("/adopted").await? == "true");
    let creates = world.changes_of(mark, name);
    let creates = creates.iter().filter(|call| call.operation == "CreateBucket").count();
    ensure!(creates == 1, "{}", world.aws.table());
    // It is somebody's: deleting the object releases it.
    bucket.delete().await?;
    bucket.gone().await?;
    let tags = world.boto.in_region(region).call("s3", "get_bucket_tagging", json!({"Bucket": name})).await?;
    ensure!(tags["TagSet"] == json!([{"Key": "made-by", "Value": "hand"}]), "{tags}");
    Ok(())
}

async fn a_bucket_in_another_region_is_named(world: &World) -> Result<()> {
    let name = "elsewhere";
    let there = world.boto.in_region("eu-central-1");
    let place = json!({"LocationConstraint": "eu-central-1"});
    there.call("s3", "create_bucket", json!({"Bucket": name, "CreateBucketConfiguration": place})).await?;
    let mark = world.aws.mark();
    let bucket = apply(world, name, json!({"versioning": true})).await?;
    let parts = ["is in the region eu-central-1, not in eu-west-1", "spec.region: eu-central-1"];
    bucket.says("Error", &parts).await?;
    throughout(QUIET, "nothing is made", async || world.ensure_changes(mark, name, &[])).await?;
    bucket.delete().await?;
    bucket.gone().await
}

async fn what_the_region_refuses_is_told(world: &World) -> Result<()> {
    let name = "illegal";
    let said = "The ap-east-1 location constraint is incompatible for the region specific endpoint this request \
                was sent to.";
    let refusal = Action::error(400, "IllegalLocationConstraintException", said);
    let fault = world.aws.fault(Match::op("CreateBucket").param("Bucket", name), refusal);
    let mark = world.aws.mark();
    let bucket = apply(world, name, json!({"region": "ap-east-1"})).await?;
    bucket
        .says("Error", &["IllegalLocationConstraintException", "is not in the region ap-east-1", said])
        .await?;
    fault.release();
    bucket.ready().await?;
    let place =
        world.boto.in_region("ap-east-1").call("s3", "get_bucket_location", json!({"Bucket": name})).await?;
    ensure!(place["LocationConstraint"] == "ap-east-1", "{place}");
    let writes = world.changes_of(mark, name);
    ensure!(writes.iter().all(|call| call.region == "ap-east-1"), "{}", Table(&writes));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_not_empty_waits_until_it_is() -> Result<()> {
    let (world, _operator) = world().await?;
    let bucket = apply(&world, "full", json!({})).await?;
    bucket.ready().await?;
    s3(&world, "put_object", json!({"Bucket": "full", "Key": "kept", "Body": "data"})).await?;
    bucket.delete().await?;
    let parts = ["DeleteBucket: BucketNotEmpty: The bucket you tried to delete is not empty", "request id"];
    bucket.says("Error", &parts).await?;
    let stalled = condition(&bucket.get().await?, "Stalled");
    ensure!(stalled["status"] != "True", "{stalled}");
    // It is not emptied for the user.
    let kept = s3(&world, "get_object", json!({"Bucket": "full", "Key": "kept"})).await?;
    ensure!(kept["Body"] == "data", "{kept}");
    s3(&world, "delete_object", json!({"Bucket": "full", "Key": "kept"})).await?;
    bucket.gone().await?;
    let gone = world.boto.call("s3", "get_bucket_tagging", json!({"Bucket": "full"})).await;
    ensure!(gone.as_ref().is_err_and(|error| error.code == "NoSuchBucket"), "{gone:?}");
    Ok(())
}
