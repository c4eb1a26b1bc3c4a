//! Objects at random, from what each CRD publishes: the API server refuses one, or the operator says
//! clearly what is wrong with it; and whatever it is, it goes without a trace and harms nobody.
//!
//! An object follows from its seed alone. The generator knows the schema but none of its rules, so
//! that many specs are refused by them; and it knows the values of the data files in `e2e/lifecycle`,
//! so that many get through to AWS. Some are changed afterwards, in ways that follow from the same seed.

mod batch;
mod change;
mod generate;
mod healthy;
mod holds;
mod judge;
mod known;
mod send;
mod specimen;
mod tally;
mod words;

pub use batch::Batch;
pub use change::Change;
pub use healthy::{Healthy, Times};
pub use holds::holds;
pub use specimen::{Specimen, Stock};
pub use tally::Tally;
