//! A cluster's spec, as AWS is told.

use aws::Answer;
use aws_sdk_rds::Client;
use aws_sdk_rds::operation::create_db_cluster::builders::CreateDBClusterFluentBuilder as Create;
use aws_sdk_rds::operation::modify_db_cluster::builders::ModifyDBClusterFluentBuilder as Modify;
use aws_sdk_rds::types::ServerlessV2ScalingConfiguration;
use resource::{Call, Changes, Error, Progress, Result};

use super::spec::{Scaling, Spec};
use crate::modify::{changed, ids, is_needed, name};
use crate::tags::to_rds;
use crate::{logs, version};

/// The call that makes it, but for the password.
pub(super) fn create(client: &Client, call: &Call, spec: &Spec) -> Create {
    client
        .create_db_cluster()
        .db_cluster_identifier(&spec.db_cluster_identifier)
        .engine(&spec.engine)
        .set_engine_version(spec.engine_version.clone())
        .set_master_username(spec.master_username.clone())
        .set_db_subnet_group_name(name(spec.db_subnet_group_ref.as_ref()))
        .set_db_cluster_parameter_group_name(name(spec.db_cluster_parameter_group_ref.as_ref()))
        .set_vpc_security_group_ids(ids(spec.vpc_security_group_refs.as_ref()))
        .set_backup_retention_period(spec.backup_retention_period)
        .set_preferred_backup_window(spec.preferred_backup_window.clone())
        .set_preferred_maintenance_window(spec.preferred_maintenance_window.clone())
        .set_storage_encrypted(spec.storage_encrypted)
        .set_kms_key_id(spec.kms_key_id.clone())
        .set_storage_type(spec.storage_type.clone())
        .set_port(spec.port)
        .set_engine_mode(spec.engine_mode.clone())
        .set_serverless_v2_scaling_configuration(spec.serverless_v2_scaling_config.map(scaling))
        .set_backtrack_window(spec.backtrack_window)
        .set_network_type(spec.network_type.clone())
        .set_enable_http_endpoint(spec.enable_http_endpoint)
        .set_enable_iam_database_authentication(spec.enable_iam_database_authentication)
        .set_copy_tags_to_snapshot(spec.copy_tags_to_snapshot)
        .set_auto_minor_version_upgrade(spec.auto_minor_version_upgrade)
        .set_enable_cloudwatch_logs_exports(spec.enabled_cloudwatch_logs_exports.clone())
        .set_enable_performance_insights(spec.performance_insights_enabled)
        .set_performance_insights_kms_key_id(spec.performance_insights_kms_key_id.clone())
        .set_performance_insights_retention_period(spec.performance_insights_retention_period)
        .set_deletion_protection(spec.deletion_protection)
        .set_tags(Some(to_rds(&call.tags)))
}

/// The one call that changes all that differs, and why some of it may not go into it.
pub(super) fn modify(
    client: &Client,
    id: &str,
    live: &Spec,
    target: &Spec,
    changes: &Changes,
) -> Result<(Option<Modify>, Vec<Error>)> {
    let checked = check_version(live, target, changes);
    let mut elsewhere = Vec::new();
    if checked.is_err() {
        elsewhere.push("engineVersion");
    }
    if !is_serverless_v1(target) {
        elsewhere.push("enableHttpEndpoint");
    }
    let reasons = checked.err().into_iter().collect();
    if !is_needed(changes, &elsewhere) {
        return Ok((None, reasons));
    }
    let pick = |field: &str| changes.touch(field) && !elsewhere.contains(&field);
    let modify = client
        .modify_db_cluster()
        .db_cluster_identifier(id)
        .set_apply_immediately(target.apply_immediately.filter(|at_once| *at_once))
        .set_engine_version(target.engine_version.clone().filter(|_| pick("engineVersion")))
        .set_allow_major_version_upgrade(
            target.allow_major_version_upgrade.filter(|allow| *allow && pick("engineVersion")),
        )
        .set_db_cluster_parameter_group_name(changed(
            changes,
            "dbClusterParameterGroupRef",
            &name(target.db_cluster_parameter_group_ref.as_ref()),
        ))
        .set_vpc_security_group_ids(changed(
            changes,
            "vpcSecurityGroupRefs",
            &ids(target.vpc_security_group_refs.as_ref()),
        ))
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
        .set_storage_type(changed(changes, "storageType", &target.storage_type))
        .set_port(changed(changes, "port", &target.port))
        .set_serverless_v2_scaling_configuration(
            changed(changes, "serverlessV2ScalingConfig", &target.serverless_v2_scaling_config).map(scaling),
        )
        .set_backtrack_window(changed(changes, "backtrackWindow", &target.backtrack_window))
        .set_network_type(changed(changes, "networkType", &target.network_type))
        .set_enable_http_endpoint(target.enable_http_endpoint.filter(|_| pick("enableHttpEndpoint")))
        .set_enable_iam_database_authentication(changed(
            changes,
            "enableIAMDatabaseAuthentication",
            &target.enable_iam_database_authentication,
        ))
        .set_copy_tags_to_snapshot(changed(changes, "copyTagsToSnapshot", &target.copy_tags_to_snapshot))
        .set_auto_minor_version_upgrade(changed(
            changes,
            "autoMinorVersionUpgrade",
            &target.auto_minor_version_upgrade,
        ))
        .set_deletion_protection(changed(changes, "deletionProtection", &target.deletion_protection))
        .set_cloudwatch_logs_export_configuration(logs::changed(changes)?);
    Ok((Some(with_insights(modify, target, changes)), reasons))
}

