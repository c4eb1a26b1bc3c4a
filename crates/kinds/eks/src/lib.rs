//! The kinds of Amazon EKS.

mod cluster;
mod live;
mod spec;
mod step;
mod updates;

use std::sync::Arc;

use aws::{Clients, Sessions};
use aws_sdk_eks::Client;
use aws_sdk_eks::config::Builder;
use resource::{Kind, typed};

use updates::Updates;

/// The kinds of this service.
pub fn kinds(sessions: Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    let eks = Clients::new(sessions, |config, guard| {
        Client::from_conf(Builder::from(config).interceptor(guard).build())
    });
    vec![typed(cluster::Cluster { clients: eks, updates: Updates::default() })]
}
