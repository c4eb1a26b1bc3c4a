//! An instance as AWS shows it, written as a spec.

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use resource::{Live, NameRef, Ref};

use super::spec::{Spec, Status};
use crate::pending::{LOGS, Pending};
use crate::tags::from_rds;
use crate::words::{as_wanted, same_key, same_name};
use crate::{logs, state, storage, version};

/// What AWS shows, with what it holds pending counted as done, in the words of the wanted spec where
/// those mean the same.
pub(super) fn live(instance: &DbInstance, wanted: Option<&Spec>) -> Live<Spec, Status> {
    let mut spec = shown(instance);
    let values = instance.pending_modified_values();
    let pending = values.map(|values| overlay(&mut spec, values)).unwrap_or_default();
    if let Some(wanted) = wanted {
        spec = in_words_of(wanted, spec, pending.may_wait());
    }
    let is_password_pending = values.is_some_and(|values| values.master_user_password().is_some());
    Live {
        spec,
        status: status(instance, pending),
        phase: state::phase(instance.db_instance_status(), is_password_pending),
        tags: from_rds(instance.tag_list()),
    }
}

fn shown(instance: &DbInstance) -> Spec {
    let groups = instance.vpc_security_groups().iter();
    let groups = groups.filter(|group| group.status() != Some("removing"));
    let subnets = instance.db_subnet_group().and_then(|group| group.db_subnet_group_name());
    let parameters = instance.db_parameter_groups().first().and_then(|group| group.db_parameter_group_name());
    let cluster = instance.db_cluster_identifier().filter(|name| !name.is_empty());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Spec {
        db_instance_identifier: text(&instance.db_instance_identifier),
        db_instance_class: text(&instance.db_instance_class),
        engine: text(&instance.engine),
        engine_version: instance.engine_version.clone(),
        master_username: instance.master_username.clone(),
        master_user_password_ref: None,
        db_name: instance.db_name.clone(),
        allocated_storage: instance.allocated_storage,
        max_allocated_storage: instance.max_allocated_storage,
        storage_type: instance.storage_type.clone(),
        iops: instance.iops,
        storage_throughput: instance.storage_throughput,
        storage_encrypted: Some(instance.storage_encrypted.unwrap_or(false)),
        kms_key_id: instance.kms_key_id.clone(),
        multi_az: Some(instance.multi_az.unwrap_or(false)),
        publicly_accessible: instance.publicly_accessible,
        db_subnet_group_ref: subnets.map(|name| NameRef::to(name.to_lowercase())),
        db_parameter_group_ref: parameters.map(NameRef::to),
        vpc_security_group_refs: Some(
            groups.filter_map(|group| group.vpc_security_group_id()).map(Ref::to).collect(),
        ),
        port: port(instance),
        backup_retention_period: instance.backup_retention_period,
        preferred_backup_window: instance.preferred_backup_window.clone(),
        preferred_maintenance_window: instance.preferred_maintenance_window().map(str::to_lowercase),
        auto_minor_version_upgrade: instance.auto_minor_version_upgrade,
        copy_tags_to_snapshot: Some(instance.copy_tags_to_snapshot.unwrap_or(false)),
        enable_iam_database_authentication: Some(
            instance.iam_database_authentication_enabled.unwrap_or(false),
        ),
        enable_performance_insights: Some(instance.performance_insights_enabled.unwrap_or(false)),
        performance_insights_kms_key_id: instance.performance_insights_kms_key_id.clone(),
        performance_insights_retention_period: instance.performance_insights_retention_period,
        monitoring_interval: Some(instance.monitoring_interval.unwrap_or(0)),
        monitoring_role_arn: instance.monitoring_role_arn.clone(),
        enabled_cloudwatch_logs_exports: Some(instance.enabled_cloudwatch_logs_exports().to_vec()),
        deletion_protection: Some(instance.deletion_protection.unwrap_or(false)),
        db_cluster_identifier: cluster.map(NameRef::to),
        ..Spec::default()
    }
}

