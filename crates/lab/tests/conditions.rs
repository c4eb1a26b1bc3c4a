//! What an object says of itself: the reasons of Ready, and what kubectl and kstatus read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::history::Version;
use lab::proxy::aws::{Action, Match};
use lab::wait::throughout;
use lab::{History, World, cluster, eventually, kstatus, manifest};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

fn message(version: &Version) -> &str {
    version.condition("Ready", "message").unwrap_or_default()
}

/// What kstatus has to make of a version, from its conditions.
fn expected(version: &Version) -> &'static str {
    let meta = &version.object.metadata;
    let observed = version.field("/status/observedGeneration").and_then(Value::as_i64);
    let has = |kind| version.condition(kind, "status") == Some("True");
    if meta.deletion_timestamp.is_some() {
        "Terminating"
    } else if observed != meta.generation {
        "InProgress"
    } else if has("Stalled") {
        "Failed"
    } else if has("Ready") {
        "Current"
    } else {
        "InProgress"
    }
}

/// Checks every version that ever was: its conditions go together, and kstatus reads them right.
/// Returns the reasons with what kstatus made of them.
async fn readings(history: &History, kind: &str, name: &str) -> Result<BTreeSet<(String, String)>> {
    let versions: Vec<_> = history.versions(name).into_iter().filter(|version| !version.deleted).collect();
    let mut objects = Vec::new();
    for version in &versions {
        let mut object = version.object.clone();
        object.types =
            Some(kube::api::TypeMeta { api_version: "aws.konfig.io/v1alpha1".into(), kind: kind.into() });
        objects.push(object);
    }
    let read = kstatus::of(&objects).await?;
    let mut readings = BTreeSet::new();
    for (version, read) in versions.iter().zip(read) {
        ensure!(read.status == expected(version), "kstatus says {read:?} of {version:#?}");
        let Some(reason) = version.condition("Ready", "reason") else { continue };
        let flags = ["Ready", "Reconciling", "Stalled"].map(|kind| version.condition(kind, "status"));
        let fits = match reason {
            "Synced" => flags == [Some("True"), None, None],
            "Error" => {
                flags == [Some("False"), None, Some("True")] || flags == [Some("False"), Some("True"), None]
            }
            _ => flags == [Some("False"), Some("True"), None],
        };
        ensure!(fits, "{flags:?} do not go with {reason}: {version:#?}");
        readings.insert((reason.to_owned(), read.status));
    }
    Ok(readings)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reason_is_seen_and_every_state_read_right() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let (vpcs, subnets, gateways) =
        (world.history("VPC").await?, world.history("Subnet").await?, world.history("NatGateway").await?);
    world.apply(&manifest::all(&[manifest::vpc("main"), manifest::internet_gateway("main", "main")])).await?;
    world
        .apply(&manifest::all(&[manifest::subnet("main", "main", 1), manifest::nat_gateway("main", "main")]))
        .await?;

    // Nobody has looked at it yet.
    let fresh = world.object("VPC", "main").await?;
    ensure!(fresh.data["status"] == json!({ "observedGeneration": -1 }), "{:#}", fresh.data);
    ensure!(world.kstatus("VPC", "main").await? == "InProgress");

    world.aws.fault(Match::op("CreateVpc").times(2), Action::Throttle);
    world.aws.slow("CreateVpc", 2);
    world.aws.slow("CreateNatGateway", 3);
    world.aws.slow("DeleteNatGateway", 3);
    let mut operator = world.operator(&[]).await?;
    let wait = ["wait", "--for=condition=Ready", "--timeout=40s", "-n", &world.namespace, "konfig", "--all"];
    world.kubectl().run(&wait).await.inspect_err(|_| println!("{}", operator.log()))?;
    for kind in ["VPC", "Subnet", "NatGateway"] {
        ensure!(world.kstatus(kind, "main").await? == "Current", "{kind}");
    }
    ensure!(
        vpcs.reasons("main") == ["Creating", "Throttled", "Creating", "Synced"],
        "{:?}",
        vpcs.reasons("main")
    );
    ensure!(
        subnets.reasons("main") == ["DependencyNotReady", "Creating", "Synced"],
        "{:?}",
        subnets.reasons("main")
    );

    changes_show(&world, &vpcs).await?;
    refusals_show(&world, &vpcs).await?;

    // Deleted: the NAT gateway takes its time, the subnet waits for it, the VPC for the subnet.
    let args =
        ["delete", "--wait=false", "-n", &world.namespace, "vpc/main", "subnet/main", "natgateway/main"];
    world.kubectl().run(&args).await?;
    eventually(SOON, "the VPC to be blocked", async || {
        let blocked = vpcs.versions("main").pop().context("no VPC")?;
        ensure!(
            blocked.condition("Ready", "reason") == Some("Error") || blocked.deleted,
            "{:#?}",
            vpcs.reasons("main")
        );
        Ok(())
    })
    .await?;
    world
        .kubectl()
        .run(&["delete", "igw/main", "-n", &world.namespace, "--timeout=40s"])
        .await
        .inspect_err(|_| println!("{}", operator.log()))?;
    let gone = ["wait", "--for=delete", "--timeout=40s", "-n", &world.namespace, "vpc/main"];
    world.kubectl().run(&gone).await.inspect_err(|_| println!("{}", operator.log()))?;

    let mut seen = readings(&vpcs, "VPC", "main").await?;
    seen.extend(readings(&subnets, "Subnet", "main").await?);
    seen.extend(readings(&gateways, "NatGateway", "main").await?);
    for wanted in [
        ("Synced", "Current"),
        ("Creating", "InProgress"),
        ("Updating", "InProgress"),
        ("Deleting", "Terminating"),
        ("DependencyNotReady", "InProgress"),
        ("Error", "Failed"),
        ("Error", "Terminating"),
        ("Throttled", "InProgress"),
    ] {
        let wanted = (wanted.0.to_owned(), wanted.1.to_owned());
        ensure!(seen.contains(&wanted), "{wanted:?} is not among {seen:#?}");
    }
    ensure!(operator.term(SOON).await?.code() == Some(0), "no clean end");
    Ok(())
}

