//! DBCluster.

mod calls;
mod live;
mod spec;

use aws::Answer;
use aws_sdk_rds::Client;
use aws_sdk_rds::types::{self, Tag};
use resource::record::Made;
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Resource, Result, Role,
};

use crate::password::password;
use crate::store::{Described, Store, filter, made};
use crate::tags::retag;
use crate::{modify, snapshot};
use live::live;
use spec::{Spec, Status};

/// An Aurora DB cluster: the data and the addresses of its member instances.
pub(crate) struct DbCluster(pub(crate) Store<types::DbCluster>);

impl Resource for DbCluster {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "DBCluster",
        plural: "dbclusters",
        short_names: &["dbc"],
        about: "An Aurora DB cluster: the data and the addresses that its member instances share.",
        identifier: "dbClusterArn",
        deletion: Deletion::Asynchronous,
        reads: Reads::Batched,
        polling: Polling(std::time::Duration::from_secs(30)),
        precious: true,
        // A member that names it by its identifier in AWS holds no reference to its object.
        woken_by: &["DBInstance"],
        permissions: &[
            "rds:AddTagsToResource",
            "rds:CreateDBCluster",
            "rds:CreateDBClusterSnapshot",
            "rds:DeleteDBCluster",
            "rds:DescribeDBClusters",
            "rds:DisableHttpEndpoint",
            "rds:EnableHttpEndpoint",
            "rds:ModifyDBCluster",
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
        let cluster = self.0.read(call, id).await?;
        Ok(cluster.map_or(Observed::Absent, |cluster| live(&cluster, spec).into()))
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        self.0.find(call, spec.map(|spec| spec.db_cluster_identifier.as_str())).await
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let create = calls::create(&self.0.client(call).await?, call, spec);
        let create = create.master_user_password(password(call)?);
        let answer = create.send().await.answer().map_err(other_first)?;
        let cluster = made("CreateDBCluster", answer.db_cluster)?;
        let mut live = live(&cluster, Some(spec));
        live.tags.clone_from(&call.tags);
        Ok(Created { id: cluster.id().to_owned(), live: Some(live) })
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
            // Alone: AWS applies it at once; to ask for that would flush what waits.
            let rotate = client.modify_db_cluster().db_cluster_identifier(id);
            rotate.master_user_password(password(call)?).send().await.answer()?;
            return Ok(Progress::Busy);
        }
        let arn = live.status.db_cluster_arn.as_deref().unwrap_or_default();
        let (modification, refused) = calls::modify(&client, id, &live.spec, target, changes)?;
        let parts = [
            match modification {
                Some(modification) => {
                    modification.send().await.answer().map_err(other_first).map(|_| Progress::Busy)
                }
                None => Ok(Progress::Done),
            },
            calls::switch_http_endpoint(&client, arn, target, changes).await,
            retag(&client, arn, types::DbCluster::ABSENT, changes).await.map(|()| Progress::Done),
            modify::all("ModifyDBCluster", &refused).map(|()| Progress::Done),
        ];
        // Each part was tried, whatever became of the others.
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(if parts.contains(&Progress::Busy) { Progress::Busy } else { Progress::Done })
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, live: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.0.client(call).await?;
        let delete = |snapshot: Option<&str>| {
            let delete = client.delete_db_cluster().db_cluster_identifier(id);
            let delete = delete.skip_final_snapshot(snapshot.is_none());
            delete.set_final_db_snapshot_identifier(snapshot.map(str::to_owned)).send()
        };
        let absent = types::DbCluster::ABSENT;
        let answer = if snapshot::is_skipped(call) {
            delete(None).await.answer_or_absent(absent)
        } else {
            snapshot::check("DeleteDBCluster", live.status.status.as_deref())?;
            let name = snapshot::name(id, &call.ownership.uid);
            match delete(Some(&name)).await.answer_or_absent(absent) {
                Err(error) if error.class == Class::Exists => {
                    delete(Some(&snapshot::another(&name))).await.answer_or_absent(absent)
                }
                answer => answer,
            }
        };
        let accepted = answer.map_err(|error| blocked(error, live))?;
        Ok(if accepted.is_some() { Progress::Busy } else { Progress::Done })
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        self.0.untag(call, id, keys).await
    }
}

