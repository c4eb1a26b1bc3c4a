//! What AWS shows of a cluster, written as a spec.

use aws_sdk_eks::types::{self, ClusterStatus};
use resource::{Live, Phase, Ref};

use crate::spec::{Access, Encryption, Logging, ServiceNetwork, Spec, Status, UpgradePolicy, VpcConfig};

/// What AWS shows. `wanted` says in which way the role is given, and stands in for what AWS never
/// shows again.
pub(crate) fn live(cluster: &types::Cluster, wanted: Option<&Spec>) -> Live<Spec, Status> {
    let role = cluster.role_arn().unwrap_or_default();
    let by_reference = wanted.is_some_and(|wanted| wanted.role_ref.is_some());
    Live {
        spec: Spec {
            cluster_name: cluster.name().unwrap_or_default().to_owned(),
            version: cluster.version.clone(),
            role_arn: (!by_reference).then(|| role.to_owned()),
            role_ref: by_reference.then(|| Ref::to(role)),
            resources_vpc_config: vpc_config(cluster, wanted),
            logging: Some(Logging { enabled_types: Some(enabled_types(cluster)) }),
            encryption_config: cluster
                .encryption_config()
                .iter()
                .find_map(|config| encryption(config, wanted)),
            access_config: Some(access(cluster, wanted)),
            kubernetes_network_config: cluster.kubernetes_network_config().map(service_network),
            upgrade_policy: cluster.upgrade_policy().map(|policy| UpgradePolicy {
                support_type: policy.support_type().map(|support| support.as_str().to_owned()),
            }),
            // Never shown again: it counted at creation.
            bootstrap_self_managed_addons: wanted
                .and_then(|wanted| wanted.bootstrap_self_managed_addons)
                .or(Some(true)),
            tags: None,
        },
        status: status(cluster),
        phase: phase(cluster),
        tags: cluster.tags().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect(),
    }
}

fn vpc_config(cluster: &types::Cluster, wanted: Option<&Spec>) -> VpcConfig {
    let Some(config) = cluster.resources_vpc_config() else {
        let nowhere = VpcConfig {
            subnet_refs: Vec::new(),
            security_group_refs: None,
            endpoint_public_access: None,
            endpoint_private_access: None,
            public_access_cidrs: None,
        };
        return nowhere;
    };
    let wanted = wanted.map(|wanted| &wanted.resources_vpc_config);
    VpcConfig {
        subnet_refs: config.subnet_ids().iter().map(Ref::to).collect(),
        security_group_refs: Some(config.security_group_ids().iter().map(Ref::to).collect()),
        endpoint_public_access: Some(config.endpoint_public_access),
        endpoint_private_access: Some(config.endpoint_private_access),
        public_access_cidrs: if config.endpoint_public_access {
            Some(config.public_access_cidrs().to_vec())
        } else {
            // AWS drops them with the public endpoint; until that is back they mean nothing.
            wanted.and_then(|wanted| wanted.public_access_cidrs.clone())
        },
    }
}

fn enabled_types(cluster: &types::Cluster) -> Vec<String> {
    let setups = cluster.logging().map(types::Logging::cluster_logging).unwrap_or_default();
    let enabled = setups.iter().filter(|setup| setup.enabled() == Some(true));
    enabled.flat_map(|setup| setup.types()).map(|kind| kind.as_str().to_owned()).collect()
}

// AWS still takes and shows it, though all is encrypted now; where it is not shown, it is as wanted.
#[allow(deprecated)]
fn encryption(config: &types::EncryptionConfig, wanted: Option<&Spec>) -> Option<Encryption> {
    let wanted = wanted.and_then(|wanted| wanted.encryption_config.as_ref());
    let shown = config.resources.clone().filter(|resources| !resources.is_empty());
    Some(Encryption {
        provider_key_arn: config.provider()?.key_arn()?.to_owned(),
        resources: shown.or_else(|| wanted.and_then(|wanted| wanted.resources.clone())),
    })
}

fn access(cluster: &types::Cluster, wanted: Option<&Spec>) -> Access {
    let shown = cluster.access_config();
    let mode = shown.and_then(types::AccessConfigResponse::authentication_mode);
    let wanted = wanted.and_then(|wanted| wanted.access_config.as_ref());
    Access {
        authentication_mode: mode.map(|mode| mode.as_str().to_owned()),
        // Not shown again by AWS everywhere: it counted at creation.
        bootstrap_cluster_creator_admin_permissions: shown
            .and_then(|shown| shown.bootstrap_cluster_creator_admin_permissions)
            .or(wanted.and_then(|wanted| wanted.bootstrap_cluster_creator_admin_permissions)),
    }
}

