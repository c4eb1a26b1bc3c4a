//! Manifests of our kinds, as short as they can be: what a test means to say beyond that, it says.

use serde_json::{Value, json};

/// What a user applies first.
pub const QUICKSTART: &str = include_str!("../../../examples/quickstart.yaml");

/// A manifest of one object. JSON is YAML.
#[must_use]
pub fn of(kind: &str, name: &str, spec: Value) -> String {
    json!({
        "apiVersion": "aws.konfig.io/v1alpha1",
        "kind": kind,
        "metadata": { "name": name },
        "spec": spec,
    })
    .to_string()
}

/// Several of them in one text, in this order.
#[must_use]
pub fn all<T: AsRef<str>>(manifests: &[T]) -> String {
    manifests.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("\n---\n")
}

/// The quickstart's network and role: as much of it as each emulator has.
#[must_use]
pub fn quickstart_network() -> String {
    const BEYOND: [&str; 4] = ["S3Bucket", "Secret", "DBSubnetGroup", "DBInstance"];
    let is_beyond = |manifest: &&str| BEYOND.iter().any(|kind| manifest.contains(&format!("kind: {kind}\n")));
    let network = QUICKSTART.split("\n---\n").filter(|manifest| !is_beyond(manifest));
    all(&network.collect::<Vec<_>>())
}

/// A VPC with the range 10.0.0.0/16.
#[must_use]
pub fn vpc(name: &str) -> String {
    of("VPC", name, json!({ "cidrBlock": "10.0.0.0/16" }))
}

/// A subnet in the VPC of that name, with the range `10.0.<number>.0/24`.
#[must_use]
pub fn subnet(name: &str, vpc: &str, number: u8) -> String {
    of("Subnet", name, subnet_spec(json!({ "name": vpc }), number))
}

/// A subnet's spec.
#[must_use]
pub fn subnet_spec(vpc_ref: Value, number: u8) -> Value {
    json!({
        "vpcRef": vpc_ref,
        "cidrBlock": format!("10.0.{number}.0/24"),
        "availabilityZone": "eu-west-1a",
    })
}

/// An internet gateway of the VPC of that name.
#[must_use]
pub fn internet_gateway(name: &str, vpc: &str) -> String {
    of("InternetGateway", name, json!({ "vpcRef": { "name": vpc } }))
}

/// A security group in the VPC of that name, reached on port 443 by the groups of these names.
#[must_use]
pub fn security_group(name: &str, vpc: &str, sources: &[&str]) -> String {
    let rule = |source: &&str| json!({ "protocol": "tcp", "fromPort": 443, "toPort": 443, "sourceGroupRef": source });
    let rules = sources.iter().map(rule).collect::<Vec<_>>();
    let spec = json!({
        "vpcRef": { "name": vpc },
        "groupName": name,
        "description": "of a test",
        "ingressRules": rules,
    });
    of("SecurityGroup", name, spec)
}

/// A public NAT gateway in the subnet of that name.
#[must_use]
pub fn nat_gateway(name: &str, subnet: &str) -> String {
    of("NatGateway", name, json!({ "subnetRef": { "name": subnet } }))
}

/// A role that EC2 may take on.
#[must_use]
pub fn role(name: &str) -> String {
    let trust = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": { "Service": "ec2.amazonaws.com" },
            "Action": "sts:AssumeRole",
        }],
    });
    of("IAMRole", name, json!({ "roleName": name, "assumeRolePolicyDocument": trust.to_string() }))
}
