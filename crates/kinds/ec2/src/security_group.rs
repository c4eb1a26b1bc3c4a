//! SecurityGroup.

use aws::Answer;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{self, Filter, ResourceType, Tag};
use resource::record::Made;
use resource::schema::{clearable, default_to, immutable, rule, set, tags};
use resource::{
    Call, Candidate, Changes, Created, Deletion, Live, Meta, Observed, Phase, Polling, Progress, Protection,
    Reads, Ref, Resource, Result, Role, Tags, targets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_with::skip_serializing_none;

use crate::rule_changes::{self, Direction};
use crate::rules::{self, Rule};
use crate::schema::group_text;
use crate::store::{Described, Store, candidates, made};
use crate::tags::{at_creation, from_ec2};

/// A security group: which traffic reaches and leaves its members.
pub(crate) struct SecurityGroup(pub(crate) Store<types::SecurityGroup>);

/// Which traffic reaches and leaves its members. Deleting it is refused by AWS as long as anything
/// is a member or another group's rules name it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The VPC that it is part of: the name of a VPC object, or the id of an existing VPC.
    #[schemars(transform = immutable)]
    vpc_ref: Ref<targets::Vpc>,
    /// The name in AWS, unique within the VPC.
    #[schemars(length(min = 1, max = 255), transform = group_text)]
    #[schemars(transform = rule(
        "!self.startsWith('sg-') && self != 'default'",
        "AWS keeps the name default, and names that begin with sg-, for itself; choose another",
    ))]
    #[schemars(transform = immutable)]
    group_name: String,
    /// What the group is for. AWS cannot change it later.
    #[schemars(length(min = 1, max = 255), transform = group_text)]
    #[schemars(transform = immutable)]
    description: String,
    /// The traffic that reaches members. The list is the full list: rules that others added are
    /// taken away. Empty lets nothing in; left out, the rules are not managed.
    #[schemars(length(max = 1000), transform = set, transform = clearable)]
    ingress_rules: Option<Vec<Rule>>,
    /// The traffic that leaves members. The list is the full list: rules that others added are
    /// taken away. Empty lets nothing out; left out, the rules are not managed, and AWS lets
    /// everything out of a new group.
    #[schemars(length(max = 1000), transform = set)]
    #[schemars(transform = default_to(json!([{"protocol": "-1", "cidrIpv4": "0.0.0.0/0"}])))]
    egress_rules: Option<Vec<Rule>>,
    /// Tags of the security group. Tags that others put on it stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a security group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The id: sg-….
    group_id: Option<String>,
}

impl Resource for SecurityGroup {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "SecurityGroup",
        plural: "securitygroups",
        short_names: &["secgroup"],
        about: "A security group: which traffic reaches and leaves its members.",
        identifier: "groupId",
        deletion: Deletion::Blockable,
        reads: Reads::Batched,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: false,
        woken_by: &[],
        permissions: &[
            "ec2:AuthorizeSecurityGroupEgress",
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:CreateSecurityGroup",
            "ec2:CreateTags",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteTags",
            "ec2:DescribeSecurityGroups",
            "ec2:RevokeSecurityGroupEgress",
            "ec2:RevokeSecurityGroupIngress",
            "ec2:UpdateSecurityGroupRuleDescriptionsEgress",
            "ec2:UpdateSecurityGroupRuleDescriptionsIngress",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        // AWS refuses a second group of that name in the VPC.
        Protection::UniqueName
    }

    fn canonical(mut spec: Spec) -> Result<Spec> {
        let canonical = |direction: Direction| move |list| rules::canonical(direction.field(), list);
        spec.ingress_rules = spec.ingress_rules.map(canonical(Direction::Ingress)).transpose()?;
        spec.egress_rules = spec.egress_rules.map(canonical(Direction::Egress)).transpose()?;
        Ok(spec)
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        _: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        Ok(self.0.read(call, id).await?.map_or(Observed::Absent, |group| live(&group).into()))
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        let mut named = Vec::new();
        if let Some(spec) = spec {
            let (vpc, name) = (spec.vpc_ref.id(), spec.group_name.as_str());
            named = self.0.matching(call, &[("vpc-id", vpc), ("group-name", name)]).await?;
            named.retain(|group| group.vpc_id() == Some(vpc) && group.group_name() == Some(name));
        }
        Ok(candidates(&self.0.owned(call).await?, &named))
    }

