//! Thousands of schedules: the real engine on a model of the cluster and of AWS, with a seed.
//!
//! Time is paused and passes as fast as it is waited for; what goes wrong follows from the seed. After every
//! effect of the engine the invariants are looked at (`invariants.rs`), and at the end of a run whether the world
//! has settled (`settled.rs`). A run is led by [`run()`].

mod api;
mod chance;
mod cloud;
mod crds;
mod foreign;
mod invariants;
mod kinds;
mod rest;
mod run;
mod script;
mod secrets;
mod seeds;
mod settled;
mod time;
mod trace;
mod user;
mod weather;
mod world;

/// How many seeds the tests run, and within how many each mutant must be caught.
pub const SEEDS: u64 = 250;

pub use run::{Outcome, run};
pub use seeds::{Failure, check, search};
pub use trace::Trace;
