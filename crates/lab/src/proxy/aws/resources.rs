//! The resources that the proxy knows, by the names AWS's calls and answers give them.

/// One kind of resource. A kind that is to lag, to be slow or to be missed needs a line below.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub service: &'static str,
    /// The operations that make one.
    pub creates: &'static [&'static str],
    pub delete: &'static str,
    /// The operation that lists them, and the element that holds the list.
    pub describe: &'static str,
    pub set: &'static str,
    /// The element with the identifier, and the parameter that asks for one.
    pub id: &'static str,
    pub param: &'static str,
    /// The element with the state, if it has states.
    pub state: Option<&'static str>,
    pub not_found: &'static str,
    /// AWS's message; `{}` is the identifier.
    pub message: &'static str,
}

impl Resource {
    pub fn missing(&self, id: &str) -> String {
        self.message.replace("{}", id)
    }

    pub fn created_by(operation: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|resource| resource.creates.contains(&operation))
    }

    pub fn deleted_by(operation: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|resource| resource.delete == operation)
    }

    pub fn described_by(operation: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|resource| resource.describe == operation)
    }
}

const fn ec2(
    creates: &'static [&'static str],
    delete: &'static str,
    describe: &'static str,
    set: &'static str,
    (id, param): (&'static str, &'static str),
    (not_found, message): (&'static str, &'static str),
) -> Resource {
    Resource { service: "ec2", creates, delete, describe, set, id, param, state: None, not_found, message }
}

const fn with_state(resource: Resource) -> Resource {
    Resource { state: Some("state"), ..resource }
}

const fn iam(
    creates: &'static [&'static str],
    delete: &'static str,
    describe: &'static str,
    set: &'static str,
    (id, param): (&'static str, &'static str),
    message: &'static str,
) -> Resource {
    let resource = ec2(creates, delete, describe, set, (id, param), ("NoSuchEntity", message));
    Resource { service: "iam", ..resource }
}

static RESOURCES: [Resource; 15] = [
    with_state(ec2(
        &["CreateVpc"],
        "DeleteVpc",
        "DescribeVpcs",
        "vpcSet",
        ("vpcId", "VpcId"),
        ("InvalidVpcID.NotFound", "The vpc ID '{}' does not exist"),
    )),
    with_state(ec2(
        &["CreateSubnet"],
        "DeleteSubnet",
        "DescribeSubnets",
        "subnetSet",
        ("subnetId", "SubnetId"),
        ("InvalidSubnetID.NotFound", "The subnet ID '{}' does not exist"),
    )),
    ec2(
        &["CreateInternetGateway"],
        "DeleteInternetGateway",
        "DescribeInternetGateways",
        "internetGatewaySet",
        ("internetGatewayId", "InternetGatewayId"),
        ("InvalidInternetGatewayID.NotFound", "The internetGateway ID '{}' does not exist"),
    ),
    ec2(
        &["CreateEgressOnlyInternetGateway"],
        "DeleteEgressOnlyInternetGateway",
        "DescribeEgressOnlyInternetGateways",
        "egressOnlyInternetGatewaySet",
        ("egressOnlyInternetGatewayId", "EgressOnlyInternetGatewayId"),
        ("InvalidGatewayID.NotFound", "The eigw ID '{}' does not exist"),
    ),
    with_state(ec2(
        &["CreateNatGateway"],
        "DeleteNatGateway",
        "DescribeNatGateways",
        "natGatewaySet",
        ("natGatewayId", "NatGatewayId"),
        ("NatGatewayNotFound", "NAT gateway {} was not found"),
    )),
    ec2(
        &["AllocateAddress"],
        "ReleaseAddress",
        "DescribeAddresses",
        "addressesSet",
        ("allocationId", "AllocationId"),
        ("InvalidAllocationID.NotFound", "The allocation ID '{}' does not exist"),
    ),
    ec2(
        &["CreateSecurityGroup"],
        "DeleteSecurityGroup",
        "DescribeSecurityGroups",
        "securityGroupInfo",
        ("groupId", "GroupId"),
        ("InvalidGroup.NotFound", "The security group '{}' does not exist"),
    ),
    ec2(
        &["AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress"],
        "",
        "DescribeSecurityGroupRules",
        "securityGroupRuleSet",
        ("securityGroupRuleId", "SecurityGroupRuleId"),
        ("InvalidSecurityGroupRuleId.NotFound", "The security group rule ID '{}' does not exist"),
    ),
    ec2(
        &["CreateRouteTable"],
        "DeleteRouteTable",
        "DescribeRouteTables",
        "routeTableSet",
        ("routeTableId", "RouteTableId"),
        ("InvalidRouteTableID.NotFound", "The routeTable ID '{}' does not exist"),
    ),
    with_state(ec2(
        &["CreateVpcEndpoint"],
        "DeleteVpcEndpoints",
        "DescribeVpcEndpoints",
        "vpcEndpointSet",
        ("vpcEndpointId", "VpcEndpointId"),
        ("InvalidVpcEndpointId.NotFound", "The Vpc Endpoint Id '{}' does not exist"),
    )),
    ec2(
        &["CreateVpcPeeringConnection"],
        "DeleteVpcPeeringConnection",
        "DescribeVpcPeeringConnections",
        "vpcPeeringConnectionSet",
        ("vpcPeeringConnectionId", "VpcPeeringConnectionId"),
        ("InvalidVpcPeeringConnectionID.NotFound", "The vpcPeeringConnection ID '{}' does not exist"),
    ),
    ec2(
        &["CreateKeyPair", "ImportKeyPair"],
        "DeleteKeyPair",
        "DescribeKeyPairs",
        "keySet",
        ("keyName", "KeyName"),
        ("InvalidKeyPair.NotFound", "The key pair '{}' does not exist"),
    ),
    iam(
        &["CreateRole"],
        "DeleteRole",
        "ListRoles",
        "Roles",
        ("RoleName", "RoleName"),
        "The role with name {} cannot be found.",
    ),
    iam(
        &["CreateInstanceProfile"],
        "DeleteInstanceProfile",
        "ListInstanceProfiles",
        "InstanceProfiles",
        ("InstanceProfileName", "InstanceProfileName"),
        "Instance Profile {} cannot be found.",
    ),
    iam(
        &["CreatePolicy"],
        "DeletePolicy",
        "ListPolicies",
        "Policies",
        ("Arn", "PolicyArn"),
        "Policy {} was not found.",
    ),
];
