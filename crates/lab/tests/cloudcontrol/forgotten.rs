//! Requests and tokens that AWS has forgotten, and what only a token leads to.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use lab::cloudcontrol::Operation;
use lab::history::Version;
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::proxy::{Stage, Verdict};
use lab::wait::throughout;
use lab::{Operator, eventually};
use serde_json::{Value, json};

use crate::cloud::{Cloud, GROUP, KEY, KIND, SOON, group, public_key};

const LONG_AGO: &str = "2020-01-01T00:00:00Z";

fn of(calls: Vec<Call>, operation: &str) -> Vec<Call> {
    calls.into_iter().filter(|call| call.operation == operation).collect()
}

/// Ensures that so many create calls were sent since, all with the same token.
fn ensure_one_token(cloud: &Cloud, mark: u64, count: usize) -> Result<()> {
    let creates = of(cloud.mutating_since(mark), "CreateResource");
    ensure!(creates.len() == count, "{}", Table(&creates));
    let token = &creates[0].params["ClientToken"];
    ensure!(creates.iter().all(|call| call.params["ClientToken"] == *token), "{}", Table(&creates));
    Ok(())
}

fn has_request(version: &Version) -> bool {
    version.field("/status/requestToken").is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_request_ends_and_the_resource_tells() -> Result<()> {
    let (cloud, operator) = Cloud::new(&[]).await?;
    cloud.apply("group", group("konfig/a", json!({"RetentionInDays": 7}))).await?;
    cloud.until_ready("group").await?;

    // Of an update.
    cloud.world.cloud_control.slow(Operation::Update, 1000);
    let mark = cloud.world.aws.mark();
    cloud.change("group", json!({"RetentionInDays": 14})).await?;
    cloud.history.until(SOON, "group", "an update under way", has_request).await?;
    cloud.world.cloud_control.slow(Operation::Update, 1);
    cloud.world.cloud_control.forget();
    cloud.until_ready("group").await.inspect_err(|_| println!("{}", operator.log()))?;
    ensure!(cloud.held(GROUP, "konfig/a")?["RetentionInDays"] == 14);
    ensure!(of(cloud.mutating_since(mark), "UpdateResource").len() == 2, "{}", cloud.world.aws.table());

    // Of a creation, while AWS still knows the client token: the same call leads to the same resource.
    let mark = cloud.world.aws.mark();
    cloud.world.cloud_control.slow(Operation::Create, 3);
    let forgotten = Action::error(400, "RequestTokenNotFoundException", "Request with token was not found");
    cloud.world.aws.fault(Match::op("GetResourceRequestStatus").times(1), forgotten);
    cloud.apply("key", public_key("key")).await?;
    cloud.until_ready("key").await?;
    ensure_one_token(&cloud, mark, 2)?;
    ensure!(cloud.world.cloud_control.resources(KEY).len() == 1, "{}", cloud.world.aws.table());

    // Of a deletion.
    cloud.world.cloud_control.slow(Operation::Delete, 1000);
    let mark = cloud.world.aws.mark();
    cloud.world.api(KIND).delete("group", &DeleteParams::default()).await?;
    cloud.history.until(SOON, "group", "a deletion under way", has_request).await?;
    cloud.world.cloud_control.slow(Operation::Delete, 1);
    cloud.world.cloud_control.forget();
    cloud.history.until_deleted(SOON, "group").await?;
    ensure!(cloud.world.cloud_control.resources(GROUP).is_empty());
    ensure!(of(cloud.mutating_since(mark), "DeleteResource").len() == 2, "{}", cloud.world.aws.table());
    Ok(())
}

/// The recorded creation of an object that was sent long ago, with this id.
async fn record_long_ago(cloud: &Cloud, name: &str, id: Value) -> Result<()> {
    let scope = cloud.get("before").await?.data["status"]["creation"]["main"].clone();
    let creation = json!({
        "token": "0123456789abcdef0123456789abcdef", "attempt": 1, "startedAt": LONG_AGO, "since": LONG_AGO,
        "accountId": scope["accountId"], "region": scope["region"], "id": id,
    });
    let patch = json!({
        "metadata": {"finalizers": ["aws.konfig.io/finalizer"]},
        "status": {"creation": {"main": creation}},
    });
    let api = cloud.world.api(KIND);
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_life_of_the_token_only_what_can_be_found_goes_on() -> Result<()> {
    let (cloud, operator) = Cloud::new(&[]).await?;
    cloud.apply("before", public_key("before")).await?;
    cloud.until_ready("before").await?;
    drop(operator);
    for name in ["hidden", "leaving"] {
        cloud.apply(name, public_key(name)).await?;
    }
    cloud.apply("named", group("konfig/named", json!({}))).await?;
    record_long_ago(&cloud, "hidden", json!("request:gone")).await?;
    record_long_ago(&cloud, "named", json!("request:gone")).await?;
    record_long_ago(&cloud, "leaving", Value::Null).await?;
    cloud.world.api(KIND).delete("leaving", &DeleteParams::default()).await?;

    let mark = cloud.world.aws.mark();
    let _operator = cloud.world.operator(&[]).await?;
    // Its name leads to it, and AWS refuses a second of that name: it is made.
    cloud.until_ready("named").await?;
    ensure!(cloud.world.cloud_control.resources(GROUP).len() == 1);
    cloud.until_error("hidden", &[LONG_AGO, "AWS has forgotten its token", "external-id"]).await?;
    let parts = [LONG_AGO, "AWS has forgotten its token", "deletion-policy: abandon"];
    cloud.until_error("leaving", &parts).await?;
    throughout(Duration::from_secs(3), "no second one, and nothing let go", async || {
        let creates = of(cloud.mutating_since(mark), "CreateResource");
        ensure!(creates.len() == 1 && creates[0].params["TypeName"] == GROUP, "{}", Table(&creates));
        cloud.get("leaving").await.map(drop)
    })
    .await?;
    cloud.world.annotate(KIND, "leaving", "deletion-policy", json!("abandon")).await?;
    cloud.history.until_deleted(SOON, "leaving").await?;
    Ok(())
}

/// Kills the operator at the answer of the next create call.
async fn die_at_the_answer(cloud: &Cloud, operator: &mut Operator, name: &str) -> Result<()> {
    let id = operator.id();
    cloud.world.aws.on_call(move |stage, call| async move {
        if stage == Stage::After && call.operation == "CreateResource" {
            let killed = std::process::Command::new("kill").args(["-KILL", &id.to_string()]).status();
            assert!(killed.unwrap().success());
            return Verdict::Drop;
        }
        Verdict::Continue
    });
    cloud.apply(name, public_key(name)).await?;
    eventually(SOON, "the operator dead", async || {
        ensure!(operator.exited()?.is_some());
        Ok(())
    })
    .await?;
    cloud.world.aws.clear_hook();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_its_token_leads_to_leaves_no_orphan() -> Result<()> {
    let (cloud, mut operator) = Cloud::new(&[]).await?;
    cloud.world.cloud_control.slow(Operation::Create, 2);
    let mark = cloud.world.aws.mark();
    die_at_the_answer(&cloud, &mut operator, "orphan").await?;
    cloud.world.api(KIND).delete("orphan", &DeleteParams::default()).await?;
    // Longer than the settle window, after which what can be found would have been.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let operator = cloud.world.operator(&[]).await?;
    cloud.history.until_deleted(SOON, "orphan").await.inspect_err(|_| println!("{}", operator.log()))?;
    ensure_one_token(&cloud, mark, 2)?;
    ensure!(of(cloud.mutating_since(mark), "DeleteResource").len() == 1, "{}", cloud.world.aws.table());
    let left = cloud.world.cloud_control.resources(KEY);
    ensure!(left.is_empty(), "{left:?}");

    // That a repetition is refused says nothing of what the first one made.
    let mark = cloud.world.aws.mark();
    cloud.world.aws.fault(Match::op("CreateResource").times(1), Action::ResetAfter);
    let denied = Action::error(400, "AccessDeniedException", "You may not");
    cloud.world.aws.fault(Match::op("CreateResource").times(1), denied);
    cloud.apply("denied", public_key("denied")).await?;
    cloud
        .until_was_error("denied", &["AccessDeniedException", "permission cloudformation:CreateResource"])
        .await?;
    cloud.until_ready("denied").await?;
    ensure_one_token(&cloud, mark, 3)?;
    let made = cloud.world.cloud_control.resources(KEY);
    ensure!(made.len() == 1, "{made:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_aws_changes_under_conditions_only_is_named() -> Result<()> {
    let (cloud, _operator) = Cloud::new(&[]).await?;
    let pool = json!({"PoolName": "pool", "ScalingMode": "MANAGED"});
    cloud.apply("pool", json!({"typeName": "AWS::SES::DedicatedIpPool", "desiredState": pool})).await?;
    cloud.until_ready("pool").await?;
    for _ in 0..20 {
        cloud.world.cloud_control.fail_next(Operation::Update, "NotUpdatable", "The mode stays MANAGED");
    }
    let mark = cloud.world.aws.mark();
    cloud.change("pool", json!({"ScalingMode": "STANDARD"})).await?;
    let parts =
        ["NotUpdatable: The mode stays MANAGED", "changes /ScalingMode under conditions only: set it back"];
    cloud.until_error("pool", &parts).await?;
    cloud.change("pool", json!({"ScalingMode": "MANAGED"})).await?;
    cloud.until_ready("pool").await?;
    // Not hammered: the first retry comes after 30 seconds, which are 0.6 here.
    let updates = of(cloud.mutating_since(mark), "UpdateResource");
    ensure!((1..=3).contains(&updates.len()), "{}", Table(&updates));
    ensure!(cloud.held("AWS::SES::DedicatedIpPool", "pool")?["ScalingMode"] == "MANAGED");
    cloud.get("pool").await.map(drop).context("the object")
}
