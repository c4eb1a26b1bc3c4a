//! The fields of an EKSCluster.

use resource::schema::{cidr_v4, clearable, default_to, each, immutable, matches, rule, set, tags};
use resource::targets::{IamRole, SecurityGroup, Subnet};
use resource::{Ref, Tags};
use schemars::transform::Transform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The kinds of control plane logs.
pub(crate) const LOG_TYPES: [&str; 5] = ["api", "audit", "authenticator", "controllerManager", "scheduler"];

/// A managed Kubernetes control plane. AWS takes 10 to 15 minutes to make it, and refuses to delete
/// it as long as it has node groups or Fargate profiles. Changes are made one after the other: AWS
/// runs one update of a cluster at a time.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.roleArn) != has(self.roleRef)",
    "give exactly one of roleArn (the ARN of an IAM role) and roleRef (an IAMRole object)",
))]
pub(crate) struct Spec {
    /// The name in AWS, unique within the account and region.
    #[schemars(length(min = 1, max = 100), transform = immutable, transform = matches(
        r"^[0-9A-Za-z][0-9A-Za-z_-]*$",
        "must be letters, digits, - and _, and begin with a letter or digit",
    ))]
    pub(crate) cluster_name: String,
    /// The Kubernetes version, such as 1.33. AWS takes its own default. It is raised one minor
    /// version at a time until it is reached, and never lowered.
    #[schemars(length(max = 16), transform = matches(
        r"^1\.[0-9]{1,3}$",
        "must be a Kubernetes minor version such as 1.33; AWS chooses the patch version",
    ))]
    pub(crate) version: Option<String>,
    /// The ARN of the IAM role that the control plane acts with.
    #[schemars(length(max = 2048), transform = immutable, transform = matches(
        r"^arn:[a-z-]+:iam::[0-9]{12}:role/.+$",
        "must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/eks",
    ))]
    pub(crate) role_arn: Option<String>,
    /// The IAM role that the control plane acts with.
    #[schemars(transform = immutable)]
    pub(crate) role_ref: Option<Ref<IamRole>>,
    /// Where the control plane meets the VPC, and from where its API is reached.
    pub(crate) resources_vpc_config: VpcConfig,
    /// Which logs of the control plane go to CloudWatch Logs.
    pub(crate) logging: Option<Logging>,
    /// Encrypts Kubernetes Secrets with a key of one's own. It can be added to a cluster later, but
    /// neither changed nor taken away.
    #[schemars(transform = rule(
        "self == oldSelf",
        "AWS cannot change encryptionConfig: leave it as it is, or delete this object and create it anew",
    ))]
    pub(crate) encryption_config: Option<Encryption>,
    /// How IAM principals get access to the cluster.
    #[schemars(transform = bootstrap_stays)]
    pub(crate) access_config: Option<Access>,
    /// The addresses of Kubernetes services.
    #[schemars(transform = immutable)]
    pub(crate) kubernetes_network_config: Option<ServiceNetwork>,
    /// What becomes of the cluster when standard support of its version ends.
    pub(crate) upgrade_policy: Option<UpgradePolicy>,
    /// Whether AWS installs its default networking add-ons in a new cluster. AWS does.
    #[schemars(transform = default_to(true), transform = immutable)]
    pub(crate) bootstrap_self_managed_addons: Option<bool>,
    /// Tags of the cluster. Tags that others put on it stay.
    #[schemars(transform = tags)]
    pub(crate) tags: Option<Tags>,
}

/// Where the control plane meets the VPC, and from where its API is reached.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.endpointPublicAccess) || self.endpointPublicAccess || (has(self.endpointPrivateAccess) && self.endpointPrivateAccess)",
    "the API must be reachable: set endpointPrivateAccess to true where endpointPublicAccess is false",
))]
pub(crate) struct VpcConfig {
    /// The subnets in which AWS places the network interfaces of the control plane: two at least,
    /// in two availability zones. The list is the full list.
    #[schemars(length(min = 2, max = 50), transform = set)]
    pub(crate) subnet_refs: Vec<Ref<Subnet>>,
    /// Further security groups of those network interfaces, five at most. The list is the full list.
    #[schemars(length(max = 5), transform = set, transform = clearable)]
    pub(crate) security_group_refs: Option<Vec<Ref<SecurityGroup>>>,
    /// Whether the API is reached from the internet. AWS takes true.
    #[schemars(transform = default_to(true))]
    pub(crate) endpoint_public_access: Option<bool>,
    /// Whether the API is reached from within the VPC. AWS takes false.
    #[schemars(transform = default_to(false))]
    pub(crate) endpoint_private_access: Option<bool>,
    /// The ranges from which the public API is reached. AWS takes 0.0.0.0/0.
    #[schemars(length(min = 1, max = 40), transform = each_cidr, transform = set)]
    #[schemars(transform = default_to(vec!["0.0.0.0/0"]))]
    pub(crate) public_access_cidrs: Option<Vec<String>>,
}

