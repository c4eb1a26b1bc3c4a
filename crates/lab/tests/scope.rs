//! Accounts and regions, and what holds for all that is made in them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::World;
use lab::aws::REGION;
use lab::operator::{Operator, OperatorConfig};
use lab::proxy::aws::{Action, Match, Table};
use lab::subject::{TRUST, manifest, manifests};
use lab::wait::throughout;
use serde_json::json;

const A_WHILE: Duration = Duration::from_secs(2);
const READY_WITHIN: Duration = Duration::from_secs(60);
/// moto's, unless told otherwise.
const ACCOUNT: &str = "123456789012";
const OTHER_ACCOUNT: &str = "210987654321";
const OTHER_REGION: &str = "eu-central-1";

fn vpc(name: &str) -> String {
    manifest("VPC", name, &[], json!({"cidrBlock": "10.0.0.0/16"}))
}

fn role(name: &str) -> String {
    manifest("IAMRole", name, &[], json!({"roleName": name, "assumeRolePolicyDocument": TRUST}))
}

async fn start(config: OperatorConfig) -> Result<Operator> {
    let mut operator = Operator::spawn(config)?;
    operator.wait_ready(READY_WITHIN).await?;
    Ok(operator)
}

/// An operator whose credentials lead to another account.
async fn of_other_account(world: &World) -> Result<OperatorConfig> {
    let role = format!("arn:aws:iam::{OTHER_ACCOUNT}:role/operator");
    let params = json!({"RoleArn": role, "RoleSessionName": "operator"});
    let answer = world.boto.call("sts", "assume_role", params).await?;
    let text = |field: &str| answer["Credentials"][field].as_str().unwrap_or_default().to_owned();
    Ok(world
        .config
        .clone()
        .env("AWS_ACCESS_KEY_ID", text("AccessKeyId"))
        .env("AWS_SECRET_ACCESS_KEY", text("SecretAccessKey"))
        .env("AWS_SESSION_TOKEN", text("SessionToken")))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_somewhere_stays_there() -> Result<()> {
    let (world, mut operator) = World::moto(&[]).await?;
    recorded_with_the_intent(&world).await.context("recorded with the intent")?;
    world.apply(&manifests(&[vpc("a"), vpc("b"), vpc("c"), vpc("d"), role("e")])).await?;
    for (kind, name) in [("VPC", "a"), ("VPC", "b"), ("VPC", "c"), ("VPC", "d"), ("IAMRole", "e")] {
        let subject = world.subject(kind, name);
        subject.ready().await?;
        ensure!(subject.status("/awsProvider/accountId").await? == ACCOUNT);
        ensure!(subject.status("/awsProvider/region").await? == REGION);
    }
    // An intent whose outcome nobody knows binds as much as an id.
    let held = world.aws.fault(Match::op("CreateVpc"), Action::Hold);
    world.apply(&vpc("begun")).await?;
    ensure!(held.reached(1, READY_WITHIN).await, "no create");
    operator.kill()?;
    world.aws.clear_faults();

    let config = OperatorConfig { region: OTHER_REGION.to_owned(), ..world.config.clone() };
    let mut operator = start(config).await?;
    another_region(&world)
        .await
        .context("another region")
        .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    operator.kill()?;

    let mut operator = start(of_other_account(&world).await?).await?;
    another_account(&world)
        .await
        .context("another account")
        .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    operator.kill()?;

    let operator = world.operator(&[]).await?;
    back_again(&world)
        .await
        .context("back again")
        .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

async fn recorded_with_the_intent(world: &World) -> Result<()> {
    let held = world.aws.fault(Match::op("CreateVpc"), Action::Hold);
    world.apply(&vpc("first")).await?;
    let subject = world.subject("VPC", "first");
    ensure!(held.reached(1, READY_WITHIN).await, "no create");
    ensure!(subject.status("/creation/main/accountId").await? == ACCOUNT);
    ensure!(subject.status("/creation/main/region").await? == REGION);
    ensure!(subject.status("/creation/main/id").await.is_err(), "the call has not gone out yet");
    held.release();
    subject.ready().await?;
    ensure!(subject.status("/creation/main/id").await? == subject.status("/vpcId").await?);
    subject.delete().await?;
    subject.gone().await
}

async fn another_region(world: &World) -> Result<()> {
    let mark = world.aws.mark();
    for (kind, name) in [("VPC", "a"), ("VPC", "b"), ("VPC", "begun"), ("IAMRole", "e")] {
        world.subject(kind, name).says("Error", &[ACCOUNT, REGION, OTHER_REGION]).await?;
    }
    world.subject("VPC", "b").change(json!({"tags": {"moved": "yes"}})).await?;
    throughout(A_WHILE, "no call in either region", async || {
        let calls = world.aws.calls_since(mark);
        let foreign: Vec<_> = calls.into_iter().filter(|call| call.service != "sts").collect();
        ensure!(foreign.is_empty(), "{}", Table(&foreign));
        Ok(())
    })
    .await?;
    // What is new is made here.
    world.apply(&vpc("here")).await?;
    let here = world.subject("VPC", "here");
    here.ready().await?;
    ensure!(here.status("/awsProvider/region").await? == OTHER_REGION);
    let id = here.status("/vpcId").await?;
    ensure!(world.boto.in_region(OTHER_REGION).has_vpc(&id).await?);

    // Deleted where it was made.
    let a = world.subject("VPC", "a");
    let id = a.status("/vpcId").await?;
    a.delete().await?;
    a.gone().await?;
    let deletes = world.changes_of(mark, &id);
    ensure!(deletes.len() == 1 && deletes[0].region == REGION, "{}", Table(&deletes));
    ensure!(!world.boto.has_vpc(&id).await?);
    here.delete().await?;
    here.gone().await
}

async fn another_account(world: &World) -> Result<()> {
    let mark = world.aws.mark();
    let (b, c) = (world.subject("VPC", "b"), world.subject("VPC", "c"));
    b.says("Error", &[ACCOUNT, OTHER_ACCOUNT]).await?;
    c.delete().await?;
    c.says("Error", &[ACCOUNT, OTHER_ACCOUNT, "abandon"]).await?;
    // What its message advises.
    let d = world.subject("VPC", "d");
    let id = d.status("/vpcId").await?;
    d.delete().await?;
    d.says("Error", &[ACCOUNT, OTHER_ACCOUNT]).await?;
    d.annotate("deletion-policy", json!("abandon")).await?;
    d.gone().await?;
    throughout(A_WHILE, "no call in either account", async || {
        let calls = world.aws.calls_since(mark);
        let foreign: Vec<_> = calls.into_iter().filter(|call| call.service != "sts").collect();
        ensure!(foreign.is_empty(), "{}", Table(&foreign));
        Ok(())
    })
    .await?;
    ensure!(world.boto.has_vpc(&id).await?, "deleted from another account");
    Ok(())
}

async fn back_again(world: &World) -> Result<()> {
    let (b, c) = (world.subject("VPC", "b"), world.subject("VPC", "c"));
    c.gone().await?;
    b.ready().await?;
    let id = b.status("/vpcId").await?;
    ensure!(world.boto.tags(&id).await?["moved"] == "yes");
    let begun = world.subject("VPC", "begun");
    begun.ready().await?;
    let filter = json!({"Filters": [{"Name": "tag:konfig.io/owner", "Values": [begun.owner()]}]});
    let found = world.boto.call("ec2", "describe_vpcs", filter).await?;
    ensure!(found["Vpcs"].as_array().map(Vec::len) == Some(1), "{found}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_and_providers_hold_for_all() -> Result<()> {
    let (world, operator) = World::moto(&["--default-tags=team=platform,stage=lab"]).await?;
    let ends = async {
        tokio::try_join!(async { default_tags(&world).await.context("default tags") }, async {
            providers_to_come(&world).await.context("providerRef")
        },)
    };
    ends.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    Ok(())
}

async fn default_tags(world: &World) -> Result<()> {
    let tags = json!({"team": "net", "own": "1"});
    world
        .apply(&manifests(&[
            manifest("VPC", "net", &[], json!({"cidrBlock": "10.0.0.0/16", "tags": tags})),
            manifest(
                "IAMRole",
                "app",
                &[],
                json!({"roleName": "app", "assumeRolePolicyDocument": TRUST, "tags": tags}),
            ),
        ]))
        .await?;
    let (net, app) = (world.subject("VPC", "net"), world.subject("IAMRole", "app"));
    net.ready().await?;
    app.ready().await?;
    let id = net.status("/vpcId").await?;
    world.boto.tag(&id, &[("foreign", "stays")]).await?;
    let params = json!({"RoleName": "app", "Tags": [{"Key": "foreign", "Value": "stays"}]});
    world.boto.call("iam", "tag_role", params).await?;

    let expect = async |expected: &[(&str, &str)]| {
        for tags in [world.boto.tags(&id).await?, world.boto.role_tags("app").await?] {
            let theirs = tags.iter().filter(|(key, _)| !key.starts_with("konfig.io/"));
            let theirs: Vec<_> = theirs.map(|(key, value)| (key.as_str(), value.as_str())).collect();
            ensure!(theirs == expected, "{theirs:?}, not {expected:?}");
        }
        anyhow::Ok(())
    };
    // The spec's own win.
    expect(&[("foreign", "stays"), ("own", "1"), ("stage", "lab"), ("team", "net")]).await?;
    ensure!(world.aws.count("CreateTags") + world.aws.count("TagRole") == 0, "{}", world.aws.table());
    // What leaves the spec goes, or back to the operator's; others' stay.
    for (subject, change) in
        [(&net, json!({"tags": {"team": null, "own": null}})), (&app, json!({"tags": null}))]
    {
        subject.change(change).await?;
        subject.ready().await?;
    }
    expect(&[("foreign", "stays"), ("stage", "lab"), ("team", "platform")]).await
}

/// Until providers exist, a reference to one is never taken for none.
async fn providers_to_come(world: &World) -> Result<()> {
    let provider = json!({"name": "prod"});
    let spec = json!({"cidrBlock": "10.1.0.0/16", "providerRef": provider});
    world.apply(&manifests(&[manifest("VPC", "elsewhere", &[], spec), vpc("moves")])).await?;
    let (elsewhere, moves) = (world.subject("VPC", "elsewhere"), world.subject("VPC", "moves"));
    elsewhere.says("DependencyNotReady", &["AWSProvider", "prod"]).await?;
    let uid = elsewhere.uid().await?;
    throughout(A_WHILE, "no call", async || {
        ensure!(world.calls_about(0, &uid).is_empty());
        Ok(())
    })
    .await?;
    elsewhere.change(json!({"providerRef": null})).await?;
    elsewhere.ready().await?;

    moves.ready().await?;
    let id = moves.status("/vpcId").await?;
    let mark = world.aws.mark();
    moves.change(json!({"providerRef": provider, "tags": {"a": "b"}})).await?;
    moves.says("DependencyNotReady", &["AWSProvider", "prod"]).await?;
    throughout(A_WHILE, "no call", async || {
        ensure!(world.calls_about(mark, &id).is_empty());
        Ok(())
    })
    .await?;
    // What is recorded is all that a deletion needs.
    moves.delete().await?;
    moves.gone().await?;
    ensure!(!world.boto.has_vpc(&id).await?);
    Ok(())
}