fn service_network(config: &types::KubernetesNetworkConfigResponse) -> ServiceNetwork {
    ServiceNetwork {
        service_ipv4_cidr: config.service_ipv4_cidr.clone(),
        ip_family: config.ip_family().map(|family| family.as_str().to_owned()),
    }
}

fn status(cluster: &types::Cluster) -> Status {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let certificate = cluster.certificate_authority();
    let oidc = cluster.identity().and_then(types::Identity::oidc);
    Status {
        cluster_arn: cluster.arn.clone(),
        endpoint: filled(&cluster.endpoint),
        version: cluster.version.clone(),
        status: cluster.status().map(|status| status.as_str().to_owned()),
        certificate_authority: certificate.and_then(|certificate| filled(&certificate.data)),
        oidc_issuer: oidc.and_then(|oidc| filled(&oidc.issuer)),
    }
}

fn phase(cluster: &types::Cluster) -> Phase {
    match cluster.status() {
        Some(ClusterStatus::Active) => Phase::Ready,
        Some(ClusterStatus::Creating) => {
            Phase::Busy("the cluster is being created, which takes 10 to 15 minutes".to_owned())
        }
        Some(ClusterStatus::Updating) => Phase::Busy("an update of the cluster is in progress".to_owned()),
        Some(ClusterStatus::Deleting) => Phase::Deleting,
        Some(ClusterStatus::Failed) => Phase::Failed { why: failure(cluster), replace: false },
        other => Phase::Busy(format!("the cluster is {}", other.map_or("in no state yet", |it| it.as_str()))),
    }
}