/// Which logs of the control plane go to CloudWatch Logs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Logging {
    /// The logs that are kept; all others are not. AWS keeps none.
    #[schemars(length(max = 5), transform = log_types, transform = set, transform = clearable)]
    pub(crate) enabled_types: Option<Vec<String>>,
}

/// Encrypts Kubernetes Secrets with a key of one's own.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Encryption {
    /// The ARN of the KMS key.
    #[schemars(length(max = 2048), transform = matches(
        r"^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/.+$",
        "must be the ARN of a KMS key, such as arn:aws:kms:eu-west-1:123456789012:key/…",
    ))]
    pub(crate) provider_key_arn: String,
    /// What is encrypted: AWS knows secrets only, and takes that.
    #[schemars(length(min = 1, max = 1), transform = secrets_only, transform = set)]
    pub(crate) resources: Option<Vec<String>>,
}

/// How IAM principals get access to the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Access {
    /// By access entries (API), by the aws-auth ConfigMap (CONFIG_MAP), or both. A cluster goes from
    /// CONFIG_MAP over API_AND_CONFIG_MAP to API, and never back.
    #[schemars(extend("enum" = ["API", "API_AND_CONFIG_MAP", "CONFIG_MAP"]), length(max = 32))]
    pub(crate) authentication_mode: Option<String>,
    /// Whether the principal that creates the cluster becomes its administrator.
    #[schemars(transform = immutable)]
    pub(crate) bootstrap_cluster_creator_admin_permissions: Option<bool>,
}

/// The addresses of Kubernetes services.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceNetwork {
    /// The IPv4 range of services, between /24 and /12. AWS chooses one that the VPC leaves free.
    #[schemars(transform = cidr_v4)]
    pub(crate) service_ipv4_cidr: Option<String>,
    /// Whether pods and services have IPv4 or IPv6 addresses. AWS takes ipv4.
    #[schemars(extend("enum" = ["ipv4", "ipv6"]), length(max = 8))]
    pub(crate) ip_family: Option<String>,
}

/// What becomes of the cluster when standard support of its version ends.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpgradePolicy {
    /// STANDARD: AWS upgrades it. EXTENDED: it stays, at extra cost. AWS takes EXTENDED.
    #[schemars(extend("enum" = ["STANDARD", "EXTENDED"]), length(max = 16))]
    pub(crate) support_type: Option<String>,
}

/// What AWS tells of a cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The ARN: arn:aws:eks:….
    pub(crate) cluster_arn: Option<String>,
    /// Where the Kubernetes API is reached.
    pub(crate) endpoint: Option<String>,
    /// The Kubernetes version that runs.
    pub(crate) version: Option<String>,
    /// AWS's state: CREATING, ACTIVE, UPDATING, DELETING or FAILED.
    pub(crate) status: Option<String>,
    /// The certificate of the Kubernetes API, in base64.
    pub(crate) certificate_authority: Option<String>,
    /// The issuer of the cluster's service account tokens.
    pub(crate) oidc_issuer: Option<String>,
}

impl Spec {
    /// The role, in whichever way it is given.
    pub(crate) fn role(&self) -> &str {
        self.role_arn.as_deref().or(self.role_ref.as_ref().map(Ref::id)).unwrap_or_default()
    }
}

fn bootstrap_stays(schema: &mut Schema) {
    let field = "bootstrapClusterCreatorAdminPermissions";
    let same = format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    );
    let message = "bootstrapClusterCreatorAdminPermissions counts at creation only: delete this object and create it anew";
    rule(same, message).transform(schema);
}

fn each_cidr(schema: &mut Schema) {
    // A dual-stack cluster takes IPv6 ranges, too.
    each(|items: &mut Schema| {
        items.insert("maxLength".to_owned(), 43.into());
        let message = "must be a range written from its first address, such as 203.0.113.0/24";
        let is_range = "isCIDR(self) && cidr(self) == cidr(self).masked()";
        rule(is_range, message).transform(items);
    })
    .transform(schema);
}

fn log_types(schema: &mut Schema) {
    each(|items: &mut Schema| drop(items.insert("enum".to_owned(), LOG_TYPES.to_vec().into())))
        .transform(schema);
}

fn secrets_only(schema: &mut Schema) {
    each(|items: &mut Schema| drop(items.insert("enum".to_owned(), vec!["secrets"].into())))
        .transform(schema);
}
