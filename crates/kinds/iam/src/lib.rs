//! The kinds of AWS IAM.

mod document;
mod role;
mod tags;

use std::sync::Arc;

use aws::{Clients, Sessions};
use aws_sdk_iam::Client;
use aws_sdk_iam::config::Builder;
use resource::{Kind, typed};

/// The kinds of this service.
pub fn kinds(sessions: Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    let iam = Clients::new(sessions, |config, guard| {
        Client::from_conf(Builder::from(config).interceptor(guard).build())
    });
    vec![typed(role::Role(iam))]
}
