//! A model of the Kubernetes API server.

mod objects;
mod request;
mod server;
mod watch;

pub use objects::{Change, Key, Refusal, Store};
pub use server::{client, wall};
