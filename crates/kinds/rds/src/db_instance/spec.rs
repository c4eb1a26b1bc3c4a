//! What is wanted of an instance, and what AWS tells of it.

use resource::schema::{
    clearable, default_to, immutable, or_direct, rule, set, tags, unblocks_deletion, write_only,
};
use resource::{NameRef, Ref, SecretRef, Tags, targets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::{
    backup_window, cluster, identifier, insights_retention, kms_key, log_types, maintenance_window,
};

/// A database server. Deleting it leaves a final snapshot unless skipFinalSnapshot is set.
///
/// Most changes wait for the maintenance window; `status.pendingModifications` names them meanwhile.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.dbClusterIdentifier) || (has(self.engineVersion) && has(self.masterUsername) && has(self.masterUserPasswordRef) && has(self.allocatedStorage) && has(self.dbSubnetGroupRef))",
    "engineVersion, masterUsername, masterUserPasswordRef, allocatedStorage and dbSubnetGroupRef are required, unless dbClusterIdentifier makes it a member of an Aurora cluster",
))]
#[schemars(transform = rule(
    "has(self.dbClusterIdentifier) || !self.engine.startsWith('aurora')",
    "an instance of this engine is always a member of an Aurora cluster: set dbClusterIdentifier",
))]
#[schemars(transform = rule(
    "!has(self.maxAllocatedStorage) || !has(self.allocatedStorage) || self.maxAllocatedStorage > self.allocatedStorage",
    "maxAllocatedStorage must be above allocatedStorage: it is how far AWS may let that grow",
))]
#[schemars(transform = rule(
    "!has(self.monitoringInterval) || self.monitoringInterval == 0 || has(self.monitoringRoleArn)",
    "a monitoringInterval other than 0 needs monitoringRoleArn",
))]
pub(crate) struct Spec {
    /// The identifier in AWS, unique within account and region; AWS keeps it in lower case.
    #[schemars(transform = identifier, transform = immutable)]
    pub(crate) db_instance_identifier: String,
    /// The class of machine, such as db.t4g.micro.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(transform = resource::schema::matches(r"^db\.", "must be a class of DB instances, such as db.t4g.micro"))]
    pub(crate) db_instance_class: String,
    /// The database engine, such as postgres, mysql, mariadb or aurora-postgresql.
    #[schemars(length(min = 1, max = 64), transform = immutable)]
    pub(crate) engine: String,
    /// The version, or what it begins with: 8.0 is met by any 8.0.x. It is a floor within the major
    /// version: AWS above it is left alone, AWS below it is upgraded; another major version needs
    /// allowMajorVersionUpgrade. An Aurora member has the cluster's.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) engine_version: Option<String>,
    /// The name of the master user. An Aurora member has the cluster's.
    #[schemars(length(min = 1, max = 128), transform = immutable)]
    pub(crate) master_username: Option<String>,
    /// The Secret with the master user's password. AWS gets a changed one at once. An Aurora member
    /// has the cluster's.
    pub(crate) master_user_password_ref: Option<SecretRef>,
    /// The database that AWS creates in it, or the SID of an Oracle one.
    #[schemars(length(min = 1, max = 64), transform = immutable)]
    pub(crate) db_name: Option<String>,
    /// Storage in GiB. It never shrinks; what AWS's autoscaling added up to maxAllocatedStorage stays.
    #[schemars(range(min = 5, max = 262144))]
    pub(crate) allocated_storage: Option<i32>,
    /// How far AWS may let the storage grow by itself, in GiB. Removed, AWS lets it grow no more.
    #[schemars(range(min = 5, max = 262144), transform = clearable)]
    pub(crate) max_allocated_storage: Option<i32>,
    /// The type of storage. A new instance gets gp2, or io1 where only iops is given.
    #[schemars(extend("enum" = ["gp2", "gp3", "io1", "io2"]), length(max = 8), transform = default_to("gp2"))]
    pub(crate) storage_type: Option<String>,
    /// I/O operations per second; for io1 and io2, and for gp3 beyond a size that depends on the engine.
    #[schemars(range(min = 1000, max = 256000))]
    pub(crate) iops: Option<i32>,
    /// Throughput of gp3 storage, in MiB per second.
    #[schemars(range(min = 125, max = 4000))]
    pub(crate) storage_throughput: Option<i32>,
    /// Whether the storage is encrypted. AWS leaves it off.
    #[schemars(transform = default_to(false), transform = immutable)]
    pub(crate) storage_encrypted: Option<bool>,
    /// The KMS key of the storage, by id, ARN or alias. AWS takes its own key for RDS.
    #[schemars(transform = kms_key, transform = immutable)]
    pub(crate) kms_key_id: Option<String>,
    /// Whether there is a standby in another availability zone. AWS leaves it off.
    #[serde(rename = "multiAZ")]
    #[schemars(transform = default_to(false))]
    pub(crate) multi_az: Option<bool>,
    /// Whether it has a public address. AWS decides by the subnets.
    pub(crate) publicly_accessible: Option<bool>,
    /// The subnets: the name of a DBSubnetGroup object or, where there is none of that name, of a DB
    /// subnet group in AWS.
    #[schemars(transform = or_direct)]
    pub(crate) db_subnet_group_ref: Option<NameRef<targets::DbSubnetGroup>>,
    /// The parameters: the name of a DBParameterGroup object or, where there is none of that name, of
    /// a DB parameter group in AWS. AWS takes the default of the engine.
    #[schemars(transform = or_direct)]
    pub(crate) db_parameter_group_ref: Option<NameRef<targets::DbParameterGroup>>,
    /// The security groups. The list is the full list. AWS takes the default of the VPC.
    #[schemars(length(min = 1, max = 50), transform = set)]
    pub(crate) vpc_security_group_refs: Option<Vec<Ref<targets::SecurityGroup>>>,
    /// The port. AWS takes that of the engine.
    #[schemars(range(min = 1150, max = 65535))]
    pub(crate) port: Option<i32>,
    /// For how many days backups are kept; 0 turns them off. AWS takes 1.
    #[schemars(range(min = 0, max = 35), transform = default_to(1))]
    pub(crate) backup_retention_period: Option<i32>,
    /// When backups are made, every day, in UTC: 03:00-04:00. AWS chooses one.
    #[schemars(transform = backup_window)]
    pub(crate) preferred_backup_window: Option<String>,
    /// When changes are applied, every week, in UTC: sun:05:00-sun:06:00. AWS chooses one.
    #[schemars(transform = maintenance_window)]
    pub(crate) preferred_maintenance_window: Option<String>,
    /// Whether AWS upgrades it to new minor versions by itself. AWS turns it on.
    #[schemars(transform = default_to(true))]
    pub(crate) auto_minor_version_upgrade: Option<bool>,
    /// Whether its snapshots get its tags. AWS leaves it off.
    #[schemars(transform = default_to(false))]
    pub(crate) copy_tags_to_snapshot: Option<bool>,
    /// Whether users can sign in through IAM. AWS leaves it off.
    #[serde(rename = "enableIAMDatabaseAuthentication")]
    #[schemars(transform = default_to(false))]
    pub(crate) enable_iam_database_authentication: Option<bool>,
    /// Whether Performance Insights is on. AWS leaves it off.
    #[schemars(transform = default_to(false))]
    pub(crate) enable_performance_insights: Option<bool>,
    /// The KMS key of Performance Insights, by id, ARN or alias. AWS takes its own key for RDS.
    #[schemars(transform = kms_key)]
    pub(crate) performance_insights_kms_key_id: Option<String>,
    /// For how many days Performance Insights keeps its data: 7, 731, or months times 31. AWS takes 7.
    #[schemars(range(min = 7, max = 731), transform = insights_retention)]
    pub(crate) performance_insights_retention_period: Option<i32>,
    /// Every how many seconds Enhanced Monitoring measures; 0 turns it off. AWS takes 0.
    #[schemars(extend("enum" = [0, 1, 5, 10, 15, 30, 60]), transform = default_to(0))]
    pub(crate) monitoring_interval: Option<i32>,
    /// The ARN of the role by which Enhanced Monitoring writes to CloudWatch.
    #[schemars(length(min = 1, max = 2048))]
    pub(crate) monitoring_role_arn: Option<String>,
    /// The logs that go to CloudWatch, such as postgresql or slowquery. The list is the full list.
    #[schemars(transform = log_types, transform = set, transform = clearable)]
    pub(crate) enabled_cloudwatch_logs_exports: Option<Vec<String>>,
    /// Whether AWS refuses to delete it. AWS leaves it off.
    #[schemars(transform = default_to(false), transform = unblocks_deletion)]
    pub(crate) deletion_protection: Option<bool>,
    /// Whether a deletion leaves no final snapshot. Left out, it leaves one.
    #[schemars(transform = write_only)]
    pub(crate) skip_final_snapshot: Option<bool>,
    /// The Aurora cluster that it is a member of: the name of a DBCluster object or, where there is none
    /// of that name, the identifier of a cluster in AWS. What is the cluster's (version, user, password,
    /// storage, backups, security groups, port) is then not required here, and ignored.
    #[schemars(transform = or_direct, transform = cluster, transform = immutable)]
    pub(crate) db_cluster_identifier: Option<NameRef<targets::DbCluster>>,
    /// Whether engineVersion may lead to another major version.
    #[schemars(transform = write_only)]
    pub(crate) allow_major_version_upgrade: Option<bool>,
    /// Whether changes are applied at once, outages included, and with them all that waits for the
    /// maintenance window.
    pub(crate) apply_immediately: Option<bool>,
    /// Tags of the instance. Tags that others put on it stay.
    #[schemars(transform = tags)]
    pub(crate) tags: Option<Tags>,
}

