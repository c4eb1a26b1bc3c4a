//! DBSubnetGroup.

use aws::{Answer, Clients};
use aws_sdk_rds::Client;
use aws_sdk_rds::types;
use resource::record::Made;
use resource::schema::{immutable, matches, rule, set, tags};
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Ref, Resource, Result, Role, Tags, targets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::tags::{from_rds, retag, to_rds, untag};

/// An RDS DB subnet group: the subnets in which databases stand.
pub(crate) struct DbSubnetGroup(pub(crate) Clients<Client>);

/// The code that means: no DB subnet group of that name.
const ABSENT: &[&str] = &["DBSubnetGroupNotFoundFault"];

/// The subnets of a VPC in which databases stand. Deleting it is refused by AWS as long as a database
/// is in it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The name in AWS, unique within account and region; AWS keeps it in lower case.
    #[schemars(length(min = 1, max = 255), transform = immutable)]
    #[schemars(transform = matches(
        r"^[a-zA-Z][a-zA-Z0-9. _-]*$",
        "must begin with a letter and hold letters, digits, spaces and ._- only",
    ))]
    #[schemars(transform = rule(
        "self.lowerAscii() != 'default'",
        "default is the name of AWS's own group: choose another",
    ))]
    db_subnet_group_name: String,
    /// What the group is for.
    #[schemars(length(min = 1, max = 255))]
    description: String,
    /// The subnets, in two availability zones at least. The list is the full list.
    #[schemars(length(min = 2, max = 100), transform = set)]
    subnet_refs: Vec<Ref<targets::Subnet>>,
    /// Tags of the group. Tags that others put on it stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a DB subnet group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The ARN: arn:aws:rds:eu-west-1:123456789012:subgrp:….
    arn: Option<String>,
    /// AWS's state: Complete.
    status: Option<String>,
}

impl Resource for DbSubnetGroup {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "DBSubnetGroup",
        plural: "dbsubnetgroups",
        short_names: &["dbsng"],
        about: "An RDS DB subnet group: the subnets of a VPC in which databases stand.",
        identifier: "arn",
        deletion: Deletion::Blockable,
        reads: Reads::OneByOne,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: false,
        woken_by: &[],
        permissions: &[
            "rds:AddTagsToResource",
            "rds:CreateDBSubnetGroup",
            "rds:DeleteDBSubnetGroup",
            "rds:DescribeDBSubnetGroups",
            "rds:ListTagsForResource",
            "rds:ModifyDBSubnetGroup",
            "rds:RemoveTagsFromResource",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        Protection::UniqueName
    }

