//! An AWS that throttles, fails, cuts off, dawdles and lags, all through a stack's life.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::World;
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Call, Match};

use crate::life::Storm;

/// AWS's codes for calls that come too fast, by service.
const THROTTLES: &[&str] = &["RequestLimitExceeded", "Throttling", "SlowDown"];
const FAILURES: &[&str] = &["InternalError", "InternalFailure", "Unavailable"];
const SILENCE: &[&str] = &["no answer from AWS"];
/// 30 s, scaled as the operator's settle window is.
const LAG: Duration = Duration::from_millis(600);

fn calm() -> Storm {
    Storm::new("calm", vec![])
}

fn throttling(percent: u8) -> Storm {
    let name = if percent > 30 { "60 % throttled" } else { "30 % throttled" };
    Storm {
        told: vec![("Throttled", THROTTLES)],
        within: Duration::from_secs(if percent > 30 { 900 } else { 300 }),
        patience: if percent > 30 { 6 } else { 3 },
        ..Storm::new(name, vec![(Match::any().percent(percent), Action::Throttle)])
    }
}

fn failing() -> Storm {
    let faults = vec![
        (Match::any().percent(15), Action::ServerError(500)),
        (Match::any().percent(15), Action::ServerError(503)),
    ];
    Storm { told: vec![("Error", FAILURES)], ..Storm::new("5xx, 30 %", faults) }
}

fn failing_after() -> Storm {
    let faults = vec![(Match::mutating().percent(30), Action::ServerErrorAfter(500))];
    Storm { told: vec![("Error", FAILURES)], ..Storm::new("5xx after the effect, 30 %", faults) }
}

fn resets() -> Storm {
    let faults = vec![(Match::any().percent(30), Action::ResetBefore)];
    Storm { told: vec![("Error", SILENCE)], ..Storm::new("reset, 30 %", faults) }
}

fn resets_after() -> Storm {
    let faults = vec![(Match::any().percent(30), Action::ResetAfter)];
    Storm { told: vec![("Error", SILENCE)], ..Storm::new("reset after the effect, 30 %", faults) }
}

/// The SDK gives a call 20 s.
fn timeouts() -> Storm {
    let late = Action::TimeoutAfterEffect(Duration::from_secs(25));
    Storm {
        within: Duration::from_secs(400),
        told: vec![("Error", SILENCE)],
        ..Storm::new("timed out, 30 % of changes", vec![(Match::mutating().percent(30), late)])
    }
}

/// A little of everything.
fn foul() -> Storm {
    let faults = vec![
        (Match::any().percent(10), Action::ServerError(503)),
        (Match::any().percent(10), Action::ResetBefore),
        (Match::mutating().percent(10), Action::ResetAfter),
        (Match::mutating().percent(10), Action::ServerErrorAfter(500)),
        (Match::mutating().percent(10), Action::TimeoutAfterEffect(Duration::from_secs(2))),
        (Match::any().percent(10), Action::Throttle),
    ];
    let told = vec![("Error", FAILURES), ("Error", SILENCE), ("Throttled", THROTTLES)];
    Storm { told, within: Duration::from_secs(200), ..Storm::new("a little of everything", faults) }
}

/// Each call takes its time. The operator's clock runs no faster than that allows.
async fn slow(world: &World, latency: Duration, scale: &'static [&'static str]) -> Result<()> {
    let faults = vec![(Match::any(), Action::Delay(latency))];
    let life = Storm { args: scale, ..Storm::new("slow answers", faults) }.lead(world).await?;
    let sum = latency * u32::try_from(life.calls.len())?;
    let busy = under_way(&life.calls, latency);
    println!("{} calls of {latency:?} until Ready; some call was under way for {busy:.1?}", life.calls.len());
    ensure!(busy < sum.mul_f64(0.7), "{busy:?} of {sum:?}: one after the other");
    Ok(())
}

/// For how long at least one of these calls was under way.
fn under_way(calls: &[Call], latency: Duration) -> Duration {
    let mut until = None;
    let mut busy = Duration::ZERO;
    for call in calls {
        let end = call.at + latency;
        busy += end.saturating_duration_since(until.map_or(call.at, |until| call.at.max(until)));
        until = Some(until.map_or(end, |until| end.max(until)));
    }
    busy
}

async fn lagging(world: &World, storm: Storm) -> Result<()> {
    world.aws.lag(LAG);
    let life = storm.lead(world).await;
    world.aws.lag(Duration::ZERO);
    life.map(drop)
}

fn lag() -> Storm {
    Storm::new("reads lag 30 s", vec![])
}

fn lag_and_loss() -> Storm {
    let faults = vec![(Match::op("Create*").percent(50), Action::ResetAfter)];
    let told = vec![("Error", SILENCE)];
    Storm { told, heals_untold: true, ..Storm::new("lag, and lost answers", faults) }
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_of_the_storms() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    world.aws.seed(1);
    calm().lead(&world).await?;
    throttling(30).lead(&world).await?;
    foul().lead(&world).await?;
    slow(&world, Duration::from_millis(500), &["--time-scale=0.1"]).await?;
    lagging(&world, lag()).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn throttled_60_percent() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    world.aws.seed(2);
    throttling(60).lead(&world).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn failing_and_cut_off_30_percent() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    world.aws.seed(3);
    for storm in [failing(), failing_after(), resets(), resets_after()] {
        storm.lead(&world).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn timed_out_after_the_effect() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    world.aws.seed(4);
    timeouts().lead(&world).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn two_seconds_of_latency() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    slow(&world, Duration::from_secs(2), &["--time-scale=0.2"]).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make faults runs it"]
async fn foul_with_many_seeds() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    for seed in 10..15 {
        println!("seed {seed}");
        world.aws.seed(seed);
        foul().lead(&world).await?;
        lagging(&world, lag_and_loss()).await?;
    }
    Ok(())
}
