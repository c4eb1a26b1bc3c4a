//! Hundreds of schedules; `make simulate SEEDS=…` runs as many as wanted.

#![allow(clippy::unwrap_used, clippy::panic)]

use simulation::{SEEDS, check, run, search};

#[test]
fn no_schedule_violates_an_invariant() {
    if let Some(seed) = search(0..SEEDS, |_| {}).unwrap() {
        panic!("{}", check(seed).unwrap().unwrap());
    }
}

/// (What happens within the same millisecond may come in another order: the maps of kube have none.)
#[test]
fn a_seed_leads_to_the_same_again() {
    for seed in 0..5 {
        let runs = [run(seed, usize::MAX).unwrap(), run(seed, usize::MAX).unwrap()];
        let [first, second] = runs.map(|run| run.trace.in_order());
        let differing = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
