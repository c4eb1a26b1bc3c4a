//! Brings the rules of a security group to what they shall be, without a gap in traffic.

use aws::Answer;
use aws_sdk_ec2::Client;
use resource::{Changes, Class, Error, Result};

use crate::rules::{Rule, to_ec2};
use crate::store::Described;

/// The two lists of a group's rules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    /// Into the group's members.
    Ingress,
    /// Out of them.
    Egress,
}

/// What is to be done with one list.
#[derive(Debug, Default)]
struct Plan {
    add: Vec<Rule>,
    remove: Vec<Rule>,
    /// Stays, under another description: to remove and add it would open a gap.
    describe: Vec<Rule>,
}

/// Applies the changes of one list to a group that has the rules `live` there.
pub(crate) async fn apply(
    client: &Client,
    group: &str,
    direction: Direction,
    live: &[Rule],
    changes: &Changes,
) -> Result<()> {
    let (add, remove) = (changes.added(direction.field())?, changes.removed(direction.field())?);
    let Plan { add, remove, describe } = plan(add, remove, live);
    match direction.authorize(client, group, &add).await {
        // The group is full: what has to go makes room for what has to come.
        Err(error) if error.class == Class::Quota && !remove.is_empty() => {
            direction.revoke(client, group, &remove).await?;
            direction.authorize(client, group, &add).await?;
        }
        added => {
            added?;
            direction.revoke(client, group, &remove).await?;
        }
    }
    direction.describe(client, group, &describe).await
}

fn plan(add: Vec<Rule>, remove: Vec<Rule>, live: &[Rule]) -> Plan {
    let is_in = |rules: &[Rule], rule: &Rule| rules.iter().any(|other| other.traffic() == rule.traffic());
    let (describe, add): (Vec<_>, Vec<_>) = add.into_iter().partition(|rule| is_in(live, rule));
    let remove = remove.into_iter().filter(|rule| !is_in(&describe, rule)).collect();
    Plan { add, remove, describe }
}

impl Direction {
    /// The field of the spec.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Direction::Ingress => "ingressRules",
            Direction::Egress => "egressRules",
        }
    }

    async fn authorize(self, client: &Client, group: &str, rules: &[Rule]) -> Result<()> {
        if rules.is_empty() {
            return Ok(());
        }
        let rules = Some(to_ec2(rules));
        match self {
            Direction::Ingress => {
                let authorize = client.authorize_security_group_ingress().group_id(group);
                authorize.set_ip_permissions(rules).send().await.answer().map(drop)
            }
            Direction::Egress => {
                let authorize = client.authorize_security_group_egress().group_id(group);
                authorize.set_ip_permissions(rules).send().await.answer().map(drop)
            }
        }
        .map_err(changed_meanwhile)
    }

    /// Takes rules away; of a group that is gone, they are too.
    pub(crate) async fn revoke(self, client: &Client, group: &str, rules: &[Rule]) -> Result<()> {
        if rules.is_empty() {
            return Ok(());
        }
        let (rules, absent) = (Some(to_ec2(rules)), aws_sdk_ec2::types::SecurityGroup::ABSENT);
        match self {
            Direction::Ingress => {
                let revoke = client.revoke_security_group_ingress().group_id(group);
                revoke.set_ip_permissions(rules).send().await.answer_or_absent(absent).map(drop)
            }
            Direction::Egress => {
                let revoke = client.revoke_security_group_egress().group_id(group);
                revoke.set_ip_permissions(rules).send().await.answer_or_absent(absent).map(drop)
            }
        }
        .map_err(changed_meanwhile)
    }

    async fn describe(self, client: &Client, group: &str, rules: &[Rule]) -> Result<()> {
        if rules.is_empty() {
            return Ok(());
        }
        let rules = Some(to_ec2(rules));
        match self {
            Direction::Ingress => {
                let describe = client.update_security_group_rule_descriptions_ingress().group_id(group);
                describe.set_ip_permissions(rules).send().await.answer().map(drop)
            }
            Direction::Egress => {
                let describe = client.update_security_group_rule_descriptions_egress().group_id(group);
                describe.set_ip_permissions(rules).send().await.answer().map(drop)
            }
        }
        .map_err(changed_meanwhile)
    }
}

/// Somebody else added or removed one of these rules since they were read: read again.
fn changed_meanwhile(error: Error) -> Error {
    match error.code.as_str() {
        "InvalidPermission.Duplicate" | "InvalidPermission.NotFound" => error.class(Class::Conflict),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(cidr: &str, description: &str) -> Rule {
        Rule {
            protocol: "-1".to_owned(),
            cidr_ipv4: Some(cidr.to_owned()),
            description: Some(description.to_owned()),
            ..Rule::default()
        }
    }

    fn cidrs(rules: &[Rule]) -> Vec<&str> {
        rules.iter().filter_map(|rule| rule.cidr_ipv4.as_deref()).collect()
    }

    #[test]
    fn a_changed_description_is_neither_removed_nor_added() {
        let live = [rule("10.0.0.0/8", "old"), rule("192.168.0.0/16", "stale")];
        let add = vec![rule("10.0.0.0/8", "new"), rule("172.16.0.0/12", "more")];
        let plan = plan(add, live.to_vec(), &live);
        assert_eq!(cidrs(&plan.describe), ["10.0.0.0/8"]);
        assert_eq!(plan.describe[0].description.as_deref(), Some("new"));
        assert_eq!(cidrs(&plan.add), ["172.16.0.0/12"]);
        assert_eq!(cidrs(&plan.remove), ["192.168.0.0/16"]);
    }

    #[test]
    fn a_description_changes_also_while_nothing_is_removed() {
        // Another rule of the list is held up, so the comparison names nothing to remove.
        let live = [rule("10.0.0.0/8", "old")];
        let plan = plan(vec![rule("10.0.0.0/8", "new")], Vec::new(), &live);
        assert_eq!(cidrs(&plan.describe), ["10.0.0.0/8"]);
        assert!(plan.add.is_empty() && plan.remove.is_empty());
    }
}
