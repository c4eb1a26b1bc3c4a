//! The whole life of each kind, from its data file in `e2e/lifecycle`; a test for each file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use lab::lifecycle::{Drive, Lifecycle, all, gaps};
use lab::proxy::aws::Table;
use lab::{Operator, World};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> Result<ExitCode> {
    let mut trials: Vec<_> = all()?.into_iter().map(trial).collect();
    trials.push(Trial::test("every_field_of_every_kind_is_in_a_data_file", || Ok(ensure_complete()?)));
    Ok(libtest_mimic::run(&Arguments::from_args(), trials).exit_code())
}

fn trial(life: Lifecycle) -> Trial {
    let (name, kind) = (life.name.clone(), life.kind().to_owned());
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(live(&life)).map_err(|error| Failed::from(format!("{error:?}")))
    })
    .with_kind(kind)
}

async fn live(life: &Lifecycle) -> Result<()> {
    let world = World::prepare(life.emulator.into()).await?;
    let operator = world.operator(&[]).await?;
    let lived = Drive::new(&world, life).await?.live().await;
    lived.map_err(|error| anyhow!("{error:?}\n\n{}", last_words(&world, &operator)))
}

/// What led to a failure.
fn last_words(world: &World, operator: &Operator) -> String {
    let (calls, log) = (world.aws.calls(), operator.log());
    let calls = Table(&calls[calls.len().saturating_sub(20)..]).to_string();
    // The calls are in the table.
    let lines: Vec<_> = log.lines().filter(|line| !line.contains("aws::guard")).collect();
    let lines = lines[lines.len().saturating_sub(15)..].join("\n");
    format!("the last calls:\n{calls}\nthe last of the log:\n{lines}")
}

fn ensure_complete() -> Result<()> {
    let gaps = gaps()?;
    ensure!(gaps.is_empty(), "e2e/lifecycle leaves out:\n{}", gaps.join("\n"));
    Ok(())
}
