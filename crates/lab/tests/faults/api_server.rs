//! An API server that ends and starts again, and an etcd that halts, in the middle of everything.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lab::World;
use lab::emulator::Flavor;
use lab::proxy::Fault;
use lab::proxy::aws::{Action, Match};

use crate::life::ended_well;
use crate::stack::Stack;

const WITHIN: Duration = Duration::from_secs(180);

/// AWS does this, and the operator does not learn of it yet. To be set before what leads to it.
fn hold(world: &World, operation: &str) -> Fault {
    world.aws.fault(Match::op(operation).times(1), Action::HoldAnswer)
}

/// Does something while that answer is held.
async fn amid(world: &World, held: Fault, what: impl Future<Output = Result<()>>) -> Result<()> {
    ensure!(held.reached(1, WITHIN).await, "not called:\n{}", world.aws.table());
    what.await?;
    held.release();
    Ok(())
}

async fn halt_etcd(world: &World, time: Duration) -> Result<()> {
    world.control_plane.pause_etcd()?;
    tokio::time::sleep(time).await;
    world.control_plane.resume_etcd()
}

/// The stack's life with something done to the API server in each of its parts, each time under
/// a call whose answer must not get lost.
async fn life(world: &World, strike: impl AsyncFn() -> Result<()>) -> Result<()> {
    let mut operator = world.operator(&[]).await?;
    let (vpc, gateway) = (hold(world, "CreateVpc"), hold(world, "CreateNatGateway"));
    let stack = Stack::apply(world).await?;
    amid(world, vpc, strike()).await?;
    amid(world, gateway, strike()).await?;
    stack.ready(WITHIN).await?;
    strike().await?;
    stack.drift(WITHIN).await?;
    let deletion = hold(world, "DeleteNatGateway");
    stack.delete().await?;
    amid(world, deletion, strike()).await?;
    stack.gone(WITHIN).await?;
    stack.ensure_made_once()?;
    // An answer that is held for longer than the SDK waits is lost, and said to be.
    for (reason, message) in stack.troubles() {
        ensure!(message.contains("no answer from AWS"), "AWS is not to blame: {reason}: {message}");
    }
    ended_well(&mut operator).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_of_an_api_server_that_restarts() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let mut operator = world.operator(&[]).await?;
    let subnet = hold(&world, "CreateSubnet");
    let stack = Stack::apply(&world).await?;
    // The kill, the time without, and the start all fall into a call.
    amid(&world, subnet, world.control_plane.restart_apiserver()).await?;
    stack.ready(WITHIN).await?;
    stack.ensure_made_once()?;
    halt_etcd(&world, Duration::from_secs(3)).await?;
    let deletion = hold(&world, "DeleteNatGateway");
    stack.delete().await?;
    amid(&world, deletion, halt_etcd(&world, Duration::from_secs(3))).await?;
    stack.gone(WITHIN).await?;
    ended_well(&mut operator).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn the_api_server_restarts_again_and_again() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let start = Instant::now();
    life(&world, async || world.control_plane.restart_apiserver().await).await?;
    println!("restarted four times in {:.0?}", start.elapsed());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn etcd_halts_for_ten_seconds() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    life(&world, async || halt_etcd(&world, Duration::from_secs(10)).await).await
}
