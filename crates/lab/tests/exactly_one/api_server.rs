//! An API server that is in the way of the intent, or of the id.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::proxy::Fault;
use lab::proxy::aws::{Action, Table};
use lab::proxy::kube::{self, Verb};
use lab::{World, manifest};
use serde_json::json;

use super::SOON;
use super::made::VPC;

/// Holds the create call of a VPC, so that something can be done meanwhile.
pub async fn held_vpc(world: &World, name: &str) -> Result<Fault> {
    let held = VPC.fault(world, name, Action::Hold);
    world.apply(&manifest::vpc(name)).await?;
    ensure!(held.reached(1, SOON).await, "{name}: not called");
    Ok(held)
}

pub fn status_writes(name: &str) -> kube::Match {
    kube::Match::verb(Verb::Patch).resource("vpcs").subresource("status").name(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_is_recorded_whatever_the_api_server_says() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    for (name, action, times) in [
        ("conflict", kube::Action::Status(409), 2),
        ("failure", kube::Action::Status(500), 3),
        ("lost", kube::Action::ResetAfter, 1),
        ("cut", kube::Action::ResetBefore, 2),
    ] {
        let held = held_vpc(&world, name).await?;
        let refused = world.kube.fault(status_writes(name).times(times), action);
        held.release();
        VPC.ensure_one(&world, name).await.with_context(|| world.kube.table())?;
        VPC.ensure_single(&world, name, 1)?;
        ensure!(refused.hits() == times, "{name}: refused {} writes", refused.hits());
    }

    // The user changes the object meanwhile.
    let held = held_vpc(&world, "changed").await?;
    world.subject("VPC", "changed").change(json!({"tags": {"stage": "two"}})).await?;
    held.release();
    VPC.ensure_one(&world, "changed").await?;
    VPC.ensure_single(&world, "changed", 1)?;
    let tags = world.boto.tags(&VPC.recorded(&world, "changed").await?).await?;
    ensure!(tags.get("stage").map(String::as_str) == Some("two"), "{tags:?}");

    // The API server is away when AWS answers.
    let held = held_vpc(&world, "away").await?;
    world.kube.cut(true);
    held.release();
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(VPC.recorded(&world, "away").await.is_err(), "recorded past the proxy");
    world.kube.cut(false);
    VPC.ensure_one(&world, "away").await?;
    VPC.ensure_single(&world, "away", 1).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_intent_nothing_is_created() -> Result<()> {
    let (world, operator) = World::moto(&[]).await?;
    // The first write to the status is the intent.
    for (name, action) in [
        ("conflict", kube::Action::Status(409)),
        ("failure", kube::Action::Status(500)),
        ("cut", kube::Action::ResetBefore),
        ("lost", kube::Action::ResetAfter),
    ] {
        let refused = world.kube.fault(status_writes(name).times(1), action);
        world.apply(&manifest::vpc(name)).await?;
        VPC.ensure_one(&world, name).await.with_context(|| world.kube.table())?;
        ensure!(refused.hits() == 1, "{name} was not refused");
        let calls = VPC.transmissions(&world, name);
        ensure!(calls.len() == 1, "{name}:\n{}", Table(&calls));
        let written = VPC.intents(&world, name);
        ensure!(!written.is_empty(), "{name}: no intent\n{}", world.kube.table());
    }

    // Refused for good: no call, ever.
    let refused = world.kube.fault(status_writes("never"), kube::Action::Status(403));
    world.apply(&manifest::vpc("never")).await?;
    ensure!(refused.reached(3, SOON).await, "not tried again");
    ensure!(VPC.transmissions(&world, "never").is_empty(), "{}", world.aws.table());
    refused.release();
    VPC.ensure_one(&world, "never").await?;

    // Deleted while the intent is under way.
    let held = world.kube.fault(status_writes("gone").times(1), kube::Action::Hold);
    world.apply(&manifest::vpc("gone")).await?;
    ensure!(held.reached(1, SOON).await, "no intent");
    world.subject("VPC", "gone").delete().await?;
    held.release();
    world.subject("VPC", "gone").gone().await?;
    ensure!(VPC.transmissions(&world, "gone").is_empty(), "{}", world.aws.table());
    drop(operator);
    Ok(())
}