    /// The rules follow as updates.
    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let client = self.0.client(call).await?;
        let create = client
            .create_security_group()
            .vpc_id(spec.vpc_ref.id())
            .group_name(&spec.group_name)
            .description(&spec.description)
            .tag_specifications(at_creation(ResourceType::SecurityGroup, &call.tags));
        let answer = create.send().await.answer()?;
        let group = types::SecurityGroup::builder().set_group_id(answer.group_id).build();
        let id = made("CreateSecurityGroup", Some(group))?.id().to_owned();
        let live = || Live {
            spec: Spec { ingress_rules: Some(Vec::new()), egress_rules: None, tags: None, ..spec.clone() },
            status: Status { group_id: Some(id.clone()) },
            phase: Phase::Ready,
            tags: call.tags.clone(),
        };
        // In a VPC with an IPv6 range AWS lets that out, too. The answer does not say so, and a
        // list of egress rules must not overlook it: then the group is read back.
        Ok(Created { live: spec.egress_rules.is_none().then(live), id })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        _: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let client = self.0.client(call).await?;
        let rules = |list: &Option<Vec<Rule>>| list.clone().unwrap_or_default();
        let (ingress, egress) = (rules(&live.spec.ingress_rules), rules(&live.spec.egress_rules));
        let parts = [
            rule_changes::apply(&client, id, Direction::Ingress, &ingress, changes).await,
            rule_changes::apply(&client, id, Direction::Egress, &egress, changes).await,
            self.0.retag(call, id, changes).await,
        ];
        // Each part was tried, whatever became of the others.
        parts.into_iter().collect::<Result<()>>()?;
        Ok(Progress::Done)
    }

    /// Lets go of other groups first: two that name each other could not be deleted at all.
    async fn delete(&self, call: &Call, _: Role, id: &str, live: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.0.client(call).await?;
        let naming = |list: &Option<Vec<Rule>>| -> Vec<Rule> {
            list.iter().flatten().filter(|rule| rule.names_other_than(id)).cloned().collect()
        };
        Direction::Ingress.revoke(&client, id, &naming(&live.spec.ingress_rules)).await?;
        Direction::Egress.revoke(&client, id, &naming(&live.spec.egress_rules)).await?;
        let answer = client.delete_security_group().group_id(id).send().await;
        answer.answer_or_absent(types::SecurityGroup::ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        self.0.untag(call, id, keys).await
    }
}

fn live(group: &types::SecurityGroup) -> Live<Spec, Status> {
    let account = group.owner_id();
    Live {
        spec: Spec {
            vpc_ref: Ref::to(group.vpc_id().unwrap_or_default()),
            group_name: group.group_name.clone().unwrap_or_default(),
            description: group.description.clone().unwrap_or_default(),
            ingress_rules: Some(rules::from_ec2(group.ip_permissions(), account)),
            egress_rules: Some(rules::from_ec2(group.ip_permissions_egress(), account)),
            tags: None,
        },
        status: Status { group_id: group.group_id.clone() },
        phase: Phase::Ready,
        tags: from_ec2(Described::tags(group)),
    }
}

impl Described for types::SecurityGroup {
    const OPERATION: &'static str = "DescribeSecurityGroups";
    const ID_FILTER: &'static str = "group-id";
    const ABSENT: &'static [&'static str] = &["InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound"];

    fn id(&self) -> &str {
        self.group_id().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tags()
    }

    async fn matching(client: &Client, filters: Vec<Filter>) -> Result<Vec<Self>> {
        let pages = client.describe_security_groups().set_filters(Some(filters)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_security_groups().group_ids(id).send().await;
        let answer = answer.answer_or_absent(Self::ABSENT)?;
        Ok(answer.map(|answer| answer.security_groups.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_reads_as_a_spec() {
        let pair = types::UserIdGroupPair::builder().user_id("123456789012").group_id("sg-2").build();
        let everywhere = types::IpRange::builder().cidr_ip("0.0.0.0/0").build();
        let group = types::SecurityGroup::builder()
            .group_id("sg-1")
            .owner_id("123456789012")
            .vpc_id("vpc-1")
            .group_name("web")
            .description("web servers")
            .ip_permissions(
                types::IpPermission::builder()
                    .ip_protocol("tcp")
                    .from_port(80)
                    .to_port(80)
                    .user_id_group_pairs(pair)
                    .build(),
            )
            .ip_permissions_egress(
                types::IpPermission::builder().ip_protocol("-1").ip_ranges(everywhere).build(),
            )
            .build();
        assert_eq!(
            json!(live(&group).spec),
            json!({
                "vpcRef": {"id": "vpc-1"}, "groupName": "web", "description": "web servers",
                "ingressRules": [{"protocol": "tcp", "fromPort": 80, "toPort": 80, "sourceGroupId": "sg-2"}],
                "egressRules": [{"protocol": "-1", "cidrIpv4": "0.0.0.0/0"}],
            })
        );
    }

    #[test]
    fn only_rules_that_name_others_are_let_go_of() {
        let rule = |group: &str| Rule { source_group_id: Some(group.to_owned()), ..Rule::default() };
        assert!(rule("sg-2").names_other_than("sg-1"));
        assert!(!rule("sg-1").names_other_than("sg-1"));
        assert!(!Rule::default().names_other_than("sg-1"));
    }
}
