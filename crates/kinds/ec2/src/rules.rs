//! Security group rules: what the user writes, what AWS keeps, and the one form of both.

use aws_sdk_ec2::types::{IpPermission, IpRange, Ipv6Range, PrefixListId, UserIdGroupPair};
use resource::schema::{later, matches, rule};
use resource::{Error, NameRef, Result, targets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::{group_text, masked, masked_v6};

/// Traffic that is let through. A rule with several sources is as many permissions in AWS.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.cidrIpv4) || has(self.cidrIpv6) || has(self.prefixListId) || has(self.sourceGroupRef) || has(self.sourceGroupId)",
    "give at least one of cidrIpv4, cidrIpv6, prefixListId, sourceGroupRef and sourceGroupId; 0.0.0.0/0 means everywhere",
))]
#[schemars(transform = rule(
    "!(self.protocol in ['tcp', 'udp', '6', '17']) || (has(self.fromPort) && has(self.toPort) && self.fromPort >= 0 && self.fromPort <= self.toPort)",
    "tcp and udp need fromPort and toPort, the lower first; for all ports write 0 and 65535",
))]
#[schemars(transform = rule(
    "!(self.protocol in ['icmp', 'icmpv6', '1', '58']) || ((!has(self.fromPort) || self.fromPort <= 255) && (!has(self.toPort) || self.toPort <= 255))",
    "for icmp and icmpv6, fromPort is the ICMP type and toPort the code: 0 to 255, or -1 for all",
))]
#[schemars(transform = rule(
    "self.protocol in ['tcp', 'udp', '6', '17', 'icmp', 'icmpv6', '1', '58'] || ((!has(self.fromPort) || self.fromPort <= 0) && (!has(self.toPort) || self.toPort <= 0 || self.toPort == 65535))",
    "this protocol lets all ports through: leave out fromPort and toPort, or choose tcp or udp",
))]
pub(crate) struct Rule {
    /// The protocol: tcp, udp, icmp, icmpv6, -1 for all, or a protocol number.
    #[schemars(length(min = 1, max = 6), transform = rule(
        "self in ['tcp', 'udp', 'icmp', 'icmpv6', '-1'] || (self.matches('^[0-9]{1,3}$') && int(self) <= 255)",
        "must be tcp, udp, icmp, icmpv6, -1 (all protocols) or a number from 0 to 255, as a string",
    ))]
    pub(crate) protocol: String,
    /// The first port; for icmp and icmpv6 the ICMP type, -1 for all.
    #[schemars(range(min = -1, max = 65535))]
    pub(crate) from_port: Option<i32>,
    /// The last port; for icmp and icmpv6 the ICMP code, -1 for all.
    #[schemars(range(min = -1, max = 65535))]
    pub(crate) to_port: Option<i32>,
    /// An IPv4 range at the other end: 10.0.0.0/8, or 0.0.0.0/0 for everywhere.
    #[schemars(length(max = 18), transform = rule(
        "isCIDR(self) && cidr(self).ip().family() == 4",
        "must be an IPv4 range such as 10.0.0.0/8; a single address ends in /32",
    ))]
    pub(crate) cidr_ipv4: Option<String>,
    /// An IPv6 range at the other end: 2001:db8::/32, or ::/0 for everywhere.
    #[schemars(length(max = 43), transform = rule(
        "isCIDR(self) && cidr(self).ip().family() == 6",
        "must be an IPv6 range such as 2001:db8::/32; a single address ends in /128",
    ))]
    pub(crate) cidr_ipv6: Option<String>,
    /// A prefix list at the other end, by its id: pl-….
    #[schemars(length(max = 64), transform = matches(
        r"^pl-[0-9a-f]+$",
        "must be the id of a prefix list, such as pl-0123456789abcdef0",
    ))]
    pub(crate) prefix_list_id: Option<String>,
    /// The name of a SecurityGroup object whose members are at the other end; its own name means
    /// itself. The rule follows once that group exists; the others do not wait for it.
    #[schemars(transform = later)]
    pub(crate) source_group_ref: Option<NameRef<targets::SecurityGroup>>,
    /// The id of a security group at the other end that is not managed here: sg-…, or
    /// 123456789012/sg-… for another account's in a peered VPC.
    #[schemars(length(max = 64), transform = matches(
        r"^([0-9]{12}/)?sg-[0-9a-f]+$",
        "must be the id of a group, such as sg-0123456789abcdef0; for the name of a SecurityGroup object there is sourceGroupRef",
    ))]
    pub(crate) source_group_id: Option<String>,
    /// What the rule is for.
    #[schemars(length(max = 255), transform = group_text)]
    pub(crate) description: Option<String>,
}

