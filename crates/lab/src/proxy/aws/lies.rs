//! Where the emulators lie and AWS doesn't: mended here, so that a test sees AWS.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::super::core::Cut;
use super::super::faults::glob;
use super::answer::Answer;
use super::asked::Asked;
use super::lag::not_found_status;
use super::resources::Resource;
use super::serve::World;
use super::xml::Element;

/// The refusals that AWS gives and an emulator forgets.
pub(super) async fn refuse(world: &World, asked: &Asked) -> Result<Option<Answer>, Cut> {
    let value = |name: &str| asked.params.get(name).map(String::as_str).unwrap_or_default();
    // moto and ministack take what no XML can hold, and then answer what nobody can read.
    if let Some(code) = invalid_character(&asked.service)
        && asked.params.values().any(|value| value.contains(is_no_xml))
    {
        return Ok(Some(Answer::error(asked, 400, code, "A specified character is invalid.")));
    }
    let refusal = match asked.operation.as_str() {
        // AWS takes it. ministack writes it into its answers as it is, and nobody can read those.
        "CreateDBSubnetGroup" | "ModifyDBSubnetGroup"
            if value("DBSubnetGroupDescription").contains(['<', '&']) =>
        {
            let message = "The lab's ministack cannot show this description.";
            Some(Answer::error(asked, 400, "InvalidParameterValue", message))
        }
        // moto deletes a VPC with security groups of its own in it.
        "DeleteVpc" => {
            let vpc = value("VpcId");
            let fields = [
                ("Action", "DescribeSecurityGroups"),
                ("Filter.1.Name", "vpc-id"),
                ("Filter.1.Value.1", vpc),
            ];
            let groups = world.ask(asked, &fields).await?;
            let set = groups.find("securityGroupInfo").map(Element::children).into_iter().flatten();
            let mut ours = set.filter(|group| group.child_text("groupName").as_deref() != Some("default"));
            let message = format!("The vpc '{vpc}' has dependencies and cannot be deleted.");
            ours.next().map(|_| Answer::error(asked, 400, "DependencyViolation", &message))
        }
        // moto deletes a security group that another one's rules name.
        "DeleteSecurityGroup" => {
            let id = value("GroupId");
            let groups = world.ask(asked, &[("Action", "DescribeSecurityGroups")]).await?;
            let set = groups.find("securityGroupInfo").map(Element::children).into_iter().flatten();
            let mut others = set.filter(|group| group.child_text("groupId").as_deref() != Some(id));
            let is_named = others.any(|group| group.all("groupId").iter().any(|named| named == id));
            let message = format!("resource {id} has a dependent object");
            is_named.then(|| Answer::error(asked, 400, "DependencyViolation", &message))
        }
        // moto and ministack delete a subnet with a NAT gateway in it.
        "DeleteSubnet" => {
            let subnet = value("SubnetId");
            let users =
                nat_gateways(world, asked, |nat| nat.child_text("subnetId").as_deref() == Some(subnet))
                    .await?;
            let message = format!("The subnet '{subnet}' has dependencies and cannot be deleted.");
            (!users.is_empty()).then(|| Answer::error(asked, 400, "DependencyViolation", &message))
        }
        // moto detaches an internet gateway under a public NAT gateway.
        "DetachInternetGateway" => {
            let vpc = value("VpcId");
            let users =
                nat_gateways(world, asked, |nat| nat.child_text("vpcId").as_deref() == Some(vpc)).await?;
            let message = format!(
                "Network {vpc} has some mapped public address(es). Please unmap those public address(es) before detaching the gateway."
            );
            (!users.is_empty()).then(|| Answer::error(asked, 400, "DependencyViolation", &message))
        }
        // moto and ministack release an address that a NAT gateway holds.
        "ReleaseAddress" => {
            let address = value("AllocationId");
            let users =
                nat_gateways(world, asked, |nat| nat.all("allocationId").iter().any(|id| id == address))
                    .await?;
            let message = format!("Address with allocation id {address} is in use.");
            (!users.is_empty()).then(|| Answer::error(asked, 400, "InvalidIPAddress.InUse", &message))
        }
        // moto answers 500 to the deletion of a NAT gateway that it doesn't know.
        "DeleteNatGateway" => {
            let id = value("NatGatewayId");
            let found =
                world.ask(asked, &[("Action", "DescribeNatGateways"), ("NatGatewayId.1", id)]).await?;
            let resource = Resource::deleted_by("DeleteNatGateway").expect("a known resource");
            let known = found.all(resource.id).iter().any(|found| found == id);
            (!known).then(|| Answer::error(asked, 400, resource.not_found, &resource.missing(id)))
        }
        _ => None,
    };
    Ok(refusal)
}

/// How a service that answers in XML calls a character that no XML can hold.
fn invalid_character(service: &str) -> Option<&'static str> {
    match service {
        "ec2" => Some("InvalidCharacter"),
        "iam" => Some("ValidationError"),
        "rds" => Some("InvalidParameterValue"),
        _ => None,
    }
}

