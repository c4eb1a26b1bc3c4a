//! VPC.

use aws::Answer;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{
    self, AttributeBooleanValue, Filter, ResourceType, Tag, Tenancy, VpcAttributeName, VpcCidrBlockState,
    VpcCidrBlockStateCode, VpcIpv6CidrBlockAssociation, VpcState,
};
use resource::record::Made;
use resource::schema::{cidr_v4, clearable, default_to, each, immutable, rule, set, tags};
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Resource, Result, Role, Tags,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::{masked, vpc_size};
use crate::store::{Described, Store, candidates, made};
use crate::tags::{at_creation, from_ec2};

/// An Amazon VPC: a private network of its own in one region.
pub(crate) struct Vpc(pub(crate) Store<types::Vpc>);

/// A private network. Deleting it is refused by AWS as long as anything is in it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!(has(self.enableDnsHostnames) && self.enableDnsHostnames && has(self.enableDnsSupport) && !self.enableDnsSupport)",
    "enableDnsHostnames needs enableDnsSupport: set that to true or leave it out",
))]
pub(crate) struct Spec {
    /// The primary IPv4 range, between /16 and /28, written from its first address: 10.0.0.0/16.
    #[schemars(transform = cidr_v4, transform = vpc_size, transform = immutable)]
    cidr_block: String,
    /// Whether Amazon's DNS server answers inside the VPC. AWS turns it on in a new VPC.
    #[schemars(transform = default_to(true))]
    enable_dns_support: Option<bool>,
    /// Whether instances with public addresses get public DNS names; needs enableDnsSupport.
    /// AWS leaves it off in a new VPC.
    #[schemars(transform = default_to(false))]
    enable_dns_hostnames: Option<bool>,
    /// Where instances run: default (shared hardware unless the instance says otherwise),
    /// dedicated, or host. AWS takes default.
    #[schemars(extend("enum" = ["default", "dedicated", "host"]), length(max = 16))]
    #[schemars(transform = default_to("default"), transform = immutable)]
    instance_tenancy: Option<String>,
    /// Whether the VPC has a /56 IPv6 range from Amazon's pool. Turned off, the range is given back.
    assign_ipv6_cidr_block: Option<bool>,
    /// Further IPv4 ranges, each between /16 and /28. The list is the full list: ranges that others
    /// added are taken away. AWS allows four beside the primary one unless the quota is raised.
    #[serde(rename = "secondaryIPv4CIDRs")]
    #[schemars(length(max = 50), transform = each(cidr_v4), transform = each(vpc_size))]
    #[schemars(transform = set, transform = clearable)]
    secondary_ipv4_cidrs: Option<Vec<String>>,
    /// Tags of the VPC. Tags that others put on it stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a VPC.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The id: vpc-….
    vpc_id: Option<String>,
    /// AWS's state: pending or available.
    state: Option<String>,
    /// The IPv6 range from Amazon's pool.
    ipv6_cidr_block: Option<String>,
}

impl Resource for Vpc {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "VPC",
        plural: "vpcs",
        short_names: &[],
        about: "An Amazon VPC: a private network of its own in one region.",
        identifier: "vpcId",
        deletion: Deletion::Blockable,
        reads: Reads::Batched,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: false,
        woken_by: &[],
        permissions: &[
            "ec2:AssociateVpcCidrBlock",
            "ec2:CreateTags",
            "ec2:CreateVpc",
            "ec2:DeleteTags",
            "ec2:DeleteVpc",
            "ec2:DescribeVpcAttribute",
            "ec2:DescribeVpcs",
            "ec2:DisassociateVpcCidrBlock",
            "ec2:ModifyVpcAttribute",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        Protection::None
    }

    fn canonical(mut spec: Spec) -> Result<Spec> {
        spec.cidr_block = masked(&spec.cidr_block)?;
        for cidr in spec.secondary_ipv4_cidrs.iter_mut().flatten() {
            *cidr = masked(cidr)?;
        }
        Ok(spec)
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let Some(vpc) = self.0.read(call, id).await? else { return Ok(Observed::Absent) };
        let mut live = live(&vpc);
        let client = self.0.client(call).await?;
        let _turn = self.0.turn().await;
        if spec.is_some_and(|spec| spec.enable_dns_support.is_some()) {
            live.spec.enable_dns_support = attribute(&client, id, VpcAttributeName::EnableDnsSupport).await?;
        }
        if spec.is_some_and(|spec| spec.enable_dns_hostnames.is_some()) {
            live.spec.enable_dns_hostnames =
                attribute(&client, id, VpcAttributeName::EnableDnsHostnames).await?;
        }
        Ok(live.into())
    }

