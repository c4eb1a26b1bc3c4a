//! Bad specs, kind by kind, from `e2e/hostile`: refused at admission in words that say what to write
//! instead, or taken and clearly judged; never an effect in AWS that was not announced.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod data;
mod expand;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use data::{Hostile, Taken};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use lab::emulator::Flavor;
use lab::subject::{condition, manifest};
use lab::wait::throughout;
use lab::{Operator, World, cluster, eventually};
use serde_json::Value;

/// Long enough for several attempts: backoff is 50 times faster than in production.
const A_WHILE: Duration = Duration::from_secs(3);
/// How often one row may ask AWS for one change in that time.
const ATTEMPTS: usize = 12;

#[test]
fn every_kind_has_a_file() -> Result<()> {
    let kinds: BTreeSet<_> = data::all()?.into_iter().map(|hostile| hostile.kind).collect();
    let crds: BTreeSet<_> = data::kinds()?.into_iter().collect();
    assert_eq!(kinds, crds);
    Ok(())
}

/// What the API server says to a spec; nothing is stored.
async fn admission(client: &Client, namespace: &str, kind: &str, spec: &Value) -> Result<(), String> {
    let object: Value = serde_json::from_str(&manifest(kind, "bad", &[], spec.clone())).unwrap();
    let params = PatchParams::apply("test").validation_strict().force();
    let params = PatchParams { dry_run: true, ..params };
    let answer = cluster::api(client, namespace, kind).patch("bad", &params, &Patch::Apply(object)).await;
    answer.map(drop).map_err(|error| match error {
        // To a server-side apply of a value of the wrong type it says 500.
        kube::Error::Api(status) => status.message,
        other => panic!("{kind} {spec}: no refusal but {other}"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_says_what_to_write_instead() -> Result<()> {
    let client = cluster::shared().await?.admin_client().await?;
    let namespace = cluster::namespace(&client, "hostile").await?;
    let mut wrong = Vec::new();
    for hostile in data::all()? {
        let kind = &hostile.kind;
        let fine = admission(&client, &namespace, kind, &hostile.base).await;
        ensure!(fine.is_ok(), "the base of {kind}: {fine:?}");
        for refused in &hostile.refused {
            let shown: String = refused.spec.to_string().chars().take(300).collect();
            match admission(&client, &namespace, kind, &hostile.spec(&refused.spec)).await {
                Ok(()) => wrong.push(format!("{kind} {shown} was taken")),
                Err(message) if !message.contains(&refused.says) => {
                    let message: String = message.chars().take(600).collect();
                    wrong
                        .push(format!("{kind} {shown}\n  says      {message}\n  should be {}", refused.says));
                }
                // A raw expression tells nobody what to write.
                Err(message) if message.contains("should match '") => {
                    wrong.push(format!("{kind} {shown}: {message}"));
                }
                Err(_) => {}
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_is_judged_on_moto() -> Result<()> {
    judged(Flavor::Moto).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_is_judged_on_ministack() -> Result<()> {
    judged(Flavor::Ministack).await
}

async fn judged(flavor: Flavor) -> Result<()> {
    let mut world = World::prepare(flavor).await?;
    let mut operator = world.operator(&[]).await?;
    let mut wrong = Vec::new();
    for hostile in data::all()?.into_iter().filter(|hostile| Flavor::from(hostile.emulator) == flavor) {
        world.namespace = cluster::namespace(&world.client, &"n".repeat(57)).await?;
        let namespace = &world.namespace;
        ensure!(namespace.len() == 63, "{namespace}");
        wrong.extend(of_one_kind(&world, &hostile).await.with_context(|| hostile.kind.clone())?);
        ensure_well(&mut operator)?;
    }
    ensure!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), world.aws.table());
    Ok(())
}

fn ensure_well(operator: &mut Operator) -> Result<()> {
    ensure!(operator.exited()?.is_none(), "the operator ended:\n{}", operator.log());
    ensure!(!operator.log().contains("panicked at"), "{}", operator.log());
    Ok(())
}

/// Applies all rows of a kind, waits for what is said of each, and takes them away.
async fn of_one_kind(world: &World, hostile: &Hostile) -> Result<Vec<String>> {
    world.aws.clear();
    let kind = &hostile.kind;
    for object in &hostile.prerequisites {
        world.apply(&object.to_string()).await?;
    }
    for (kind, name) in hostile.required() {
        world.subject(kind, name).ready().await?;
    }
    for taken in &hostile.taken {
        let spec = hostile.spec(&taken.spec);
        world.apply(&manifest(kind, &taken.name, &[], spec)).await.with_context(|| taken.name.clone())?;
    }
    let mut wrong = Vec::new();
    for taken in &hostile.taken {
        if let Err(error) = said(world, kind, taken).await {
            wrong.push(format!("{kind} {}: {error:#}", taken.name));
        }
    }
    let watched = throughout(A_WHILE, "no effect in AWS", async || calls(world, hostile).await).await;
    wrong.extend(watched.err().map(|error| format!("{kind}: {error:#}")));
    for taken in &hostile.taken {
        world.subject(kind, &taken.name).delete().await?;
    }
    for taken in &hostile.taken {
        let gone = world.subject(kind, &taken.name).gone().await;
        wrong.extend(gone.err().map(|error| format!("{kind} {}: {error:#}", taken.name)));
    }
    Ok(wrong)
}

async fn said(world: &World, kind: &str, taken: &Taken) -> Result<()> {
    eventually(Duration::from_secs(30), "what is to be said", async || {
        let object: DynamicObject = world.api(kind).get(&taken.name).await?;
        let ready = condition(&object, "Ready");
        let message = ready["message"].as_str().unwrap_or_default();
        let parts = taken.says.iter().all(|part| message.contains(part.as_str()));
        let expected = (taken.reason.as_str(), taken.says.as_slice());
        ensure!(ready["reason"] == taken.reason && parts, "should be {expected:?}, but it is {ready}");
        ensure!(message.len() <= 1024, "{} bytes", message.len());
        Ok(())
    })
    .await
}

/// AWS was asked for what the rows announce, not over and over, and did none of it.
async fn calls(world: &World, hostile: &Hostile) -> Result<()> {
    for taken in hostile.taken.iter().filter(|taken| taken.reason != "Synced") {
        let uid = world.subject(&hostile.kind, &taken.name).uid().await?;
        let changes = world.changes_of(0, &uid);
        for operation in &taken.calls {
            let times = changes.iter().filter(|call| call.operation == *operation).count();
            ensure!((1..=ATTEMPTS).contains(&times), "{}: {times} calls of {operation}", taken.name);
        }
        let other = changes.iter().find(|call| !taken.calls.contains(&call.operation));
        ensure!(other.is_none(), "{}: {other:?}", taken.name);
    }
    Ok(())
}

/// What is nested deeper than can be read would else hide every object of its kind.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_deep_to_be_read_is_no_harm_to_others() -> Result<()> {
    let (world, operator) = World::moto(&[]).await?;
    let group = |name: &str, deep: &str| {
        format!(
            r#"{{"apiVersion": "aws.konfig.io/v1alpha1", "kind": "CloudControlResource", "metadata": {{"name": "{name}"}},
            "spec": {{"typeName": "AWS::Logs::LogGroup", "desiredState": {{"LogGroupName": "{name}", "Deep": {deep}}}}}}}"#
        )
    };
    let kubectl =
        async |args: &[&str]| world.kubectl().run(&[args, &["-n", &world.namespace]].concat()).await;
    world.apply(&group("too-deep", &format!("{}1{}", "[".repeat(300), "]".repeat(300)))).await?;
    world.apply(&group("beside", "1").replace(r#", "Deep": 1"#, "")).await?;
    let beside = world.subject("CloudControlResource", "beside");
    beside.ready().await.inspect_err(|_| println!("{}", operator.log()))?;
    // A fresh operator reads them all anew, before it does anything.
    drop(operator);
    let operator = world.operator(&[]).await?;
    beside.change(serde_json::json!({"desiredState": {"RetentionInDays": 7}})).await?;
    beside.ready().await.inspect_err(|_| println!("{}", operator.log()))?;
    eventually(Duration::from_secs(30), "it to be judged", async || {
        let path = "jsonpath={.status.conditions}";
        let said = kubectl(&["get", "cloudcontrolresource", "too-deep", "-o", path]).await?;
        ensure!(said.contains("nested more than 64 levels deep"), "{said}");
        Ok(())
    })
    .await?;
    kubectl(&["delete", "cloudcontrolresource", "too-deep", "--timeout=30s"]).await?;
    ensure!(world.cloud_control.resources("AWS::Logs::LogGroup").len() == 1);
    Ok(())
}