/// A changed spec is observed at its generation, and its update shows.
async fn changes_show(world: &World, vpcs: &History) -> Result<()> {
    let before = vpcs.until_ready(SOON, "main").await?;
    let changed = world.merge("VPC", "main", json!({ "spec": { "enableDnsHostnames": true } })).await?;
    let after = vpcs.until_ready_after(SOON, &changed).await?;
    ensure!(
        after.field("/status/observedGeneration").and_then(Value::as_i64) == changed.metadata.generation,
        "{after:#?}"
    );
    ensure!(after.condition("Ready", "lastTransitionTime").is_some(), "{after:#?}");
    let synced =
        |version: &Version| version.field("/status/lastSyncTime").and_then(Value::as_str).map(str::to_owned);
    ensure!(synced(&after) >= synced(&before) && synced(&before).is_some(), "{after:#?}");
    ensure!(
        vpcs.reasons("main")[4..] == ["Updating".to_owned(), "Synced".to_owned()],
        "{:?}",
        vpcs.reasons("main")
    );
    Ok(())
}

/// AWS's refusal is told in AWS's words, once, and the next change of the spec is tried at once.
async fn refusals_show(world: &World, vpcs: &History) -> Result<()> {
    let refusal = Action::error(403, "UnauthorizedOperation", "You are not authorized to do this.");
    let denied = world.aws.fault(Match::op("ModifyVpcAttribute"), refusal);
    world.merge("VPC", "main", json!({ "spec": { "enableDnsHostnames": false } })).await?;
    let failed = vpcs.until_reason(SOON, "main", "Error").await?;
    let text = message(&failed);
    for part in [
        "ModifyVpcAttribute: UnauthorizedOperation: You are not authorized to do this.",
        "the credentials need the permission ec2:ModifyVpcAttribute",
        "request id ",
    ] {
        ensure!(text.contains(part), "{text:?} lacks {part:?}");
    }
    let calls = world.aws.calls();
    let refused =
        calls.iter().find(|call| call.error_code.is_some() && call.operation == "ModifyVpcAttribute");
    let request_id = refused.and_then(|call| call.request_id.clone()).context("no request id")?;
    ensure!(text.contains(&request_id), "{text:?} lacks {request_id}");
    ensure!(world.kstatus("VPC", "main").await? == "Failed");

    // Retried, but told once.
    ensure!(denied.reached(3, SOON).await, "not retried");
    let errors = world.events("VPC", "main").await?.into_iter().filter(|event| event.reason == "Error");
    let errors: Vec<_> = errors.collect();
    ensure!(errors.len() == 1 && errors[0].times == 1 && errors[0].warning, "{errors:#?}");

    denied.release();
    vpcs.until_ready(SOON, "main").await?;
    Ok(())
}