    async fn find(&self, call: &Call, _: Role, _: Option<&Spec>) -> Result<Vec<Candidate>> {
        Ok(candidates(&self.0.owned(call).await?, &[]))
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let client = self.0.client(call).await?;
        let answer = client
            .create_vpc()
            .cidr_block(&spec.cidr_block)
            .set_instance_tenancy(spec.instance_tenancy.as_deref().map(Tenancy::from))
            .set_amazon_provided_ipv6_cidr_block(spec.assign_ipv6_cidr_block)
            .tag_specifications(at_creation(ResourceType::Vpc, &call.tags))
            .send()
            .await
            .answer()?;
        let vpc = made("CreateVpc", answer.vpc)?;
        let mut live = live(&vpc);
        // A new VPC has these two always; to read them back would be two calls.
        live.spec.enable_dns_support = Some(true);
        live.spec.enable_dns_hostnames = Some(false);
        Ok(Created { id: vpc.id().to_owned(), live: Some(live) })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let client = self.0.client(call).await?;
        let parts = [
            update_dns(&client, id, target, changes).await,
            self.update_ipv6(call, id, live, target, changes).await,
            self.update_secondary(call, id, changes).await,
            self.0.retag(call, id, changes).await.map(|()| Progress::Done),
        ];
        // Each part was tried, whatever became of the others.
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(if parts.contains(&Progress::Busy) { Progress::Busy } else { Progress::Done })
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, _: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.0.client(call).await?;
        client.delete_vpc().vpc_id(id).send().await.answer_or_absent(types::Vpc::ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        self.0.untag(call, id, keys).await
    }
}

impl Vpc {
    async fn update_ipv6(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        if !changes.touch("assignIpv6CidrBlock") {
            return Ok(Progress::Done);
        }
        let client = self.0.client(call).await?;
        if target.assign_ipv6_cidr_block == Some(true) {
            let associate = client.associate_vpc_cidr_block().vpc_id(id);
            associate.amazon_provided_ipv6_cidr_block(true).send().await.answer()?;
            return Ok(Progress::Busy);
        }
        if live.spec.assign_ipv6_cidr_block == Some(true) {
            let vpc = self.0.read(call, id).await?;
            for association in vpc.iter().flat_map(amazon_ipv6) {
                disassociate(&client, association.association_id()).await?;
            }
        }
        Ok(Progress::Done)
    }

    async fn update_secondary(&self, call: &Call, id: &str, changes: &Changes) -> Result<Progress> {
        let add: Vec<String> = changes.added("secondaryIPv4CIDRs")?;
        let remove: Vec<String> = changes.removed("secondaryIPv4CIDRs")?;
        match self.associate(call, id, &add).await {
            // The VPC is full: what has to go makes room for what has to come.
            Err(error) if error.class == Class::Quota && !remove.is_empty() => {
                self.disassociate(call, id, &remove).await?;
                self.associate(call, id, &add).await
            }
            added => {
                self.disassociate(call, id, &remove).await?;
                added
            }
        }
    }

    async fn associate(&self, call: &Call, id: &str, cidrs: &[String]) -> Result<Progress> {
        let client = self.0.client(call).await?;
        let mut parts = Vec::new();
        for cidr in cidrs {
            parts.push(associate(&client, id, cidr).await);
        }
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(if parts.contains(&Progress::Busy) { Progress::Busy } else { Progress::Done })
    }

