//! NatGateway.

use std::time::Duration;

use aws::Answer;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{self, ConnectivityType, DomainType, Filter, NatGatewayState, ResourceType, Tag};
use resource::record::Made;
use resource::schema::{default_to, immutable, tags};
use resource::tags::is_reserved;
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Ref, Resource, Result, Role, Tags, targets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::store::{Described, Store, candidates, made};
use crate::tags::{at_creation, from_ec2, to_ec2};

/// A NAT gateway: a subnet's way out, without a way in.
pub(crate) struct NatGateway {
    pub(crate) gateways: Store<types::NatGateway>,
    pub(crate) addresses: Store<types::Address>,
}

/// The Elastic IP of a public NAT gateway.
const EIP: Role = Role("eip");

/// A way out of a VPC's private subnets, without a way in. A public one has an Elastic IP of its
/// own, which is allocated with it and released with it, and needs an internet gateway attached to
/// the VPC.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The subnet that it stands in: the name of a Subnet object, or the id of an existing subnet.
    /// A public one stands in a subnet whose route table leads to the internet gateway.
    #[schemars(transform = immutable)]
    subnet_ref: Ref<targets::Subnet>,
    /// Where it leads: public (to the internet, by an Elastic IP) or private (to other networks).
    /// AWS takes public.
    #[schemars(extend("enum" = ["public", "private"]), length(max = 16))]
    #[schemars(transform = default_to("public"), transform = immutable)]
    connectivity_type: Option<String>,
    /// Tags of the NAT gateway and of its Elastic IP. Tags that others put on them stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a NAT gateway.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The id: nat-….
    nat_gateway_id: Option<String>,
    /// The id of its Elastic IP: eipalloc-….
    elastic_ip_allocation_id: Option<String>,
    /// AWS's state: pending, available, deleting or failed.
    state: Option<String>,
    /// The address that the internet sees.
    public_ip: Option<String>,
}

impl Resource for NatGateway {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "NatGateway",
        plural: "natgateways",
        short_names: &["natgw"],
        about: "A NAT gateway with its Elastic IP: a private subnet's way out.",
        identifier: "natGatewayId",
        deletion: Deletion::Asynchronous,
        reads: Reads::Batched,
        polling: Polling(Duration::from_secs(15)),
        precious: false,
        woken_by: &["InternetGateway"],
        permissions: &[
            "ec2:AllocateAddress",
            "ec2:CreateNatGateway",
            "ec2:CreateTags",
            "ec2:DeleteNatGateway",
            "ec2:DeleteTags",
            "ec2:DescribeAddresses",
            "ec2:DescribeNatGateways",
            "ec2:ReleaseAddress",
        ],
    };

    fn protection(role: Role, _: Option<&Spec>) -> Protection {
        if role == EIP { Protection::None } else { Protection::Token }
    }

    fn roles(spec: Option<&Spec>) -> Vec<Role> {
        let is_private = |spec: &Spec| spec.connectivity_type.as_deref() == Some("private");
        if spec.is_some_and(is_private) { vec![Role::MAIN] } else { vec![EIP, Role::MAIN] }
    }

    async fn observe(
        &self,
        call: &Call,
        role: Role,
        id: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        if role == EIP {
            let address = self.addresses.read(call, id).await?;
            return Ok(address.map_or(Observed::Absent, |address| live_address(&address, spec).into()));
        }
        let gateway = self.gateways.read(call, id).await?;
        Ok(gateway
            .filter(|gateway| !is_gone(gateway))
            .map_or(Observed::Absent, |gateway| live(&gateway).into()))
    }

    async fn find(&self, call: &Call, role: Role, _: Option<&Spec>) -> Result<Vec<Candidate>> {
        if role == EIP {
            return Ok(candidates(&self.addresses.owned(call).await?, &[]));
        }
        let mut owned = self.gateways.owned(call).await?;
        owned.retain(is_candidate);
        Ok(candidates(&owned, &[]))
    }

    async fn create(
        &self,
        call: &Call,
        role: Role,
        spec: &Spec,
        before: &Made,
    ) -> Result<Created<Spec, Status>> {
        if role == EIP {
            self.allocate(call, spec).await
        } else {
            self.create_gateway(call, spec, before).await
        }
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        _: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        // The gateway comes last: it is what is observed, so its tags say that the address has them.
        self.retag_address(call, live.status.elastic_ip_allocation_id.as_deref(), changes).await?;
        self.gateways.retag(call, id, changes).await?;
        Ok(Progress::Done)
    }

    async fn delete(&self, call: &Call, role: Role, id: &str, _: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.gateways.client(call).await?;
        if role == EIP {
            let answer = client.release_address().allocation_id(id).send().await;
            answer.answer_or_absent(types::Address::ABSENT).map_err(still_in_use)?;
            return Ok(Progress::Done);
        }
        let answer = client.delete_nat_gateway().nat_gateway_id(id).send().await;
        let accepted = answer.answer_or_absent(types::NatGateway::ABSENT)?;
        Ok(if accepted.is_some() { Progress::Busy } else { Progress::Done })
    }

    async fn untag(&self, call: &Call, role: Role, id: &str, keys: &[String]) -> Result<()> {
        if role == EIP {
            self.addresses.untag(call, id, keys).await
        } else {
            self.gateways.untag(call, id, keys).await
        }
    }
}

