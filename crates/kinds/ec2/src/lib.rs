//! The kinds of Amazon EC2: networks and what secures them.

mod internet_gateway;
mod nat_gateway;
#[cfg(test)]
mod properties;
mod rule_changes;
mod rules;
mod schema;
mod security_group;
mod store;
mod subnet;
mod tags;
mod vpc;

use std::sync::Arc;

use aws::{Clients, Sessions};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::config::Builder;
use resource::{Kind, typed};

use store::Store;

/// The kinds of this service.
pub fn kinds(sessions: Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    let ec2 = Clients::new(sessions, |config, guard| {
        Client::from_conf(Builder::from(config).interceptor(guard).build())
    });
    vec![
        typed(vpc::Vpc(Store::new(&ec2))),
        typed(subnet::Subnet(Store::new(&ec2))),
        typed(internet_gateway::InternetGateway(Store::new(&ec2))),
        typed(security_group::SecurityGroup(Store::new(&ec2))),
        typed(nat_gateway::NatGateway { gateways: Store::new(&ec2), addresses: Store::new(&ec2) }),
    ]
}
