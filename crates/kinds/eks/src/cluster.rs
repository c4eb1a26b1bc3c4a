//! EKSCluster.

use aws::{Answer, Clients};
use aws_sdk_eks::Client;
use aws_sdk_eks::types::{
    self, AuthenticationMode, ClusterStatus, CreateAccessConfigRequest, IpFamily,
    KubernetesNetworkConfigRequest, SupportType, UpgradePolicyRequest, VpcConfigRequest,
};
use resource::record::Made;
use resource::tags::UID_TAG;
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Polling, Progress,
    Protection, Reads, Resource, Result, Role, Tags,
};

use crate::live::live;
use crate::spec::{Access, ServiceNetwork, Spec, Status, UpgradePolicy, VpcConfig};
use crate::step::{encryption_of, ids, logging, steps};
use crate::updates::Updates;

/// An Amazon EKS cluster: a managed Kubernetes control plane.
pub(crate) struct Cluster {
    pub(crate) clients: Clients<Client>,
    pub(crate) updates: Updates,
}

/// The code that means: no cluster of that name.
const ABSENT: &[&str] = &["ResourceNotFoundException"];

impl Resource for Cluster {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "EKSCluster",
        plural: "eksclusters",
        short_names: &["eks"],
        about: "An Amazon EKS cluster: a managed Kubernetes control plane.",
        identifier: "clusterArn",
        deletion: Deletion::Blockable,
        reads: Reads::OneByOne,
        polling: Polling(std::time::Duration::from_secs(30)),
        precious: true,
        woken_by: &[],
        permissions: &[
            "eks:AssociateEncryptionConfig",
            "eks:CreateCluster",
            "eks:DeleteCluster",
            "eks:DescribeCluster",
            "eks:DescribeUpdate",
            "eks:ListFargateProfiles",
            "eks:ListNodegroups",
            "eks:TagResource",
            "eks:UntagResource",
            "eks:UpdateClusterConfig",
            "eks:UpdateClusterVersion",
            "iam:CreateServiceLinkedRole",
            "iam:PassRole",
            "kms:CreateGrant",
            "kms:DescribeKey",
        ],
    };

    fn protection(_: Role, _: Option<&Spec>) -> Protection {
        Protection::Token
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let cluster = read(&self.clients.get(&call.scope).await?, id).await?;
        Ok(cluster.map_or(Observed::Absent, |cluster| live(&cluster, spec).into()))
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        // A spec that is otherwise broken may still name it.
        let raw = call.spec["clusterName"].as_str();
        let Some(name) = spec.map(|spec| spec.cluster_name.as_str()).or(raw) else { return Ok(Vec::new()) };
        let cluster = read(&self.clients.get(&call.scope).await?, name).await?;
        Ok(cluster.and_then(|cluster| candidate(&cluster, &call.ownership.uid)).into_iter().collect())
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let create = self
            .clients
            .get(&call.scope)
            .await?
            .create_cluster()
            .name(&spec.cluster_name)
            .set_version(spec.version.clone())
            .role_arn(spec.role())
            .resources_vpc_config(vpc_config(&spec.resources_vpc_config))
            .set_logging(
                spec.logging.as_ref().map(|it| logging(it.enabled_types.as_deref().unwrap_or_default())),
            )
            .set_encryption_config(spec.encryption_config.as_ref().map(|config| vec![encryption_of(config)]))
            .set_access_config(spec.access_config.as_ref().map(access))
            .set_kubernetes_network_config(spec.kubernetes_network_config.as_ref().map(service_network))
            .set_upgrade_policy(spec.upgrade_policy.as_ref().map(upgrade_policy))
            .set_bootstrap_self_managed_addons(spec.bootstrap_self_managed_addons)
            .set_tags(Some(call.tags.clone().into_iter().collect()))
            .set_client_request_token(call.token());
        let answer = create.send().await.answer().map_err(unknown_role)?;
        let shown = answer.cluster.filter(|cluster| cluster.name() == Some(&spec.cluster_name));
        Ok(Created { id: spec.cluster_name.clone(), live: shown.map(|cluster| live(&cluster, Some(spec))) })
    }

    /// Tags at any time; of everything else one update, whose end the next observe waits for.
    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let client = self.clients.get(&call.scope).await?;
        let arn = live.status.cluster_arn.as_deref().unwrap_or_default();
        let tagged = retag(&client, arn, changes).await;
        let sent = self.updates.send(&client, call, id, steps(&live.spec, target, changes)).await;
        tagged.and(sent)
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, _: &Live<Spec, Status>) -> Result<Progress> {
        let client = self.clients.get(&call.scope).await?;
        let answer = client.delete_cluster().name(id).send().await.answer_or_absent(ABSENT);
        match answer {
            Ok(accepted) => {
                self.updates.forget(call, id);
                Ok(if accepted.is_some() { Progress::Busy } else { Progress::Done })
            }
            Err(error) if error.code == "ResourceInUseException" => Err(in_use(&client, id, error).await),
            Err(error) => Err(error),
        }
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        let client = self.clients.get(&call.scope).await?;
        match read(&client, id).await?.and_then(|cluster| cluster.arn) {
            Some(arn) => untag(&client, &arn, keys).await,
            None => Ok(()),
        }
    }
}