/// The characters that XML 1.0 does not have, however they are written.
fn is_no_xml(character: char) -> bool {
    matches!(character, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

async fn nat_gateways(
    world: &World,
    asked: &Asked,
    mut uses: impl FnMut(&Element) -> bool,
) -> Result<Vec<String>, Cut> {
    let found = world.ask(asked, &[("Action", "DescribeNatGateways")]).await?;
    let set = found.find("natGatewaySet").map(Element::children).into_iter().flatten();
    let dead = |nat: &Element| matches!(nat.child_text("state").as_deref(), Some("deleted" | "failed"));
    Ok(set.filter(|nat| !dead(nat) && uses(nat)).filter_map(|nat| nat.child_text("natGatewayId")).collect())
}

/// The Elastic IPs of NAT gateways, by gateway: ministack forgets them.
#[derive(Default)]
pub(super) struct NatAddresses(Mutex<HashMap<String, String>>);

impl NatAddresses {
    pub fn learn(&self, asked: &Asked, root: &Element) {
        if asked.operation == "CreateNatGateway"
            && let Some(address) = asked.params.get("AllocationId")
            && let Some(id) = root.find("natGatewayId")
        {
            self.0.lock().insert(id.text(), address.clone());
        }
    }

    /// Fills in what ministack leaves out, wherever the answer shows a NAT gateway.
    pub fn fill(&self, root: &mut Element) {
        let known = root.child_text("natGatewayId").and_then(|id| self.0.lock().get(&id).cloned());
        if let (Some(address), Some(set)) = (known, root.find_mut("natGatewayAddressSet"))
            && set.children().next().is_none()
        {
            let mut item = Element::new("item");
            item.set("allocationId", &address);
            set.push(item);
        }
        root.children_mut().for_each(|child| self.fill(child));
    }
}

/// The rules of the group that is about to get several: moto's answer has only the last permission's.
pub(super) async fn rules_before(world: &World, asked: &Asked) -> Result<Option<Vec<String>>, Cut> {
    let several = asked.operation.starts_with("AuthorizeSecurityGroup")
        && asked.params.keys().any(|key| key.starts_with("IpPermissions.2."));
    if !several {
        return Ok(None);
    }
    Ok(Some(rules(world, asked).await?.all("securityGroupRuleId")))
}

/// Fills in the rules that moto's answer lacks.
pub(super) async fn complete_rules(
    world: &World,
    asked: &Asked,
    before: &[String],
    root: &mut Element,
) -> Result<(), Cut> {
    let now = rules(world, asked).await?;
    let is_new =
        |rule: &&Element| rule.child_text("securityGroupRuleId").is_some_and(|id| !before.contains(&id));
    if let (Some(now), Some(set)) = (now.find("securityGroupRuleSet"), root.find_mut("securityGroupRuleSet"))
    {
        let made = now.children().filter(is_new).cloned().collect::<Vec<_>>();
        set.retain(|_| false);
        made.into_iter().for_each(|rule| set.push(rule));
    }
    Ok(())
}

async fn rules(world: &World, asked: &Asked) -> Result<Element, Cut> {
    let group = asked.params.get("GroupId").map(String::as_str).unwrap_or_default();
    let filter = [("Filter.1.Name", "group-id"), ("Filter.1.Value.1", group)];
    let mut fields = vec![("Action", "DescribeSecurityGroupRules")];
    fields.extend(filter);
    world.ask(asked, &fields).await
}

/// A read by id that finds less than it asks for: AWS answers NotFound for the whole call.
///
/// Both emulators leave out an unknown NAT gateway, ministack an address and a rule too.
pub(super) fn missing(asked: &Asked, root: &Element) -> Option<Answer> {
    let resource = Resource::described_by(&asked.operation).filter(|resource| resource.service == "ec2")?;
    if asked.params.keys().any(|key| key.starts_with("Filter.")) {
        return None;
    }
    let set = root.find(resource.set)?;
    let found = set.children().filter_map(|item| item.child_text(resource.id)).collect::<Vec<_>>();
    let lost = asked.values(resource.param).into_iter().find(|id| !found.iter().any(|found| found == id))?;
    Some(Answer::error(asked, not_found_status(resource), resource.not_found, &resource.missing(lost)))
}

/// Applies filters once more: ministack ignores all of DescribeAddresses', moto the tag filters of
/// NAT gateways and others.
pub(super) fn filter(asked: &Asked, root: &mut Element) {
    let Some(resource) =
        Resource::described_by(&asked.operation).filter(|resource| resource.service == "ec2")
    else {
        return;
    };
    for index in 1.. {
        let Some(name) = asked.params.get(&format!("Filter.{index}.Name")) else {
            return;
        };
        let values = asked.values(&format!("Filter.{index}.Value"));
        let by_tag = name == "tag-key" || name.starts_with("tag:");
        if (by_tag || asked.operation == "DescribeAddresses")
            && let Some(set) = root.find_mut(resource.set)
        {
            set.retain(|item| passes(item, name, &values));
        }
    }
}

fn passes(item: &Element, filter: &str, values: &[&str]) -> bool {
    let tags = item.child("tagSet").map(Element::children).into_iter().flatten();
    let mut tags = tags
        .map(|tag| (tag.child_text("key").unwrap_or_default(), tag.child_text("value").unwrap_or_default()));
    let any = |text: &str| values.iter().any(|value| glob(value, text));
    match filter.strip_prefix("tag:") {
        Some(wanted) => tags.any(|(key, value)| key == wanted && any(&value)),
        None if filter == "tag-key" => tags.any(|(key, _)| any(&key)),
        None => item.child_text(&camel(filter)).is_some_and(|text| any(&text)),
    }
}

/// `allocation-id` as the element `allocationId`.
fn camel(filter: &str) -> String {
    let mut words = filter.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        name + &head.to_uppercase() + tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters() {
        let item = Element::parse(
            "<item><allocationId>eipalloc-1</allocationId><tagSet><item><key>k</key><value>v1</value></item></tagSet></item>",
        )
        .unwrap();
        for (filter, value, expected) in [
            ("tag:k", "v1", true),
            ("tag:k", "v*", true),
            ("tag:k", "w", false),
            ("tag:other", "v1", false),
            ("tag-key", "k", true),
            ("allocation-id", "eipalloc-1", true),
            ("allocation-id", "eipalloc-2", false),
            ("public-ip", "*", false),
        ] {
            assert_eq!(passes(&item, filter, &[value]), expected, "{filter} {value}");
        }
    }
}
