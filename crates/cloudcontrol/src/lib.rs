//! Every CloudFormation type as a kind, from data: the types' schemas, and AWS's Cloud Control API.

mod compare;
mod event;
mod follow;
mod patch;
#[cfg(test)]
mod properties;
mod resource_kind;
mod schema;
mod tags;

use std::sync::Arc;

use aws::{Clients, Sessions};
use aws_sdk_cloudcontrol::Client;
use aws_sdk_cloudcontrol::config::Builder;
use resource::{Kind, typed};

use resource_kind::CloudControlResource;

/// The one kind for all types.
pub fn kinds(sessions: Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    let clients = Clients::new(sessions, |config, guard| {
        Client::from_conf(Builder::from(config).interceptor(guard).build())
    });
    vec![typed(CloudControlResource(clients))]
}
