//! Subnet.

use aws::Answer;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{self, AttributeBooleanValue, Filter, ResourceType, SubnetState, Tag};
use resource::record::Made;
use resource::schema::{cidr_v4, default_to, immutable, matches, tags};
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Live, Meta, Observed, Phase, Polling, Progress,
    Protection, Reads, Ref, Resource, Result, Role, Tags, targets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::{masked, vpc_size};
use crate::store::{Described, Store, candidates, made};
use crate::tags::{at_creation, from_ec2};

/// A subnet: a range of a VPC's addresses in one availability zone.
pub(crate) struct Subnet(pub(crate) Store<types::Subnet>);

/// A range of a VPC's addresses in one availability zone. Deleting it is refused by AWS as long as
/// anything is in it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The VPC that it is part of: the name of a VPC object, or the id of an existing VPC.
    #[schemars(transform = immutable)]
    vpc_ref: Ref<targets::Vpc>,
    /// The IPv4 range, within one of the VPC's, between /16 and /28: 10.0.1.0/24. AWS keeps the
    /// first four addresses and the last.
    #[schemars(transform = cidr_v4, transform = vpc_size, transform = immutable)]
    cidr_block: String,
    /// The availability zone, such as eu-central-1a.
    #[schemars(length(min = 1, max = 64), transform = immutable, transform = matches(
        r"^[a-z0-9-]+$",
        "must be the name of a zone of the operator's region, such as eu-central-1a",
    ))]
    availability_zone: String,
    /// Whether instances started here get a public IPv4 address. AWS leaves it off in a new subnet.
    #[schemars(transform = default_to(false))]
    map_public_ip_on_launch: Option<bool>,
    /// Tags of the subnet. Tags that others put on it stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a subnet.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The id: subnet-….
    subnet_id: Option<String>,
    /// How many IPv4 addresses are free.
    available_ip_address_count: Option<i32>,
}

impl Resource for Subnet {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "Subnet",
        plural: "subnets",
        short_names: &["snet"],
        about: "A subnet: a range of a VPC's addresses in one availability zone.",
        identifier: "subnetId",
        deletion: Deletion::Blockable,
        reads: Reads::Batched,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: false,
        woken_by: &[],
        permissions: &[
            "ec2:CreateSubnet",
            "ec2:CreateTags",
            "ec2:DeleteSubnet",
            "ec2:DeleteTags",
            "ec2:DescribeSubnets",
            "ec2:ModifySubnetAttribute",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        // AWS refuses a second subnet with the same range.
        Protection::UniqueName
    }

