//! `simulate --seeds 10000`, or `--seed 42` to replay one.
//!
//! Ends with 0 if every invariant held, with 1 if one was violated, with 2 if it could not be tried.

use std::process::ExitCode;

use clap::Parser;
use simulation::{check, search};

/// Runs the engine through simulated schedules.
#[derive(Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Replays this one, and shows what happened.
    #[arg(long)]
    seed: Option<u64>,
    /// Only so many steps of its script.
    #[arg(long)]
    steps: Option<usize>,
}

fn main() -> ExitCode {
    match simulate(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every invariant held.
fn simulate(args: &Args) -> anyhow::Result<bool> {
    if let Some(seed) = args.seed {
        return replay(seed, args.steps);
    }
    let progress = |done| {
        if done % 100 == 0 {
            eprintln!("{done} of {} seeds", args.seeds);
        }
    };
    match search(args.from..args.from + args.seeds, progress)? {
        Some(failure) => {
            println!("{failure}");
            Ok(false)
        }
        None => {
            println!("{} seeds, no invariant violated", args.seeds);
            Ok(true)
        }
    }
}

fn replay(seed: u64, steps: Option<usize>) -> anyhow::Result<bool> {
    if steps.is_none()
        && let Some(failure) = check(seed)?
    {
        println!("{failure}");
        return Ok(false);
    }
    let outcome = simulation::run(seed, steps.unwrap_or(usize::MAX))?;
    println!("{}", outcome.trace);
    println!(
        "seed {seed}: {} steps, {} effects, {} starts of the engine: {}",
        outcome.steps,
        outcome.effects,
        outcome.lives,
        outcome.violation.as_deref().unwrap_or("no invariant violated"),
    );
    Ok(outcome.violation.is_none())
}