/// What AWS says is wrong with the cluster.
fn failure(cluster: &types::Cluster) -> String {
    let issues = cluster.health().map(types::ClusterHealth::issues).unwrap_or_default();
    let worded = |issue: &types::ClusterIssue| {
        let code = issue.code().map_or("Other", |code| code.as_str());
        let of = issue.resource_ids().join(", ");
        let of = if of.is_empty() { of } else { format!(" ({of})") };
        format!("{code}: {}{of}", issue.message().unwrap_or("AWS gives no reason"))
    };
    let issues: Vec<_> = issues.iter().map(worded).collect();
    let why = if issues.is_empty() { "AWS gives no reason".to_owned() } else { issues.join("; ") };
    format!(
        "the cluster is FAILED: {why}. Where that cannot be put right in AWS, delete this object and create it anew"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn cluster() -> types::builders::ClusterBuilder {
        types::Cluster::builder().name("prod").status(ClusterStatus::Active)
    }

    fn wanted(spec: serde_json::Value) -> Spec {
        serde_json::from_value(spec).unwrap()
    }

    fn whole() -> types::Cluster {
        let vpc = types::VpcConfigResponse::builder()
            .subnet_ids("subnet-a")
            .subnet_ids("subnet-b")
            .security_group_ids("sg-1")
            .endpoint_public_access(true)
            .endpoint_private_access(true)
            .public_access_cidrs("203.0.113.0/24")
            .build();
        let setup =
            |kind: &str, enabled| types::LogSetup::builder().types(kind.into()).enabled(enabled).build();
        let key = types::Provider::builder().key_arn("arn:aws:kms:eu-west-1:123456789012:key/k").build();
        let oidc = types::Oidc::builder().issuer("https://oidc.example/id/A").build();
        cluster()
            .arn("arn:aws:eks:eu-west-1:123456789012:cluster/prod")
            .version("1.33")
            .endpoint("https://api.example")
            .role_arn("arn:aws:iam::123456789012:role/eks")
            .resources_vpc_config(vpc)
            .logging(
                types::Logging::builder()
                    .cluster_logging(setup("audit", true))
                    .cluster_logging(setup("api", false))
                    .build(),
            )
            .encryption_config(types::EncryptionConfig::builder().provider(key).build())
            .access_config(
                types::AccessConfigResponse::builder()
                    .authentication_mode(types::AuthenticationMode::Api)
                    .build(),
            )
            .kubernetes_network_config(
                types::KubernetesNetworkConfigResponse::builder()
                    .service_ipv4_cidr("10.100.0.0/16")
                    .ip_family(types::IpFamily::Ipv4)
                    .build(),
            )
            .upgrade_policy(
                types::UpgradePolicyResponse::builder().support_type(types::SupportType::Standard).build(),
            )
            .certificate_authority(types::Certificate::builder().data("Q0E=").build())
            .identity(types::Identity::builder().oidc(oidc).build())
            .tags("team", "net")
            .build()
    }

    #[test]
    fn a_cluster_reads_as_a_spec() {
        let live = live(&whole(), None);
        assert_eq!(
            json!(live.spec),
            json!({
                "clusterName": "prod", "version": "1.33", "roleArn": "arn:aws:iam::123456789012:role/eks",
                "resourcesVpcConfig": {
                    "subnetRefs": [{"id": "subnet-a"}, {"id": "subnet-b"}], "securityGroupRefs": [{"id": "sg-1"}],
                    "endpointPublicAccess": true, "endpointPrivateAccess": true,
                    "publicAccessCidrs": ["203.0.113.0/24"],
                },
                "logging": {"enabledTypes": ["audit"]},
                "encryptionConfig": {"providerKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/k"},
                "accessConfig": {"authenticationMode": "API"},
                "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"},
                "upgradePolicy": {"supportType": "STANDARD"},
                "bootstrapSelfManagedAddons": true,
            })
        );
        assert_eq!(
            json!(live.status),
            json!({
                "clusterArn": "arn:aws:eks:eu-west-1:123456789012:cluster/prod", "endpoint": "https://api.example",
                "version": "1.33", "status": "ACTIVE", "certificateAuthority": "Q0E=",
                "oidcIssuer": "https://oidc.example/id/A",
            })
        );
        assert_eq!((live.phase, live.tags["team"].as_str()), (Phase::Ready, "net"));
    }

    #[test]
    fn what_aws_does_not_show_again_is_as_wanted() {
        let wanted = wanted(json!({
            "clusterName": "prod", "roleRef": {"arn": "arn:aws:iam::123456789012:role/eks"},
            "resourcesVpcConfig": {
                "subnetRefs": [], "endpointPublicAccess": false, "publicAccessCidrs": ["198.51.100.0/24"],
            },
            "accessConfig": {"bootstrapClusterCreatorAdminPermissions": false},
            "bootstrapSelfManagedAddons": false,
        }));
        let hidden = types::VpcConfigResponse::builder().endpoint_private_access(true).build();
        let cluster = cluster().role_arn("arn:aws:iam::123456789012:role/eks").resources_vpc_config(hidden);
        let spec = json!(live(&cluster.build(), Some(&wanted)).spec);
        assert_eq!(spec["roleRef"], json!({"arn": "arn:aws:iam::123456789012:role/eks"}));
        assert_eq!(spec.get("roleArn"), None);
        assert_eq!(spec["resourcesVpcConfig"]["publicAccessCidrs"], json!(["198.51.100.0/24"]));
        assert_eq!(spec["accessConfig"]["bootstrapClusterCreatorAdminPermissions"], json!(false));
        assert_eq!(spec["bootstrapSelfManagedAddons"], json!(false));
        // A public endpoint shows its ranges again, and those count.
        let shown = json!(live(&whole(), Some(&wanted)).spec);
        assert_eq!(shown["resourcesVpcConfig"]["publicAccessCidrs"], json!(["203.0.113.0/24"]));
    }

    #[test]
    fn states_read_as_phases() {
        let phase = |status: &str| live(&cluster().status(status.into()).build(), None).phase;
        assert_eq!(phase("ACTIVE"), Phase::Ready);
        assert_eq!(phase("DELETING"), Phase::Deleting);
        for busy in ["CREATING", "UPDATING", "PENDING", "SOMETHING_NEW"] {
            assert!(matches!(phase(busy), Phase::Busy(_)), "{busy}");
        }
    }

    #[test]
    fn a_failed_cluster_says_why() {
        let issue = types::ClusterIssue::builder()
            .code(types::ClusterIssueCode::Ec2SubnetNotFound)
            .message("a subnet is gone")
            .resource_ids("subnet-a")
            .build();
        let failed = cluster().status(ClusterStatus::Failed);
        let health = types::ClusterHealth::builder().issues(issue).build();
        let Phase::Failed { why, replace } = live(&failed.clone().health(health).build(), None).phase else {
            panic!("not failed");
        };
        assert!(why.contains("Ec2SubnetNotFound: a subnet is gone (subnet-a)"), "{why}");
        assert!(!replace);
        let Phase::Failed { why, .. } = live(&failed.build(), None).phase else { panic!("not failed") };
        assert!(why.contains("AWS gives no reason"), "{why}");
    }
}