    fn canonical(mut spec: Spec) -> Result<Spec> {
        spec.db_subnet_group_name.make_ascii_lowercase();
        Ok(spec)
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        _: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let read = self.read(call, id).await?;
        Ok(read.map_or(Observed::Absent, |(group, tags)| live(&group, tags).into()))
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        let Some(spec) = spec else { return Ok(Vec::new()) };
        let read = self.read(call, &spec.db_subnet_group_name).await?;
        let candidate = |(group, tags): (types::DbSubnetGroup, Tags)| Candidate {
            id: group.db_subnet_group_name.unwrap_or_default(),
            tags,
            by_name: true,
        };
        Ok(read.map(candidate).into_iter().collect())
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let create = self
            .0
            .get(&call.scope)
            .await?
            .create_db_subnet_group()
            .db_subnet_group_name(&spec.db_subnet_group_name)
            .db_subnet_group_description(&spec.description)
            .set_subnet_ids(Some(ids(spec)))
            .set_tags(Some(to_rds(&call.tags)));
        let group = create.send().await.answer()?.db_subnet_group;
        let live = group.map(|group| live(&group, call.tags.clone()));
        Ok(Created { id: spec.db_subnet_group_name.clone(), live })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let client = self.0.get(&call.scope).await?;
        let arn = live.status.arn.as_deref().unwrap_or_default();
        let parts = [modify(&client, id, target, changes).await, retag(&client, arn, ABSENT, changes).await];
        // Each part was tried, whatever became of the other.
        parts.into_iter().collect::<Result<()>>()?;
        Ok(Progress::Done)
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, _: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.0.get(&call.scope).await?;
        let delete = client.delete_db_subnet_group().db_subnet_group_name(id);
        delete.send().await.answer_or_absent(ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        let client = self.0.get(&call.scope).await?;
        let Some(group) = describe(&client, id).await? else { return Ok(()) };
        untag(&client, group.db_subnet_group_arn().unwrap_or_default(), ABSENT, keys).await
    }
}

impl DbSubnetGroup {
    /// The group with its tags, which AWS tells apart.
    async fn read(&self, call: &Call, id: &str) -> Result<Option<(types::DbSubnetGroup, Tags)>> {
        let client = self.0.get(&call.scope).await?;
        let Some(group) = describe(&client, id).await? else { return Ok(None) };
        let list =
            client.list_tags_for_resource().resource_name(group.db_subnet_group_arn().unwrap_or_default());
        let answer = list.send().await.answer_or_absent(ABSENT)?;
        Ok(answer.map(|answer| (group, from_rds(answer.tag_list()))))
    }
}

async fn describe(client: &Client, id: &str) -> Result<Option<types::DbSubnetGroup>> {
    let answer = client.describe_db_subnet_groups().db_subnet_group_name(id).send().await;
    let Some(answer) = answer.answer_or_absent(ABSENT)? else { return Ok(None) };
    let is_meant = |group: &types::DbSubnetGroup| {
        group.db_subnet_group_name().is_some_and(|name| name.eq_ignore_ascii_case(id))
    };
    let group = answer.db_subnet_groups.unwrap_or_default().into_iter().find(is_meant);
    let incomplete =
        || Error::new(Class::Transient, "DescribeDBSubnetGroups", format!("the answer lacks {id}"));
    group.map(Some).ok_or_else(incomplete)
}

/// The subnets go along always: AWS replaces all of them.
async fn modify(client: &Client, id: &str, target: &Spec, changes: &Changes) -> Result<()> {
    if changes.touch("description") || changes.touch("subnetRefs") {
        let modify = client
            .modify_db_subnet_group()
            .db_subnet_group_name(id)
            .db_subnet_group_description(&target.description)
            .set_subnet_ids(Some(ids(target)));
        modify.send().await.answer()?;
    }
    Ok(())
}

fn ids(spec: &Spec) -> Vec<String> {
    spec.subnet_refs.iter().map(|subnet| subnet.id().to_owned()).collect()
}

fn live(group: &types::DbSubnetGroup, tags: Tags) -> Live<Spec, Status> {
    let subnets = group.subnets().iter().filter_map(|subnet| subnet.subnet_identifier());
    Live {
        spec: Spec {
            db_subnet_group_name: group.db_subnet_group_name().unwrap_or_default().to_lowercase(),
            description: group.db_subnet_group_description().unwrap_or_default().to_owned(),
            subnet_refs: subnets.map(Ref::to).collect(),
            tags: None,
        },
        status: Status { arn: group.db_subnet_group_arn.clone(), status: group.subnet_group_status.clone() },
        phase: Phase::Ready,
        tags,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_group_reads_as_a_spec() {
        let subnet = |id: &str| types::Subnet::builder().subnet_identifier(id).build();
        let group = types::DbSubnetGroup::builder()
            .db_subnet_group_name("main")
            .db_subnet_group_description("databases")
            .db_subnet_group_arn("arn:aws:rds:eu-west-1:123456789012:subgrp:main")
            .subnet_group_status("Complete")
            .subnets(subnet("subnet-1"))
            .subnets(subnet("subnet-2"))
            .build();
        let live = live(&group, Tags::new());
        let expected = json!({
            "dbSubnetGroupName": "main", "description": "databases",
            "subnetRefs": [{"id": "subnet-1"}, {"id": "subnet-2"}],
        });
        assert_eq!(json!(live.spec), expected);
        assert_eq!(live.status.status.as_deref(), Some("Complete"));
        // And back: what AWS shows is what would be asked of it.
        assert_eq!(ids(&live.spec), ["subnet-1", "subnet-2"]);
    }

    #[test]
    fn its_name_is_written_as_aws_keeps_it() {
        let spec = json!({"dbSubnetGroupName": "Main", "description": "x", "subnetRefs": []});
        let spec = DbSubnetGroup::canonical(serde_json::from_value(spec).unwrap()).unwrap();
        assert_eq!(spec.db_subnet_group_name, "main");
    }
}
