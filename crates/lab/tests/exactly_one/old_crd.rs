//! A CRD that does not keep what is recorded; and a stop in the middle.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use lab::emulator::Flavor;
use lab::proxy::kube::Action;
use lab::{Operator, World, eventually, manifest};
use serde_json::{Value, json};

use super::api_server::{held_vpc, status_writes};
use super::made::VPC;
use super::{SETTLE, SOON};

#[tokio::test(flavor = "multi_thread")]
async fn an_old_crd_lets_nothing_be_created() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let crds: Api<DynamicObject> = Api::all_with(world.client.clone(), &crd());
    let new = crds.get("vpcs.aws.konfig.io").await?;
    let mut old = new.clone();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = old.data.pointer_mut(status).and_then(Value::as_object_mut).context("a status schema")?;
    fields.remove("creation").context("no status.creation")?;
    old.metadata.managed_fields = None;
    crds.replace("vpcs.aws.konfig.io", &PostParams::default(), &old).await?;

    let mut operator = world.operator(&[]).await?;
    world.apply(&manifest::vpc("pruned")).await?;
    world.subject("VPC", "pruned").says("Error", &["CRDs are older than the operator"]).await?;
    world.observe("VPC", "pruned", "again").await?;
    tokio::time::sleep(SETTLE * 2).await;
    ensure!(VPC.transmissions(&world, "pruned").is_empty(), "{}", world.aws.table());

    // Upgraded, it goes on.
    let schema = new.data.pointer("/spec/versions").context("versions")?;
    let patch = Patch::Merge(json!({"spec": {"versions": schema}}));
    crds.patch("vpcs.aws.konfig.io", &PatchParams::default(), &patch).await?;
    eventually(SOON, "the upgrade", async || {
        world.observe("VPC", "pruned", &format!("{:?}", std::time::Instant::now())).await?;
        VPC.recorded(&world, "pruned").await
    })
    .await?;
    VPC.ensure_one(&world, "pruned").await?;
    VPC.ensure_single(&world, "pruned", 1).or_else(|error| {
        // What the old CRD dropped were intents too; no call followed them.
        let calls = VPC.transmissions(&world, "pruned");
        if calls.len() == 1 { Ok(calls) } else { Err(error) }
    })?;

    stops_in_the_middle(&world, &mut operator).await
}

/// SIGTERM while AWS is at work, and the API server refuses what it made.
async fn stops_in_the_middle(world: &World, operator: &mut Operator) -> Result<()> {
    let held = held_vpc(world, "stopped").await?;
    let refused = world.kube.fault(status_writes("stopped").times(2), Action::Status(500));
    let later = async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        let early = VPC.recorded(world, "stopped").await.is_ok();
        held.release();
        early
    };
    let (ended, early) = tokio::join!(operator.term(SOON), later);
    ensure!(!early, "recorded before AWS answered");
    let ended = ended?;
    ensure!(ended.success(), "{ended}\n{}", operator.log());
    ensure!(refused.hits() == 2, "refused {} writes", refused.hits());
    let recorded = VPC.recorded(world, "stopped").await.with_context(|| operator.log())?;
    let uid = world.subject("VPC", "stopped").uid().await?;
    ensure!(VPC.held(world, &uid).await? == [recorded], "not the one that was made");
    *operator = world.operator(&[]).await?;
    VPC.ensure_one(world, "stopped").await?;
    VPC.ensure_single(world, "stopped", 1).map(drop)
}

fn crd() -> ApiResource {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    ApiResource::from_gvk(&gvk)
}
