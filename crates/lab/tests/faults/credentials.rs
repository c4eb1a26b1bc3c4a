//! Temporary credentials that run out, and come back.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::World;
use lab::emulator::Flavor;
use lab::proxy::Fault;
use lab::proxy::aws::{Action, Match, Table};

use crate::life::ended_well;
use crate::stack::Stack;

const WITHIN: Duration = Duration::from_secs(60);
/// What AWS says, by service.
const EXPIRED: &str = "xpired";

fn expire(world: &World) -> Fault {
    world.aws.fault(Match::any(), Action::Expire)
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_of_credentials_that_expire_and_come_back() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    // Before anything is known of the account.
    let expired = expire(&world);
    let mut operator = world.operator(&[]).await?;
    let stack = Stack::apply(&world).await?;
    for (kind, name) in [("VPC", "faults"), ("IAMRole", "faults"), ("S3Bucket", "faults")] {
        world.subject(kind, name).says("Error", &[EXPIRED]).await?;
    }
    ensure!(stack.changes().is_empty(), "{}", Table(&stack.changes()));
    // In the middle.
    let held = world.aws.fault(Match::op("CreateSubnet").times(1), Action::Hold);
    expired.release();
    ensure!(held.reached(1, WITHIN).await, "no subnet is made");
    let expired = expire(&world);
    held.release();
    world.subject("NatGateway", "faults").says("DependencyNotReady", &["public-a"]).await?;
    world.subject("Subnet", "public-a").says("Error", &[EXPIRED]).await?;
    expired.release();
    stack.ready(WITHIN).await?;

    // While something is out of order.
    let expired = expire(&world);
    stack.observe("expired").await?;
    for (kind, name) in [("VPC", "faults"), ("IAMRole", "faults"), ("S3Bucket", "faults")] {
        world.subject(kind, name).says("Error", &[EXPIRED]).await?;
    }
    expired.release();
    stack.drift(WITHIN).await?;
    stack.ensure_made_once()?;

    let expired = expire(&world);
    stack.delete().await?;
    for (kind, name) in [("VPC", "faults"), ("NatGateway", "faults"), ("S3Bucket", "faults")] {
        world.subject(kind, name).says("Error", &[EXPIRED]).await?;
    }
    expired.release();
    stack.gone(WITHIN).await?;
    for (reason, message) in stack.troubles() {
        ensure!(reason == "Error" && message.contains(EXPIRED), "{reason}: {message}");
    }
    stack.ensure_made_once()?;
    ended_well(&mut operator).await
}