async fn read(client: &Client, name: &str) -> Result<Option<types::Cluster>> {
    let Some(answer) = client.describe_cluster().name(name).send().await.answer_or_absent(ABSENT)? else {
        return Ok(None);
    };
    let is_it = |cluster: &types::Cluster| cluster.name() == Some(name);
    let incomplete = || Error::new(Class::Transient, "DescribeCluster", format!("the answer lacks {name}"));
    answer.cluster.filter(is_it).map(Some).ok_or_else(incomplete)
}

/// A cluster that is being deleted is nobody's but its owner's.
fn candidate(cluster: &types::Cluster, uid: &str) -> Option<Candidate> {
    let tags: Tags =
        cluster.tags().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    let is_ours = tags.get(UID_TAG).is_some_and(|tag| tag == uid);
    let is_going = cluster.status() == Some(&ClusterStatus::Deleting);
    let id = cluster.name()?.to_owned();
    (is_ours || !is_going).then_some(Candidate { id, tags, by_name: true })
}

async fn retag(client: &Client, arn: &str, changes: &Changes) -> Result<()> {
    let set = changes.tags_to_set();
    if !set.is_empty() {
        let tag = client.tag_resource().resource_arn(arn).set_tags(Some(set.into_iter().collect()));
        tag.send().await.answer()?;
    }
    untag(client, arn, &changes.tags_to_remove()).await
}

/// Removes tags; of a cluster that is gone, they are too.
async fn untag(client: &Client, arn: &str, keys: &[String]) -> Result<()> {
    if !keys.is_empty() {
        let untag = client.untag_resource().resource_arn(arn).set_tag_keys(Some(keys.to_vec()));
        untag.send().await.answer_or_absent(&["NotFoundException", "ResourceNotFoundException"])?;
    }
    Ok(())
}

/// Names what the cluster still has. With nothing attached it is an update or the creation that
/// AWS is still at.
async fn in_use(client: &Client, name: &str, error: Error) -> Error {
    let groups =
        client.list_nodegroups().cluster_name(name).into_paginator().items().send().try_collect().await;
    let profiles =
        client.list_fargate_profiles().cluster_name(name).into_paginator().items().send().try_collect().await;
    match (groups.answer(), profiles.answer()) {
        (Ok(groups), Ok(profiles)) => blocked_by(error, &groups, &profiles),
        _ => error.class(Class::Dependency),
    }
}

