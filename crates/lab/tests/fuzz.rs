//! Objects at random: whatever is written into one, at first or later, it is refused or clearly judged, and
//! harms nobody.
//!
//! `FUZZ_COUNT` of them, from `FUZZ_SEED` on; `make fuzz` runs many.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::fuzz::{Batch, Healthy, Stock, Tally, Times, holds};
use lab::{Operator, World, eventually};

const COUNT: u64 = 300;
const SEED: u64 = 1;
/// How many objects there are at once.
const BATCH: u64 = 100;
/// What healthy objects take at most beside a hundred others at once, which fill the machine; and how many
/// times what they take in the quiet, on a machine that is full already.
const HEALTHY: (Duration, u32) = (Duration::from_secs(30), 30);

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"))
        }
        _ => default,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_random_on_moto() -> Result<()> {
    // Eight kinds of twelve.
    run(Flavor::Moto, (number("FUZZ_COUNT", COUNT) * 2).div_ceil(3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn at_random_on_ministack() -> Result<()> {
    run(Flavor::Ministack, number("FUZZ_COUNT", COUNT).div_ceil(3)).await
}

async fn run(flavor: Flavor, count: u64) -> Result<()> {
    let first = number("FUZZ_SEED", SEED);
    let mut world = World::prepare(flavor).await?;
    // The calls are in the proxy's log; at debug level this one would be as long.
    world.config = world.config.env("RUST_LOG", "info");
    let mut operator = world.operator(&[]).await?;
    let stock = Stock::new(&mut world, flavor).await?;
    let mut healthy = Healthy::new(&world);
    for _ in 0..3 {
        healthy.lot().await.context("in the quiet")?;
    }
    let quiet = std::mem::take(&mut healthy.times);
    let before = holds(&world).await?;

    let seeds = first..first + count;
    let fuzzed = operator.while_sound(async {
        tokio::select! {
            tally = batches(&world, &stock, seeds) => tally,
            broken = beside(&mut healthy) => Err(broken.context("beside objects at random")),
        }
    });
    let fuzzed = fuzzed.await;
    let tally = fuzzed.inspect_err(|_| println!("{}", tail(&operator)))?;
    // Where a lot was cut off, it is not to be counted.
    world.kubectl().run(&["delete", "vpc,iamrole,s3bucket", "--all", "-n", &world.namespace]).await?;
    report(&tally, &quiet, &healthy.times);
    eventually(Duration::from_secs(10), "nothing to be left in AWS", async || {
        let after = holds(&world).await?;
        ensure!(after == before, "AWS held {before:?} and holds {after:?}");
        Ok(())
    })
    .await?;
    operator.ensure_sound()?;
    let most = HEALTHY.0.max(quiet.longest() * HEALTHY.1);
    ensure!(healthy.times.longest() <= most, "healthy objects took {}", healthy.times);
    Ok(())
}

async fn batches(world: &World, stock: &Stock, seeds: Range<u64>) -> Result<Tally> {
    let (mut tally, start, count) = (Tally::default(), Instant::now(), seeds.end - seeds.start);
    let mut next = seeds.start;
    while next < seeds.end {
        let end = (next + BATCH).min(seeds.end);
        tally.add(Batch::run(world, stock, next..end).await?);
        next = end;
        println!("{:>6} of {count} after {:.0?}: {tally:?}", next - seeds.start, start.elapsed());
    }
    Ok(tally)
}

/// Healthy objects, until something is wrong with them.
async fn beside(healthy: &mut Healthy<'_>) -> anyhow::Error {
    loop {
        if let Err(error) = healthy.lot().await {
            return error;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn report(tally: &Tally, quiet: &Times, beside: &Times) {
    println!("{tally:#?}");
    println!("healthy objects in the quiet: {quiet}");
    println!("healthy objects beside these: {beside}");
}

fn tail(operator: &Operator) -> String {
    let log = operator.log();
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
