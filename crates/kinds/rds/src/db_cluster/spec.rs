//! What is wanted of a cluster, and what AWS tells of it.

use resource::schema::{
    clearable, default_to, immutable, or_direct, rule, set, tags, unblocks_deletion, write_only,
};
use resource::{NameRef, Ref, SecretRef, Tags, targets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::{backup_window, identifier, insights_retention, kms_key, log_types, maintenance_window};

/// The data and the addresses that Aurora instances share. Deleting it leaves a final snapshot unless
/// skipFinalSnapshot is set, and is refused by AWS as long as instances are in it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.backtrackWindow) || self.backtrackWindow == 0 || self.engine == 'aurora-mysql'",
    "only aurora-mysql can backtrack: leave out backtrackWindow",
))]
pub(crate) struct Spec {
    /// The identifier in AWS, unique within account and region; AWS keeps it in lower case.
    #[schemars(transform = identifier, transform = immutable)]
    pub(crate) db_cluster_identifier: String,
    /// The database engine.
    #[schemars(extend("enum" = ["aurora-mysql", "aurora-postgresql"]), length(max = 32), transform = immutable)]
    pub(crate) engine: String,
    /// The version, or what it begins with: 15 is met by any 15.x. It is a floor within the major
    /// version: AWS above it is left alone, AWS below it is upgraded; another major version needs
    /// allowMajorVersionUpgrade.
    #[schemars(required, length(min = 1, max = 64))]
    pub(crate) engine_version: Option<String>,
    /// The name of the master user.
    #[schemars(required, length(min = 1, max = 128), transform = immutable)]
    pub(crate) master_username: Option<String>,
    /// The Secret with the master user's password. AWS gets a changed one at once.
    #[schemars(required)]
    pub(crate) master_user_password_ref: Option<SecretRef>,
    /// The subnets: the name of a DBSubnetGroup object or, where there is none of that name, of a DB
    /// subnet group in AWS.
    #[schemars(required, transform = or_direct, transform = immutable)]
    pub(crate) db_subnet_group_ref: Option<NameRef<targets::DbSubnetGroup>>,
    /// The parameters: the name of a DBClusterParameterGroup object or, where there is none of that
    /// name, of a DB cluster parameter group in AWS. AWS takes the default of the engine.
    #[schemars(transform = or_direct)]
    pub(crate) db_cluster_parameter_group_ref: Option<NameRef<targets::DbClusterParameterGroup>>,
    /// The security groups. The list is the full list. AWS takes the default of the VPC.
    #[schemars(length(min = 1, max = 50), transform = set)]
    pub(crate) vpc_security_group_refs: Option<Vec<Ref<targets::SecurityGroup>>>,
    /// For how many days backups are kept. AWS takes 1.
    #[schemars(range(min = 1, max = 35), transform = default_to(1))]
    pub(crate) backup_retention_period: Option<i32>,
    /// When backups are made, every day, in UTC: 03:00-04:00. AWS chooses one.
    #[schemars(transform = backup_window)]
    pub(crate) preferred_backup_window: Option<String>,
    /// When changes are applied, every week, in UTC: sun:05:00-sun:06:00. AWS chooses one.
    #[schemars(transform = maintenance_window)]
    pub(crate) preferred_maintenance_window: Option<String>,
    /// Whether the storage is encrypted. AWS decides where it is left out.
    #[schemars(transform = immutable)]
    pub(crate) storage_encrypted: Option<bool>,
    /// The KMS key of the storage, by id, ARN or alias. AWS takes its own key for RDS.
    #[schemars(transform = kms_key, transform = immutable)]
    pub(crate) kms_key_id: Option<String>,
    /// The type of storage: aurora, or aurora-iopt1 where I/O is not billed apart. AWS takes aurora.
    #[schemars(length(min = 1, max = 32), transform = default_to("aurora"))]
    pub(crate) storage_type: Option<String>,
    /// Taken and left alone: the storage of Aurora has no size of its own.
    #[schemars(range(min = 1), transform = write_only)]
    pub(crate) allocated_storage: Option<i32>,
    /// The port. AWS takes that of the engine.
    #[schemars(range(min = 1150, max = 65535))]
    pub(crate) port: Option<i32>,
    /// The engine mode: provisioned, also for Serverless v2, or serverless (v1). AWS takes provisioned.
    #[schemars(extend("enum" = ["provisioned", "serverless"]), length(max = 16))]
    #[schemars(transform = default_to("provisioned"), transform = immutable)]
    pub(crate) engine_mode: Option<String>,
    /// Between which capacities Serverless v2 instances scale.
    #[serde(rename = "serverlessV2ScalingConfig")]
    pub(crate) serverless_v2_scaling_config: Option<Scaling>,
    /// How far back the cluster can be rewound, in seconds, up to 72 hours; aurora-mysql only.
    /// AWS takes 0, which turns it off.
    #[schemars(range(min = 0, max = 259200), transform = default_to(0))]
    pub(crate) backtrack_window: Option<i64>,
    /// Whether it has IPv6 addresses, too: IPV4 or DUAL. AWS takes IPV4.
    #[schemars(extend("enum" = ["IPV4", "DUAL"]), length(max = 8), transform = default_to("IPV4"))]
    pub(crate) network_type: Option<String>,
    /// Whether the RDS Data API answers for it. AWS leaves it off.
    #[schemars(transform = default_to(false))]
    pub(crate) enable_http_endpoint: Option<bool>,
    /// Whether users can sign in through IAM. AWS leaves it off.
    #[serde(rename = "enableIAMDatabaseAuthentication")]
    #[schemars(transform = default_to(false))]
    pub(crate) enable_iam_database_authentication: Option<bool>,
    /// Whether its snapshots get its tags. AWS leaves it off.
    #[schemars(transform = default_to(false))]
    pub(crate) copy_tags_to_snapshot: Option<bool>,
    /// Whether AWS upgrades it to new minor versions by itself. AWS turns it on.
    #[schemars(transform = default_to(true))]
    pub(crate) auto_minor_version_upgrade: Option<bool>,
    /// The logs that go to CloudWatch, such as postgresql or slowquery. The list is the full list.
    #[schemars(transform = log_types, transform = set, transform = clearable)]
    pub(crate) enabled_cloudwatch_logs_exports: Option<Vec<String>>,
    /// Whether Performance Insights is on for all instances. AWS leaves it off.
    #[schemars(transform = default_to(false))]
    pub(crate) performance_insights_enabled: Option<bool>,
    /// The KMS key of Performance Insights, by id, ARN or alias. AWS takes its own key for RDS.
    #[schemars(transform = kms_key)]
    pub(crate) performance_insights_kms_key_id: Option<String>,
    /// For how many days Performance Insights keeps its data: 7, 731, or months times 31. AWS takes 7.
    #[schemars(range(min = 7, max = 731), transform = insights_retention)]
    pub(crate) performance_insights_retention_period: Option<i32>,
    /// Whether AWS refuses to delete it. AWS leaves it off.
    #[schemars(transform = default_to(false), transform = unblocks_deletion)]
    pub(crate) deletion_protection: Option<bool>,
    /// Whether a deletion leaves no final snapshot. Left out, it leaves one.
    #[schemars(transform = write_only)]
    pub(crate) skip_final_snapshot: Option<bool>,
    /// Whether engineVersion may lead to another major version.
    #[schemars(transform = write_only)]
    pub(crate) allow_major_version_upgrade: Option<bool>,
    /// Whether changes are applied at once, outages included. Left out, they wait for the maintenance
    /// window.
    pub(crate) apply_immediately: Option<bool>,
    /// Tags of the cluster. Tags that others put on it stay.
    #[schemars(transform = tags)]
    pub(crate) tags: Option<Tags>,
}