/// Only clusters' members show a port of their own beside that of the endpoint.
fn port(instance: &DbInstance) -> Option<i32> {
    let own = instance.db_instance_port.filter(|port| *port > 0);
    instance.endpoint().and_then(|endpoint| endpoint.port()).or(own)
}

/// Puts what is pending into the spec, and names where.
fn overlay(spec: &mut Spec, values: &PendingModifiedValues) -> Pending {
    let mut pending = Pending::default();
    let mut class = None;
    pending.put("/dbInstanceClass", &mut class, values.db_instance_class.clone());
    if let Some(class) = class {
        spec.db_instance_class = class;
    }
    let logs = values.pending_cloudwatch_logs_exports();
    let shown = spec.enabled_cloudwatch_logs_exports.clone().unwrap_or_default();
    let exported = logs.map(|logs| logs::exported(&shown, logs)).filter(|logs| *logs != shown);
    let subnets = values.db_subnet_group_name().map(|name| NameRef::to(name.to_lowercase()));
    let iam = values.iam_database_authentication_enabled;
    pending.put("/engineVersion", &mut spec.engine_version, values.engine_version.clone());
    pending.put("/allocatedStorage", &mut spec.allocated_storage, values.allocated_storage);
    pending.put("/storageType", &mut spec.storage_type, values.storage_type.clone());
    pending.put("/iops", &mut spec.iops, values.iops);
    pending.put("/storageThroughput", &mut spec.storage_throughput, values.storage_throughput);
    pending.put("/multiAZ", &mut spec.multi_az, values.multi_az);
    pending.put("/dbSubnetGroupRef", &mut spec.db_subnet_group_ref, subnets);
    pending.put("/port", &mut spec.port, values.port);
    pending.put("/backupRetentionPeriod", &mut spec.backup_retention_period, values.backup_retention_period);
    pending.put("/enableIAMDatabaseAuthentication", &mut spec.enable_iam_database_authentication, iam);
    pending.put(LOGS, &mut spec.enabled_cloudwatch_logs_exports, exported);
    pending
}

fn status(instance: &DbInstance, pending: Pending) -> Status {
    let endpoint = instance.endpoint();
    Status {
        db_instance_arn: instance.db_instance_arn.clone(),
        endpoint: endpoint.and_then(|endpoint| endpoint.address.clone()),
        port: port(instance),
        db_instance_status: instance.db_instance_status.clone(),
        engine_version: instance.engine_version.clone(),
        allocated_storage: instance.allocated_storage,
        pending_modifications: pending.into_paths(),
    }
}