/// Only Serverless v1 has the Data API among its settings; it is switched on and off elsewhere.
pub(super) async fn switch_http_endpoint(
    client: &Client,
    arn: &str,
    target: &Spec,
    changes: &Changes,
) -> Result<Progress> {
    match changed(changes, "enableHttpEndpoint", &target.enable_http_endpoint) {
        _ if is_serverless_v1(target) => {}
        None => {}
        Some(true) => {
            client.enable_http_endpoint().resource_arn(arn).send().await.answer()?;
        }
        Some(false) => {
            client.disable_http_endpoint().resource_arn(arn).send().await.answer()?;
        }
    }
    Ok(Progress::Done)
}

fn is_serverless_v1(spec: &Spec) -> bool {
    spec.engine_mode.as_deref() == Some("serverless")
}

fn check_version(live: &Spec, target: &Spec, changes: &Changes) -> Result<()> {
    let (true, Some(wanted), Some(live)) =
        (changes.touch("engineVersion"), &target.engine_version, &live.engine_version)
    else {
        return Ok(());
    };
    let allow_major = target.allow_major_version_upgrade == Some(true);
    version::upgrade(&target.engine, wanted, live, allow_major)
}

/// Turned on, it takes its settings from the same call.
fn with_insights(modify: Modify, target: &Spec, changes: &Changes) -> Modify {
    let is_changed =
        ["performanceInsightsEnabled", "performanceInsightsKmsKeyId", "performanceInsightsRetentionPeriod"]
            .iter()
            .any(|field| changes.touch(field));
    if !is_changed {
        return modify;
    }
    let is_on = target.performance_insights_enabled != Some(false);
    modify
        .set_enable_performance_insights(target.performance_insights_enabled)
        .set_performance_insights_kms_key_id(target.performance_insights_kms_key_id.clone().filter(|_| is_on))
        .set_performance_insights_retention_period(
            target.performance_insights_retention_period.filter(|_| is_on),
        )
}

fn scaling(scaling: Scaling) -> ServerlessV2ScalingConfiguration {
    ServerlessV2ScalingConfiguration::builder()
        .set_min_capacity(scaling.min_capacity)
        .set_max_capacity(scaling.max_capacity)
        .build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aws_sdk_rds::config::{BehaviorVersion, Config};
    use resource::diff::diff;
    use serde_json::{Value, json};

    fn client() -> Client {
        Client::from_conf(Config::builder().behavior_version(BehaviorVersion::latest()).build())
    }

    fn spec(fields: &Value) -> Spec {
        let mut all = json!({
            "dbClusterIdentifier": "orders", "engine": "aurora-postgresql", "engineVersion": "15.4",
            "enabledCloudwatchLogsExports": ["postgresql"],
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn asked(live: &Value, target: &Value) -> (Option<Modify>, Vec<Error>) {
        let schema = schemars::schema_for!(Spec).into();
        let (live, target) = (spec(live), spec(target));
        let (none, no_part) = Default::default();
        let changes = diff(&schema, &json!(target), &json!(live), &none, &no_part).changes;
        modify(&client(), "orders", &live, &target, &changes).unwrap()
    }

    #[test]
    fn all_that_differs_and_nothing_else_is_in_one_call() {
        let scaling = json!({"minCapacity": 1.0, "maxCapacity": 8.0});
        let (modify, refused) = asked(
            &json!({"serverlessV2ScalingConfig": {"minCapacity": 1.0, "maxCapacity": 4.0}, "port": 5432}),
            &json!({"serverlessV2ScalingConfig": scaling, "port": 5433, "enabledCloudwatchLogsExports": []}),
        );
        let logs = aws_sdk_rds::types::CloudwatchLogsExportConfiguration::builder();
        let expected = client()
            .modify_db_cluster()
            .db_cluster_identifier("orders")
            .port(5433)
            .serverless_v2_scaling_configuration(
                ServerlessV2ScalingConfiguration::builder().min_capacity(1.0).max_capacity(8.0).build(),
            )
            .cloudwatch_logs_export_configuration(logs.disable_log_types("postgresql").build());
        assert_eq!(modify.unwrap().as_input(), expected.as_input());
        assert!(refused.is_empty());
    }

    #[test]
    fn the_data_api_is_switched_elsewhere_but_for_serverless_v1() {
        let (off, on) = (json!({"enableHttpEndpoint": false}), json!({"enableHttpEndpoint": true}));
        assert!(asked(&off, &on).0.is_none());
        let v1 = |on: bool| json!({"enableHttpEndpoint": on, "engineMode": "serverless"});
        assert_eq!(*asked(&v1(false), &v1(true)).0.unwrap().get_enable_http_endpoint(), Some(true));
    }

    #[test]
    fn a_major_version_needs_a_word() {
        let (modify, refused) = asked(&json!({}), &json!({"engineVersion": "16"}));
        assert!(modify.is_none() && refused.len() == 1);
        let (modify, refused) =
            asked(&json!({}), &json!({"engineVersion": "16", "allowMajorVersionUpgrade": true}));
        let modify = modify.unwrap();
        assert_eq!(*modify.get_allow_major_version_upgrade(), Some(true));
        assert!(refused.is_empty());
    }
}