impl Rule {
    /// What it lets through; the description apart, two rules of the same traffic are one to AWS.
    pub(crate) fn traffic(&self) -> impl PartialEq + '_ {
        let Self {
            protocol, from_port, to_port, cidr_ipv4, cidr_ipv6, prefix_list_id, source_group_id, ..
        } = self;
        (protocol, from_port, to_port, cidr_ipv4, cidr_ipv6, prefix_list_id, source_group_id)
    }

    /// Whether it names a group other than this one, and so hinders that one's deletion.
    pub(crate) fn names_other_than(&self, group: &str) -> bool {
        self.source_group_id.as_deref().is_some_and(|id| id != group)
    }
}

/// The rules as AWS would list them: one for each source, none twice.
pub(crate) fn canonical(field: &str, rules: Vec<Rule>) -> Result<Vec<Rule>> {
    let mut all: Vec<Rule> = Vec::new();
    for (number, rule) in rules.into_iter().enumerate() {
        let at = |error: Error| Error { operation: format!("spec.{field}[{number}]"), ..error };
        for rule in by_source(rule).map_err(at)? {
            match all.iter().find(|known| known.traffic() == rule.traffic()) {
                None => all.push(rule),
                Some(known) if known.description == rule.description => {}
                Some(_) => return Err(at(invalid("the same traffic is listed twice; keep one description"))),
            }
        }
    }
    Ok(all)
}

fn by_source(rule: Rule) -> Result<Vec<Rule>> {
    let protocol = protocol_name(&rule.protocol);
    check_protocol(&protocol)?;
    check_ports(&protocol, rule.from_port, rule.to_port)?;
    let (from_port, to_port) = ports(&protocol, rule.from_port, rule.to_port);
    let description = rule.description.filter(|text| !text.is_empty());
    let bare = Rule { protocol, from_port, to_port, description, ..Rule::default() };
    let cidr_ipv4 = rule.cidr_ipv4.map(|cidr| masked(&cidr)).transpose()?;
    let cidr_ipv6 = rule.cidr_ipv6.map(|cidr| masked_v6(&cidr)).transpose()?;
    let groups = [rule.source_group_ref.map(|group| group.id().to_owned()), rule.source_group_id];

    let mut rules = Vec::new();
    rules.extend(cidr_ipv4.map(|cidr| Rule { cidr_ipv4: Some(cidr), ..bare.clone() }));
    rules.extend(cidr_ipv6.map(|cidr| Rule { cidr_ipv6: Some(cidr), ..bare.clone() }));
    rules.extend(rule.prefix_list_id.map(|list| Rule { prefix_list_id: Some(list), ..bare.clone() }));
    let groups = groups.into_iter().flatten();
    rules.extend(groups.map(|group| Rule { source_group_id: Some(group), ..bare.clone() }));
    if rules.is_empty() {
        return Err(invalid(
            "the rule names no source; give cidrIpv4, cidrIpv6, prefixListId, sourceGroupRef or sourceGroupId",
        ));
    }
    Ok(rules)
}

/// A protocol as AWS names it.
fn protocol_name(protocol: &str) -> String {
    let protocol = protocol.to_ascii_lowercase();
    match protocol.parse::<u8>() {
        Ok(1) => "icmp".to_owned(),
        Ok(6) => "tcp".to_owned(),
        Ok(17) => "udp".to_owned(),
        Ok(58) => "icmpv6".to_owned(),
        Ok(number) => number.to_string(),
        Err(_) if protocol == "all" => "-1".to_owned(),
        Err(_) => protocol,
    }
}

fn check_protocol(name: &str) -> Result<()> {
    let is_known = matches!(name, "tcp" | "udp" | "icmp" | "icmpv6" | "-1") || name.parse::<u8>().is_ok();
    let help = "is no protocol; write tcp, udp, icmp, icmpv6, -1 (all) or a number from 0 to 255";
    if is_known { Ok(()) } else { Err(invalid(format!("{name} {help}"))) }
}