/// With every timer at an hour: what AWS refused is tried again because the spec has changed.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_tried_at_once_when_the_spec_changes() -> Result<()> {
    let (world, operator) = World::moto(&["--drift-interval=1h", "--time-scale=1000"]).await?;
    let history = world.history("IAMRole").await?;
    let refusal = Action::error(403, "AccessDenied", "User is not authorized to perform: iam:CreateRole");
    let denied = world.aws.fault(Match::op("CreateRole"), refusal);
    world.apply(&manifest::role("denied")).await?;
    let failed = history.until_reason(SOON, "denied", "Error").await?;
    ensure!(failed.condition("Stalled", "status") == Some("True"), "{failed:#?}");
    ensure!(
        message(&failed).starts_with(
            "CreateRole: AccessDenied: User is not authorized to perform: iam:CreateRole (request id"
        ),
        "{}",
        message(&failed)
    );

    // Slowly: not again by itself for now, nor for an annotation that means nothing.
    world.merge("IAMRole", "denied", json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    throughout(Duration::from_secs(2), "no second try", async || {
        ensure!(denied.hits() == 1, "{}", world.aws.table());
        Ok(())
    })
    .await?;

    denied.release();
    world.merge("IAMRole", "denied", json!({ "spec": { "description": "better" } })).await?;
    history.until_ready(SOON, "denied").await.inspect_err(|_| println!("{}", operator.log()))?;
    ensure!(world.aws.count("CreateRole") == 2, "{}", world.aws.table());
    Ok(())
}

