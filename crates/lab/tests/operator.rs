//! The operator as a process: what it watches, tells and counts, and how it ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Match};
use lab::{Operator, World, eventually, manifest, paths};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

fn crd(plural: &str) -> Result<String> {
    let path = paths::repository(paths::CRDS).join(format!("{plural}.yaml"));
    Ok(path.to_str().context("a path that is no text")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_come_and_go_with_their_crds() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let name = "natgateways.aws.konfig.io";
    world.kubectl().run(&["delete", "crd", name, "iamroles.aws.konfig.io"]).await?;
    let mut operator = world.operator(&[]).await?;
    let subnets = world.history("Subnet").await?;
    let stack = [
        manifest::vpc("main"),
        manifest::internet_gateway("main", "main"),
        manifest::subnet("main", "main", 1),
    ];
    world.apply(&manifest::all(&stack)).await?;
    subnets.until_ready(SOON, "main").await.inspect_err(|_| println!("{}", operator.log()))?;

    // Twice: a kind that was there before is no other than a new one.
    for _ in 0..2 {
        world.kubectl().run(&["apply", "--server-side", "-f", &crd("natgateways")?]).await?;
        world.kubectl().run(&["wait", "--for=condition=Established", "crd", name]).await?;
        world.apply(&manifest::nat_gateway("main", "main")).await?;
        let ready =
            ["wait", "--for=condition=Ready", "--timeout=30s", "-n", &world.namespace, "natgateway/main"];
        world.kubectl().run(&ready).await.inspect_err(|_| println!("{}", operator.log()))?;
        world.kubectl().run(&["delete", "natgateway/main", "-n", &world.namespace, "--timeout=30s"]).await?;
        world.kubectl().run(&["delete", "crd", name, "--timeout=30s"]).await?;
        eventually(SOON, "the watch to end", async || {
            ensure!(operator.log().contains("no longer watching"));
            Ok(())
        })
        .await?;
    }
    let changed = world.merge("Subnet", "main", json!({ "spec": { "mapPublicIpOnLaunch": true } })).await?;
    subnets.until_ready_after(SOON, &changed).await?;
    ensure!(operator.term(SOON).await?.code() == Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_tells_what_it_does() -> Result<()> {
    let (world, mut operator) = World::moto(&["--log-format=json", "--drift-interval=1h"]).await?;
    ensure!(operator.health("/healthz").await? == "ok" && operator.health("/readyz").await? == "ok");
    let vpcs = world.history("VPC").await?;
    world.apply(&manifest::vpc("main")).await?;
    vpcs.until_ready(SOON, "main").await?;
    let id = world.status("VPC", "main", "vpcId").await?;

    world
        .aws
        .fault(Match::op("ModifyVpcAttribute").times(3), Action::error(400, "InvalidParameterValue", "no"));
    world
        .merge("VPC", "main", json!({ "spec": { "enableDnsHostnames": true, "tags": { "a": "b" } } }))
        .await?;
    vpcs.until_reason(SOON, "main", "Error").await?;
    vpcs.until_ready(SOON, "main").await?;
    let off = json!({ "VpcId": id, "EnableDnsHostnames": { "Value": false } });
    world.boto.call("ec2", "modify_vpc_attribute", off).await?;
    world.observe("VPC", "main", "drift").await?;
    eventually(SOON, "the correction", async || {
        ensure!(operator.metric("konfig_drift_corrections_total", &[("kind", "VPC")]).await? == 1.0);
        Ok(())
    })
    .await?;
    metrics_agree_with_the_calls(&world, &operator).await?;
    world.kubectl().run(&["delete", "vpc/main", "-n", &world.namespace, "--timeout=30s"]).await?;
    events_tell_each_once(&world, &id).await?;
    lines_are_json(&operator)?;
    a_call_under_way_is_recorded(&world, &mut operator).await
}

async fn metrics_agree_with_the_calls(world: &World, operator: &Operator) -> Result<()> {
    let mut calls: BTreeMap<(String, bool), f64> = BTreeMap::new();
    for call in world.aws.calls() {
        *calls.entry((call.operation.clone(), call.error_code.is_none())).or_default() += 1.0;
    }
    for ((operation, ok), count) in &calls {
        let all = operator.metric("konfig_aws_calls_total", &[("operation", operation)]).await?;
        let fine = [("operation", operation.as_str()), ("outcome", "ok")];
        let fine = operator.metric("konfig_aws_calls_total", &fine).await?;
        let counted = if *ok { fine } else { all - fine };
        ensure!(counted == *count, "{operation} ok={ok}: counted {counted}, seen {count}");
    }
    let invalid = [("service", "EC2"), ("operation", "ModifyVpcAttribute"), ("outcome", "invalid")];
    ensure!(
        operator.metric("konfig_aws_calls_total", &invalid).await? == 3.0,
        "{}",
        operator.metrics().await?
    );
    for (name, labels, least) in [
        ("konfig_aws_call_duration_seconds_count", [("operation", "CreateVpc")], 1.0),
        ("konfig_reconciles_total", [("outcome", "Synced")], 2.0),
        ("konfig_reconciles_total", [("outcome", "Error")], 1.0),
        ("konfig_reconcile_duration_seconds_count", [("kind", "VPC")], 3.0),
        ("konfig_time_to_ready_seconds_count", [("kind", "VPC")], 1.0),
    ] {
        let value = operator.metric(name, &labels).await?;
        ensure!(value >= least, "{name} {labels:?} is {value}");
    }
    ensure!(operator.metric("konfig_time_to_ready_seconds_count", &[]).await? == 1.0);
    ensure!(operator.metric("konfig_queue_depth", &[("kind", "VPC")]).await? == 0.0);
    ensure!(operator.metrics().await?.contains("konfig_queue_depth{kind=\"VPC\"}"));
    Ok(())
}

async fn events_tell_each_once(world: &World, id: &str) -> Result<()> {
    let wanted = [
        ("Created", id, false),
        ("Error", "ModifyVpcAttribute: InvalidParameterValue: no", true),
        ("Updated", "/enableDnsHostnames", false),
        ("DriftCorrected", "/enableDnsHostnames", false),
        ("Deleted", "", false),
    ];
    eventually(SOON, "the events", async || {
        let events = world.events("VPC", "main").await?;
        ensure!(events.len() == wanted.len(), "{events:#?}");
        for (event, (reason, note, warning)) in events.iter().zip(wanted) {
            let fits = event.reason == reason && event.note.contains(note) && event.warning == warning;
            ensure!(fits && event.times == 1, "{event:#?} is not {reason} {note}");
        }
        Ok(())
    })
    .await
}

fn lines_are_json(operator: &Operator) -> Result<()> {
    let lines = operator.log().lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let failed =
        lines.iter().find(|line| line["level"] == "WARN" && line["operation"] == "ModifyVpcAttribute");
    let failed = failed.context("no line for the failed call")?;
    ensure!(failed["code"] == "InvalidParameterValue", "{failed}");
    ensure!(failed["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{failed}");
    let object = (&failed["span"]["kind"], &failed["span"]["object"]);
    ensure!(object == (&json!("VPC"), &json!("main")) && failed["span"]["namespace"].is_string(), "{failed}");
    Ok(())
}

/// SIGTERM lets a running call finish, records what it made, and ends well.
async fn a_call_under_way_is_recorded(world: &World, operator: &mut Operator) -> Result<()> {
    let held = world.aws.fault(Match::op("CreateVpc"), Action::Hold);
    world.apply(&manifest::vpc("late")).await?;
    ensure!(held.reached(1, SOON).await);
    let release = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        held.release();
    };
    let (ended, ()) = tokio::join!(operator.term(SOON), release);
    ensure!(ended?.code() == Some(0), "{}", operator.log());
    let made = world.object("VPC", "late").await?.data.pointer("/status/creation/main/id").cloned();
    let made = made.context("the id is not in the status")?;
    world.boto.call("ec2", "describe_vpcs", json!({ "VpcIds": [made] })).await?;
    Ok(())
}
