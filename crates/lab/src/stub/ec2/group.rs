//! Security groups and their rules.

use super::super::ACCOUNT;
use super::super::params::Params;
use super::super::refusal::Refusal;
use super::item::{fields, list};
use super::{Answer, Ec2, done};
use crate::proxy::aws::xml::Element;

/// The field with the rules inwards.
pub(super) const INGRESS: &str = "ipPermissions";
/// The field with the rules outwards.
pub(super) const EGRESS: &str = "ipPermissionsEgress";

/// The sources of a rule: parameter and its key, the field of the list and its key.
const SOURCES: [(&str, &str, &str, &str); 4] = [
    ("IpRanges", "CidrIp", "ipRanges", "cidrIp"),
    ("Ipv6Ranges", "CidrIpv6", "ipv6Ranges", "cidrIpv6"),
    ("PrefixListIds", "PrefixListId", "prefixListIds", "prefixListId"),
    ("Groups", "GroupId", "groups", "groupId"),
];

impl Ec2 {
    pub(super) fn create_group(&mut self, params: &Params<'_>) -> Answer {
        let (name, vpc) = (params.text("GroupName")?, params.text("VpcId")?);
        self.vpcs.get(vpc)?;
        let taken =
            self.groups.iter().any(|other| other.field("vpcId") == vpc && other.field("groupName") == name);
        if taken {
            let message = format!("The security group '{name}' already exists for VPC '{vpc}'");
            return Err(Refusal::new("InvalidGroup.Duplicate", message));
        }
        let description = params.text("GroupDescription")?;
        let state =
            [("groupName", name), ("vpcId", vpc), ("groupDescription", description), ("ownerId", ACCOUNT)];
        let group = self.groups.make(params, &state);
        let everywhere = fields("item", &[("cidrIp", "0.0.0.0/0")]);
        group.lists.insert(INGRESS, Vec::new());
        group.lists.insert(EGRESS, vec![rule(&[("ipProtocol", "-1")], "ipRanges", everywhere)]);
        Ok(vec![Element::text_of("groupId", group.field("groupId")), list("tagSet", [])])
    }

    pub(super) fn delete_group(&mut self, params: &Params<'_>) -> Answer {
        let id = params.text("GroupId")?;
        let names_it =
            |rules: &Vec<Element>| rules.iter().any(|rule| rule.all("groupId").contains(&id.into()));
        let others = self.groups.iter().filter(|group| group.field("groupId") != id);
        if others.flat_map(|group| group.lists.values()).any(names_it) {
            let message = format!("resource {id} has a dependent object");
            return Err(Refusal::new("DependencyViolation", message));
        }
        self.groups.remove(params).map(|()| done())
    }

    pub(super) fn authorize(&mut self, params: &Params<'_>, direction: &'static str) -> Answer {
        let new = rules(params);
        let known: Vec<_> = self.groups.iter().map(|group| group.field("groupId").to_owned()).collect();
        if let Some(lost) = new.iter().flat_map(|rule| rule.all("groupId")).find(|id| !known.contains(id)) {
            let message = format!("The security group '{lost}' does not exist");
            return Err(Refusal::new("InvalidGroup.NotFound", message));
        }
        let held = self.groups.named(params)?.lists.entry(direction).or_default();
        if new.iter().any(|new| held.iter().any(|held| same(held, new))) {
            let message = "the specified rule already exists";
            return Err(Refusal::new("InvalidPermission.Duplicate", message));
        }
        held.extend(new);
        Ok(done())
    }

    pub(super) fn revoke(&mut self, params: &Params<'_>, direction: &'static str) -> Answer {
        let held = self.groups.named(params)?.lists.entry(direction).or_default();
        for old in rules(params) {
            let Some(at) = held.iter().position(|held| same(held, &old)) else {
                let message = "The specified rule does not exist in this security group.";
                return Err(Refusal::new("InvalidPermission.NotFound", message));
            };
            held.remove(at);
        }
        Ok(done())
    }
}

/// The rules of a call, one for each source.
fn rules(params: &Params<'_>) -> Vec<Element> {
    let mut rules = Vec::new();
    for permission in params.items("IpPermissions") {
        let head = [("ipProtocol", "IpProtocol"), ("fromPort", "FromPort"), ("toPort", "ToPort")];
        let head: Vec<_> =
            head.iter().filter_map(|(field, param)| Some((*field, permission.get(param)?))).collect();
        for (param, key, name, field) in SOURCES {
            for source in permission.items(param) {
                let mut item = fields("item", &[(field, source.get(key).unwrap_or_default())]);
                if field == "groupId" {
                    item.set("userId", ACCOUNT);
                }
                if let Some(description) = source.get("Description") {
                    item.set("description", description);
                }
                rules.push(rule(&head, name, item));
            }
        }
    }
    rules
}

fn rule(head: &[(&str, &str)], name: &str, source: Element) -> Element {
    let mut rule = fields("item", head);
    rule.push(list(name, [source]));
    rule
}

/// Whether two rules are about the same traffic; the description does not tell them apart.
fn same(one: &Element, other: &Element) -> bool {
    let bare = |rule: &Element| {
        let mut rule = rule.clone();
        rule.children_mut().flat_map(Element::children_mut).for_each(|source| {
            source.retain(|field| field.name != "description");
        });
        rule
    };
    bare(one) == bare(other)
}