/// Between which capacities Serverless v2 instances scale, in Aurora capacity units.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scaling {
    /// The least, in steps of 0.5; 0 lets idle instances pause.
    #[schemars(range(min = 0, max = 256))]
    pub(crate) min_capacity: Option<f64>,
    /// The most, in steps of 0.5.
    #[schemars(range(min = 0.5, max = 256))]
    pub(crate) max_capacity: Option<f64>,
}

/// What AWS tells of a cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The ARN: arn:aws:rds:eu-west-1:123456789012:cluster:….
    pub(crate) db_cluster_arn: Option<String>,
    /// The host name of the instance that writes.
    pub(crate) endpoint: Option<String>,
    /// The host name of the instances that only read.
    pub(crate) reader_endpoint: Option<String>,
    /// AWS's state, such as creating, available or modifying.
    pub(crate) status: Option<String>,
    /// The version that it runs.
    pub(crate) engine_version: Option<String>,
    /// The instances in it.
    pub(crate) members: Option<Vec<String>>,
    /// What AWS holds until the maintenance window, or is about to change: paths of the spec.
    pub(crate) pending_modifications: Option<Vec<String>>,
}

impl Spec {
    /// As AWS writes it.
    pub(crate) fn canonical(mut self) -> Self {
        self.db_cluster_identifier.make_ascii_lowercase();
        self.preferred_maintenance_window =
            self.preferred_maintenance_window.map(|window| window.to_ascii_lowercase());
        self.db_subnet_group_ref = self.db_subnet_group_ref.map(|name| NameRef::to(name.id().to_lowercase()));
        self.db_cluster_parameter_group_ref =
            self.db_cluster_parameter_group_ref.map(|name| NameRef::to(name.id().to_lowercase()));
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn names_and_windows_are_written_as_aws_keeps_them() {
        let spec: Spec = serde_json::from_value(json!({
            "dbClusterIdentifier": "Orders", "engine": "aurora-postgresql", "dbSubnetGroupRef": "Main",
            "preferredMaintenanceWindow": "Sun:05:00-Sun:06:00",
        }))
        .unwrap();
        assert_eq!(
            json!(spec.canonical()),
            json!({
                "dbClusterIdentifier": "orders", "engine": "aurora-postgresql", "dbSubnetGroupRef": "main",
                "preferredMaintenanceWindow": "sun:05:00-sun:06:00",
            })
        );
    }

    #[test]
    fn what_is_required_is_all_in_the_schema() {
        let schema: Value = schemars::schema_for!(Spec).into();
        assert_eq!(
            schema["required"],
            json!([
                "dbClusterIdentifier",
                "engine",
                "engineVersion",
                "masterUsername",
                "masterUserPasswordRef",
                "dbSubnetGroupRef"
            ])
        );
        assert_eq!(schema["properties"]["masterUserPasswordRef"]["x-konfig-secret"], true);
        assert_eq!(schema["properties"]["dbSubnetGroupRef"]["x-konfig-ref"]["orDirect"], true);
    }
}