    async fn disassociate(&self, call: &Call, id: &str, cidrs: &[String]) -> Result<()> {
        if cidrs.is_empty() {
            return Ok(());
        }
        let (client, vpc) = (self.0.client(call).await?, self.0.read(call, id).await?);
        let mut parts = Vec::new();
        for association in vpc.iter().flat_map(|vpc| vpc.cidr_block_association_set()) {
            let is_meant = cidrs.iter().any(|cidr| association.cidr_block() == Some(cidr));
            if is_meant && counts(association.cidr_block_state()) {
                parts.push(disassociate(&client, association.association_id()).await);
            }
        }
        parts.into_iter().collect()
    }
}

async fn update_dns(client: &Client, id: &str, target: &Spec, changes: &Changes) -> Result<Progress> {
    let support = changes.touch("enableDnsSupport").then_some(target.enable_dns_support).flatten();
    let hostnames = changes.touch("enableDnsHostnames").then_some(target.enable_dns_hostnames).flatten();
    let value = |on| Some(AttributeBooleanValue::builder().value(on).build());
    let modify = || client.modify_vpc_attribute().vpc_id(id);
    // AWS has no host names without support: support is turned on before them and off after them.
    if support == Some(true) {
        modify().set_enable_dns_support(value(true)).send().await.answer()?;
    }
    if let Some(on) = hostnames {
        modify().set_enable_dns_hostnames(value(on)).send().await.answer()?;
    }
    if support == Some(false) {
        modify().set_enable_dns_support(value(false)).send().await.answer()?;
    }
    Ok(Progress::Done)
}

async fn attribute(client: &Client, id: &str, name: VpcAttributeName) -> Result<Option<bool>> {
    let answer = client.describe_vpc_attribute().vpc_id(id).attribute(name.clone()).send().await.answer()?;
    let value = match name {
        VpcAttributeName::EnableDnsSupport => answer.enable_dns_support,
        _ => answer.enable_dns_hostnames,
    };
    Ok(value.and_then(|value| value.value))
}

async fn associate(client: &Client, id: &str, cidr: &str) -> Result<Progress> {
    let answer = client.associate_vpc_cidr_block().vpc_id(id).cidr_block(cidr).send().await.answer()?;
    let association = answer.cidr_block_association;
    let state = association.as_ref().and_then(|association| association.cidr_block_state());
    match state.and_then(VpcCidrBlockState::state) {
        Some(VpcCidrBlockStateCode::Failed | VpcCidrBlockStateCode::Failing) => {
            let why = state.and_then(VpcCidrBlockState::status_message).unwrap_or("AWS gives no reason");
            Err(Error::new(Class::Invalid, "AssociateVpcCidrBlock", format!("{cidr} failed: {why}")))
        }
        Some(VpcCidrBlockStateCode::Associating) => Ok(Progress::Busy),
        _ => Ok(Progress::Done),
    }
}

async fn disassociate(client: &Client, association: Option<&str>) -> Result<()> {
    let disassociate = client.disassociate_vpc_cidr_block();
    let answer = disassociate.set_association_id(association.map(str::to_owned)).send().await;
    answer.answer_or_absent(&["InvalidVpcCidrBlockAssociationID.NotFound"])?;
    Ok(())
}

/// What AWS shows of a VPC; the DNS attributes are not in it.
fn live(vpc: &types::Vpc) -> Live<Spec, Status> {
    let primary = vpc.cidr_block.clone().unwrap_or_default();
    let secondary = vpc.cidr_block_association_set().iter();
    let secondary = secondary.filter(|association| counts(association.cidr_block_state()));
    let secondary = secondary.filter_map(|association| association.cidr_block.clone());
    let ipv6 = amazon_ipv6(vpc).next();
    Live {
        spec: Spec {
            secondary_ipv4_cidrs: Some(secondary.filter(|cidr| *cidr != primary).collect()),
            cidr_block: primary,
            enable_dns_support: None,
            enable_dns_hostnames: None,
            instance_tenancy: vpc.instance_tenancy().map(|tenancy| tenancy.as_str().to_owned()),
            assign_ipv6_cidr_block: Some(ipv6.is_some()),
            tags: None,
        },
        status: Status {
            vpc_id: vpc.vpc_id.clone(),
            state: vpc.state().map(|state| state.as_str().to_owned()),
            ipv6_cidr_block: ipv6
                .and_then(|ipv6| ipv6.ipv6_cidr_block.clone())
                .filter(|cidr| !cidr.is_empty()),
        },
        phase: phase(vpc),
        tags: from_ec2(Described::tags(vpc)),
    }
}

fn phase(vpc: &types::Vpc) -> Phase {
    match vpc.state() {
        Some(VpcState::Pending) => return Phase::Busy("AWS is creating the VPC".to_owned()),
        Some(VpcState::Deleting) => return Phase::Deleting,
        _ => {}
    }
    let is_coming = |ipv6: &VpcIpv6CidrBlockAssociation| {
        let state = ipv6.ipv6_cidr_block_state().and_then(VpcCidrBlockState::state);
        state == Some(&VpcCidrBlockStateCode::Associating)
    };
    if amazon_ipv6(vpc).any(is_coming) {
        return Phase::Busy("AWS is assigning an IPv6 range".to_owned());
    }
    Phase::Ready
}

/// The ranges from Amazon's pool; a range of the customer's own or from IPAM is not ours.
fn amazon_ipv6(vpc: &types::Vpc) -> impl Iterator<Item = &VpcIpv6CidrBlockAssociation> {
    vpc.ipv6_cidr_block_association_set().iter().filter(|association| {
        counts(association.ipv6_cidr_block_state())
            && association.ipv6_pool().is_none_or(|pool| pool == "Amazon")
    })
}

/// Whether an association is there or on its way.
fn counts(state: Option<&VpcCidrBlockState>) -> bool {
    let state = state.and_then(VpcCidrBlockState::state);
    matches!(state, Some(VpcCidrBlockStateCode::Associated | VpcCidrBlockStateCode::Associating))
}

impl Described for types::Vpc {
    const OPERATION: &'static str = "DescribeVpcs";
    const ID_FILTER: &'static str = "vpc-id";
    const ABSENT: &'static [&'static str] = &["InvalidVpcID.NotFound"];

