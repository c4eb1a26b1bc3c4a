//! Lifecycle rules on their way to and from S3, which knows several ways to write the same.

use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};
use aws_sdk_s3::types::{
    self, AbortIncompleteMultipartUpload, LifecycleExpiration, LifecycleRuleAndOperator, LifecycleRuleFilter,
    NoncurrentVersionExpiration, NoncurrentVersionTransition,
};
use resource::{Error, Result, Tags};

use super::lifecycle::{LifecycleRule, NoncurrentTransition, Transition};
use super::tags;

/// The rule as [`from_s3`] would write it.
pub(super) fn canonical(mut rule: LifecycleRule) -> Result<LifecycleRule> {
    rule.status.get_or_insert_with(|| "Enabled".to_owned());
    rule.prefix = rule.prefix.filter(|prefix| !prefix.is_empty());
    rule.tags = rule.tags.filter(|tags| !tags.is_empty());
    rule.expired_object_delete_marker = rule.expired_object_delete_marker.filter(|is| *is);
    rule.expiration_date = rule.expiration_date.as_deref().map(midnight).transpose()?;
    for transition in rule.transitions.iter_mut().flatten() {
        transition.date = transition.date.as_deref().map(midnight).transpose()?;
    }
    Ok(ordered(rule))
}

/// Neither order means anything, and empty is the same as left out.
fn ordered(mut rule: LifecycleRule) -> LifecycleRule {
    rule.transitions = rule.transitions.map(sorted).filter(|list| !list.is_empty());
    rule.noncurrent_version_transitions =
        rule.noncurrent_version_transitions.map(sorted).filter(|list| !list.is_empty());
    rule
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

/// A day as S3 writes it.
fn midnight(day: &str) -> Result<String> {
    let time = format!("{}T00:00:00Z", day.get(..10).unwrap_or(day));
    date_to_s3(&time)?;
    Ok(time)
}

fn date_to_s3(time: &str) -> Result<DateTime> {
    DateTime::from_str(time, DateTimeFormat::DateTime).map_err(|_| {
        let day = time.split('T').next().unwrap_or(time);
        Error::invalid("spec.lifecycleRules", format!("{day} is no day; write one such as 2030-01-31"))
    })
}

fn date_from_s3(date: &DateTime) -> Result<String> {
    date.fmt(DateTimeFormat::DateTime)
        .map_err(|error| Error::invalid("GetBucketLifecycleConfiguration", error.to_string()))
}

// Rules of long ago have their prefix beside the filter, which the SDK calls deprecated.
#[allow(deprecated)]
pub(super) fn from_s3(rule: &types::LifecycleRule) -> Result<LifecycleRule> {
    let filter = rule.filter();
    let and = filter.and_then(LifecycleRuleFilter::and);
    let expiration = rule.expiration();
    let noncurrent = rule.noncurrent_version_expiration();
    let prefix = [
        rule.prefix(),
        filter.and_then(LifecycleRuleFilter::prefix),
        and.and_then(LifecycleRuleAndOperator::prefix),
    ];
    let transitions = rule.transitions().iter().map(transition_from_s3).collect::<Result<_>>()?;
    Ok(ordered(LifecycleRule {
        id: rule.id.clone(),
        status: Some(rule.status().as_str().to_owned()),
        prefix: prefix.into_iter().flatten().find(|prefix| !prefix.is_empty()).map(str::to_owned),
        tags: Some(tags_from_s3(filter)).filter(|tags| !tags.is_empty()),
        object_size_greater_than: filter
            .and_then(LifecycleRuleFilter::object_size_greater_than)
            // Under And, S3 writes a zero for what was left out.
            .or_else(|| {
                and.and_then(LifecycleRuleAndOperator::object_size_greater_than).filter(|size| *size > 0)
            }),
        object_size_less_than: filter
            .and_then(LifecycleRuleFilter::object_size_less_than)
            .or_else(|| and.and_then(LifecycleRuleAndOperator::object_size_less_than)),
        expiration_days: expiration.and_then(LifecycleExpiration::days),
        expiration_date: expiration.and_then(LifecycleExpiration::date).map(date_from_s3).transpose()?,
        expired_object_delete_marker: expiration
            .and_then(LifecycleExpiration::expired_object_delete_marker)
            .filter(|is| *is),
        noncurrent_version_expiration_days: noncurrent.and_then(NoncurrentVersionExpiration::noncurrent_days),
        newer_noncurrent_versions: noncurrent
            .and_then(NoncurrentVersionExpiration::newer_noncurrent_versions),
        transitions: Some(transitions),
        noncurrent_version_transitions: Some(
            rule.noncurrent_version_transitions().iter().map(noncurrent_from_s3).collect(),
        ),
        abort_incomplete_multipart_upload_days: rule
            .abort_incomplete_multipart_upload()
            .and_then(AbortIncompleteMultipartUpload::days_after_initiation),
    }))
}

fn tags_from_s3(filter: Option<&LifecycleRuleFilter>) -> Tags {
    let one = filter.and_then(LifecycleRuleFilter::tag).map(std::slice::from_ref).unwrap_or_default();
    let several = filter.and_then(LifecycleRuleFilter::and).map(LifecycleRuleAndOperator::tags);
    tags::from_s3(&[one, several.unwrap_or_default()].concat())
}

fn transition_from_s3(transition: &types::Transition) -> Result<Transition> {
    Ok(Transition {
        // Zero days may be written as none at all.
        days: transition.days().or_else(|| transition.date().is_none().then_some(0)),
        date: transition.date().map(date_from_s3).transpose()?,
        storage_class: transition.storage_class().map(|class| class.as_str().to_owned()).unwrap_or_default(),
    })
}

fn noncurrent_from_s3(transition: &NoncurrentVersionTransition) -> NoncurrentTransition {
    NoncurrentTransition {
        days: transition.noncurrent_days().unwrap_or_default(),
        storage_class: transition.storage_class().map(|class| class.as_str().to_owned()).unwrap_or_default(),
        newer_noncurrent_versions: transition.newer_noncurrent_versions(),
    }
}

pub(super) fn to_s3(rule: &LifecycleRule) -> Result<types::LifecycleRule> {
    let transitions = rule.transitions.iter().flatten().map(transition_to_s3).collect::<Result<Vec<_>>>()?;
    let noncurrent: Vec<_> =
        rule.noncurrent_version_transitions.iter().flatten().map(noncurrent_to_s3).collect();
    let abort = rule.abort_incomplete_multipart_upload_days;
    types::LifecycleRule::builder()
        .set_id(rule.id.clone())
        .status(rule.status.as_deref().unwrap_or("Enabled").into())
        .filter(filter(rule)?)
        .set_expiration(expiration(rule)?)
        .set_noncurrent_version_expiration(noncurrent_expiration(rule))
        .set_transitions(Some(transitions).filter(|list| !list.is_empty()))
        .set_noncurrent_version_transitions(Some(noncurrent).filter(|list| !list.is_empty()))
        .set_abort_incomplete_multipart_upload(
            abort.map(|days| AbortIncompleteMultipartUpload::builder().days_after_initiation(days).build()),
        )
        .build()
        .map_err(|error| Error::invalid("spec.lifecycleRules", error.to_string()))
}

/// One condition stands by itself, several under And; for none at all S3 wants an empty prefix.
fn filter(rule: &LifecycleRule) -> Result<LifecycleRuleFilter> {
    let (greater, less) = (rule.object_size_greater_than, rule.object_size_less_than);
    let mut tags = tags::to_s3(&rule.tags.clone().unwrap_or_default())?;
    let conditions = usize::from(rule.prefix.is_some())
        + tags.len()
        + usize::from(greater.is_some())
        + usize::from(less.is_some());
    let filter = LifecycleRuleFilter::builder();
    Ok(match conditions {
        0 => filter.prefix("").build(),
        1 => filter
            .set_prefix(rule.prefix.clone())
            .set_tag(tags.pop())
            .set_object_size_greater_than(greater)
            .set_object_size_less_than(less)
            .build(),
        _ => {
            let and = LifecycleRuleAndOperator::builder()
                .set_prefix(rule.prefix.clone())
                .set_tags(Some(tags).filter(|tags| !tags.is_empty()))
                .set_object_size_greater_than(greater)
                .set_object_size_less_than(less);
            filter.and(and.build()).build()
        }
    })
}

fn expiration(rule: &LifecycleRule) -> Result<Option<LifecycleExpiration>> {
    let date = rule.expiration_date.as_deref().map(date_to_s3).transpose()?;
    let (days, marker) = (rule.expiration_days, rule.expired_object_delete_marker);
    let is_set = date.is_some() || days.is_some() || marker.is_some();
    let expiration =
        LifecycleExpiration::builder().set_date(date).set_days(days).set_expired_object_delete_marker(marker);
    Ok(is_set.then(|| expiration.build()))
}

fn noncurrent_expiration(rule: &LifecycleRule) -> Option<NoncurrentVersionExpiration> {
    let days = rule.noncurrent_version_expiration_days?;
    let expiration = NoncurrentVersionExpiration::builder().noncurrent_days(days);
    Some(expiration.set_newer_noncurrent_versions(rule.newer_noncurrent_versions).build())
}

fn transition_to_s3(transition: &Transition) -> Result<types::Transition> {
    let date = transition.date.as_deref().map(date_to_s3).transpose()?;
    Ok(types::Transition::builder()
        .set_days(transition.days)
        .set_date(date)
        .storage_class(transition.storage_class.as_str().into())
        .build())
}

fn noncurrent_to_s3(transition: &NoncurrentTransition) -> NoncurrentVersionTransition {
    NoncurrentVersionTransition::builder()
        .noncurrent_days(transition.days)
        .storage_class(transition.storage_class.as_str().into())
        .set_newer_noncurrent_versions(transition.newer_noncurrent_versions)
        .build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aws_sdk_s3::types::{ExpirationStatus, Tag, TransitionStorageClass};
    use serde_json::{Value, json};

    fn rule(value: Value) -> LifecycleRule {
        canonical(serde_json::from_value(value).unwrap()).unwrap()
    }

    #[test]
    fn rules_convert_both_ways() {
        for value in [
            json!({"expirationDays": 30}),
            json!({"id": "a", "status": "Disabled", "prefix": "logs/", "expirationDate": "2030-01-31"}),
            json!({"tags": {"a": "1"}, "expiredObjectDeleteMarker": true}),
            json!({"tags": {"a": "1", "b": "2"}, "abortIncompleteMultipartUploadDays": 7}),
            json!({"objectSizeGreaterThan": 10, "expirationDays": 1}),
            json!({"objectSizeLessThan": 10, "expirationDays": 1}),
            json!({"prefix": "p", "tags": {"a": "1"}, "objectSizeGreaterThan": 1, "objectSizeLessThan": 9,
                   "noncurrentVersionExpirationDays": 5, "newerNoncurrentVersions": 2}),
            json!({"transitions": [
                {"days": 30, "storageClass": "STANDARD_IA"},
                {"days": 90, "storageClass": "GLACIER"},
            ],
            "noncurrentVersionTransitions": [
                {"days": 30, "storageClass": "GLACIER_IR", "newerNoncurrentVersions": 3},
            ]}),
            json!({"transitions": [{"date": "2030-01-31", "storageClass": "DEEP_ARCHIVE"}]}),
        ] {
            let rule = rule(value);
            assert_eq!(from_s3(&to_s3(&rule).unwrap()).unwrap(), rule);
        }
    }

    #[test]
    fn one_condition_stands_alone_several_under_and() {
        let filter = |value| filter(&rule(value)).unwrap();
        assert_eq!(filter(json!({})).prefix(), Some(""));
        let alone = filter(json!({"prefix": "p"}));
        assert_eq!((alone.prefix(), alone.and()), (Some("p"), None));
        let alone = filter(json!({"tags": {"a": "1"}}));
        assert_eq!((alone.tag().map(Tag::key), alone.and()), (Some("a"), None));
        let several = filter(json!({"prefix": "p", "tags": {"a": "1"}}));
        assert_eq!((several.prefix(), several.tag()), (None, None));
        assert_eq!(several.and().unwrap().prefix(), Some("p"));
        assert_eq!(several.and().unwrap().tags().len(), 1);
    }

    #[test]
    #[allow(deprecated)]
    fn old_and_new_ways_to_write_a_prefix_read_the_same() {
        let days = LifecycleExpiration::builder().days(1).build();
        let builder =
            || types::LifecycleRule::builder().status(ExpirationStatus::Enabled).expiration(days.clone());
        let by_filter = |filter: LifecycleRuleFilter| builder().filter(filter).build().unwrap();
        let and = LifecycleRuleAndOperator::builder().prefix("p").build();
        for old in [
            builder().prefix("p").build().unwrap(),
            by_filter(LifecycleRuleFilter::builder().prefix("p").build()),
            by_filter(LifecycleRuleFilter::builder().and(and).build()),
        ] {
            assert_eq!(from_s3(&old).unwrap(), rule(json!({"prefix": "p", "expirationDays": 1})));
        }
        for all in [
            builder().build().unwrap(),
            builder().prefix("").build().unwrap(),
            by_filter(LifecycleRuleFilter::builder().build()),
            by_filter(LifecycleRuleFilter::builder().prefix("").build()),
        ] {
            assert_eq!(from_s3(&all).unwrap(), rule(json!({"prefix": "", "expirationDays": 1})));
        }
    }

    #[test]
    fn under_and_what_was_left_out_is_written_as_empty_and_zero() {
        let tags = ["a", "b"].map(|key| Tag::builder().key(key).value("1").build().unwrap());
        let and = LifecycleRuleAndOperator::builder().prefix("").object_size_greater_than(0);
        let filter = LifecycleRuleFilter::builder().and(and.set_tags(Some(tags.to_vec())).build()).build();
        let expiration = LifecycleExpiration::builder().days(1).expired_object_delete_marker(false).build();
        let live = types::LifecycleRule::builder()
            .status(ExpirationStatus::Enabled)
            .filter(filter)
            .expiration(expiration)
            .build()
            .unwrap();
        let wanted = rule(json!({"tags": {"a": "1", "b": "1"}, "expirationDays": 1}));
        assert_eq!(from_s3(&live).unwrap(), wanted);
    }

    #[test]
    fn transitions_are_alike_in_any_order() {
        let transition = |days, class| types::Transition::builder().days(days).storage_class(class).build();
        let live = types::LifecycleRule::builder()
            .status(ExpirationStatus::Enabled)
            .transitions(transition(90, TransitionStorageClass::Glacier))
            .transitions(transition(30, TransitionStorageClass::StandardIa))
            .build()
            .unwrap();
        let wanted = rule(json!({"transitions": [
            {"days": 30, "storageClass": "STANDARD_IA"}, {"days": 90, "storageClass": "GLACIER"},
        ]}));
        assert_eq!(from_s3(&live).unwrap(), wanted);
    }

    #[test]
    fn days_are_midnights_and_what_is_none_is_refused() {
        for same in ["2030-01-31", "2030-01-31T00:00:00Z", "2030-01-31T00:00:00.000Z"] {
            assert_eq!(midnight(same).unwrap(), "2030-01-31T00:00:00Z");
        }
        for wrong in ["2030-02-30", "2030-13-01", "soon", ""] {
            assert!(midnight(wrong).unwrap_err().message.contains("such as 2030-01-31"), "{wrong}");
        }
    }
}
