//! An instance's spec, as AWS is told.

use aws_sdk_rds::Client;
use aws_sdk_rds::operation::create_db_instance::builders::CreateDBInstanceFluentBuilder as Create;
use aws_sdk_rds::operation::modify_db_instance::builders::ModifyDBInstanceFluentBuilder as Modify;
use resource::{Call, Changes, Error, Live, Result};

use super::spec::{Spec, Status};
use crate::modify::{changed, ids, is_needed, name};
use crate::tags::to_rds;
use crate::{logs, storage, version};

/// The call that makes it, but for the password.
pub(super) fn create(client: &Client, call: &Call, spec: &Spec) -> Create {
    let storage_is_open =
        spec.storage_type.is_none() && spec.iops.is_none() && spec.storage_throughput.is_none();
    let default_storage = (storage_is_open && !spec.is_member()).then(|| "gp2".to_owned());
    client
        .create_db_instance()
        .db_instance_identifier(&spec.db_instance_identifier)
        .db_instance_class(&spec.db_instance_class)
        .engine(&spec.engine)
        .set_engine_version(spec.engine_version.clone())
        .set_master_username(spec.master_username.clone())
        .set_db_name(spec.db_name.clone())
        .set_allocated_storage(spec.allocated_storage)
        .set_max_allocated_storage(spec.max_allocated_storage)
        .set_storage_type(spec.storage_type.clone().or(default_storage))
        .set_iops(spec.iops)
        .set_storage_throughput(spec.storage_throughput)
        .set_storage_encrypted(spec.storage_encrypted)
        .set_kms_key_id(spec.kms_key_id.clone())
        .set_multi_az(spec.multi_az)
        .set_publicly_accessible(spec.publicly_accessible)
        .set_db_subnet_group_name(name(spec.db_subnet_group_ref.as_ref()))
        .set_db_parameter_group_name(name(spec.db_parameter_group_ref.as_ref()))
        .set_vpc_security_group_ids(ids(spec.vpc_security_group_refs.as_ref()))
        .set_port(spec.port)
        .set_backup_retention_period(spec.backup_retention_period)
        .set_preferred_backup_window(spec.preferred_backup_window.clone())
        .set_preferred_maintenance_window(spec.preferred_maintenance_window.clone())
        .set_auto_minor_version_upgrade(spec.auto_minor_version_upgrade)
        .set_copy_tags_to_snapshot(spec.copy_tags_to_snapshot)
        .set_enable_iam_database_authentication(spec.enable_iam_database_authentication)
        .set_enable_performance_insights(spec.enable_performance_insights)
        .set_performance_insights_kms_key_id(spec.performance_insights_kms_key_id.clone())
        .set_performance_insights_retention_period(spec.performance_insights_retention_period)
        .set_monitoring_interval(spec.monitoring_interval)
        .set_monitoring_role_arn(spec.monitoring_role_arn.clone())
        .set_enable_cloudwatch_logs_exports(spec.enabled_cloudwatch_logs_exports.clone())
        .set_deletion_protection(spec.deletion_protection)
        .set_db_cluster_identifier(name(spec.db_cluster_identifier.as_ref()))
        .set_tags(Some(to_rds(&call.tags)))
}