    fn canonical(spec: Spec) -> Result<Spec> {
        Ok(Spec { cidr_block: masked(&spec.cidr_block)?, ..spec })
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        _: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        Ok(self.0.read(call, id).await?.map_or(Observed::Absent, |subnet| live(&subnet).into()))
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        let mut named = Vec::new();
        if let Some(spec) = spec {
            let (vpc, cidr) = (spec.vpc_ref.id(), spec.cidr_block.as_str());
            named = self.0.matching(call, &[("vpc-id", vpc), ("cidr-block", cidr)]).await?;
            named.retain(|subnet| subnet.vpc_id() == Some(vpc) && subnet.cidr_block() == Some(cidr));
        }
        Ok(candidates(&self.0.owned(call).await?, &named))
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let client = self.0.client(call).await?;
        let answer = client
            .create_subnet()
            .vpc_id(spec.vpc_ref.id())
            .cidr_block(&spec.cidr_block)
            .availability_zone(&spec.availability_zone)
            .tag_specifications(at_creation(ResourceType::Subnet, &call.tags))
            .send()
            .await
            .answer()
            .map_err(|error| match error.code.as_str() {
                // The range may be taken by what the first transmission made.
                "InvalidSubnet.Conflict" if call.attempted_since.is_some() => error.class(Class::Exists),
                _ => error,
            })?;
        let subnet = made("CreateSubnet", answer.subnet)?;
        Ok(Created { id: subnet.id().to_owned(), live: Some(live(&subnet)) })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        _: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let parts = [
            self.update_public_addresses(call, id, target, changes).await,
            self.0.retag(call, id, changes).await,
        ];
        // Each part was tried, whatever became of the other.
        parts.into_iter().collect::<Result<()>>()?;
        Ok(Progress::Done)
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, _: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.0.client(call).await?;
        client.delete_subnet().subnet_id(id).send().await.answer_or_absent(types::Subnet::ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        self.0.untag(call, id, keys).await
    }
}

impl Subnet {
    async fn update_public_addresses(
        &self,
        call: &Call,
        id: &str,
        target: &Spec,
        changes: &Changes,
    ) -> Result<()> {
        let wanted = target.map_public_ip_on_launch.filter(|_| changes.touch("mapPublicIpOnLaunch"));
        if let Some(on) = wanted {
            let modify = self.0.client(call).await?.modify_subnet_attribute().subnet_id(id);
            let value = AttributeBooleanValue::builder().value(on).build();
            modify.map_public_ip_on_launch(value).send().await.answer()?;
        }
        Ok(())
    }
}

fn live(subnet: &types::Subnet) -> Live<Spec, Status> {
    Live {
        spec: Spec {
            vpc_ref: Ref::to(subnet.vpc_id().unwrap_or_default()),
            cidr_block: subnet.cidr_block.clone().unwrap_or_default(),
            availability_zone: subnet.availability_zone.clone().unwrap_or_default(),
            map_public_ip_on_launch: Some(subnet.map_public_ip_on_launch.unwrap_or_default()),
            tags: None,
        },
        status: Status {
            subnet_id: subnet.subnet_id.clone(),
            available_ip_address_count: subnet.available_ip_address_count,
        },
        phase: phase(subnet.state()),
        tags: from_ec2(Described::tags(subnet)),
    }
}

fn phase(state: Option<&SubnetState>) -> Phase {
    match state {
        Some(SubnetState::Pending) => Phase::Busy("AWS is creating the subnet".to_owned()),
        Some(SubnetState::Unavailable) => Phase::Busy("AWS reports the subnet as unavailable".to_owned()),
        // Its range stays taken until it is deleted, so it is not made anew by itself.
        Some(state @ (SubnetState::Failed | SubnetState::FailedInsufficientCapacity)) => {
            Phase::Failed { why: format!("the subnet's state is {}", state.as_str()), replace: false }
        }
        _ => Phase::Ready,
    }
}

impl Described for types::Subnet {
    const OPERATION: &'static str = "DescribeSubnets";
    const ID_FILTER: &'static str = "subnet-id";
    const ABSENT: &'static [&'static str] = &["InvalidSubnetID.NotFound"];

    fn id(&self) -> &str {
        self.subnet_id().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tags()
    }

    async fn matching(client: &Client, filters: Vec<Filter>) -> Result<Vec<Self>> {
        let pages = client.describe_subnets().set_filters(Some(filters)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_subnets().subnet_ids(id).send().await.answer_or_absent(Self::ABSENT)?;
        Ok(answer.map(|answer| answer.subnets.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_reads_as_a_spec() {
        let subnet = types::Subnet::builder()
            .subnet_id("subnet-1")
            .vpc_id("vpc-1")
            .cidr_block("10.0.1.0/24")
            .availability_zone("eu-central-1a")
            .available_ip_address_count(251)
            .state(SubnetState::Available)
            .build();
        let live = live(&subnet);
        assert_eq!(
            serde_json::json!(live.spec),
            serde_json::json!({
                "vpcRef": {"id": "vpc-1"}, "cidrBlock": "10.0.1.0/24",
                "availabilityZone": "eu-central-1a", "mapPublicIpOnLaunch": false,
            })
        );
        assert_eq!(live.status.available_ip_address_count, Some(251));
        assert_eq!(live.phase, Phase::Ready);
    }

    #[test]
    fn states_read_as_phases() {
        assert!(matches!(phase(Some(&SubnetState::Pending)), Phase::Busy(_)));
        assert!(matches!(phase(Some(&SubnetState::Failed)), Phase::Failed { replace: false, .. }));
        assert_eq!(phase(Some(&SubnetState::Available)), Phase::Ready);
    }
}
