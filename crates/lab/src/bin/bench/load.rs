//! What is created.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The objects of a scenario.
pub struct Load {
    /// Its name.
    pub name: String,
    /// What the objects are, for a person.
    pub about: &'static str,
    /// The manifests, in the order in which they are created.
    pub objects: Vec<Value>,
    /// Calls to these are shared by many objects.
    pub count: usize,
}

impl Load {
    /// Of a kind, or of stacks of several.
    pub fn of(what: &str, count: usize) -> Option<Self> {
        let (about, objects): (_, Vec<Value>) = match what {
            "buckets" => ("buckets with versioning and tags", (0..count).map(bucket).collect()),
            "vpcs" => ("VPCs with enableDnsHostnames", (0..count).map(vpc).collect()),
            "subnets" => {
                ("subnets of one VPC", [vpc(0)].into_iter().chain((0..count).map(|n| subnet(n, 0))).collect())
            }
            "groups" => (
                "security groups of one VPC",
                [vpc(0)].into_iter().chain((0..count).map(|n| group(n, 0))).collect(),
            ),
            "stacks" => ("objects in stacks of eight", (0..count).flat_map(stack).collect()),
            _ => return None,
        };
        Some(Self { name: format!("{what}-{count}"), about, count: objects.len(), objects })
    }

    /// The kinds among the objects.
    pub fn kinds(&self) -> BTreeSet<String> {
        self.objects.iter().filter_map(|object| object["kind"].as_str()).map(str::to_owned).collect()
    }
}

/// A VPC and what commonly stands in it: seven objects that refer to it or to nothing.
pub fn stack(number: usize) -> Vec<Value> {
    vec![
        vpc(number),
        subnet(2 * number, number),
        subnet(2 * number + 1, number),
        gateway(number),
        group(2 * number, number),
        group(2 * number + 1, number),
        role(number),
        bucket(number),
    ]
}

/// What waits for each other: nothing can be done before the one before is done.
pub fn chain() -> Vec<Value> {
    vec![vpc(0), subnet(0, 0)]
}

fn object(kind: &str, name: &str, number: usize, spec: Value) -> Value {
    json!({
        "apiVersion": "aws.konfig.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": format!("{name}-{number}")},
        "spec": spec,
    })
}

fn tags() -> Value {
    json!({"team": "platform", "stage": "bench"})
}

fn bucket(number: usize) -> Value {
    let spec = json!({"bucketName": format!("bench-bucket-{number}"), "versioning": true, "tags": tags()});
    object("S3Bucket", "bucket", number, spec)
}

fn vpc(number: usize) -> Value {
    let spec = json!({"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": true, "tags": tags()});
    object("VPC", "vpc", number, spec)
}

fn subnet(number: usize, vpc: usize) -> Value {
    let spec = json!({
        "vpcRef": {"name": format!("vpc-{vpc}")},
        "cidrBlock": format!("10.0.{}.{}/28", number / 16 % 256, number % 16 * 16),
        "availabilityZone": "eu-west-1a",
        "tags": tags(),
    });
    object("Subnet", "subnet", number, spec)
}

fn gateway(number: usize) -> Value {
    let spec = json!({"vpcRef": {"name": format!("vpc-{number}")}, "tags": tags()});
    object("InternetGateway", "gateway", number, spec)
}

fn group(number: usize, vpc: usize) -> Value {
    let rule = json!({"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "0.0.0.0/0"});
    let spec = json!({
        "vpcRef": {"name": format!("vpc-{vpc}")},
        "groupName": format!("group-{number}"),
        "description": "bench",
        "ingressRules": [rule],
        "tags": tags(),
    });
    object("SecurityGroup", "group", number, spec)
}

fn role(number: usize) -> Value {
    let document = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": {"Service": "ec2.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }],
    });
    let spec = json!({
        "roleName": format!("bench-role-{number}"),
        "assumeRolePolicyDocument": document.to_string(),
        "tags": tags(),
    });
    object("IAMRole", "role", number, spec)
}