/// What AWS answers while something that is named is not there.
fn other_first(error: Error) -> Error {
    match error.code.as_str() {
        "DBSubnetGroupNotFoundFault" | "DBClusterParameterGroupNotFound" => error.class(Class::Dependency),
        _ => error,
    }
}

/// What AWS answers to the deletion of one that is protected, has members, or is still at work.
fn blocked(mut error: Error, live: &Live<Spec, Status>) -> Error {
    let is_protected = live.spec.deletion_protection == Some(true);
    let members = live.status.members.as_deref().unwrap_or_default();
    match error.code.as_str() {
        "InvalidParameterCombination" if is_protected => error.class(Class::Dependency),
        "InvalidDBClusterStateFault" if !members.is_empty() => {
            error.message = format!("{} (its members: {})", error.message, members.join(", "));
            error.class(Class::Dependency)
        }
        "InvalidDBClusterStateFault" if matches!(live.phase, Phase::Busy(_)) => error.class(Class::Busy),
        _ => error,
    }
}

impl Described for types::DbCluster {
    const OPERATION: &'static str = "DescribeDBClusters";
    const ABSENT: &'static [&'static str] = &["DBClusterNotFoundFault"];

    fn id(&self) -> &str {
        self.db_cluster_identifier().unwrap_or_default()
    }

    fn arn(&self) -> &str {
        self.db_cluster_arn().unwrap_or_default()
    }

    fn tags(&self) -> &[Tag] {
        self.tag_list()
    }

    async fn matching(client: &Client, ids: Vec<String>) -> Result<Vec<Self>> {
        let pages = client.describe_db_clusters().filters(filter("db-cluster-id", ids)).into_paginator();
        pages.items().send().try_collect().await.answer()
    }

    async fn single(client: &Client, id: &str) -> Result<Option<Vec<Self>>> {
        let answer = client.describe_db_clusters().db_cluster_identifier(id).send().await;
        Ok(answer.answer_or_absent(Self::ABSENT)?.map(|answer| answer.db_clusters.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resource::Tags;

    fn cluster(protection: bool, members: &[&str], phase: Phase) -> Live<Spec, Status> {
        let members = members.iter().map(|member| (*member).to_owned()).collect();
        Live {
            spec: Spec { deletion_protection: Some(protection), ..Spec::default() },
            status: Status { members: Some(members), ..Status::default() },
            phase,
            tags: Tags::new(),
        }
    }

    fn error(code: &str) -> Error {
        let error = Error::invalid("DeleteDBCluster", "AWS says no");
        Error { code: code.to_owned(), class: Class::Invalid, ..error }
    }

    #[test]
    fn what_blocks_a_deletion_is_named() {
        let members =
            blocked(error("InvalidDBClusterStateFault"), &cluster(false, &["a", "b"], Phase::Ready));
        assert_eq!(members.class, Class::Dependency);
        assert!(members.message.contains("its members: a, b"), "{members}");
        let protected = blocked(error("InvalidParameterCombination"), &cluster(true, &[], Phase::Ready));
        assert_eq!(protected.class, Class::Dependency);
        let other = blocked(error("InvalidParameterCombination"), &cluster(false, &[], Phase::Ready));
        assert_eq!(other.class, Class::Invalid);
    }

    #[test]
    fn one_at_work_is_waited_for() {
        let busy = cluster(false, &[], Phase::Busy("AWS is creating it".to_owned()));
        assert_eq!(blocked(error("InvalidDBClusterStateFault"), &busy).class, Class::Busy);
    }
}