/// What AWS tells of an instance.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The ARN: arn:aws:rds:eu-west-1:123456789012:db:….
    pub(crate) db_instance_arn: Option<String>,
    /// The host name under which it is reached.
    pub(crate) endpoint: Option<String>,
    /// The port on which it is reached.
    pub(crate) port: Option<i32>,
    /// AWS's state, such as creating, available or modifying.
    pub(crate) db_instance_status: Option<String>,
    /// The version that it runs.
    pub(crate) engine_version: Option<String>,
    /// The storage that it has, in GiB.
    pub(crate) allocated_storage: Option<i32>,
    /// What AWS holds until the maintenance window, or is about to change: paths of the spec.
    pub(crate) pending_modifications: Option<Vec<String>>,
}

impl Spec {
    /// Whether it is a member of an Aurora cluster.
    pub(crate) fn is_member(&self) -> bool {
        self.db_cluster_identifier.is_some()
    }

    /// As AWS writes it, and of an Aurora member only what is its own.
    pub(crate) fn canonical(mut self) -> Self {
        self.db_instance_identifier.make_ascii_lowercase();
        let lower = |text: Option<String>| text.map(|text| text.to_ascii_lowercase());
        self.db_cluster_identifier =
            self.db_cluster_identifier.map(|name| NameRef::to(name.id().to_lowercase()));
        self.preferred_maintenance_window = lower(self.preferred_maintenance_window);
        self.db_subnet_group_ref = self.db_subnet_group_ref.map(|name| NameRef::to(name.id().to_lowercase()));
        self.db_parameter_group_ref =
            self.db_parameter_group_ref.map(|name| NameRef::to(name.id().to_lowercase()));
        if self.is_member() { self.without_what_is_the_clusters() } else { self }
    }

