//! Runs kinds: watch, resolve, observe, decide, act, report. Knows no AWS service.
//!
//! The way of one object stands in [`reconcile`]; each of its steps is a file there.

mod clock;
mod cluster;
mod context;
mod crds;
mod events;
mod graph;
mod lease;
mod memory;
mod metrics;
mod object;
mod reconcile;
mod run;
mod secrets;
mod watch;

pub use clock::{Clock, SystemClock};
pub use context::{Accounts, CrossNamespace, Options};
pub use lease::{Fence, Leadership};
pub use metrics::Metrics;
pub use run::Engine;

/// The API group of all kinds.
pub const GROUP: &str = "aws.konfig.io";
/// The version of all kinds.
pub const VERSION: &str = "v1alpha1";
/// Keeps an object until its AWS resource is gone.
pub const FINALIZER: &str = "aws.konfig.io/finalizer";
/// The controller's name in events and leases.
pub const CONTROLLER: &str = "konfig-konector";
