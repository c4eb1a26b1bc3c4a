//! Where the log of requests to a bucket goes.

use async_trait::async_trait;
use aws_sdk_s3::types::{BucketLoggingStatus, LoggingEnabled};
use resource::schema::clearable;
use resource::{Class, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;

/// Where the log of requests goes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoggingConfig {
    /// The bucket that takes the log: in the same region and account, with a policy that lets
    /// logging.s3.amazonaws.com write.
    #[schemars(required, length(min = 3, max = 63), transform = clearable)]
    pub(super) target_bucket: Option<String>,
    /// What the names of the log objects begin with, such as pictures/.
    #[schemars(length(max = 1024), transform = clearable)]
    pub(super) target_prefix: Option<String>,
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "loggingConfig"
    }

    async fn read(&self, bucket: &Bucket, _: &Spec, live: &mut Spec) -> Result<()> {
        let answer = bucket.answer(ask!(bucket, get_bucket_logging))?;
        live.logging_config = answer.logging_enabled.as_ref().map(from_s3);
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let status = to_s3(after.logging_config.as_ref())?;
        let answer = ask!(bucket, put_bucket_logging, bucket_logging_status = status);
        bucket.answer(answer).map_err(no_target).map(drop)
    }
}

/// The bucket that takes the log, or its policy, may come later.
fn no_target(error: Error) -> Error {
    if error.code == "InvalidTargetBucketForLogging" { error.class(Class::Dependency) } else { error }
}

fn from_s3(logging: &LoggingEnabled) -> LoggingConfig {
    LoggingConfig {
        target_bucket: Some(logging.target_bucket.clone()),
        target_prefix: Some(logging.target_prefix.clone()).filter(|prefix| !prefix.is_empty()),
    }
}

/// Without a target, nothing is logged.
fn to_s3(config: Option<&LoggingConfig>) -> Result<BucketLoggingStatus> {
    let status = BucketLoggingStatus::builder();
    let Some((target, config)) = config.and_then(|config| Some((config.target_bucket.clone()?, config)))
    else {
        return Ok(status.build());
    };
    let logging = LoggingEnabled::builder()
        .target_bucket(target)
        .target_prefix(config.target_prefix.clone().unwrap_or_default())
        .build()
        .map_err(|error| Error::invalid("spec.loggingConfig", error.to_string()))?;
    Ok(status.logging_enabled(logging).build())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn logging_converts_both_ways() {
        for prefix in [Some("pictures/".to_owned()), None] {
            let config = LoggingConfig { target_bucket: Some("logs".to_owned()), target_prefix: prefix };
            let status = to_s3(Some(&config)).unwrap();
            assert_eq!(from_s3(status.logging_enabled().unwrap()), config);
        }
        for off in [None, Some(LoggingConfig::default())] {
            assert!(to_s3(off.as_ref()).unwrap().logging_enabled().is_none());
        }
    }

    #[test]
    fn a_target_that_is_not_there_yet_is_waited_for() {
        let error = |code: &str| Error { code: code.to_owned(), ..Error::invalid("PutBucketLogging", "") };
        assert_eq!(no_target(error("InvalidTargetBucketForLogging")).class, Class::Dependency);
        assert_eq!(no_target(error("MalformedXML")).class, Class::Invalid);
    }
}
