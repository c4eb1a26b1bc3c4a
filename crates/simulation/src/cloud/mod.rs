//! A model of AWS.

mod call;
mod replicas;
mod resources;
mod verbs;

pub use call::{Asked, Bug, Caller};
pub use replicas::Seen;
pub use resources::{Cloud, Request, Resource, Stage};
pub use verbs::Order;