    fn without_what_is_the_clusters(self) -> Self {
        Self {
            engine_version: None,
            master_username: None,
            master_user_password_ref: None,
            db_name: None,
            allocated_storage: None,
            max_allocated_storage: None,
            storage_type: None,
            iops: None,
            storage_throughput: None,
            storage_encrypted: None,
            kms_key_id: None,
            multi_az: None,
            vpc_security_group_refs: None,
            port: None,
            backup_retention_period: None,
            preferred_backup_window: None,
            copy_tags_to_snapshot: None,
            enable_iam_database_authentication: None,
            enabled_cloudwatch_logs_exports: None,
            deletion_protection: None,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn canonical(spec: Value) -> Value {
        json!(serde_json::from_value::<Spec>(spec).unwrap().canonical())
    }

    #[test]
    fn names_and_windows_are_written_as_aws_keeps_them() {
        let spec = canonical(json!({
            "dbInstanceIdentifier": "Orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres",
            "dbSubnetGroupRef": "Main", "dbParameterGroupRef": "PG", "preferredMaintenanceWindow": "Sun:05:00-Sun:06:00",
            "masterUsername": "Admin",
        }));
        assert_eq!(
            spec,
            json!({
                "dbInstanceIdentifier": "orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres",
                "dbSubnetGroupRef": "main", "dbParameterGroupRef": "pg",
                "preferredMaintenanceWindow": "sun:05:00-sun:06:00", "masterUsername": "Admin",
            })
        );
    }

    #[test]
    fn a_member_has_nothing_of_the_clusters() {
        let spec = canonical(json!({
            "dbInstanceIdentifier": "orders-1", "dbInstanceClass": "db.r6g.large", "engine": "aurora-postgresql",
            "dbClusterIdentifier": "Orders", "engineVersion": "15.4", "masterUsername": "admin",
            "masterUserPasswordRef": {"name": "db", "key": "password"}, "allocatedStorage": 1, "port": 5432,
            "publiclyAccessible": false, "skipFinalSnapshot": true,
        }));
        assert_eq!(
            spec,
            json!({
                "dbInstanceIdentifier": "orders-1", "dbInstanceClass": "db.r6g.large", "engine": "aurora-postgresql",
                "dbClusterIdentifier": "orders", "publiclyAccessible": false, "skipFinalSnapshot": true,
            })
        );
    }

    #[test]
    fn a_name_may_be_an_objects_or_awss() {
        let schema: Value = schemars::schema_for!(Spec).into();
        for (field, kind) in [("dbSubnetGroupRef", "DBSubnetGroup"), ("dbClusterIdentifier", "DBCluster")] {
            let reference = &schema["properties"][field]["x-konfig-ref"];
            assert_eq!(reference["kind"], kind, "{reference}");
            assert_eq!(reference["orDirect"], true, "{reference}");
        }
    }
}
