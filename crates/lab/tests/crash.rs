//! The operator killed before and after each of its AWS calls and API-server writes, and started
//! again: one resource at the end, none after deletion. A test for each data file in `e2e/lifecycle`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use lab::crash::{self, Extent, Table};
use lab::lifecycle::{Lifecycle, all};
use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;

/// Killed at every point in each run of the tests: one resource, and two with an order between them.
const EVERYWHERE: [&str; 2] = ["vpc", "natgateway"];
/// The points of a phase where the others are killed.
const SAMPLE: usize = 3;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let table = Arc::new(Mutex::new(Table::default()));
    let trials = all()?.into_iter().map(|life| trial(life, table.clone())).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let mut table = table.lock().clone();
    table.sort();
    println!("{table}");
    Ok(conclusion.exit_code())
}

fn trial(life: Lifecycle, all: Arc<Mutex<Table>>) -> Trial {
    let (name, kind) = (life.name.clone(), life.kind().to_owned());
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(survive(&life, &all)).map_err(|error| Failed::from(format!("{error:?}")))
    })
    .with_kind(kind)
}

async fn survive(life: &Lifecycle, all: &Mutex<Table>) -> Result<()> {
    let extent = match EVERYWHERE.contains(&life.name.as_str()) {
        true => Extent::OneChange,
        false => Extent::Sample(SAMPLE),
    };
    let progress = |left: usize| {
        if std::io::stderr().is_terminal() {
            eprintln!("  … {:<24} {left} points to go", life.name);
        }
    };
    let table = crash::run(life, extent.or_as_asked(), progress).await?;
    all.lock().extend(&table);
    let failures = table.failures();
    ensure!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    for row in &table.0 {
        // A phase may take another turn than it did the first time, but not often.
        let is_often = row.missed > row.tried.div_ceil(3);
        ensure!(!is_often, anyhow!("{row:?}"));
    }
    Ok(())
}
