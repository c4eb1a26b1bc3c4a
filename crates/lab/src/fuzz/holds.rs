//! How much AWS holds of what our kinds make.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::json;

use crate::world::World;

/// Lists of what the kinds make, and where in the answer the items are. Final snapshots are meant to
/// stay, and are not among them.
const LISTS: [(&str, &str, &str); 11] = [
    ("ec2", "describe_vpcs", "Vpcs"),
    ("ec2", "describe_subnets", "Subnets"),
    ("ec2", "describe_internet_gateways", "InternetGateways"),
    ("ec2", "describe_nat_gateways", "NatGateways"),
    ("ec2", "describe_addresses", "Addresses"),
    ("ec2", "describe_security_groups", "SecurityGroups"),
    ("iam", "list_roles", "Roles"),
    ("s3", "list_buckets", "Buckets"),
    ("rds", "describe_db_subnet_groups", "DBSubnetGroups"),
    ("rds", "describe_db_instances", "DBInstances"),
    ("rds", "describe_db_clusters", "DBClusters"),
];

/// How many there are of each, in the operator's region.
pub async fn holds(world: &World) -> Result<BTreeMap<&'static str, usize>> {
    let mut found = BTreeMap::new();
    for (service, operation, field) in LISTS {
        let answer = world.boto.call(service, operation, json!({})).await.context(operation)?;
        let items = answer[field].as_array().with_context(|| format!("{operation}: {answer}"))?;
        // A NAT gateway is shown for a while after its end.
        let alive = items.iter().filter(|item| item["State"] != "deleted");
        found.insert(field, alive.count());
    }
    let clusters = world.boto.call("eks", "list_clusters", json!({})).await.context("list_clusters")?;
    found.insert("EKS clusters", clusters["clusters"].as_array().map_or(0, Vec::len));
    Ok(found)
}