    fn id(&self) -> &str {
        self.vpc_id().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tags()
    }

    async fn matching(client: &Client, filters: Vec<Filter>) -> Result<Vec<Self>> {
        let pages = client.describe_vpcs().set_filters(Some(filters)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_vpcs().vpc_ids(id).send().await.answer_or_absent(Self::ABSENT)?;
        Ok(answer.map(|answer| answer.vpcs.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::VpcCidrBlockAssociation;

    fn state(code: VpcCidrBlockStateCode) -> VpcCidrBlockState {
        VpcCidrBlockState::builder().state(code).build()
    }

    fn ipv4(cidr: &str, code: VpcCidrBlockStateCode) -> VpcCidrBlockAssociation {
        VpcCidrBlockAssociation::builder().cidr_block(cidr).cidr_block_state(state(code)).build()
    }

    fn ipv6(cidr: &str, pool: &str, code: VpcCidrBlockStateCode) -> VpcIpv6CidrBlockAssociation {
        VpcIpv6CidrBlockAssociation::builder()
            .ipv6_cidr_block(cidr)
            .ipv6_pool(pool)
            .ipv6_cidr_block_state(state(code))
            .build()
    }

    fn vpc() -> types::builders::VpcBuilder {
        types::Vpc::builder().vpc_id("vpc-1").cidr_block("10.0.0.0/16").state(VpcState::Available)
    }

    #[test]
    fn a_vpc_reads_as_a_spec() {
        let vpc = vpc()
            .instance_tenancy(Tenancy::Default)
            .cidr_block_association_set(ipv4("10.0.0.0/16", VpcCidrBlockStateCode::Associated))
            .cidr_block_association_set(ipv4("10.1.0.0/16", VpcCidrBlockStateCode::Associating))
            .cidr_block_association_set(ipv4("10.2.0.0/16", VpcCidrBlockStateCode::Disassociated))
            .cidr_block_association_set(ipv4("10.3.0.0/16", VpcCidrBlockStateCode::Failed))
            .ipv6_cidr_block_association_set(ipv6(
                "2001:db8::/56",
                "Amazon",
                VpcCidrBlockStateCode::Associated,
            ))
            .tags(Tag::builder().key("team").value("net").build())
            .build();
        let live = live(&vpc);
        assert_eq!(
            serde_json::json!(live.spec),
            serde_json::json!({
                "cidrBlock": "10.0.0.0/16", "instanceTenancy": "default", "assignIpv6CidrBlock": true,
                "secondaryIPv4CIDRs": ["10.1.0.0/16"],
            })
        );
        assert_eq!(
            serde_json::json!(live.status),
            serde_json::json!({"vpcId": "vpc-1", "state": "available", "ipv6CidrBlock": "2001:db8::/56"})
        );
        assert_eq!(live.phase, Phase::Ready);
        assert_eq!(live.tags, [("team".to_owned(), "net".to_owned())].into());
    }

    #[test]
    fn ipv6_ranges_that_are_gone_or_not_of_amazons_pool_do_not_count() {
        for (pool, code, counts) in [
            ("Amazon", VpcCidrBlockStateCode::Associated, true),
            ("Amazon", VpcCidrBlockStateCode::Disassociated, false),
            ("Amazon", VpcCidrBlockStateCode::Failed, false),
            ("ipv6pool-ec2-1", VpcCidrBlockStateCode::Associated, false),
        ] {
            let association = ipv6("2001:db8::/56", pool, code.clone());
            let live = live(&vpc().ipv6_cidr_block_association_set(association).build());
            assert_eq!(live.spec.assign_ipv6_cidr_block, Some(counts), "{pool} {code}");
            assert_eq!(live.status.ipv6_cidr_block.is_some(), counts, "{pool} {code}");
        }
    }

    #[test]
    fn states_read_as_phases() {
        assert!(matches!(live(&vpc().state(VpcState::Pending).build()).phase, Phase::Busy(_)));
        assert_eq!(live(&vpc().state(VpcState::Deleting).build()).phase, Phase::Deleting);
        // The answer to a create call has the association without its range.
        let coming = ipv6("", "Amazon", VpcCidrBlockStateCode::Associating);
        let live = live(&vpc().ipv6_cidr_block_association_set(coming).build());
        assert!(matches!(live.phase, Phase::Busy(_)));
        assert_eq!((live.spec.assign_ipv6_cidr_block, live.status.ipv6_cidr_block), (Some(true), None));
    }
}
