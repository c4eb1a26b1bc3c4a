//! What must hold of ranges and rules, whatever a user writes.
#![allow(clippy::unwrap_used)]

use ipnet::{Ipv4Net, Ipv6Net};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::rules::{Rule, canonical, from_ec2, to_ec2};
use crate::schema::{masked, masked_v6};

/// A rule that AWS takes, in one of the ways to write it.
fn rule() -> impl Strategy<Value = Value> {
    let ports = |protocol: &'static [&'static str], from: std::ops::Range<i32>| {
        (prop::sample::select(protocol), from, 0..500i32).prop_map(
            |(protocol, from, more)| json!({"protocol": protocol, "fromPort": from, "toPort": from + more}),
        )
    };
    let kinds = prop::sample::select(vec![-1, 0, 8, 128, 255]);
    let icmp = (prop::sample::select(vec!["icmp", "1", "icmpv6", "58"]), prop::option::of(kinds))
        .prop_map(|(protocol, kind)| json!({"protocol": protocol, "fromPort": kind, "toPort": kind}));
    let all =
        prop::sample::select(vec!["-1", "50", "050"]).prop_map(|protocol| json!({"protocol": protocol}));
    let what = prop_oneof![ports(&["tcp", "6", "TCP", "udp", "17"], 0..65_000), icmp, all];
    let v4 = (any::<u32>(), 0..=32u8)
        .prop_map(|(bits, size)| format!("{}/{size}", std::net::Ipv4Addr::from(bits)));
    let v6 = (any::<u128>(), 0..=128u8)
        .prop_map(|(bits, size)| format!("{}/{size}", std::net::Ipv6Addr::from(bits)));
    let group = "([0-9]{12}/)?sg-[0-9a-f]{1,4}";
    let sources = (
        prop::option::of(v4),
        prop::option::of(v6),
        prop::option::of("pl-[0-9a-f]{1,3}"),
        prop::option::of(group),
    );
    let sources = sources.prop_filter("a source", |(v4, v6, list, group)| {
        v4.is_some() || v6.is_some() || list.is_some() || group.is_some()
    });
    (what, sources).prop_map(|(mut rule, (v4, v6, list, group))| {
        for (field, value) in
            [("cidrIpv4", v4), ("cidrIpv6", v6), ("prefixListId", list), ("sourceGroupId", group)]
        {
            if let Some(value) = value {
                rule[field] = json!(value);
            }
        }
        rule
    })
}

fn rules() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(rule(), 0..6)
}

fn read(rules: &[Value]) -> Vec<Rule> {
    serde_json::from_value(json!(rules)).unwrap()
}

fn written(rules: &[Rule]) -> Vec<Value> {
    rules.iter().map(|rule| serde_json::to_value(rule).unwrap()).collect()
}

fn sorted(mut rules: Vec<Value>) -> Vec<Value> {
    rules.sort_by_key(Value::to_string);
    rules
}

proptest! {
    #[test]
    fn a_range_is_the_network_of_its_addresses(bits: u32, size in 0..=32u8) {
        let range = Ipv4Net::new(bits.into(), size).unwrap();
        let canonical = masked(&range.to_string()).unwrap();
        prop_assert_eq!(&masked(&canonical).unwrap(), &canonical);
        let network = canonical.parse::<Ipv4Net>().unwrap();
        prop_assert!(network.contains(&range) && network.addr() == network.network());
        prop_assert!(masked_v6(&canonical).is_err());
    }

    #[test]
    fn a_range_of_ipv6_is_too(bits: u128, size in 0..=128u8) {
        let range = Ipv6Net::new(bits.into(), size).unwrap();
        let canonical = masked_v6(&range.to_string().to_uppercase()).unwrap();
        prop_assert_eq!(&masked_v6(&canonical).unwrap(), &canonical);
        let network = canonical.parse::<Ipv6Net>().unwrap();
        prop_assert!(network.contains(&range) && network.addr() == network.network());
        prop_assert!(masked(&canonical).is_err());
    }

    #[test]
    fn any_text_is_a_range_or_refused_with_an_example(text in "\\PC{0,20}|[0-9./:a-f]{0,24}") {
        if let Err(error) = masked(&text) {
            prop_assert!(error.message.contains("10.0.0.0/16"));
        }
        if let Err(error) = masked_v6(&text) {
            prop_assert!(error.message.contains("2001:db8::/56"));
        }
    }

    #[test]
    fn canonical_rules_are_that_already(rules in rules()) {
        let once = canonical("ingressRules", read(&rules)).unwrap();
        let twice = canonical("ingressRules", once.clone()).unwrap();
        prop_assert_eq!(written(&once), written(&twice));
    }

    #[test]
    fn their_order_and_repetition_mean_nothing(rules in rules().prop_shuffle(), again: prop::sample::Index) {
        let once = canonical("ingressRules", read(&rules)).unwrap();
        let mut other: Vec<_> = rules.iter().rev().cloned().collect();
        if !rules.is_empty() {
            other.push(again.get(&rules).clone());
        }
        let other = canonical("ingressRules", read(&other)).unwrap();
        prop_assert_eq!(sorted(written(&once)), sorted(written(&other)));
    }

    #[test]
    fn they_survive_the_way_to_aws_and_back(rules in rules(), account in "[0-9]{12}") {
        let rules = canonical("ingressRules", read(&rules)).unwrap();
        let back = from_ec2(&to_ec2(&rules), Some(&account));
        let own = format!("{account}/");
        let expected: Vec<_> = written(&rules).into_iter().filter(|rule| !rule.to_string().contains(&own)).collect();
        prop_assume!(expected.len() == rules.len());
        prop_assert_eq!(written(&back), expected);
    }

    #[test]
    fn whatever_passes_admission_is_a_rule_or_refused_with_its_place(
        protocol in "\\PC{0,6}|[0-9]{1,3}|-1|tcp|icmp", from: Option<i32>, to: Option<i32>, cidr in "\\PC{0,18}",
    ) {
        let rule = json!({"protocol": protocol, "fromPort": from, "toPort": to, "cidrIpv4": cidr});
        if let Err(error) = canonical("egressRules", read(&[rule])) {
            prop_assert_eq!(error.operation, "spec.egressRules[0]");
        }
    }
}