/// The one call that changes all that differs, and why some of it may not go into it.
pub(super) fn modify(
    client: &Client,
    id: &str,
    live: &Live<Spec, Status>,
    target: &Spec,
    changes: &Changes,
) -> Result<(Option<Modify>, Vec<Error>)> {
    let (refused, reasons) = refusals(&live.spec, target, changes);
    if !is_needed(changes, &refused) {
        return Ok((None, reasons));
    }
    let pick = |field: &str| changes.touch(field) && !refused.contains(&field);
    let modify = client
        .modify_db_instance()
        .db_instance_identifier(id)
        .set_apply_immediately(target.apply_immediately.filter(|at_once| *at_once))
        .set_db_instance_class(pick("dbInstanceClass").then(|| target.db_instance_class.clone()))
        .set_engine_version(pick("engineVersion").then(|| target.engine_version.clone()).flatten())
        .set_allow_major_version_upgrade(
            target.allow_major_version_upgrade.filter(|allow| *allow && pick("engineVersion")),
        )
        .set_db_subnet_group_name(
            pick("dbSubnetGroupRef").then(|| name(target.db_subnet_group_ref.as_ref())).flatten(),
        )
        .set_db_parameter_group_name(changed(
            changes,
            "dbParameterGroupRef",
            &name(target.db_parameter_group_ref.as_ref()),
        ))
        .set_vpc_security_group_ids(changed(
            changes,
            "vpcSecurityGroupRefs",
            &ids(target.vpc_security_group_refs.as_ref()),
        ))
        .set_db_port_number(changed(changes, "port", &target.port))
        .set_multi_az(changed(changes, "multiAZ", &target.multi_az))
        .set_publicly_accessible(changed(changes, "publiclyAccessible", &target.publicly_accessible))
        .set_backup_retention_period(changed(
            changes,
            "backupRetentionPeriod",
            &target.backup_retention_period,
        ))
        .set_preferred_backup_window(changed(
            changes,
            "preferredBackupWindow",
            &target.preferred_backup_window,
        ))
        .set_preferred_maintenance_window(changed(
            changes,
            "preferredMaintenanceWindow",
            &target.preferred_maintenance_window,
        ))
        .set_auto_minor_version_upgrade(changed(
            changes,
            "autoMinorVersionUpgrade",
            &target.auto_minor_version_upgrade,
        ))
        .set_copy_tags_to_snapshot(changed(changes, "copyTagsToSnapshot", &target.copy_tags_to_snapshot))
        .set_enable_iam_database_authentication(changed(
            changes,
            "enableIAMDatabaseAuthentication",
            &target.enable_iam_database_authentication,
        ))
        .set_deletion_protection(changed(changes, "deletionProtection", &target.deletion_protection))
        .set_cloudwatch_logs_export_configuration(logs::changed(changes)?);
    let modify = with_storage(modify, live, target, changes, &pick);
    Ok((Some(with_insights(with_monitoring(modify, target, changes), target, changes)), reasons))
}

/// The fields that AWS cannot be asked for, and why.
fn refusals(live: &Spec, target: &Spec, changes: &Changes) -> (Vec<&'static str>, Vec<Error>) {
    let (mut fields, mut reasons) = (Vec::new(), Vec::new());
    let mut note = |field: &'static str, checked: Result<()>| {
        if let Err(reason) = checked {
            fields.push(field);
            reasons.push(reason);
        }
    };
    if let (true, Some(wanted), Some(live)) =
        (changes.touch("engineVersion"), &target.engine_version, &live.engine_version)
    {
        let allow_major = target.allow_major_version_upgrade == Some(true);
        note("engineVersion", version::upgrade(&target.engine, wanted, live, allow_major));
    }
    if let (true, Some(wanted), Some(live)) =
        (changes.touch("allocatedStorage"), target.allocated_storage, live.allocated_storage)
    {
        note("allocatedStorage", storage::growth(wanted, live));
    }
    (fields, reasons)
}

/// AWS wants to be told of size, type and speed together when one of them changes, and takes no size
/// below what it has: its own counts where autoscaling has grown it.
fn with_storage(
    modify: Modify,
    live: &Live<Spec, Status>,
    target: &Spec,
    changes: &Changes,
    pick: &impl Fn(&str) -> bool,
) -> Modify {
    let has = live.status.allocated_storage.max(live.spec.allocated_storage);
    let limit = match target.max_allocated_storage {
        // As much as it has: AWS's way to say "no further".
        None => target.allocated_storage.max(has),
        limit => limit,
    };
    let modify = modify
        .set_max_allocated_storage(changes.touch("maxAllocatedStorage").then_some(limit).flatten())
        .set_storage_type(changed(changes, "storageType", &target.storage_type));
    let is_speed = ["iops", "storageThroughput", "storageType"].iter().any(|field| changes.touch(field));
    if !is_speed && !pick("allocatedStorage") {
        return modify;
    }
    modify
        .set_allocated_storage(if pick("allocatedStorage") { target.allocated_storage } else { has })
        .set_iops(target.iops)
        .set_storage_throughput(target.storage_throughput)
}

/// Turned on, it needs the role in the same call.
fn with_monitoring(modify: Modify, target: &Spec, changes: &Changes) -> Modify {
    if !changes.touch("monitoringInterval") && !changes.touch("monitoringRoleArn") {
        return modify;
    }
    let is_on = target.monitoring_interval.is_some_and(|interval| interval > 0);
    modify
        .set_monitoring_interval(target.monitoring_interval)
        .set_monitoring_role_arn(target.monitoring_role_arn.clone().filter(|_| is_on))
}

