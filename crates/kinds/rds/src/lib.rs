//! The kinds of Amazon RDS: databases and where they stand.

mod db_cluster;
mod db_instance;
mod db_subnet_group;
mod logs;
mod modify;
mod password;
mod pending;
#[cfg(test)]
mod properties;
mod schema;
mod snapshot;
mod state;
mod storage;
mod store;
mod tags;
mod version;
mod words;

use std::sync::Arc;

use aws::{Clients, Sessions};
use aws_sdk_rds::Client;
use aws_sdk_rds::config::Builder;
use resource::{Kind, typed};

use store::Store;

/// The kinds of this service.
pub fn kinds(sessions: Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    let rds = Clients::new(sessions, |config, guard| {
        Client::from_conf(Builder::from(config).interceptor(guard).build())
    });
    vec![
        typed(db_subnet_group::DbSubnetGroup(rds.clone())),
        typed(db_instance::DbInstance(Store::new(&rds))),
        typed(db_cluster::DbCluster(Store::new(&rds))),
    ]
}