impl NatGateway {
    async fn allocate(&self, call: &Call, spec: &Spec) -> Result<Created<Spec, Status>> {
        let tags = at_creation(ResourceType::ElasticIp, &call.tags);
        let allocate = self.addresses.client(call).await?.allocate_address().domain(DomainType::Vpc);
        let answer = allocate.tag_specifications(tags).send().await.answer()?;
        let address = types::Address::builder()
            .set_allocation_id(answer.allocation_id)
            .set_public_ip(answer.public_ip)
            .set_tags(Some(to_ec2(&call.tags)))
            .build();
        let address = made("AllocateAddress", Some(address))?;
        Ok(Created { id: address.id().to_owned(), live: Some(live_address(&address, Some(spec))) })
    }

    async fn create_gateway(&self, call: &Call, spec: &Spec, before: &Made) -> Result<Created<Spec, Status>> {
        let client = self.gateways.client(call).await?;
        let create = client
            .create_nat_gateway()
            .subnet_id(spec.subnet_ref.id())
            .set_connectivity_type(spec.connectivity_type.as_deref().map(ConnectivityType::from))
            .set_allocation_id(before.get(EIP).map(str::to_owned))
            .set_client_token(call.token())
            .tag_specifications(at_creation(ResourceType::Natgateway, &call.tags));
        let answer = create.send().await.answer().map_err(no_internet_gateway)?;
        let gateway = made("CreateNatGateway", answer.nat_gateway)?;
        Ok(Created { id: gateway.id().to_owned(), live: Some(live(&gateway)) })
    }

    /// The user's tags stand on the address too; who owns it was said when it was allocated.
    async fn retag_address(&self, call: &Call, id: Option<&str>, changes: &Changes) -> Result<()> {
        let Some(id) = id else { return Ok(()) };
        let mut set = changes.tags_to_set();
        set.retain(|key, _| !is_reserved(key));
        self.addresses.tag(call, id, &set).await?;
        self.addresses.untag(call, id, &changes.tags_to_remove()).await
    }
}

/// AWS refuses a public NAT gateway in a VPC without an internet gateway: something else comes first.
fn no_internet_gateway(error: Error) -> Error {
    if error.code == "Gateway.NotAttached" { error.class(Class::Dependency) } else { error }
}

/// What AWS answers while a NAT gateway that was just deleted still holds the address.
fn still_in_use(error: Error) -> Error {
    match error.code.as_str() {
        "AuthFailure" | "InvalidIPAddress.InUse" => error.class(Class::Dependency),
        _ => error,
    }
}