/// What heals by itself is an error meanwhile, not a failure, and ends without anybody's help.
#[tokio::test(flavor = "multi_thread")]
async fn what_heals_by_itself_does() -> Result<()> {
    // IAM's two minutes become twelve seconds.
    let (world, operator) = World::moto(&["--time-scale=0.1"]).await?;
    let (vpcs, subnets, roles) =
        (world.history("VPC").await?, world.history("Subnet").await?, world.history("IAMRole").await?);

    // IAM's own delays are waited for before they count.
    let unknown = Action::error(400, "MalformedPolicyDocument", "Invalid principal in policy: \"AWS\":\"x\"");
    world.aws.fault(Match::op("CreateRole").param("RoleName", "new").times(3), unknown.clone());
    world.aws.fault(Match::op("CreateRole").param("RoleName", "never"), unknown);
    // AWS's failures, and a throttle that lasts.
    world.aws.fault(Match::op("CreateSubnet").times(2), Action::ServerError(500));
    world.aws.fault(Match::op("CreateVpc").times(4), Action::Throttle);
    world.apply(&manifest::all(&[manifest::role("new"), manifest::role("never")])).await?;
    world.apply(&manifest::all(&[manifest::vpc("main"), manifest::subnet("main", "main", 1)])).await?;

    roles.until_ready(SOON, "new").await.inspect_err(|_| println!("{}", operator.log()))?;
    ensure!(roles.reasons("new") == ["Creating", "Synced"], "{:?}", roles.reasons("new"));
    let never = roles.until_reason(SOON, "never", "Error").await?;
    ensure!(message(&never).contains("Invalid principal"), "{}", message(&never));
    ensure!(roles.reasons("never") == ["Creating", "Error"], "{:?}", roles.reasons("never"));

    vpcs.until_ready(SOON, "main").await?;
    subnets.until_ready(SOON, "main").await.inspect_err(|_| println!("{}", operator.log()))?;
    let failing = subnets.versions("main");
    let stalled = failing.iter().filter(|version| version.condition("Stalled", "status").is_some());
    ensure!(stalled.count() == 0, "{:?}", subnets.reasons("main"));
    let made = world.boto.call("ec2", "describe_subnets", json!({})).await?;
    let ours =
        made["Subnets"].as_array().unwrap().iter().filter(|subnet| subnet["CidrBlock"] == "10.0.1.0/24");
    ensure!(ours.count() == 1, "{made}");
    ensure!(world.aws.count("CreateVpc") == 5, "{}", world.aws.table());

    // Credentials that expire come back without anybody's help, and without a change of the spec.
    let expired = Action::error(400, "RequestExpired", "Request has expired.");
    let expired = world.aws.fault(Match::op("DescribeVpcs"), expired);
    world.observe("VPC", "main", "1").await?;
    let failed = vpcs.until_reason(SOON, "main", "Error").await?;
    ensure!(failed.condition("Reconciling", "status") == Some("True"), "{failed:#?}");
    ensure!(message(&failed).contains("DescribeVpcs: RequestExpired"), "{}", message(&failed));
    expired.release();
    vpcs.until_ready(SOON, "main").await?;
    Ok(())
}

/// What the schema lets through and no kind can read is a clear condition, and harms nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_spec_is_a_condition_of_its_own_object_alone() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    let subnets = world.history("Subnet").await?;
    world.apply(&manifest::all(&[manifest::vpc("main"), manifest::subnet("good", "main", 1)])).await?;
    world.apply(&manifest::subnet("broken", "main", 2)).await?;
    subnets.until_ready(SOON, "good").await?;
    subnets.until_ready(SOON, "broken").await?;

    // A CRD that somebody has opened.
    let open = json!([{
        "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    }]);
    let open = open.to_string();
    let args = ["patch", "crd", "subnets.aws.konfig.io", "--type=json", "-p", &open];
    world.kubectl().run(&args).await?;
    let mark = world.aws.mark();
    let api = cluster::api(&world.client, &world.namespace, "Subnet");
    eventually(SOON, "the open schema to be served", async || {
        let patch = kube::api::Patch::Merge(json!({ "spec": { "cidrBlock": 7, "vpcRef": { "name": 3 } } }));
        api.patch("broken", &Default::default(), &patch).await?;
        Ok(())
    })
    .await?;
    let failed = subnets.until_reason(SOON, "broken", "Error").await?;
    ensure!(failed.condition("Stalled", "status") == Some("True"), "{failed:#?}");
    ensure!(
        message(&failed).contains("cidrBlock") || message(&failed).contains("spec"),
        "{}",
        message(&failed)
    );
    ensure!(world.changes_since(mark).is_empty(), "{}", world.aws.table());

    world.observe("Subnet", "good", "1").await?;
    subnets.until_ready(SOON, "good").await?;

    // Deleting it needs no valid spec.
    world.kubectl().run(&["delete", "subnet/broken", "-n", &world.namespace, "--timeout=30s"]).await?;
    ensure!(world.changes_since(mark) == ["DeleteSubnet"], "{}", world.aws.table());
    Ok(())
}
