//! AWS's Cloud Control API, from its published reference: resources of any CloudFormation type, made,
//! changed and deleted by requests that take their time. The types' schemas are the real ones; what
//! stands behind them is a store of JSON.
//!
//! It is a server of its own. A test that wants faults, lost answers or a log puts an
//! [`AwsProxy`](crate::proxy::AwsProxy) before it.

mod api;
mod model;
mod refusal;
mod request;
mod serve;
mod store;
mod types;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::proxy::core::Listener;
use request::Failure;
pub use request::Operation;
use serve::Service;

/// A running Cloud Control; it ends when dropped.
pub struct CloudControl {
    service: Arc<Service>,
    listener: Listener,
}

impl CloudControl {
    /// Starts one on a free loopback port, without any resource.
    #[must_use]
    pub fn start() -> Self {
        let service = Arc::new(Service::default());
        Self { listener: Listener::start(service.clone()), service }
    }

    /// What to give a client as the service's endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.listener.address)
    }

    /// From now on, requests of this operation are IN_PROGRESS for that many looks at them.
    pub fn slow(&self, operation: Operation, polls: usize) {
        self.service.store().slow(operation, polls);
    }

    /// The next request of this operation ends FAILED with this HandlerErrorCode.
    pub fn fail_next(&self, operation: Operation, code: &str, message: &str) {
        self.service.store().fail_next(operation, Failure::new(code, message));
    }

    /// The next create ends FAILED with this HandlerErrorCode, and what it made stays.
    pub fn strand_next(&self, code: &str, message: &str) {
        let failure = Failure { strands: true, ..Failure::new(code, message) };
        self.service.store().fail_next(Operation::Create, failure);
    }

    /// Lets time pass for client tokens.
    pub fn pass(&self, time: Duration) {
        self.service.store().pass(time);
    }

    /// Forgets all requests, as AWS does after some days; those that run have no effect any more.
    pub fn forget(&self) {
        self.service.store().forget();
    }

    /// All resources of a type by identifier, with what the API never shows.
    #[must_use]
    pub fn resources(&self, type_name: &str) -> Vec<(String, Value)> {
        self.service.store().resources(type_name)
    }
}
