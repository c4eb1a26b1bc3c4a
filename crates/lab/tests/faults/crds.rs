//! The definition of a kind is taken away under the operator, and comes back.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::proxy::aws::{Action, Match};
use lab::{Inventory, World, eventually, manifest, paths};
use serde_json::json;

use crate::life::ended_well;

const CRD: &str = "vpcs.aws.konfig.io";
const WITHIN: Duration = Duration::from_secs(30);
const TIMEOUT: &str = "--timeout=30s";

/// With an object that is Ready, one whose create call is under way, and others that refer to it.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_a_crd_deleted_under_the_operator() -> Result<()> {
    let (world, mut operator) = World::moto(&[]).await?;
    let before = Inventory::take(&world.boto).await?;
    let stack = manifest::all(&[
        manifest::vpc("old"),
        manifest::vpc("young"),
        manifest::subnet("old", "old", 1),
        manifest::role("beside"),
    ]);
    let young = format!("lab/{}/VPC/young", world.namespace);
    let held = world.aws.fault(Match::op("CreateVpc").param("*", &young).times(1), Action::Hold);
    world.apply(&stack).await?;
    world.subject("Subnet", "old").ready().await?;
    ensure!(held.reached(1, WITHIN).await, "{}", world.aws.table());

    let mark = world.aws.mark();
    world.kubectl().run(&["delete", "crd", CRD, "--wait=false"]).await?;
    world.subject("VPC", "old").says("Error", &["CustomResourceDefinition is being deleted"]).await?;
    held.release();
    world.subject("VPC", "young").says("Error", &["CustomResourceDefinition is being deleted"]).await?;
    // What was under way is known, and nothing else has been done.
    let id = world.subject("VPC", "young").status("/creation/main/id").await?;
    ensure!(world.boto.has_vpc(&id).await?, "{id} is not in AWS");
    let held: Vec<_> = Inventory::take(&world.boto).await?.new_since(&before).into_iter().collect();
    ensure!(held.len() == 4, "{held:?}");
    ensure!(world.changes_since(mark).is_empty(), "{}", world.aws.table());
    // The other kinds go on.
    world.subject("IAMRole", "beside").change(json!({"description": "changed"})).await?;
    world.subject("IAMRole", "beside").ready().await?;

    // It is meant: what they made goes with them, in an order that AWS allows.
    world.kubectl().run(&["annotate", "crd", CRD, "aws.konfig.io/allow-deletion=true"]).await?;
    world.subject("VPC", "old").says("Error", &["Still used by", "Subnet"]).await?;
    world.subject("Subnet", "old").delete().await?;
    world.kubectl().run(&["wait", "--for=delete", "crd", CRD, TIMEOUT]).await?;
    eventually(WITHIN, "the watch to end", async || {
        ensure!(operator.log().contains("no longer watching"));
        Ok(())
    })
    .await?;
    let left = Inventory::take(&world.boto).await?.new_since(&before);
    ensure!(left.len() == 1, "more than the role: {left:?}");

    // Installed again: the same names, other objects.
    let path = paths::repository(paths::CRDS).join("vpcs.yaml");
    world.kubectl().run(&["apply", "--server-side", "-f", &path.to_string_lossy()]).await?;
    world.kubectl().run(&["wait", "--for=condition=Established", "crd", CRD]).await?;
    world.apply(&stack).await?;
    for (kind, name) in [("VPC", "old"), ("VPC", "young"), ("Subnet", "old"), ("IAMRole", "beside")] {
        world.subject(kind, name).ready().await?;
    }
    let made = Inventory::take(&world.boto).await?.new_since(&before);
    ensure!(made.len() == 4, "{made:?}");
    let creates = world.aws.calls().into_iter().filter(|call| call.operation == "CreateVpc");
    ensure!(creates.count() == 4, "{}", world.aws.table());
    let delete = ["delete", "konfig", "--all", "-n", &world.namespace, TIMEOUT];
    world.kubectl().run(&delete).await?;
    let left = Inventory::take(&world.boto).await?.new_since(&before);
    ensure!(left.is_empty(), "{left:?}");
    ended_well(&mut operator).await
}
