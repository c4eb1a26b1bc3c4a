//! A cluster as AWS shows it, written as a spec.

use aws_sdk_rds::types::{ClusterPendingModifiedValues, DbCluster};
use resource::{Live, NameRef, Ref};

use super::spec::{Scaling, Spec, Status};
use crate::pending::{LOGS, Pending};
use crate::tags::from_rds;
use crate::words::{as_wanted, same_key, same_name};
use crate::{logs, state, version};

/// What AWS shows, with what it holds pending counted as done, in the words of the wanted spec where
/// those mean the same.
pub(super) fn live(cluster: &DbCluster, wanted: Option<&Spec>) -> Live<Spec, Status> {
    let mut spec = shown(cluster);
    let values = cluster.pending_modified_values();
    let pending = values.map(|values| overlay(&mut spec, values)).unwrap_or_default();
    if let Some(wanted) = wanted {
        spec = in_words_of(wanted, spec, pending.may_wait());
    }
    let is_password_pending = values.is_some_and(|values| values.master_user_password().is_some());
    Live {
        spec,
        status: status(cluster, pending),
        phase: state::phase(cluster.status(), is_password_pending),
        tags: from_rds(cluster.tag_list()),
    }
}

fn shown(cluster: &DbCluster) -> Spec {
    let groups = cluster.vpc_security_groups().iter();
    let groups = groups.filter(|group| group.status() != Some("removing"));
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let or = |text: &Option<String>, default: &str| Some(text.clone().unwrap_or_else(|| default.to_owned()));
    let scaling = cluster.serverless_v2_scaling_configuration();
    Spec {
        db_cluster_identifier: text(&cluster.db_cluster_identifier),
        engine: text(&cluster.engine),
        engine_version: cluster.engine_version.clone(),
        master_username: cluster.master_username.clone(),
        db_subnet_group_ref: cluster.db_subnet_group().map(|name| NameRef::to(name.to_lowercase())),
        db_cluster_parameter_group_ref: cluster.db_cluster_parameter_group().map(NameRef::to),
        vpc_security_group_refs: Some(
            groups.filter_map(|group| group.vpc_security_group_id()).map(Ref::to).collect(),
        ),
        backup_retention_period: cluster.backup_retention_period,
        preferred_backup_window: cluster.preferred_backup_window.clone(),
        preferred_maintenance_window: cluster.preferred_maintenance_window().map(str::to_lowercase),
        storage_encrypted: Some(cluster.storage_encrypted.unwrap_or(false)),
        kms_key_id: cluster.kms_key_id.clone(),
        // AWS shows neither where it is the default.
        storage_type: or(&cluster.storage_type, "aurora"),
        network_type: or(&cluster.network_type, "IPV4"),
        engine_mode: or(&cluster.engine_mode, "provisioned"),
        port: cluster.port,
        serverless_v2_scaling_config: scaling.map(|scaling| Scaling {
            min_capacity: scaling.min_capacity(),
            max_capacity: scaling.max_capacity(),
        }),
        backtrack_window: Some(cluster.backtrack_window.unwrap_or(0)),
        enable_http_endpoint: Some(cluster.http_endpoint_enabled.unwrap_or(false)),
        enable_iam_database_authentication: Some(
            cluster.iam_database_authentication_enabled.unwrap_or(false),
        ),
        copy_tags_to_snapshot: Some(cluster.copy_tags_to_snapshot.unwrap_or(false)),
        auto_minor_version_upgrade: Some(cluster.auto_minor_version_upgrade.unwrap_or(true)),
        enabled_cloudwatch_logs_exports: Some(cluster.enabled_cloudwatch_logs_exports().to_vec()),
        performance_insights_enabled: Some(cluster.performance_insights_enabled.unwrap_or(false)),
        performance_insights_kms_key_id: cluster.performance_insights_kms_key_id.clone(),
        performance_insights_retention_period: cluster.performance_insights_retention_period,
        deletion_protection: Some(cluster.deletion_protection.unwrap_or(false)),
        ..Spec::default()
    }
}

/// Puts what is pending into the spec, and names where.
fn overlay(spec: &mut Spec, values: &ClusterPendingModifiedValues) -> Pending {
    let mut pending = Pending::default();
    let logs = values.pending_cloudwatch_logs_exports();
    let shown = spec.enabled_cloudwatch_logs_exports.clone().unwrap_or_default();
    let exported = logs.map(|logs| logs::exported(&shown, logs)).filter(|logs| *logs != shown);
    let iam = values.iam_database_authentication_enabled;
    pending.put("/engineVersion", &mut spec.engine_version, values.engine_version.clone());
    pending.put("/backupRetentionPeriod", &mut spec.backup_retention_period, values.backup_retention_period);
    pending.put("/storageType", &mut spec.storage_type, values.storage_type.clone());
    pending.put("/enableIAMDatabaseAuthentication", &mut spec.enable_iam_database_authentication, iam);
    pending.put(LOGS, &mut spec.enabled_cloudwatch_logs_exports, exported);
    pending
}