fn blocked_by(error: Error, groups: &[String], profiles: &[String]) -> Error {
    let list =
        |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
    let attached = [list("node groups", groups), list("Fargate profiles", profiles)];
    let attached: Vec<_> = attached.into_iter().flatten().collect();
    if attached.is_empty() {
        return error.class(Class::Busy);
    }
    let message = format!("{} (still attached: {})", error.message, attached.join("; "));
    Error { message, ..error.class(Class::Dependency) }
}

/// A role made a moment ago is not known everywhere yet.
fn unknown_role(error: Error) -> Error {
    let text = error.message.to_lowercase();
    let is_unknown = error.code == "InvalidParameterException"
        && text.contains("role")
        && ["could not be assumed", "cannot be assumed", "does not exist", "not found"]
            .iter()
            .any(|words| text.contains(words));
    if is_unknown { error.class(Class::NotPropagated) } else { error }
}

fn vpc_config(config: &VpcConfig) -> VpcConfigRequest {
    VpcConfigRequest::builder()
        .set_subnet_ids(Some(ids(&config.subnet_refs)))
        .set_security_group_ids(config.security_group_refs.as_deref().map(ids))
        .set_endpoint_public_access(config.endpoint_public_access)
        .set_endpoint_private_access(config.endpoint_private_access)
        .set_public_access_cidrs(
            config.public_access_cidrs.clone().filter(|_| config.endpoint_public_access != Some(false)),
        )
        .build()
}

fn access(access: &Access) -> CreateAccessConfigRequest {
    CreateAccessConfigRequest::builder()
        .set_authentication_mode(access.authentication_mode.as_deref().map(AuthenticationMode::from))
        .set_bootstrap_cluster_creator_admin_permissions(access.bootstrap_cluster_creator_admin_permissions)
        .build()
}

fn service_network(config: &ServiceNetwork) -> KubernetesNetworkConfigRequest {
    KubernetesNetworkConfigRequest::builder()
        .set_service_ipv4_cidr(config.service_ipv4_cidr.clone())
        .set_ip_family(config.ip_family.as_deref().map(IpFamily::from))
        .build()
}

fn upgrade_policy(policy: &UpgradePolicy) -> UpgradePolicyRequest {
    UpgradePolicyRequest::builder()
        .set_support_type(policy.support_type.as_deref().map(SupportType::from))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, message: &str) -> Error {
        Error { code: code.to_owned(), ..Error::new(Class::Dependency, "DeleteCluster", message) }
    }

    #[test]
    fn what_blocks_a_deletion_is_named() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let error = || refused("ResourceInUseException", "Cluster has nodegroups attached");
        let blocked = blocked_by(error(), &names(&["blue", "green"]), &names(&["batch"]));
        assert_eq!(
            blocked.message,
            "Cluster has nodegroups attached (still attached: node groups blue, green; Fargate profiles batch)"
        );
        assert_eq!(blocked.class, Class::Dependency);
        assert_eq!(blocked_by(error(), &[], &[]).class, Class::Busy);
    }

    #[test]
    fn only_an_unknown_role_heals_by_itself() {
        let class = |code: &str, message: &str| unknown_role(refused(code, message)).class;
        let unknown = "Role with arn: arn:aws:iam::123456789012:role/eks, could not be assumed because it does not exist or the trusted entity is not correct";
        assert_eq!(class("InvalidParameterException", unknown), Class::NotPropagated);
        assert_eq!(class("InvalidParameterException", "unsupported Kubernetes version"), Class::Dependency);
        assert_eq!(class("ClientException", unknown), Class::Dependency);
    }

    #[test]
    fn a_cluster_that_is_being_deleted_is_no_candidate_but_its_owners() {
        let cluster = |status: ClusterStatus| {
            types::Cluster::builder().name("prod").status(status).tags(UID_TAG, "1-2").build()
        };
        let found = |status, uid| candidate(&cluster(status), uid).is_some();
        assert!(found(ClusterStatus::Active, "other") && found(ClusterStatus::Failed, "other"));
        assert!(found(ClusterStatus::Deleting, "1-2"));
        assert!(!found(ClusterStatus::Deleting, "other"));
    }
}
