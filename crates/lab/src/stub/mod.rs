//! A small AWS for measuring: S3, EC2's network, IAM roles and STS, natively and in memory.
//!
//! It answers only the calls that the load benchmark needs, as AWS's reference words them, and
//! refuses all others. What it tells is what was written to it: ids, tags, rules and attributes are
//! kept, what does not exist is not found, what is in use cannot be deleted. It checks no signature,
//! and ids follow from the order of the calls: the same calls in the same order give the same ids.
//!
//! Tests want an emulator. This one is here because those are slow Python: a measurement against
//! them measures them.

mod ec2;
mod iam;
mod params;
mod record;
mod refusal;
mod s3;
mod serve;

use std::sync::Arc;
use std::time::Duration;

pub use record::Recorded;

use crate::proxy::core::Listener;
use serve::Service;

/// The account that everything belongs to.
pub const ACCOUNT: &str = "123456789012";

/// A running stub; it ends when dropped.
pub struct Stub {
    service: Arc<Service>,
    listener: Listener,
}

impl Stub {
    /// Starts one on a free loopback port, empty.
    #[must_use]
    pub fn start() -> Self {
        let service = Arc::new(Service::default());
        Self { listener: Listener::start(service.clone()), service }
    }

    /// What to give a client as the endpoint of every service.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.listener.address)
    }

    /// From now on, each call takes that long.
    pub fn set_latency(&self, latency: Duration) {
        self.service.set_latency(latency);
    }
}
