//! AWS's answers: lost, late, refused, and reads that do not show what was made.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::proxy::aws::{Action, Match, Table};
use lab::{World, eventually, manifest};

use super::made::{ALL, Guard, VPC, stack};
use super::{LAG, SETTLE, SOON};

/// The way an answer to a create call goes wrong: by name, whether the call has its effect.
fn mishaps() -> [(&'static str, Action, bool); 6] {
    [
        ("reset-after", Action::ResetAfter, true),
        ("timeout-after", Action::TimeoutAfterEffect(Duration::from_millis(400)), true),
        ("error-after", Action::ServerErrorAfter(500), true),
        ("reset-before", Action::ResetBefore, false),
        ("error-before", Action::ServerError(500), false),
        ("unavailable", Action::ServerError(503), false),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclear_create_call_leads_to_one_resource() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    for (name, action, _) in mishaps() {
        ALL.iter().for_each(|made| drop(made.fault(&world, name, action.clone())));
    }
    ALL.iter().for_each(|made| drop(made.fault(&world, "throttled", Action::Throttle)));
    let names = mishaps().map(|(name, ..)| name);
    let names: Vec<_> = names.into_iter().chain(["throttled"]).collect();
    world.apply(&manifest::all(&names.iter().map(|name| stack(name)).collect::<Vec<_>>())).await?;
    for made in ALL {
        for (name, _, has_effect) in mishaps() {
            made.ensure_one(&world, name).await?;
            if has_effect {
                made.ensure_single(&world, name, 1)?;
                let events = world.subject(made.kind, name).events("Recovered").await?;
                ensure!(!events.is_empty(), "{} {name} was not found again", made.kind);
                continue;
            }
            let calls = made.ensure_single(&world, name, 2)?;
            let waited = calls[1].at.duration_since(calls[0].at);
            // Nothing but time tells that the first call made nothing.
            let must_wait = made.guard == Guard::Nothing;
            ensure!(
                !must_wait || waited >= SETTLE,
                "{} {name} again after {waited:?}: {:?}\n{}",
                made.create,
                made.intents(&world, name),
                Table(&calls),
            );
            let tokens: Vec<_> = made.intents(&world, name).iter().map(|it| it["token"].clone()).collect();
            let is_another = tokens.first() != tokens.last();
            ensure!(is_another == must_wait, "{} {name}: {tokens:?}", made.create);
        }
        // A refusal is definite: the next attempt need not wait, and is another.
        made.ensure_one(&world, "throttled").await?;
        made.ensure_single(&world, "throttled", 2)?;
        let attempts: Vec<_> =
            made.intents(&world, "throttled").iter().filter_map(|it| it["attempt"].as_u64()).collect();
        let rises = attempts.len() > 1 && attempts.iter().copied().eq(1..=attempts.len() as u64);
        ensure!(rises, "{}: {attempts:?}", made.create);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_lag_behind_a_create_make_no_second() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    world.aws.lag(LAG);
    let mark = world.aws.mark();
    ALL.iter().for_each(|made| drop(made.fault(&world, "lost", Action::ResetAfter)));
    world.apply(&manifest::all(&[stack("early"), stack("lost")])).await?;
    // Each is observed again while AWS does not show it yet.
    for made in ALL {
        eventually(SOON, "its id", async || made.recorded(&world, "early").await).await?;
        world.observe(made.kind, "early", made.create).await?;
    }
    for made in ALL {
        made.ensure_one(&world, "early").await?;
        made.ensure_single(&world, "early", 1)?;
        let found = world.subject(made.kind, "early").events("Recovered").await?;
        ensure!(found.is_empty(), "{} was looked for although its id was known: {found:?}", made.kind);
        made.ensure_one(&world, "lost").await?;
        let replays = made.transmissions(&world, "lost");
        let made_once = replays.iter().filter(|call| call.succeeded() && call.note != Some("replayed"));
        ensure!(made_once.count() == 1, "{}", Table(&replays));
        let may_repeat = made.guard != Guard::Nothing;
        ensure!(may_repeat || replays.len() == 1, "{}", Table(&replays));
    }
    let hidden = world.calls_since(mark).iter().filter(|call| call.note == Some("lag")).count();
    ensure!(hidden > 0, "no read lagged:\n{}", world.aws.table());

    // Deleted before AWS shows it.
    world.apply(&manifest::vpc("short")).await?;
    eventually(SOON, "its id", async || VPC.recorded(&world, "short").await).await?;
    let uid = world.subject("VPC", "short").uid().await?;
    world.subject("VPC", "short").delete().await?;
    world.subject("VPC", "short").gone().await?;
    let left = VPC.held(&world, &uid).await?;
    ensure!(left.is_empty(), "left in AWS: {left:?}\n{}", world.aws.table());
    VPC.ensure_single(&world, "short", 1).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_read_is_no_absence() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    world.apply(&manifest::vpc("kept")).await?;
    VPC.ensure_one(&world, "kept").await?;
    tokio::time::sleep(SETTLE).await;
    let uid = world.subject("VPC", "kept").uid().await?;
    let failures = [
        ("unavailable", Action::ServerError(503)),
        ("reset", Action::ResetBefore),
        ("denied", Action::error(403, "UnauthorizedOperation", "You are not authorized.")),
        ("expired", Action::error(400, "RequestExpired", "Request has expired.")),
        ("bare", Action::error(404, "", "")),
        ("other", Action::error(400, "InvalidSubnetID.NotFound", "another thing is missing")),
    ];
    for (name, action) in failures.clone() {
        let failing = world.aws.fault(Match::op("DescribeVpcs"), action);
        world.observe("VPC", "kept", name).await?;
        ensure!(failing.reached(2, SOON).await, "{name}: not read");
        tokio::time::sleep(SETTLE / 2).await;
        failing.release();
        VPC.ensure_one(&world, "kept").await?;
        VPC.ensure_single(&world, "kept", 1)?;
    }
    // Nor does the finalizer go for it.
    let some = failures.into_iter().filter(|(name, _)| ["unavailable", "bare", "other"].contains(name));
    let failing: Vec<_> =
        some.map(|(_, action)| world.aws.fault(Match::op("DescribeVpcs").times(1), action)).collect();
    world.subject("VPC", "kept").delete().await?;
    world.subject("VPC", "kept").gone().await?;
    ensure!(failing.iter().any(|fault| fault.hits() > 0), "no read failed");
    let left = VPC.held(&world, &uid).await?;
    ensure!(left.is_empty(), "left in AWS: {left:?}\n{}", world.aws.table());
    Ok(())
}