/// AWS shows a deleted NAT gateway for another hour.
fn is_gone(gateway: &types::NatGateway) -> bool {
    gateway.state() == Some(&NatGatewayState::Deleted)
}

/// What works or will; a failed one cannot be brought to life and holds no name.
fn is_candidate(gateway: &types::NatGateway) -> bool {
    !matches!(
        gateway.state(),
        Some(NatGatewayState::Deleted | NatGatewayState::Deleting | NatGatewayState::Failed)
    )
}

fn live(gateway: &types::NatGateway) -> Live<Spec, Status> {
    let addresses = gateway.nat_gateway_addresses();
    // Only regional ones and those with further addresses say which is the primary one.
    let address = addresses.iter().find(|address| address.is_primary() == Some(true)).or(addresses.first());
    Live {
        spec: Spec {
            subnet_ref: Ref::to(gateway.subnet_id().unwrap_or_default()),
            connectivity_type: Some(
                gateway.connectivity_type().map_or("public", |of| of.as_str()).to_owned(),
            ),
            tags: None,
        },
        status: Status {
            nat_gateway_id: gateway.nat_gateway_id.clone(),
            elastic_ip_allocation_id: address.and_then(|address| address.allocation_id.clone()),
            state: gateway.state().map(|state| state.as_str().to_owned()),
            public_ip: address.and_then(|address| address.public_ip.clone()),
        },
        phase: phase(gateway),
        tags: from_ec2(Described::tags(gateway)),
    }
}

fn phase(gateway: &types::NatGateway) -> Phase {
    match gateway.state() {
        Some(NatGatewayState::Pending) => Phase::Busy("AWS is creating the NAT gateway".to_owned()),
        Some(NatGatewayState::Deleting | NatGatewayState::Deleted) => Phase::Deleting,
        Some(NatGatewayState::Failed) => {
            let code = gateway.failure_code().unwrap_or("failed");
            let message = gateway.failure_message().unwrap_or("AWS gives no reason");
            Phase::Failed { why: format!("{code}: {message}"), replace: true }
        }
        _ => Phase::Ready,
    }
}

/// No field of the spec is about the address, so that part reads as it is wanted.
fn live_address(address: &types::Address, spec: Option<&Spec>) -> Live<Spec, Status> {
    let nothing = || Spec { subnet_ref: Ref::to(""), connectivity_type: None, tags: None };
    let spec = spec.cloned().unwrap_or_else(nothing);
    Live {
        spec: Spec { tags: None, ..spec },
        status: Status {
            elastic_ip_allocation_id: address.allocation_id.clone(),
            public_ip: address.public_ip.clone(),
            ..Status::default()
        },
        phase: Phase::Ready,
        tags: from_ec2(Described::tags(address)),
    }
}

impl Described for types::NatGateway {
    const OPERATION: &'static str = "DescribeNatGateways";
    const ID_FILTER: &'static str = "nat-gateway-id";
    const ABSENT: &'static [&'static str] = &["NatGatewayNotFound", "InvalidNatGatewayID.NotFound"];

    fn id(&self) -> &str {
        self.nat_gateway_id().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tags()
    }

    async fn matching(client: &Client, filters: Vec<Filter>) -> Result<Vec<Self>> {
        let pages = client.describe_nat_gateways().set_filter(Some(filters)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_nat_gateways().nat_gateway_ids(id).send().await;
        let answer = answer.answer_or_absent(Self::ABSENT)?;
        Ok(answer.map(|answer| answer.nat_gateways.unwrap_or_default()))
    }
}