fn check_ports(protocol: &str, from: Option<i32>, to: Option<i32>) -> Result<()> {
    let is_type = |value: Option<i32>| value.is_none_or(|value| (-1..=255).contains(&value));
    match (protocol, from, to) {
        ("tcp" | "udp", Some(from), Some(to)) if 0 <= from && from <= to && to <= 65535 => Ok(()),
        ("tcp" | "udp", ..) => Err(invalid(format!(
            "{protocol} needs fromPort and toPort from 0 to 65535, the lower first; for all ports write 0 and 65535"
        ))),
        ("icmp" | "icmpv6", from, to) if is_type(from) && is_type(to) => Ok(()),
        ("icmp" | "icmpv6", ..) => Err(invalid(format!(
            "with {protocol}, fromPort is the ICMP type and toPort the code: 0 to 255, or -1 for all"
        ))),
        // What says "all ports" in another spelling does no harm; any narrower range would be
        // silently ignored by AWS.
        (_, None | Some(-1 | 0), None | Some(-1 | 0 | 65535)) => Ok(()),
        _ => Err(invalid(format!(
            "protocol {protocol} lets all ports through; leave out fromPort and toPort, or choose tcp or udp"
        ))),
    }
}

/// The ports as AWS lists them.
fn ports(protocol: &str, from: Option<i32>, to: Option<i32>) -> (Option<i32>, Option<i32>) {
    match protocol {
        "tcp" | "udp" => (from, to),
        "icmp" | "icmpv6" => (from.or(Some(-1)), to.or(Some(-1))),
        _ => (None, None),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid("spec", message)
}

/// The rules that AWS lists, in the one form. `account` owns the group.
pub(crate) fn from_ec2(permissions: &[IpPermission], account: Option<&str>) -> Vec<Rule> {
    permissions.iter().flat_map(|permission| from_permission(permission, account)).collect()
}

fn from_permission(permission: &IpPermission, account: Option<&str>) -> Vec<Rule> {
    let protocol = protocol_name(permission.ip_protocol().unwrap_or_default());
    let (from_port, to_port) = ports(&protocol, permission.from_port, permission.to_port);
    let bare = |description: &Option<String>| {
        let description = description.clone().filter(|text| !text.is_empty());
        Rule { protocol: protocol.clone(), from_port, to_port, description, ..Rule::default() }
    };
    let own = |cidr: &Option<String>, write: fn(&str) -> Result<String>| {
        cidr.as_deref().map(|cidr| write(cidr).unwrap_or_else(|_| cidr.to_owned()))
    };
    let ipv4 = permission.ip_ranges().iter();
    let ipv4 = ipv4.map(|range| Rule { cidr_ipv4: own(&range.cidr_ip, masked), ..bare(&range.description) });
    let ipv6 = permission.ipv6_ranges().iter();
    let ipv6 =
        ipv6.map(|range| Rule { cidr_ipv6: own(&range.cidr_ipv6, masked_v6), ..bare(&range.description) });
    let lists = permission.prefix_list_ids().iter();
    let lists =
        lists.map(|list| Rule { prefix_list_id: list.prefix_list_id.clone(), ..bare(&list.description) });
    let groups = permission.user_id_group_pairs().iter();
    let groups =
        groups.map(|pair| Rule { source_group_id: Some(group_of(pair, account)), ..bare(&pair.description) });
    ipv4.chain(ipv6).chain(lists).chain(groups).collect()
}

/// A group of another account only means something together with that account.
fn group_of(pair: &UserIdGroupPair, account: Option<&str>) -> String {
    let group = pair.group_id().unwrap_or_default();
    match pair.user_id() {
        Some(other) if account.is_some_and(|account| account != other) => format!("{other}/{group}"),
        _ => group.to_owned(),
    }
}

/// Canonical rules, as AWS takes them.
pub(crate) fn to_ec2(rules: &[Rule]) -> Vec<IpPermission> {
    rules.iter().map(to_permission).collect()
}

fn to_permission(rule: &Rule) -> IpPermission {
    let description = || rule.description.clone();
    let ipv4 = rule.cidr_ipv4.as_ref();
    let ipv4 = ipv4.map(|cidr| IpRange::builder().cidr_ip(cidr).set_description(description()).build());
    let ipv6 = rule.cidr_ipv6.as_ref();
    let ipv6 = ipv6.map(|cidr| Ipv6Range::builder().cidr_ipv6(cidr).set_description(description()).build());
    let list = rule.prefix_list_id.as_ref();
    let list =
        list.map(|id| PrefixListId::builder().prefix_list_id(id).set_description(description()).build());
    let group = rule.source_group_id.as_deref();
    let group = group.map(|group| pair_of(group).set_description(description()).build());
    IpPermission::builder()
        .ip_protocol(&rule.protocol)
        .set_from_port(rule.from_port)
        .set_to_port(rule.to_port)
        .set_ip_ranges(ipv4.map(|range| vec![range]))
        .set_ipv6_ranges(ipv6.map(|range| vec![range]))
        .set_prefix_list_ids(list.map(|list| vec![list]))
        .set_user_id_group_pairs(group.map(|group| vec![group]))
        .build()
}

fn pair_of(group: &str) -> aws_sdk_ec2::types::builders::UserIdGroupPairBuilder {
    match group.split_once('/') {
        Some((account, group)) => UserIdGroupPair::builder().user_id(account).group_id(group),
        None => UserIdGroupPair::builder().group_id(group),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn canonical_of(rules: Value) -> Result<Value> {
        let rules = canonical("ingressRules", serde_json::from_value(rules).unwrap())?;
        Ok(serde_json::to_value(rules).unwrap())
    }

    #[test]
    fn one_rule_for_each_source() {
        let rules = canonical_of(json!([{
            "protocol": "6", "fromPort": 443, "toPort": 443, "cidrIpv4": "10.1.2.3/8", "cidrIpv6": "2001:DB8::1/32",
            "prefixListId": "pl-1", "sourceGroupRef": "sg-1", "sourceGroupId": "sg-2", "description": "web",
        }]));
        let rule = |source: &str, value: &str| json!({"protocol": "tcp", "fromPort": 443, "toPort": 443, source: value, "description": "web"});
        assert_eq!(
            rules.unwrap(),
            json!([
                rule("cidrIpv4", "10.0.0.0/8"),
                rule("cidrIpv6", "2001:db8::/32"),
                rule("prefixListId", "pl-1"),
                rule("sourceGroupId", "sg-1"),
                rule("sourceGroupId", "sg-2"),
            ])
        );
    }

    #[test]
    fn spelling_is_no_difference() {
        for (written, canonical) in [
            (
                json!({"protocol": "17", "fromPort": 53, "toPort": 53}),
                json!({"protocol": "udp", "fromPort": 53, "toPort": 53}),
            ),
            (
                json!({"protocol": "TCP", "fromPort": 1, "toPort": 2}),
                json!({"protocol": "tcp", "fromPort": 1, "toPort": 2}),
            ),
            (json!({"protocol": "1"}), json!({"protocol": "icmp", "fromPort": -1, "toPort": -1})),
            (
                json!({"protocol": "icmp", "fromPort": 8}),
                json!({"protocol": "icmp", "fromPort": 8, "toPort": -1}),
            ),
            (json!({"protocol": "58"}), json!({"protocol": "icmpv6", "fromPort": -1, "toPort": -1})),
            (json!({"protocol": "all"}), json!({"protocol": "-1"})),
            (json!({"protocol": "-1", "fromPort": 0, "toPort": 0}), json!({"protocol": "-1"})),
            (json!({"protocol": "-1", "fromPort": -1, "toPort": -1}), json!({"protocol": "-1"})),
            (json!({"protocol": "-1", "fromPort": 0, "toPort": 65535}), json!({"protocol": "-1"})),
            (json!({"protocol": "050", "description": ""}), json!({"protocol": "50"})),
        ] {
            let with_source = |mut rule: Value| {
                rule["cidrIpv4"] = json!("10.0.0.0/8");
                json!([rule])
            };
            let once = canonical_of(with_source(written.clone())).unwrap();
            assert_eq!(once, with_source(canonical), "{written}");
            assert_eq!(canonical_of(once.clone()).unwrap(), once, "twice is as once: {written}");
        }
    }

    #[test]
    fn what_aws_could_only_refuse_or_misread_is_refused_with_its_place() {
        for (rule, says) in [
            (json!({"protocol": "tcp", "fromPort": 1, "toPort": 1}), "names no source"),
            (json!({"protocol": "tcp", "cidrIpv4": "10.0.0.0/8"}), "needs fromPort and toPort"),
            (json!({"protocol": "tcp", "fromPort": 2, "toPort": 1, "cidrIpv4": "10.0.0.0/8"}), "lower first"),
            (
                json!({"protocol": "-1", "fromPort": 443, "toPort": 443, "cidrIpv4": "10.0.0.0/8"}),
                "all ports",
            ),
            (json!({"protocol": "50", "fromPort": 443, "cidrIpv4": "10.0.0.0/8"}), "all ports"),
            (json!({"protocol": "icmp", "fromPort": 300, "cidrIpv4": "10.0.0.0/8"}), "ICMP type"),
            (json!({"protocol": "http", "cidrIpv4": "10.0.0.0/8"}), "is no protocol"),
            (json!({"protocol": "300", "cidrIpv4": "10.0.0.0/8"}), "is no protocol"),
            (json!({"protocol": "-1", "cidrIpv4": "10.0.0.0"}), "is no IPv4 range"),
            (json!({"protocol": "-1", "cidrIpv6": "10.0.0.0/8"}), "is no IPv6 range"),
        ] {
            let error =
                canonical_of(json!([{"protocol": "-1", "cidrIpv4": "10.0.0.0/8"}, rule])).unwrap_err();
            assert!(error.message.contains(says), "{rule}: {error}");
            assert_eq!(error.operation, "spec.ingressRules[1]");
        }
    }

    #[test]
    fn a_repeated_rule_is_one_unless_its_descriptions_differ() {
        let rule = |cidr: &str, description: &str| json!({"protocol": "-1", "cidrIpv4": cidr, "description": description});
        let rules = canonical_of(json!([rule("10.0.0.0/8", "a"), rule("10.9.9.9/8", "a")])).unwrap();
        assert_eq!(rules, json!([rule("10.0.0.0/8", "a")]));
        let error = canonical_of(json!([rule("10.0.0.0/8", "a"), rule("10.9.9.9/8", "b")])).unwrap_err();
        assert!(error.message.contains("listed twice"));
    }

    #[test]
    fn canonical_rules_survive_the_way_to_aws_and_back() {
        let rules = canonical_of(json!([
            {"protocol": "tcp", "fromPort": 80, "toPort": 81, "cidrIpv4": "0.0.0.0/0", "cidrIpv6": "::/0", "description": "web"},
            {"protocol": "icmp", "cidrIpv4": "10.0.0.0/8"},
            {"protocol": "icmpv6", "fromPort": 128, "toPort": 0, "cidrIpv6": "2001:db8::/32"},
            {"protocol": "-1", "sourceGroupId": "sg-1", "prefixListId": "pl-1", "description": "all"},
            {"protocol": "50", "sourceGroupId": "210987654321/sg-2"},
        ]))
        .unwrap();
        let written: Vec<Rule> = serde_json::from_value(rules.clone()).unwrap();
        let read = from_ec2(&to_ec2(&written), Some("123456789012"));
        assert_eq!(serde_json::to_value(read).unwrap(), rules);
    }

    #[test]
    fn a_group_of_the_same_account_is_its_id_alone() {
        let pair = UserIdGroupPair::builder().user_id("123456789012").group_id("sg-1").build();
        assert_eq!(group_of(&pair, Some("123456789012")), "sg-1");
        assert_eq!(group_of(&pair, Some("210987654321")), "123456789012/sg-1");
        assert_eq!(group_of(&pair, None), "sg-1");
    }

    #[test]
    fn ranges_grouped_by_aws_are_single_rules() {
        let permission = IpPermission::builder()
            .ip_protocol("tcp")
            .from_port(22)
            .to_port(22)
            .ip_ranges(IpRange::builder().cidr_ip("10.0.0.0/8").description("a").build())
            .ip_ranges(IpRange::builder().cidr_ip("192.168.0.0/16").build())
            .build();
        let rules = from_ec2(&[permission], None);
        let rules: Vec<_> =
            rules.iter().map(|rule| (rule.cidr_ipv4.as_deref(), rule.description.as_deref())).collect();
        assert_eq!(rules, [(Some("10.0.0.0/8"), Some("a")), (Some("192.168.0.0/16"), None)]);
    }
}