fn status(cluster: &DbCluster, pending: Pending) -> Status {
    let members = cluster.db_cluster_members().iter();
    let mut members: Vec<_> = members.filter_map(|member| member.db_instance_identifier.clone()).collect();
    // AWS lists them in no order that it promises.
    members.sort_unstable();
    Status {
        db_cluster_arn: cluster.db_cluster_arn.clone(),
        endpoint: cluster.endpoint.clone(),
        reader_endpoint: cluster.reader_endpoint.clone(),
        status: cluster.status.clone(),
        engine_version: cluster.engine_version.clone(),
        members: (!members.is_empty()).then_some(members),
        pending_modifications: pending.into_paths(),
    }
}

fn in_words_of(wanted: &Spec, live: Spec, is_waiting: bool) -> Spec {
    let engine = live.engine.clone();
    let met = |wanted: &str, live: &str| version::satisfied(&engine, wanted, live);
    Spec {
        engine_version: as_wanted(wanted.engine_version.as_ref(), live.engine_version, met),
        master_username: as_wanted(wanted.master_username.as_ref(), live.master_username, same_name),
        kms_key_id: as_wanted(wanted.kms_key_id.as_ref(), live.kms_key_id, same_key),
        performance_insights_kms_key_id: as_wanted(
            wanted.performance_insights_kms_key_id.as_ref(),
            live.performance_insights_kms_key_id,
            same_key,
        ),
        // What waits for the maintenance window is to wait no longer.
        apply_immediately: wanted.apply_immediately.map(|at_once| at_once && !is_waiting),
        ..live
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aws_sdk_rds::types::builders::DbClusterBuilder;
    use aws_sdk_rds::types::{DbClusterMember, ServerlessV2ScalingConfigurationInfo};
    use resource::Phase;
    use serde_json::json;

    fn cluster() -> DbClusterBuilder {
        DbCluster::builder()
            .db_cluster_identifier("orders")
            .engine("aurora-postgresql")
            .engine_version("15.4")
            .status("available")
            .master_username("admin")
            .db_subnet_group("main")
            .allocated_storage(1)
            .port(5432)
    }

    #[test]
    fn a_cluster_reads_as_a_spec() {
        let scaling =
            ServerlessV2ScalingConfigurationInfo::builder().min_capacity(0.5).max_capacity(4.0).build();
        let live = live(&cluster().serverless_v2_scaling_configuration(scaling).build(), None);
        assert_eq!(
            json!(live.spec),
            json!({
                "dbClusterIdentifier": "orders", "engine": "aurora-postgresql", "engineVersion": "15.4",
                "masterUsername": "admin", "dbSubnetGroupRef": "main", "vpcSecurityGroupRefs": [],
                "storageEncrypted": false, "storageType": "aurora", "port": 5432, "engineMode": "provisioned",
                "serverlessV2ScalingConfig": {"minCapacity": 0.5, "maxCapacity": 4.0}, "backtrackWindow": 0,
                "networkType": "IPV4", "enableHttpEndpoint": false, "enableIAMDatabaseAuthentication": false,
                "copyTagsToSnapshot": false, "autoMinorVersionUpgrade": true, "enabledCloudwatchLogsExports": [],
                "performanceInsightsEnabled": false, "deletionProtection": false,
            })
        );
        assert_eq!(live.phase, Phase::Ready);
    }

    #[test]
    fn its_members_and_what_is_pending_are_named() {
        let pending = ClusterPendingModifiedValues::builder().engine_version("15.5").build();
        let member = DbClusterMember::builder().db_instance_identifier("orders-1").build();
        let live = live(&cluster().pending_modified_values(pending).db_cluster_members(member).build(), None);
        assert_eq!(live.spec.engine_version.as_deref(), Some("15.5"));
        assert_eq!(live.status.engine_version.as_deref(), Some("15.4"));
        assert_eq!(live.status.pending_modifications.unwrap(), ["/engineVersion"]);
        assert_eq!(live.status.members.unwrap(), ["orders-1"]);
    }

    #[test]
    fn a_pending_password_is_waited_for() {
        let pending = ClusterPendingModifiedValues::builder().master_user_password("****").build();
        let live = live(&cluster().pending_modified_values(pending).build(), None);
        assert!(matches!(live.phase, Phase::Busy(_)));
    }
}