impl Described for types::Address {
    const OPERATION: &'static str = "DescribeAddresses";
    const ID_FILTER: &'static str = "allocation-id";
    const ABSENT: &'static [&'static str] = &["InvalidAllocationID.NotFound"];

    fn id(&self) -> &str {
        self.allocation_id().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tags()
    }

    /// AWS answers this one in a single page.
    async fn matching(client: &Client, filters: Vec<Filter>) -> Result<Vec<Self>> {
        let answer = client.describe_addresses().set_filters(Some(filters)).send().await.answer()?;
        Ok(answer.addresses.unwrap_or_default())
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_addresses().allocation_ids(id).send().await;
        let answer = answer.answer_or_absent(Self::ABSENT)?;
        Ok(answer.map(|answer| answer.addresses.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(state: NatGatewayState) -> types::NatGateway {
        let address =
            types::NatGatewayAddress::builder().allocation_id("eipalloc-1").public_ip("192.0.2.1").build();
        types::NatGateway::builder()
            .nat_gateway_id("nat-1")
            .subnet_id("subnet-1")
            .nat_gateway_addresses(address)
            .failure_code("Gateway.NotAttached")
            .failure_message("Network vpc-1 has no Internet gateway attached")
            .state(state)
            .build()
    }

    fn spec(connectivity: Option<&str>) -> Spec {
        Spec {
            subnet_ref: Ref::to("subnet-1"),
            connectivity_type: connectivity.map(str::to_owned),
            tags: None,
        }
    }

    #[test]
    fn only_a_private_one_has_no_address() {
        assert_eq!(NatGateway::roles(Some(&spec(Some("private")))), [Role::MAIN]);
        for public in [Some(&spec(Some("public"))), Some(&spec(None)), None] {
            assert_eq!(NatGateway::roles(public), [EIP, Role::MAIN]);
        }
    }

    #[test]
    fn a_gateway_reads_as_spec_and_status() {
        let live = live(&gateway(NatGatewayState::Available));
        assert_eq!(live.spec.subnet_ref.id(), "subnet-1");
        assert_eq!(live.spec.connectivity_type.as_deref(), Some("public"));
        assert_eq!(live.status.elastic_ip_allocation_id.as_deref(), Some("eipalloc-1"));
        assert_eq!(live.status.public_ip.as_deref(), Some("192.0.2.1"));
        assert_eq!(live.phase, Phase::Ready);
    }

    #[test]
    fn states_read_as_phases() {
        assert!(matches!(phase(&gateway(NatGatewayState::Pending)), Phase::Busy(_)));
        assert_eq!(phase(&gateway(NatGatewayState::Deleting)), Phase::Deleting);
        assert_eq!(
            phase(&gateway(NatGatewayState::Failed)),
            Phase::Failed {
                why: "Gateway.NotAttached: Network vpc-1 has no Internet gateway attached".to_owned(),
                replace: true
            }
        );
        assert!(is_gone(&gateway(NatGatewayState::Deleted)));
        assert!(!is_gone(&gateway(NatGatewayState::Deleting)));
    }

    #[test]
    fn dead_ones_are_no_candidates() {
        for (state, is) in [
            (NatGatewayState::Pending, true),
            (NatGatewayState::Available, true),
            (NatGatewayState::Failed, false),
            (NatGatewayState::Deleting, false),
            (NatGatewayState::Deleted, false),
        ] {
            assert_eq!(is_candidate(&gateway(state.clone())), is, "{state}");
        }
    }

    #[test]
    fn what_must_come_or_go_first_is_a_dependency() {
        let error = |code: &str| Error { code: code.to_owned(), ..Error::invalid("Some", "message") };
        assert_eq!(no_internet_gateway(error("Gateway.NotAttached")).class, Class::Dependency);
        assert_eq!(no_internet_gateway(error("InvalidSubnet")).class, Class::Invalid);
        assert_eq!(still_in_use(error("AuthFailure")).class, Class::Dependency);
        assert_eq!(still_in_use(error("InvalidIPAddress.InUse")).class, Class::Dependency);
        assert_eq!(still_in_use(error("InvalidParameterValue")).class, Class::Invalid);
    }
}