fn in_words_of(wanted: &Spec, live: Spec, is_waiting: bool) -> Spec {
    let limit = wanted.max_allocated_storage.or(live.max_allocated_storage);
    let engine = live.engine.clone();
    let met = |wanted: &str, live: &str| version::satisfied(&engine, wanted, live);
    Spec {
        engine_version: as_wanted(wanted.engine_version.as_ref(), live.engine_version, met),
        master_username: as_wanted(wanted.master_username.as_ref(), live.master_username, same_name),
        db_name: as_wanted(wanted.db_name.as_ref(), live.db_name, same_name),
        allocated_storage: storage::shown(wanted.allocated_storage, limit, live.allocated_storage),
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
    use aws_sdk_rds::types::builders::DbInstanceBuilder;
    use aws_sdk_rds::types::{
        DbParameterGroupStatus, DbSubnetGroup, Endpoint, Tag, VpcSecurityGroupMembership,
    };
    use resource::Phase;
    use serde_json::json;

    fn instance() -> DbInstanceBuilder {
        let group = |id: &str, status: &str| {
            VpcSecurityGroupMembership::builder().vpc_security_group_id(id).status(status).build()
        };
        DbInstance::builder()
            .db_instance_identifier("orders")
            .db_instance_class("db.t4g.micro")
            .engine("postgres")
            .engine_version("16.3")
            .db_instance_status("available")
            .master_username("admin")
            .allocated_storage(20)
            .storage_type("gp3")
            .endpoint(Endpoint::builder().address("orders.example").port(5432).build())
            .db_instance_port(0)
            .db_subnet_group(DbSubnetGroup::builder().db_subnet_group_name("Main").build())
            .db_parameter_groups(
                DbParameterGroupStatus::builder().db_parameter_group_name("default.postgres16").build(),
            )
            .vpc_security_groups(group("sg-1", "active"))
            .vpc_security_groups(group("sg-2", "removing"))
            .preferred_maintenance_window("sun:05:00-sun:06:00")
            .tag_list(Tag::builder().key("team").value("data").build())
    }

    fn wanted(spec: serde_json::Value) -> Spec {
        let mut all = json!({"dbInstanceIdentifier": "orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres"});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn an_instance_reads_as_a_spec() {
        let live = live(&instance().build(), None);
        assert_eq!(
            json!(live.spec),
            json!({
                "dbInstanceIdentifier": "orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres",
                "engineVersion": "16.3", "masterUsername": "admin", "allocatedStorage": 20, "storageType": "gp3",
                "storageEncrypted": false, "multiAZ": false, "dbSubnetGroupRef": "main",
                "dbParameterGroupRef": "default.postgres16", "vpcSecurityGroupRefs": [{"id": "sg-1"}],
                "port": 5432, "preferredMaintenanceWindow": "sun:05:00-sun:06:00", "copyTagsToSnapshot": false,
                "enableIAMDatabaseAuthentication": false, "enablePerformanceInsights": false,
                "monitoringInterval": 0, "enabledCloudwatchLogsExports": [], "deletionProtection": false,
            })
        );
        assert_eq!(live.status.endpoint.as_deref(), Some("orders.example"));
        assert_eq!(live.tags.get("team").map(String::as_str), Some("data"));
        assert_eq!(live.phase, Phase::Ready);
    }

    #[test]
    fn the_users_words_stay_where_they_are_met() {
        let wanted = wanted(
            json!({"engineVersion": "16", "allocatedStorage": 10, "maxAllocatedStorage": 100, "masterUsername": "Admin"}),
        );
        let live = live(&instance().max_allocated_storage(100).build(), Some(&wanted));
        let spec = &live.spec;
        assert_eq!(spec.engine_version.as_deref(), Some("16"));
        assert_eq!(spec.allocated_storage, Some(10));
        assert_eq!(spec.master_username.as_deref(), Some("Admin"));
        // What it really has stands in the status.
        assert_eq!(
            (live.status.engine_version.as_deref(), live.status.allocated_storage),
            (Some("16.3"), Some(20))
        );
    }

    #[test]
    fn what_is_pending_counts_as_done_and_is_named() {
        let pending =
            PendingModifiedValues::builder().db_instance_class("db.m6g.large").multi_az(true).build();
        let live = live(&instance().pending_modified_values(pending).build(), None);
        assert_eq!(live.spec.db_instance_class, "db.m6g.large");
        assert_eq!(live.spec.multi_az, Some(true));
        assert_eq!(live.status.pending_modifications.unwrap(), ["/dbInstanceClass", "/multiAZ"]);
        assert_eq!(live.phase, Phase::Ready);
    }

    #[test]
    fn what_waits_is_flushed_when_the_user_says_so() {
        let at_once = wanted(json!({"applyImmediately": true}));
        let pending = PendingModifiedValues::builder().multi_az(true).build();
        let waiting = instance().pending_modified_values(pending).build();
        assert_eq!(live(&waiting, Some(&at_once)).spec.apply_immediately, Some(false));
        assert_eq!(live(&instance().build(), Some(&at_once)).spec.apply_immediately, Some(true));
        assert_eq!(live(&waiting, Some(&wanted(json!({})))).spec.apply_immediately, None);
    }

    #[test]
    fn a_pending_password_is_waited_for_and_never_shown() {
        let pending = PendingModifiedValues::builder().master_user_password("****").build();
        let live = live(&instance().pending_modified_values(pending).build(), None);
        assert!(matches!(live.phase, Phase::Busy(_)));
        assert_eq!(live.status.pending_modifications, None);
    }
}
