//! `make bench`: what the operator costs as objects grow. CPU, memory, AWS calls, API-server
//! requests and times, in phases: created, left alone, touched, restarted, checked.
//!
//! The operator runs against a real control plane and a native AWS stub, each a process of its own.
//! Nothing here passes or fails: it measures, and prints a table and the Markdown of
//! docs/performance.md.

mod api;
mod load;
mod path;
mod phases;
mod progress;
mod site;
mod table;
mod usage;
mod watch;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lab::Stub;

use load::Load;
use progress::Progress;
use table::{Path, Run};

const USAGE: &str = "usage: bench [SCENARIO…]

  buckets-N vpcs-N subnets-N groups-N   N objects of a kind
  stacks-N                              N stacks of eight dependent objects
  path                                  how long a stack takes against its calls alone

Without a scenario: all of them, with 1,000 objects and with 10,000.";

/// What is measured unless the user says.
const ALL: [&str; 8] = [
    "path",
    "buckets-1000",
    "vpcs-1000",
    "stacks-200",
    "subnets-1000",
    "groups-1000",
    "buckets-10000",
    "vpcs-10000",
];

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg.starts_with('-')) {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [word] if *word == site::STUB => stub().await,
        [] => bench(&ALL).await,
        chosen => bench(chosen).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The stub, in a process of its own: says where it is, and ends with this process's parent.
async fn stub() -> Result<()> {
    let stub = Stub::start();
    println!("{}", stub.endpoint());
    std::future::pending().await
}

async fn bench(names: &[&str]) -> Result<()> {
    let known = names.iter().map(|name| Ok((*name, scenario(name)?)));
    let known: Vec<(&str, Option<Load>)> = known.collect::<Result<_>>()?;
    let mut progress = Progress::open();
    let (mut runs, mut paths): (Vec<Run>, Vec<Path>) = Default::default();
    for (name, load) in known {
        match load {
            Some(load) => {
                let run = phases::run(&load, &mut progress).await.with_context(|| name.to_owned())?;
                println!("{}", table::aligned(&run));
                runs.push(run);
            }
            None => {
                let found = path::run(&mut progress).await.with_context(|| name.to_owned())?;
                println!("{}", table::aligned_paths(&found));
                paths.extend(found);
            }
        }
    }
    println!("{}", table::markdown(&runs, &paths, &names.join(" ")));
    Ok(())
}

/// None: the critical path.
fn scenario(name: &str) -> Result<Option<Load>> {
    if name == "path" {
        return Ok(None);
    }
    let parts = name.rsplit_once('-').and_then(|(what, count)| Some((what, count.parse().ok()?)));
    let Some((what, count)) = parts else { bail!("no such scenario: {name}\n\n{USAGE}") };
    let load = Load::of(what, count).with_context(|| format!("no such scenario: {name}\n\n{USAGE}"))?;
    Ok(Some(load))
}
