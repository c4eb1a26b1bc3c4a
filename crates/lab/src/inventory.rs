//! What AWS holds of the common kinds, as another client than the operator sees it.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::aws::Boto;

/// A list call: what it lists, service, operation, the list in its answer, and an item's id.
const LISTS: [[&str; 5]; 11] = [
    ["VPCs", "ec2", "describe_vpcs", "Vpcs", "VpcId"],
    ["subnets", "ec2", "describe_subnets", "Subnets", "SubnetId"],
    ["internet gateways", "ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"],
    ["NAT gateways", "ec2", "describe_nat_gateways", "NatGateways", "NatGatewayId"],
    ["Elastic IPs", "ec2", "describe_addresses", "Addresses", "AllocationId"],
    ["security groups", "ec2", "describe_security_groups", "SecurityGroups", "GroupId"],
    ["roles", "iam", "list_roles", "Roles", "RoleName"],
    ["buckets", "s3", "list_buckets", "Buckets", "Name"],
    ["DB subnet groups", "rds", "describe_db_subnet_groups", "DBSubnetGroups", "DBSubnetGroupName"],
    ["DB instances", "rds", "describe_db_instances", "DBInstances", "DBInstanceIdentifier"],
    ["DB snapshots", "rds", "describe_db_snapshots", "DBSnapshots", "DBSnapshotIdentifier"],
];

/// The ids of everything there is, list by list.
#[derive(Debug, Clone)]
pub struct Inventory(Vec<BTreeSet<String>>);

impl Inventory {
    /// Asks AWS.
    pub async fn take(aws: &Boto) -> Result<Self> {
        let mut lists = Vec::new();
        for [_, service, operation, list, id] in LISTS {
            let answer = aws.call(service, operation, json!({})).await?;
            let items = answer[list].as_array().with_context(|| format!("{operation} without {list}"))?;
            let living = items.iter().filter(|item| counts(item));
            lists.push(living.filter_map(|item| Some(item.get(id)?.as_str()?.to_owned())).collect());
        }
        Ok(Self(lists))
    }

    /// What was not there before, list by list.
    #[must_use]
    pub fn beyond(&self, before: &Self) -> Vec<(&'static str, Vec<String>)> {
        let names = LISTS.map(|[name, ..]| name);
        let lists =
            self.0.iter().zip(&before.0).map(|(now, before)| now.difference(before).cloned().collect());
        names.into_iter().zip(lists).collect()
    }

    /// The ids that were not there before.
    #[must_use]
    pub fn new_since(&self, before: &Self) -> BTreeSet<String> {
        self.beyond(before).into_iter().flat_map(|(_, ids)| ids).collect()
    }
}

/// A NAT gateway stays visible for an hour after it is deleted; a VPC comes with a group of its own.
fn counts(item: &Value) -> bool {
    item["State"] != "deleted" && item["GroupName"] != "default"
}
