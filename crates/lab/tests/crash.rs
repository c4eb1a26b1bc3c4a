//! The operator killed before and after each of its AWS calls and API-server writes, and started
//! again: one resource at the end, none after deletion.

use anyhow::{Context, Result, ensure};
use lab::crash::{self, Extent};
use lab::lifecycle::{self, Lifecycle};

/// The data files of those that are killed at every point in each run of the tests.
const ALWAYS: [&str; 2] = ["vpc", "natgateway"];

#[tokio::test(flavor = "multi_thread")]
async fn a_vpc_survives_every_kill() -> Result<()> {
    survives(&named("vpc")?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nat_gateway_and_its_address_survive_every_kill() -> Result<()> {
    survives(&named("natgateway")?).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes a kind; KONFIG_CRASH=sample or KONFIG_CRASH=all says how much"]
async fn every_other_kind_survives_every_kill() -> Result<()> {
    for life in lifecycle::all()?.iter().filter(|life| !ALWAYS.contains(&life.name.as_str())) {
        survives(life).await?;
    }
    Ok(())
}

fn named(name: &str) -> Result<Lifecycle> {
    lifecycle::all()?.into_iter().find(|life| life.name == name).context("no such data file")
}

async fn survives(life: &Lifecycle) -> Result<()> {
    let table = crash::run(life, Extent::OneChange.or_as_asked()).await?;
    println!("{table}");
    let failures = table.failures();
    ensure!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    for row in &table.0 {
        // A phase may take another turn than it did the first time, but not often.
        ensure!(row.tried > 0 && row.missed <= row.tried / 4, "{row:?}");
    }
    Ok(())
}
