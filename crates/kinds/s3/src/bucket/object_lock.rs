//! Object Lock: versions that nobody can delete before their time.

use async_trait::async_trait;
use aws_sdk_s3::types::{
    DefaultRetention, ObjectLockConfiguration, ObjectLockEnabled, ObjectLockRetentionMode,
};
use resource::schema::{clearable, rule};
use resource::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;
use super::schema::one_of;

/// Versions that nobody can delete before their time. It needs versioning, which AWS turns on with
/// it in a new bucket.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.rule) || (has(self.objectLockEnabled) && self.objectLockEnabled)",
    "a rule needs objectLockEnabled: true, which can never be taken back",
))]
pub(super) struct ObjectLockConfig {
    /// Whether versions can be locked. Once on, AWS never turns it off.
    #[schemars(transform = rule(
        "self || !oldSelf",
        "AWS never turns Object Lock off again; it ends with the bucket",
    ))]
    pub(super) object_lock_enabled: Option<bool>,
    /// What applies to new versions.
    pub(super) rule: Option<ObjectLockRule>,
}

/// What applies to new versions.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectLockRule {
    /// How long a version is locked where its uploader does not say.
    #[schemars(required)]
    pub(super) default_retention: Option<Retention>,
}

/// How long a version is locked where its uploader does not say.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule("has(self.days) != has(self.years)", "write either days or years, not both"))]
pub(super) struct Retention {
    /// GOVERNANCE (users with a special permission may still delete) or COMPLIANCE (nobody may).
    #[schemars(required, transform = one_of(&["GOVERNANCE", "COMPLIANCE"]), transform = clearable)]
    pub(super) mode: Option<String>,
    /// For so many days.
    #[schemars(range(min = 1, max = 36500), transform = clearable)]
    pub(super) days: Option<i32>,
    /// For so many years.
    #[schemars(range(min = 1, max = 100), transform = clearable)]
    pub(super) years: Option<i32>,
}

impl ObjectLockConfig {
    /// A bucket that has Object Lock, or has not.
    pub(super) fn of(enabled: bool) -> Self {
        Self { object_lock_enabled: Some(enabled), rule: None }
    }

    /// Whether it is on, or shall be.
    pub(super) fn is_on(config: Option<&Self>) -> bool {
        config.is_some_and(|config| config.object_lock_enabled == Some(true))
    }

    fn retention(&self) -> Option<&Retention> {
        self.rule.as_ref()?.default_retention.as_ref()
    }
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "objectLockConfig"
    }

    async fn read(&self, bucket: &Bucket, wanted: &Spec, live: &mut Spec) -> Result<()> {
        let unset = &["ObjectLockConfigurationNotFoundError"];
        let answer = bucket.answer_or_unset(ask!(bucket, get_object_lock_configuration), unset)?;
        let configuration = answer.and_then(|answer| answer.object_lock_configuration);
        let lock = configuration.map_or_else(|| ObjectLockConfig::of(false), |lock| from_s3(&lock));
        live.object_lock_config = Some(to_stay(wanted.object_lock_config.as_ref(), lock));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let configuration = to_s3(after.object_lock_config.as_ref())?;
        let answer = ask!(bucket, put_object_lock_configuration, object_lock_configuration = configuration);
        bucket.answer(answer).map(drop)
    }
}

/// Days and years exclude each other: what is wanted drives out what is there.
fn to_stay(wanted: Option<&ObjectLockConfig>, mut live: ObjectLockConfig) -> ObjectLockConfig {
    let retention = live.rule.as_mut().and_then(|rule| rule.default_retention.as_mut());
    if let (Some(wanted), Some(live)) = (wanted.and_then(ObjectLockConfig::retention), retention) {
        if wanted.years.is_some() {
            live.days = None;
        } else if wanted.days.is_some() {
            live.years = None;
        }
    }
    live
}

fn from_s3(lock: &ObjectLockConfiguration) -> ObjectLockConfig {
    let retention = lock.rule().and_then(aws_sdk_s3::types::ObjectLockRule::default_retention);
    let retention = retention.map(|retention| Retention {
        mode: retention.mode().map(|mode| mode.as_str().to_owned()),
        // Some answers hold a zero for the one that is not meant.
        days: retention.days().filter(|days| *days > 0),
        years: retention.years().filter(|years| *years > 0),
    });
    ObjectLockConfig {
        object_lock_enabled: Some(lock.object_lock_enabled() == Some(&ObjectLockEnabled::Enabled)),
        rule: retention.map(|retention| ObjectLockRule { default_retention: Some(retention) }),
    }
}

fn to_s3(lock: Option<&ObjectLockConfig>) -> Result<ObjectLockConfiguration> {
    if !ObjectLockConfig::is_on(lock) {
        return Err(Error::invalid(
            "PutObjectLockConfiguration",
            "Object Lock is on in this bucket, and AWS never turns it off: set objectLockEnabled to true, or \
             leave it out",
        ));
    }
    let configuration = ObjectLockConfiguration::builder().object_lock_enabled(ObjectLockEnabled::Enabled);
    let retention = lock.and_then(ObjectLockConfig::retention);
    let Some((mode, retention)) = retention.and_then(|of| Some((of.mode.as_deref()?, of))) else {
        return Ok(configuration.build());
    };
    let retention = DefaultRetention::builder()
        .mode(ObjectLockRetentionMode::from(mode))
        .set_days(retention.days)
        .set_years(retention.years)
        .build();
    let rule = aws_sdk_s3::types::ObjectLockRule::builder().default_retention(retention).build();
    Ok(configuration.rule(rule).build())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn lock(value: Value) -> ObjectLockConfig {
        serde_json::from_value(value).unwrap()
    }

    fn retention(retention: Value) -> ObjectLockConfig {
        lock(json!({"objectLockEnabled": true, "rule": {"defaultRetention": retention}}))
    }

    #[test]
    fn the_lock_converts_both_ways() {
        for lock in [
            ObjectLockConfig::of(true),
            retention(json!({"mode": "GOVERNANCE", "days": 1})),
            retention(json!({"mode": "COMPLIANCE", "years": 2})),
        ] {
            assert_eq!(from_s3(&to_s3(Some(&lock)).unwrap()), lock);
        }
    }

    #[test]
    fn a_cleared_rule_goes_and_the_lock_stays() {
        let cleared = to_s3(Some(&retention(json!({})))).unwrap();
        assert_eq!(
            (cleared.object_lock_enabled(), cleared.rule()),
            (Some(&ObjectLockEnabled::Enabled), None)
        );
    }

    #[test]
    fn it_is_never_turned_off() {
        for off in [None, Some(ObjectLockConfig::of(false))] {
            assert!(to_s3(off.as_ref()).unwrap_err().message.contains("AWS never turns it off"));
        }
    }

    #[test]
    fn days_and_years_exclude_each_other() {
        let days = retention(json!({"mode": "GOVERNANCE", "days": 1}));
        let years = retention(json!({"mode": "GOVERNANCE", "years": 1}));
        assert_eq!(to_stay(Some(&years), days.clone()), retention(json!({"mode": "GOVERNANCE"})));
        assert_eq!(to_stay(Some(&days), years.clone()), retention(json!({"mode": "GOVERNANCE"})));
        assert_eq!(to_stay(Some(&ObjectLockConfig::of(true)), days.clone()), days);
    }
}
