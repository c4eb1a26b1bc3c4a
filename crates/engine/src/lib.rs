//! Runs kinds: watch, resolve, observe, decide, act, report. Knows no AWS service.
//!
//! The way of one object stands in [`reconcile`]; each of its steps is a file there.

mod client;
mod clock;
mod cluster;
mod context;
mod crds;
mod events;
mod faces;
mod graph;
mod lease;
mod memory;
mod metrics;
mod object;
mod pace;
mod packed;
mod reconcile;
mod run;
mod secrets;
mod turns;
mod vital;
mod watch;

pub use client::client;
pub use clock::{Clock, SystemClock};
pub use context::{Accounts, CrossNamespace, Options};
pub use lease::{Fence, Leadership};
pub use metrics::Metrics;
pub use run::{Ended, Engine};
