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
    /// Does not look for the shortest part of a script that fails.
    #[arg(long)]
    quick: bool,
    /// Runs each seed twice, and counts those that lead to the same.
    #[arg(long)]
    twice: bool,
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
    if args.twice {
        return compare(args.from..args.from + args.seeds);
    }
    let progress = |done| {
        if done % 100 == 0 {
            eprintln!("{done} of {} seeds", args.seeds);
        }
    };
    match search(args.from..args.from + args.seeds, progress)? {
        Some(seed) => replay(seed, args.quick.then_some(usize::MAX)),
        None => {
            println!("{} seeds, no invariant violated", args.seeds);
            Ok(true)
        }
    }
}

/// Whether every seed leads to the same twice.
fn compare(seeds: std::ops::Range<u64>) -> anyhow::Result<bool> {
    let (count, mut same) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        let lines = || anyhow::Ok(simulation::run(seed, usize::MAX)?.trace.in_order());
        let (first, second) = (lines()?, lines()?);
        match first.iter().zip(&second).find(|(first, second)| first != second) {
            None if first.len() == second.len() => same += 1,
            parted => println!("seed {seed} parts at {parted:?}"),
        }
    }
    println!("{same} of {count} seeds lead to the same twice");
    Ok(same == count)
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