/// Turned on, it takes its settings from the same call.
fn with_insights(modify: Modify, target: &Spec, changes: &Changes) -> Modify {
    let is_changed =
        ["enablePerformanceInsights", "performanceInsightsKmsKeyId", "performanceInsightsRetentionPeriod"]
            .iter()
            .any(|field| changes.touch(field));
    if !is_changed {
        return modify;
    }
    let is_on = target.enable_performance_insights != Some(false);
    modify
        .set_enable_performance_insights(target.enable_performance_insights)
        .set_performance_insights_kms_key_id(target.performance_insights_kms_key_id.clone().filter(|_| is_on))
        .set_performance_insights_retention_period(
            target.performance_insights_retention_period.filter(|_| is_on),
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aws_sdk_rds::config::{BehaviorVersion, Config};
    use resource::diff::diff;
    use resource::{Phase, Tags};
    use serde_json::{Value, json};

    fn client() -> Client {
        Client::from_conf(Config::builder().behavior_version(BehaviorVersion::latest()).build())
    }

    fn spec(fields: &Value) -> Spec {
        let mut all = json!({
            "dbInstanceIdentifier": "orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres",
            "engineVersion": "16.3", "allocatedStorage": 100, "iops": 3000, "storageType": "io1",
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    /// What is asked of AWS to get from one spec to the other, and what is refused.
    fn asked(live: &Value, target: &Value, has: i32) -> (Option<Modify>, Vec<Error>) {
        let schema = schemars::schema_for!(Spec).into();
        let (live, target) = (spec(live), spec(target));
        let (none, no_part) = Default::default();
        let changes = diff(&schema, &json!(target), &json!(live), &none, &no_part).changes;
        let status = Status { allocated_storage: Some(has), ..Status::default() };
        let live = Live { spec: live, status, phase: Phase::Ready, tags: Tags::new() };
        modify(&client(), "orders", &live, &target, &changes).unwrap()
    }

    #[test]
    fn all_that_differs_and_nothing_else_is_in_one_call() {
        let target = json!({"dbInstanceClass": "db.m6g.large", "multiAZ": true, "applyImmediately": false});
        let (modify, refused) = asked(&json!({"multiAZ": false, "applyImmediately": false}), &target, 100);
        let expected = client()
            .modify_db_instance()
            .db_instance_identifier("orders")
            .db_instance_class("db.m6g.large")
            .multi_az(true);
        assert_eq!(modify.unwrap().as_input(), expected.as_input());
        assert!(refused.is_empty());
    }

    #[test]
    fn storage_that_autoscaling_grew_is_not_asked_to_shrink() {
        let (modify, _) = asked(&json!({"iops": 3000}), &json!({"iops": 4000}), 150);
        let modify = modify.unwrap();
        assert_eq!((*modify.get_allocated_storage(), *modify.get_iops()), (Some(150), Some(4000)));
    }

    #[test]
    fn autoscaling_ends_where_the_storage_is() {
        let live = json!({"maxAllocatedStorage": 500});
        let schema: Value = schemars::schema_for!(Spec).into();
        let managed = ["/maxAllocatedStorage".to_owned()].into();
        let difference =
            diff(&schema, &json!(spec(&json!({}))), &json!(spec(&live)), &managed, &Default::default());
        let target: Spec = serde_json::from_value(difference.target).unwrap();
        let status = Status { allocated_storage: Some(150), ..Status::default() };
        let live = Live { spec: spec(&live), status, phase: Phase::Ready, tags: Tags::new() };
        let (modify, _) = modify(&client(), "orders", &live, &target, &difference.changes).unwrap();
        assert_eq!(*modify.unwrap().get_max_allocated_storage(), Some(150));
    }

    #[test]
    fn what_is_refused_holds_up_nothing_else() {
        let target = json!({"engineVersion": "17", "allocatedStorage": 50, "port": 5433});
        let (modify, refused) = asked(&json!({"port": 5432}), &target, 100);
        let expected = client().modify_db_instance().db_instance_identifier("orders").db_port_number(5433);
        assert_eq!(modify.unwrap().as_input(), expected.as_input());
        assert_eq!(refused.len(), 2);
        let (modify, refused) = asked(&json!({}), &json!({"engineVersion": "15"}), 100);
        assert!(modify.is_none() && refused.len() == 1);
    }

    #[test]
    fn monitoring_is_turned_on_with_its_role() {
        let role = "arn:aws:iam::123456789012:role/monitoring";
        let live = json!({"monitoringInterval": 0, "monitoringRoleArn": role});
        let (modify, _) = asked(&live, &json!({"monitoringInterval": 60, "monitoringRoleArn": role}), 100);
        assert_eq!(modify.unwrap().get_monitoring_role_arn().as_deref(), Some(role));
    }
}
