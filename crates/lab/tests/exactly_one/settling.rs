//! What happens between a lost answer and the end of the settle window.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::proxy::kube::{self, Verb};
use lab::{World, eventually, manifest};
use serde_json::json;

use super::SOON;
use super::made::{ADDRESS, GATEWAY, NAT, VPC};

/// Slow enough to do something between a lost answer and the end of the settle window.
const SLOW_SETTLE: Duration = Duration::from_secs(12);

async fn slow_world() -> Result<World> {
    let world = World::prepare(Flavor::Moto).await?.time_scale(0.2);
    world.aws.lag(Duration::from_secs(9));
    Ok(world)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_used_again_and_a_mismatch_means_that_it_exists() -> Result<()> {
    let world = slow_world().await?;
    let mut operator = world.operator(&[]).await?;
    let names = ["again", "changed", "refused"];
    let mut manifests = vec![manifest::vpc("net"), manifest::internet_gateway("net", "net")];
    manifests.extend((1..).zip(names).map(|(number, name)| manifest::subnet(name, "net", number)));
    manifests.push(manifest::nat_gateway("again", "again"));
    // Private: an address that lags too would hold up the second call until the gateway is seen.
    let private = |name| json!({"subnetRef": {"name": name}, "connectivityType": "private"});
    manifests.extend(["changed", "refused"].map(|name| manifest::of("NatGateway", name, private(name))));
    NAT.fault(&world, "again", Action::ResetAfter);
    let late = NAT.fault(&world, "changed", Action::TimeoutAfterEffect(Duration::from_secs(8)));
    let mismatch = Action::error(400, "IdempotentParameterMismatch", "other parameters");
    let refused = Match::op("CreateNatGateway").param("*", &NAT.owner(&world, "refused"));
    let refused = world.aws.fault(refused, mismatch);
    world.apply(&manifest::all(&manifests)).await?;

    let calls = eventually(SOON, "a second call", async || {
        let calls = NAT.transmissions(&world, "again");
        ensure!(calls.get(1).is_some_and(Call::succeeded), "{}", Table(&calls));
        Ok(calls)
    })
    .await?;
    ensure!(calls[1].note == Some("replayed"), "{}", Table(&calls));
    ensure!(calls[1].params["ClientToken"] == calls[0].params["ClientToken"], "{}", Table(&calls));

    // The operator dies while it waits for the answer, and the spec is another when it comes back.
    ensure!(late.reached(1, SOON).await, "never sent");
    eventually(SOON, "the effect", async || {
        ensure!(NAT.transmissions(&world, "changed")[0].succeeded(), "not yet");
        Ok(())
    })
    .await?;
    operator.kill()?;
    world.subject("NatGateway", "changed").change(json!({"tags": {"stage": "two"}})).await?;
    let operator = world.operator(&[]).await?;

    // A mismatch behind which nothing is to be found, past the settle window: another token.
    let first = || NAT.transmissions(&world, "refused").into_iter().next().context("no call yet");
    let next = eventually(SOON * 2, "another token", async || {
        let token = first()?.params["ClientToken"].clone();
        let calls = NAT.transmissions(&world, "refused").into_iter();
        calls.into_iter().find(|call| call.params["ClientToken"] != token).context("the same token")
    })
    .await?;
    refused.release();
    ensure!(next.at.duration_since(first()?.at) >= SLOW_SETTLE, "too soon:\n{}", world.aws.table());

    for name in names {
        NAT.ensure_one(&world, name).await.with_context(|| operator.log())?;
    }
    ADDRESS.ensure_one(&world, "again").await?;
    let calls = NAT.transmissions(&world, "changed");
    ensure!(calls.iter().filter(|call| call.succeeded()).count() == 1, "{}", Table(&calls));
    let refusal = calls.get(1).and_then(|call| call.error_code.as_deref());
    ensure!(refusal == Some("IdempotentParameterMismatch"), "{}", Table(&calls));
    let tags = world.boto.tags(&NAT.recorded(&world, "changed").await?).await?;
    ensure!(tags.get("stage").map(String::as_str) == Some("two"), "{tags:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_cache_makes_no_second() -> Result<()> {
    let world = slow_world().await?;
    let mut operators = vec![world.operator(&[]).await?];
    world.apply(&manifest::internet_gateway("late", "late")).await?;
    world.subject("InternetGateway", "late").says("DependencyNotReady", &["late"]).await?;
    // A second operator lists the gateway as it is now, and sees no later change of it.
    let watches = kube::Match::verb(Verb::Watch).resource("internetgateways").times(1);
    let watch = world.kube.fault(watches, kube::Action::Hold);
    let mut stale = world.operator(&[]).await?;
    ensure!(watch.reached(1, SOON).await, "no watch to hold");
    stale.stop()?;
    world.apply(&manifest::vpc("late")).await?;
    eventually(SOON, "its id", async || GATEWAY.recorded(&world, "late").await).await?;
    let writes = world.kube.mark();
    // It wakes for the VPC, with a cache in which nothing was begun, and AWS shows nothing either.
    stale.cont()?;
    let looked = |log: &str| log.contains("DescribeInternetGateways");
    eventually(SOON, "the stale one to look", async || {
        ensure!(looked(&stale.log()), "{}", stale.log());
        Ok(())
    })
    .await?;
    GATEWAY.ensure_one(&world, "late").await?;
    GATEWAY
        .ensure_single(&world, "late", 1)
        .with_context(|| format!("{:?}", world.kube.writes_since(writes)))?;

    // Two that both see everything, and no lease between them.
    watch.release();
    let names: Vec<_> = (0..8).map(|number| format!("both-{number}")).collect();
    operators.push(stale);
    world.apply(&manifest::all(&names.iter().map(|name| manifest::vpc(name)).collect::<Vec<_>>())).await?;
    for name in &names {
        VPC.ensure_one(&world, name).await?;
        VPC.ensure_single(&world, name, 1)?;
    }
    Ok(())
}
