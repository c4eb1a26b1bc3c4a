//! DBInstance.

mod calls;
mod live;
mod spec;

use aws::Answer;
use aws_sdk_rds::Client;
use aws_sdk_rds::types::{self, Tag};
use resource::record::Made;
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Polling, Progress,
    Protection, Reads, Resource, Result, Role,
};

use crate::password::password;
use crate::store::{Described, Store, filter, made};
use crate::tags::retag;
use crate::{modify, snapshot};
use live::live;
use spec::{Spec, Status};

/// An RDS DB instance: a database server, of its own or in an Aurora cluster.
pub(crate) struct DbInstance(pub(crate) Store<types::DbInstance>);

impl Resource for DbInstance {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "DBInstance",
        plural: "dbinstances",
        short_names: &["dbi"],
        about: "An RDS DB instance: a database server, of its own or in an Aurora cluster.",
        identifier: "dbInstanceArn",
        deletion: Deletion::Asynchronous,
        reads: Reads::Batched,
        polling: Polling(std::time::Duration::from_secs(30)),
        precious: true,
        woken_by: &["DBCluster"],
        permissions: &[
            "iam:PassRole",
            "rds:AddTagsToResource",
            "rds:CreateDBInstance",
            "rds:CreateDBSnapshot",
            "rds:DeleteDBInstance",
            "rds:DescribeDBInstances",
            "rds:ModifyDBInstance",
            "rds:RemoveTagsFromResource",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        Protection::UniqueName
    }

    fn canonical(spec: Spec) -> Result<Spec> {
        Ok(spec.canonical())
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let instance = self.0.read(call, id).await?;
        Ok(instance.map_or(Observed::Absent, |instance| live(&instance, spec).into()))
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        self.0.find(call, spec.map(|spec| spec.db_instance_identifier.as_str())).await
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let mut create = calls::create(&self.0.client(call).await?, call, spec);
        if !spec.is_member() {
            create = create.master_user_password(password(call)?);
        }
        let answer = create.send().await.answer().map_err(other_first)?;
        let instance = made("CreateDBInstance", answer.db_instance)?;
        let mut live = live(&instance, Some(spec));
        live.tags.clone_from(&call.tags);
        Ok(Created { id: instance.id().to_owned(), live: Some(live) })
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
        if changes.touch("masterUserPasswordRef") {
            return rotate(&client, call, id, target).await;
        }
        let arn = live.status.db_instance_arn.as_deref().unwrap_or_default();
        let tags = retag(&client, arn, types::DbInstance::ABSENT, changes).await;
        let (modification, refused) = calls::modify(&client, id, live, target, changes)?;
        let parts = [
            match modification {
                Some(modification) => {
                    modification.send().await.answer().map_err(other_first).map(|_| Progress::Busy)
                }
                None => Ok(Progress::Done),
            },
            tags.map(|()| Progress::Done),
            modify::all("ModifyDBInstance", &refused).map(|()| Progress::Done),
        ];
        // Each part was tried, whatever became of the others.
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(if parts.contains(&Progress::Busy) { Progress::Busy } else { Progress::Done })
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, live: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.0.client(call).await?;
        let delete = |snapshot: Option<&str>| {
            let delete = client.delete_db_instance().db_instance_identifier(id);
            let delete = delete.skip_final_snapshot(snapshot.is_none());
            delete.set_final_db_snapshot_identifier(snapshot.map(str::to_owned)).send()
        };
        let absent = types::DbInstance::ABSENT;
        // The data of an Aurora member is the cluster's.
        let answer = if live.spec.is_member() || snapshot::is_skipped(call) {
            delete(None).await.answer_or_absent(absent)
        } else {
            snapshot::check("DeleteDBInstance", live.status.db_instance_status.as_deref())?;
            let name = snapshot::name(id, &call.ownership.uid);
            match delete(Some(&name)).await.answer_or_absent(absent) {
                Err(error) if error.class == Class::Exists => {
                    delete(Some(&snapshot::another(&name))).await.answer_or_absent(absent)
                }
                answer => answer,
            }
        };
        let accepted = answer.map_err(|error| protected(error, live))?;
        Ok(if accepted.is_some() { Progress::Busy } else { Progress::Done })
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        self.0.untag(call, id, keys).await
    }
}

/// The password alone, in a call of its own: AWS applies it as soon as it can. To ask for that would
/// flush all that waits for the maintenance window.
async fn rotate(client: &Client, call: &Call, id: &str, target: &Spec) -> Result<Progress> {
    if target.is_member() {
        return Ok(Progress::Done);
    }
    let rotate = client.modify_db_instance().db_instance_identifier(id);
    rotate.master_user_password(password(call)?).send().await.answer()?;
    Ok(Progress::Busy)
}

/// What AWS answers while something that is named is not there, or not known everywhere yet.
fn other_first(error: Error) -> Error {
    let unknown_role = error.code == "InvalidParameterValue" && error.message.contains("IAM role ARN");
    match error.code.as_str() {
        "DBClusterNotFoundFault" | "DBSubnetGroupNotFoundFault" | "DBParameterGroupNotFound" => {
            error.class(Class::Dependency)
        }
        _ if unknown_role => error.class(Class::NotPropagated),
        _ => error,
    }
}

/// What AWS answers to the deletion of a protected one.
fn protected(error: Error, live: &Live<Spec, Status>) -> Error {
    let is_protected = live.spec.deletion_protection == Some(true);
    if is_protected && error.code == "InvalidParameterCombination" {
        error.class(Class::Dependency)
    } else {
        error
    }
}

impl Described for types::DbInstance {
    const OPERATION: &'static str = "DescribeDBInstances";
    const ABSENT: &'static [&'static str] = &["DBInstanceNotFound", "DBInstanceNotFoundFault"];

    fn id(&self) -> &str {
        self.db_instance_identifier().unwrap_or_default()
    }

    fn arn(&self) -> &str {
        self.db_instance_arn().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tag_list()
    }

    async fn matching(client: &Client, ids: Vec<String>) -> Result<Vec<Self>> {
        let pages = client.describe_db_instances().filters(filter("db-instance-id", ids)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_db_instances().db_instance_identifier(id).send().await;
        Ok(answer.answer_or_absent(Self::ABSENT)?.map(|answer| answer.db_instances.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(code: &str, message: &str) -> Class {
        other_first(Error { code: code.to_owned(), ..Error::invalid("CreateDBInstance", message) }).class
    }

    #[test]
    fn what_it_needs_first_is_waited_for() {
        assert_eq!(class("DBClusterNotFoundFault", "no such cluster"), Class::Dependency);
        assert_eq!(class("DBSubnetGroupNotFoundFault", "no such group"), Class::Dependency);
        let unknown = "IAM role ARN value is invalid or does not include the required permissions";
        assert_eq!(class("InvalidParameterValue", unknown), Class::NotPropagated);
        assert_eq!(class("InvalidParameterValue", "not a valid password"), Class::Invalid);
    }
}
