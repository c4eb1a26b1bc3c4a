//! The annotations by which a person says when an object is looked at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::proxy::aws::Table;
use lab::subject::{condition, manifest, manifests};
use lab::wait::throughout;
use lab::{World, eventually};
use serde_json::{Value, json};

const A_WHILE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(20);
/// An interval of 30 s, with its tenth of jitter and some time for a busy machine.
const AN_INTERVAL: Duration = Duration::from_secs(40);

fn vpc(name: &str, annotations: &[(&str, &str)]) -> String {
    manifest("VPC", name, annotations, json!({"cidrBlock": "10.0.0.0/16", "tags": {"team": "net"}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_say_when_an_object_is_looked_at() -> Result<()> {
    let (world, operator) = World::moto(&["--drift-interval=1h"]).await?;
    let ends = async {
        tokio::try_join!(
            async { pausing(&world).await.context("paused") },
            async { paused_from_the_start(&world).await.context("paused from the start") },
            async { forcing_an_observe(&world).await.context("reconcile") },
            async { another_interval(&world).await.context("reconcile-interval") },
        )
    };
    ends.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    Ok(())
}

/// No call at all, whatever changes; Ready stays as it is; then it goes on.
async fn pausing(world: &World) -> Result<()> {
    world.apply(&vpc("rests", &[])).await?;
    let subject = world.subject("VPC", "rests");
    let ready = condition(&subject.ready().await?, "Ready");
    let id = subject.status("/vpcId").await?;

    subject.annotate("paused", json!("true")).await?;
    is_paused(world, "rests", true).await?;
    let mark = world.aws.mark();
    subject.change(json!({"tags": {"team": "web"}, "enableDnsHostnames": true})).await?;
    subject.annotate("reconcile", json!("not now")).await?;
    world.boto.tag(&id, &[("team", "foreign")]).await?;
    throughout(A_WHILE, "neither reads nor changes", async || {
        let calls = world.calls_about(mark, &id);
        ensure!(calls.is_empty(), "{}", Table(&calls));
        ensure!(condition(&subject.get().await?, "Ready") == ready, "Ready was touched");
        Ok(())
    })
    .await?;

    subject.annotate("paused", Value::Null).await?;
    subject.ready().await?;
    is_paused(world, "rests", false).await?;
    ensure!(world.boto.tags(&id).await?["team"] == "web");
    world.ensure_changes(mark, &id, &["CreateTags", "ModifyVpcAttribute"])?;

    // Deletion does not wait.
    subject.annotate("paused", json!("true")).await?;
    is_paused(world, "rests", true).await?;
    subject.delete().await?;
    subject.gone().await?;
    ensure!(!world.boto.has_vpc(&id).await?, "left in AWS");
    Ok(())
}

async fn paused_from_the_start(world: &World) -> Result<()> {
    let all = ["sleeps", "never"].map(|name| vpc(name, &[("paused", "true")]));
    world.apply(&manifests(&all)).await?;
    let (sleeps, never) = (world.subject("VPC", "sleeps"), world.subject("VPC", "never"));
    for subject in [&sleeps, &never] {
        let uid = subject.uid().await?;
        throughout(A_WHILE / 2, "nothing is made", async || world.ensure_changes(0, &uid, &[])).await?;
        ensure!(condition(&subject.get().await?, "Ready").is_null());
    }
    is_paused(world, "sleeps", true).await?;
    sleeps.annotate("paused", json!("false")).await?;
    sleeps.ready().await?;
    is_paused(world, "sleeps", false).await?;

    let (mark, uid) = (world.aws.mark(), never.uid().await?);
    never.delete().await?;
    never.gone().await?;
    ensure!(world.calls_about(mark, &uid).is_empty(), "AWS was asked about what was never begun");
    Ok(())
}

/// A new word is one observe; the same word is none.
async fn forcing_an_observe(world: &World) -> Result<()> {
    world.apply(&vpc("asked", &[])).await?;
    let subject = world.subject("VPC", "asked");
    subject.ready().await?;
    let id = subject.status("/vpcId").await?;
    for word in ["once", "twice"] {
        let (mark, synced) = (world.aws.mark(), subject.status("/lastSyncTime").await?);
        // The time has whole seconds.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        subject.annotate("reconcile", json!(word)).await?;
        eventually(SOON, "lastSyncTime to move", async || {
            ensure!(subject.status("/lastSyncTime").await? != synced);
            Ok(())
        })
        .await?;
        subject.annotate("reconcile", json!(word)).await?;
        subject.annotate("note", json!("of no meaning")).await?;
        throughout(A_WHILE / 2, "one describe and no more", async || {
            let calls = world.calls_about(mark, &id);
            let described = calls.iter().filter(|call| call.operation == "DescribeVpcs").count();
            ensure!(described == 1 && calls.iter().all(|call| !call.mutating), "{}", Table(&calls));
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn another_interval(world: &World) -> Result<()> {
    world.apply(&vpc("often", &[("reconcile-interval", "soon")])).await?;
    let subject = world.subject("VPC", "often");
    let uid = subject.uid().await?;
    subject.says("Error", &["aws.konfig.io/reconcile-interval", "\"soon\"", "30s and 24h"]).await?;
    subject.annotate("reconcile-interval", json!("10s")).await?;
    subject.says("Error", &["\"10s\"", "30s and 24h"]).await?;
    world.ensure_changes(0, &uid, &[])?;

    subject.annotate("reconcile-interval", json!("30s")).await?;
    subject.ready().await?;
    let id = subject.status("/vpcId").await?;
    let mark = world.aws.mark();
    world.boto.tag(&id, &[("team", "foreign")]).await?;
    throughout(Duration::from_secs(15), "it is not due yet", async || {
        ensure!(world.calls_about(mark, &id).is_empty(), "{}", Table(&world.calls_about(mark, &id)));
        Ok(())
    })
    .await?;
    eventually(AN_INTERVAL, "the drift to be put back", async || {
        ensure!(world.boto.tags(&id).await?["team"] == "net");
        Ok(())
    })
    .await?;
    // Wrong on something that is in sync: an Error that goes with it.
    subject.annotate("reconcile-interval", json!("forever")).await?;
    subject.says("Error", &["\"forever\""]).await?;
    subject.annotate("reconcile-interval", Value::Null).await?;
    subject.ready().await.map(drop)
}

async fn is_paused(world: &World, name: &str, paused: bool) -> Result<()> {
    eventually(SOON, &format!("Paused of {name} to be {paused}"), async || {
        let condition = condition(&world.subject("VPC", name).get().await?, "Paused");
        ensure!((condition["status"] == "True") == paused && condition.is_null() != paused, "{condition}");
        Ok(())
    })
    .await
}
