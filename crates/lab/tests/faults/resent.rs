//! A create call is sent again after an unclear answer, and refused: that says nothing of the first.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Match, Table};
use lab::{World, eventually, manifest};
use serde_json::json;

use crate::life::ended_well;

const WITHIN: Duration = Duration::from_secs(60);
/// Reads show what was made only after that, well within the settle window of 12 s.
const LAG: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn sample_of_refusals_after_a_lost_answer() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?.time_scale(0.2);
    let mut operator = world.operator(&[]).await?;
    world.apply(&manifest::all(&[manifest::vpc("all"), manifest::subnet("first", "all", 1)])).await?;
    world.subject("Subnet", "first").ready().await?;
    world.aws.lag(LAG);
    let strike = |operation, action, times| world.aws.fault(Match::op(operation).times(times), action);
    let mut faults = Vec::new();
    for operation in ["CreateNatGateway", "CreateSubnet"] {
        faults.push(strike(operation, Action::ResetAfter, 1));
        faults.push(strike(operation, Action::Throttle, 1));
    }
    let spec = json!({"subnetRef": {"name": "first"}, "connectivityType": "private"});
    let resent = [manifest::of("NatGateway", "resent", spec), manifest::subnet("resent", "all", 2)];
    world.apply(&manifest::all(&resent)).await?;
    for kind in ["NatGateway", "Subnet"] {
        eventually(WITHIN, &format!("the {kind}"), async || {
            world.subject(kind, "resent").ready().await.map(drop)
        })
        .await
        .with_context(|| world.aws.table())?;
    }
    ensure!(faults.iter().all(|fault| fault.hits() == 1), "not all struck:\n{}", world.aws.table());
    let calls = world.aws.calls();
    for (operation, times) in [("CreateNatGateway", 1), ("CreateSubnet", 2)] {
        let made = calls.iter().filter(|call| call.operation == operation && call.succeeded());
        let made = made.filter(|call| call.note != Some("replayed")).count();
        ensure!(made == times, "{operation} made {made}:\n{}", Table(&calls));
    }
    world.kubectl().run(&["delete", "konfig", "--all", "-n", &world.namespace, "--timeout=120s"]).await?;
    ended_well(&mut operator).await
}
