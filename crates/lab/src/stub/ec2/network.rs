//! VPCs, subnets and internet gateways.

use super::super::ACCOUNT;
use super::super::params::Params;
use super::super::refusal::Refusal;
use super::item::{Item, fields};
use super::{Answer, Ec2, done};
use crate::proxy::aws::xml::Element;

/// The attributes of a VPC that have calls of their own: parameter, field, value in a new VPC.
const ATTRIBUTES: [(&str, &str, bool); 2] =
    [("EnableDnsSupport", "enableDnsSupport", true), ("EnableDnsHostnames", "enableDnsHostnames", false)];

impl Ec2 {
    pub(super) fn create_vpc(&mut self, params: &Params<'_>) -> Answer {
        let cidr = params.text("CidrBlock")?;
        let tenancy = params.get("InstanceTenancy").unwrap_or("default");
        let state = [("cidrBlock", cidr), ("instanceTenancy", tenancy), ("state", "available")];
        let vpc = self.vpcs.make(params, &state);
        vpc.fields.extend([("ownerId", ACCOUNT.to_owned()), ("isDefault", "false".to_owned())]);
        let mut association = fields("item", &[("cidrBlock", cidr), ("associationId", "vpc-cidr-assoc-1")]);
        association.push(fields("cidrBlockState", &[("state", "associated")]));
        vpc.lists.insert("cidrBlockAssociationSet", vec![association]);
        vpc.attributes = ATTRIBUTES.iter().map(|(_, field, value)| (*field, *value)).collect();
        Ok(vec![vpc.element("vpc")])
    }

    pub(super) fn delete_vpc(&mut self, params: &Params<'_>) -> Answer {
        let id = params.text("VpcId")?;
        let inside = self.subnets.iter().chain(self.groups.iter()).any(|item| item.field("vpcId") == id);
        if inside || self.gateways.iter().any(|gateway| attached_to(gateway).as_deref() == Some(id)) {
            let message = format!("The vpc '{id}' has dependencies and cannot be deleted.");
            return Err(Refusal::new("DependencyViolation", message));
        }
        self.vpcs.remove(params).map(|()| done())
    }

    pub(super) fn vpc_attribute(&mut self, params: &Params<'_>) -> Answer {
        let (vpc, name) = (self.vpcs.named(params)?, params.text("Attribute")?);
        let unknown = || Refusal::new("InvalidParameterValue", format!("no attribute {name}"));
        let value = vpc.attributes.get(name).ok_or_else(unknown)?.to_string();
        Ok(vec![Element::text_of("vpcId", vpc.field("vpcId")), fields(name, &[("value", &value)])])
    }

    pub(super) fn modify_vpc(&mut self, params: &Params<'_>) -> Answer {
        let vpc = self.vpcs.named(params)?;
        for (param, field, _) in ATTRIBUTES {
            if let Some(value) = params.get(&format!("{param}.Value")) {
                vpc.attributes.insert(field, value == "true");
            }
        }
        Ok(done())
    }

    pub(super) fn create_subnet(&mut self, params: &Params<'_>) -> Answer {
        let (cidr, vpc) = (params.text("CidrBlock")?, params.text("VpcId")?);
        self.vpcs.get(vpc)?;
        let taken =
            self.subnets.iter().any(|other| other.field("vpcId") == vpc && other.field("cidrBlock") == cidr);
        if taken {
            let message = format!("The CIDR '{cidr}' conflicts with another subnet");
            return Err(Refusal::new("InvalidSubnet.Conflict", message));
        }
        let state = [
            ("cidrBlock", cidr),
            ("vpcId", vpc),
            ("availabilityZone", params.get("AvailabilityZone").unwrap_or("eu-west-1a")),
            ("availableIpAddressCount", "251"),
            ("mapPublicIpOnLaunch", "false"),
            ("state", "available"),
        ];
        Ok(vec![self.subnets.make(params, &state).element("subnet")])
    }

    pub(super) fn modify_subnet(&mut self, params: &Params<'_>) -> Answer {
        let subnet = self.subnets.named(params)?;
        if let Some(value) = params.get("MapPublicIpOnLaunch.Value") {
            subnet.fields.insert("mapPublicIpOnLaunch", value.to_owned());
        }
        Ok(done())
    }

    pub(super) fn create_gateway(&mut self, params: &Params<'_>) -> Answer {
        let gateway = self.gateways.make(params, &[("ownerId", ACCOUNT)]);
        gateway.lists.insert("attachmentSet", Vec::new());
        Ok(vec![gateway.element("internetGateway")])
    }

    pub(super) fn delete_gateway(&mut self, params: &Params<'_>) -> Answer {
        if let Some(vpc) = attached_to(self.gateways.named(params)?) {
            let message = format!("The internet gateway is attached to {vpc} and cannot be deleted.");
            return Err(Refusal::new("DependencyViolation", message));
        }
        self.gateways.remove(params).map(|()| done())
    }

    pub(super) fn attach_gateway(&mut self, params: &Params<'_>) -> Answer {
        let vpc = params.text("VpcId")?;
        self.vpcs.get(vpc)?;
        let gateway = self.gateways.named(params)?;
        if attached_to(gateway).is_some() {
            return Err(Refusal::new("Resource.AlreadyAssociated", "the gateway is already attached"));
        }
        let attachment = fields("item", &[("vpcId", vpc), ("state", "available")]);
        gateway.lists.insert("attachmentSet", vec![attachment]);
        Ok(done())
    }

    pub(super) fn detach_gateway(&mut self, params: &Params<'_>) -> Answer {
        let vpc = params.text("VpcId")?;
        let gateway = self.gateways.named(params)?;
        if attached_to(gateway).as_deref() != Some(vpc) {
            return Err(Refusal::new("Gateway.NotAttached", format!("the gateway is not attached to {vpc}")));
        }
        gateway.lists.insert("attachmentSet", Vec::new());
        Ok(done())
    }
}

/// The VPC that a gateway is attached to.
fn attached_to(gateway: &Item) -> Option<String> {
    gateway.lists.get("attachmentSet")?.first()?.child_text("vpcId")
}
