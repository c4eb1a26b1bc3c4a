//! InternetGateway.

use aws::Answer;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{self, AttachmentStatus, Filter, ResourceType, Tag};
use resource::record::Made;
use resource::schema::tags;
use resource::{
    Call, Candidate, Changes, Created, Deletion, Live, Meta, Observed, Phase, Polling, Progress, Protection,
    Reads, Ref, Resource, Result, Role, Tags, targets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::store::{Described, Store, candidates, made};
use crate::tags::{at_creation, from_ec2};

/// An internet gateway: a VPC's way to and from the internet.
pub(crate) struct InternetGateway(pub(crate) Store<types::InternetGateway>);

/// A VPC's way to and from the internet. A VPC has at most one. It is detached before it is
/// deleted, which AWS refuses while the VPC has public addresses in use.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The VPC that it is attached to: the name of a VPC object, or the id of an existing VPC.
    /// Another VPC here moves the gateway there.
    vpc_ref: Ref<targets::Vpc>,
    /// Tags of the internet gateway. Tags that others put on it stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of an internet gateway.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The id: igw-….
    internet_gateway_id: Option<String>,
}

impl Resource for InternetGateway {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "InternetGateway",
        plural: "internetgateways",
        short_names: &["igw"],
        about: "An internet gateway: a VPC's way to and from the internet.",
        identifier: "internetGatewayId",
        deletion: Deletion::Immediate,
        reads: Reads::Batched,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: false,
        woken_by: &["NatGateway"],
        permissions: &[
            "ec2:AttachInternetGateway",
            "ec2:CreateInternetGateway",
            "ec2:CreateTags",
            "ec2:DeleteInternetGateway",
            "ec2:DeleteTags",
            "ec2:DescribeInternetGateways",
            "ec2:DetachInternetGateway",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        Protection::None
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        _: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        Ok(self.0.read(call, id).await?.map_or(Observed::Absent, |gateway| live(&gateway).into()))
    }

    async fn find(&self, call: &Call, _: Role, _: Option<&Spec>) -> Result<Vec<Candidate>> {
        Ok(candidates(&self.0.owned(call).await?, &[]))
    }

    /// Not attached yet: that is a call of its own, and so an update.
    async fn create(&self, call: &Call, _: Role, _: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let tags = at_creation(ResourceType::InternetGateway, &call.tags);
        let create = self.0.client(call).await?.create_internet_gateway().tag_specifications(tags);
        let gateway = made("CreateInternetGateway", create.send().await.answer()?.internet_gateway)?;
        Ok(Created { id: gateway.id().to_owned(), live: Some(live(&gateway)) })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let parts =
            [self.attach(call, id, live, target, changes).await, self.0.retag(call, id, changes).await];
        // Each part was tried, whatever became of the other.
        parts.into_iter().collect::<Result<()>>()?;
        Ok(Progress::Done)
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, live: &Live<Spec, Status>) -> Result<Progress> {
        self.detach(call, id, live).await?;
        let delete = self.0.client(call).await?.delete_internet_gateway().internet_gateway_id(id);
        delete.send().await.answer_or_absent(types::InternetGateway::ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        self.0.untag(call, id, keys).await
    }
}

impl InternetGateway {
    /// A gateway is attached to one VPC at most, so it leaves the old one first.
    async fn attach(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<()> {
        if changes.touch("vpcRef") {
            self.detach(call, id, live).await?;
            let attach = self.0.client(call).await?.attach_internet_gateway().internet_gateway_id(id);
            attach.vpc_id(target.vpc_ref.id()).send().await.answer()?;
        }
        Ok(())
    }

    async fn detach(&self, call: &Call, id: &str, live: &Live<Spec, Status>) -> Result<()> {
        let vpc = live.spec.vpc_ref.id();
        if !vpc.is_empty() {
            let detach = self.0.client(call).await?.detach_internet_gateway().internet_gateway_id(id);
            // Whatever is gone, the attachment is too.
            let gone = ["Gateway.NotAttached", "InvalidInternetGatewayID.NotFound", "InvalidVpcID.NotFound"];
            detach.vpc_id(vpc).send().await.answer_or_absent(&gone)?;
        }
        Ok(())
    }
}

fn live(gateway: &types::InternetGateway) -> Live<Spec, Status> {
    let holds = |state: Option<&AttachmentStatus>| {
        !matches!(state, Some(AttachmentStatus::Detaching | AttachmentStatus::Detached))
    };
    let attachment = gateway.attachments().iter().find(|attachment| holds(attachment.state()));
    let vpc = attachment.and_then(|attachment| attachment.vpc_id()).unwrap_or_default();
    Live {
        spec: Spec { vpc_ref: Ref::to(vpc), tags: None },
        status: Status { internet_gateway_id: gateway.internet_gateway_id.clone() },
        phase: Phase::Ready,
        tags: from_ec2(Described::tags(gateway)),
    }
}

impl Described for types::InternetGateway {
    const OPERATION: &'static str = "DescribeInternetGateways";
    const ID_FILTER: &'static str = "internet-gateway-id";
    const ABSENT: &'static [&'static str] = &["InvalidInternetGatewayID.NotFound"];

    fn id(&self) -> &str {
        self.internet_gateway_id().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tags()
    }

    async fn matching(client: &Client, filters: Vec<Filter>) -> Result<Vec<Self>> {
        let pages = client.describe_internet_gateways().set_filters(Some(filters)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let read = client.describe_internet_gateways().internet_gateway_ids(id);
        let answer = read.send().await.answer_or_absent(Self::ABSENT)?;
        Ok(answer.map(|answer| answer.internet_gateways.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vpc_of(attachments: &[(&str, &str)]) -> String {
        let attachments = attachments.iter().map(|(vpc, state)| {
            types::InternetGatewayAttachment::builder().vpc_id(*vpc).state((*state).into()).build()
        });
        let gateway = types::InternetGateway::builder().set_attachments(Some(attachments.collect())).build();
        live(&gateway).spec.vpc_ref.id().to_owned()
    }

    #[test]
    fn the_attachment_that_holds_is_the_vpc() {
        // EC2 calls an attached internet gateway "available".
        assert_eq!(vpc_of(&[("vpc-1", "available")]), "vpc-1");
        assert_eq!(vpc_of(&[("vpc-1", "detaching"), ("vpc-2", "attaching")]), "vpc-2");
        assert_eq!(vpc_of(&[("vpc-1", "detached")]), "");
        assert_eq!(vpc_of(&[]), "");
    }
}
