//! A namespace full of objects is deleted as a whole.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::api::ListParams;
use lab::emulator::Flavor;
use lab::{Inventory, Stub, World, eventually, manifest};

use crate::life::ended_well;

async fn deleted_with_its_namespace(groups: usize) -> Result<()> {
    let within = Duration::from_secs(60 + u64::try_from(groups)?);
    // moto takes a second for each look at groups when there are a thousand: it would be all that is tested.
    let stub = Stub::start();
    let world = World::prepare_with(Flavor::Moto, &[("ec2", stub.endpoint())]).await?;
    let mut operator = world.operator(&["--drift-interval=1h"]).await?;
    let before = Inventory::take(&world.boto).await?;
    let start = Instant::now();
    let group = |number| manifest::security_group(&format!("group-{number:04}"), "all", &[]);
    let manifests: Vec<_> = [manifest::vpc("all")].into_iter().chain((0..groups).map(group)).collect();
    for part in manifests.chunks(200) {
        world.apply(&manifest::all(part)).await?;
    }
    let api = world.api("SecurityGroup");
    eventually(within, "all to be Ready", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let objects = api.list(&ListParams::default()).await?;
        let is_ready =
            |object: &&kube::api::DynamicObject| lab::subject::condition(object, "Ready")["status"] == "True";
        let ready = objects.iter().filter(is_ready).count();
        ensure!(ready == groups, "{ready} of {groups}");
        Ok(())
    })
    .await?;
    let made = Inventory::take(&world.boto).await?.new_since(&before).len();
    ensure!(made == groups + 1, "{made} in AWS");
    let ready = start.elapsed();

    let (mark, start) = (world.aws.mark(), Instant::now());
    let limit = format!("--timeout={}s", within.as_secs());
    let deleted = world.kubectl().run(&["delete", "namespace", &world.namespace, &limit]).await;
    deleted.with_context(|| operator.log().lines().rev().take(40).collect::<Vec<_>>().join("\n"))?;
    let left = Inventory::take(&world.boto).await?.new_since(&before);
    ensure!(left.is_empty(), "left in AWS: {left:?}");
    let calls = world.aws.calls_since(mark);
    let changes: Vec<_> = calls.iter().filter(|call| call.mutating).collect();
    println!(
        "{groups} objects: Ready after {ready:.1?}, gone {:.1?} after the namespace; {} calls, {} of them changes",
        start.elapsed(),
        calls.len(),
        changes.len(),
    );
    let succeeded = changes.iter().filter(|call| call.succeeded()).count();
    ensure!(succeeded == groups + 1, "{succeeded} changes succeeded");
    // AWS refuses the VPC while a group is in it; that is tried a few times, not a thousand.
    ensure!(changes.len() <= groups + 30, "{} changes", changes.len());
    let reads = calls.len() - changes.len();
    // Each is confirmed to be gone by a read of its own; the others are shared.
    ensure!(reads <= groups * 3 / 2 + 60, "{reads} reads");
    ended_well(&mut operator).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_of_many_objects_deleted_with_their_namespace() -> Result<()> {
    deleted_with_its_namespace(100).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn a_thousand_objects_deleted_with_their_namespace() -> Result<()> {
    deleted_with_its_namespace(1000).await
}
