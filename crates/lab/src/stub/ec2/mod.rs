//! EC2's network: VPCs, subnets, internet gateways, security groups.

mod group;
mod item;
mod network;

use super::params::Params;
use super::refusal::Refusal;
use crate::proxy::aws::asked::Asked;
use crate::proxy::aws::xml::Element;
use item::{Items, Type};

pub(super) struct Ec2 {
    vpcs: Items,
    subnets: Items,
    gateways: Items,
    groups: Items,
}

impl Default for Ec2 {
    fn default() -> Self {
        Self {
            vpcs: Items::new(Type {
                name: "vpc",
                prefix: "vpc",
                id: "vpcId",
                param: "VpcId",
                filter: "vpc-id",
                set: "vpcSet",
                missing: "InvalidVpcID.NotFound",
            }),
            subnets: Items::new(Type {
                name: "subnet",
                prefix: "subnet",
                id: "subnetId",
                param: "SubnetId",
                filter: "subnet-id",
                set: "subnetSet",
                missing: "InvalidSubnetID.NotFound",
            }),
            gateways: Items::new(Type {
                name: "internet-gateway",
                prefix: "igw",
                id: "internetGatewayId",
                param: "InternetGatewayId",
                filter: "internet-gateway-id",
                set: "internetGatewaySet",
                missing: "InvalidInternetGatewayID.NotFound",
            }),
            groups: Items::new(Type {
                name: "security-group",
                prefix: "sg",
                id: "groupId",
                param: "GroupId",
                filter: "group-id",
                set: "securityGroupInfo",
                missing: "InvalidGroup.NotFound",
            }),
        }
    }
}

/// What stands in an answer.
type Answer = Result<Vec<Element>, Refusal>;

impl Ec2 {
    pub fn answer(&mut self, asked: &Asked) -> Result<Element, Refusal> {
        let params = &Params::new(&asked.params);
        let answer = match asked.operation.as_str() {
            "DescribeVpcs" => self.vpcs.describe(asked),
            "DescribeSubnets" => self.subnets.describe(asked),
            "DescribeInternetGateways" => self.gateways.describe(asked),
            "DescribeSecurityGroups" => self.groups.describe(asked),
            // Nobody can make one here.
            "DescribeNatGateways" => Ok(vec![Element::new("natGatewaySet")]),
            "DescribeAddresses" => Ok(vec![Element::new("addressesSet")]),
            "CreateTags" => self.tag(params),
            "DeleteTags" => self.untag(params),
            "CreateVpc" => self.create_vpc(params),
            "DeleteVpc" => self.delete_vpc(params),
            "DescribeVpcAttribute" => self.vpc_attribute(params),
            "ModifyVpcAttribute" => self.modify_vpc(params),
            "CreateSubnet" => self.create_subnet(params),
            "DeleteSubnet" => self.subnets.remove(params).map(|()| done()),
            "ModifySubnetAttribute" => self.modify_subnet(params),
            "CreateInternetGateway" => self.create_gateway(params),
            "DeleteInternetGateway" => self.delete_gateway(params),
            "AttachInternetGateway" => self.attach_gateway(params),
            "DetachInternetGateway" => self.detach_gateway(params),
            "CreateSecurityGroup" => self.create_group(params),
            "DeleteSecurityGroup" => self.delete_group(params),
            "AuthorizeSecurityGroupIngress" => self.authorize(params, group::INGRESS),
            "AuthorizeSecurityGroupEgress" => self.authorize(params, group::EGRESS),
            "RevokeSecurityGroupIngress" => self.revoke(params, group::INGRESS),
            "RevokeSecurityGroupEgress" => self.revoke(params, group::EGRESS),
            other => Err(Refusal::unknown(other)),
        };
        let mut root = Element::new(&format!("{}Response", asked.operation));
        answer?.into_iter().for_each(|part| root.push(part));
        Ok(root)
    }

    fn tag(&mut self, params: &Params<'_>) -> Answer {
        for id in params.values("ResourceId") {
            self.anything(id)?.extend(params.tags("Tag"));
        }
        Ok(done())
    }

    /// A tag goes whatever its value is, unless a value is given.
    fn untag(&mut self, params: &Params<'_>) -> Answer {
        let tags = params.items("Tag");
        for id in params.values("ResourceId") {
            self.anything(id)?.retain(|key, value| {
                let named = tags.iter().find(|tag| tag.get("Key") == Some(key));
                named.is_none_or(|tag| tag.get("Value").is_some_and(|given| given != value))
            });
        }
        Ok(done())
    }

    /// The tags of a resource of any type.
    fn anything(&mut self, id: &str) -> Result<&mut super::params::Tags, Refusal> {
        let Self { vpcs, subnets, gateways, groups } = self;
        let all = [vpcs, subnets, gateways, groups];
        let found = all.into_iter().find_map(|items| items.find(id));
        let missing = || Refusal::new("InvalidID", format!("The ID '{id}' is not valid"));
        found.map(|item| &mut item.tags).ok_or_else(missing)
    }
}

/// The answer to what has nothing to tell.
fn done() -> Vec<Element> {
    vec![Element::text_of("return", "true")]
}
