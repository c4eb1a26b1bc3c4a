//! Objects at random, from what each CRD publishes: the API server refuses one, or the operator says
//! clearly what is wrong with it; and whatever it is, it goes without a trace and harms nobody.
//!
//! An object follows from its seed alone. The generator knows the schema but none of its rules, so
//! that many specs are refused by them; and it knows the values of the data files in `e2e/lifecycle`,
//! so that many get through to AWS.

mod batch;
mod create;
mod generate;
mod healthy;
mod holds;
mod judge;
mod known;
mod specimen;
mod words;

pub use batch::{Batch, Tally};
pub use healthy::{Healthy, Times};
pub use holds::holds;
pub use specimen::{Specimen, Stock};
