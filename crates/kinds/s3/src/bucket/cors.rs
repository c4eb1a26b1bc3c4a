//! Which web pages of other origins may use a bucket.

use async_trait::async_trait;
use aws_sdk_s3::types::{self, CorsConfiguration};
use resource::schema::{each, set};
use resource::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;
use super::schema::{at_most, one_of};

/// What web pages of some origins may do. The first rule that fits a request counts.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CorsRule {
    /// The name of the rule.
    #[schemars(length(max = 255))]
    pub(super) id: Option<String>,
    /// The request headers that are allowed; one * in each stands for anything.
    #[schemars(length(max = 100), transform = set, transform = each(at_most(1024)))]
    pub(super) allowed_headers: Option<Vec<String>>,
    /// The HTTP methods that are allowed.
    #[schemars(length(min = 1, max = 5), transform = set)]
    #[schemars(transform = each(one_of(&["GET", "PUT", "POST", "DELETE", "HEAD"])))]
    pub(super) allowed_methods: Vec<String>,
    /// The origins that are allowed, such as https://www.example.com; one * in each stands for
    /// anything.
    #[schemars(length(min = 1, max = 100), transform = set, transform = each(at_most(1024)))]
    pub(super) allowed_origins: Vec<String>,
    /// The response headers that pages may read.
    #[schemars(length(max = 100), transform = set, transform = each(at_most(1024)))]
    pub(super) expose_headers: Option<Vec<String>>,
    /// How long a browser may remember the answer.
    #[schemars(range(min = 0))]
    pub(super) max_age_seconds: Option<i32>,
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "corsRules"
    }

    async fn read(&self, bucket: &Bucket, _: &Spec, live: &mut Spec) -> Result<()> {
        let unset = &["NoSuchCORSConfiguration"];
        let answer = bucket.answer_or_unset(ask!(bucket, get_bucket_cors), unset)?;
        let rules = answer.and_then(|answer| answer.cors_rules).unwrap_or_default();
        live.cors_rules = Some(rules.into_iter().map(from_s3).collect());
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let rules = after.cors_rules.as_deref().unwrap_or_default();
        if rules.is_empty() {
            return bucket.answer(ask!(bucket, delete_bucket_cors)).map(drop);
        }
        let rules = rules.iter().map(to_s3).collect::<Result<_>>()?;
        let configuration =
            CorsConfiguration::builder().set_cors_rules(Some(rules)).build().map_err(incomplete)?;
        bucket.answer(ask!(bucket, put_bucket_cors, cors_configuration = configuration)).map(drop)
    }
}

fn incomplete(error: aws_sdk_s3::error::BuildError) -> Error {
    Error::invalid("spec.corsRules", error.to_string())
}

fn from_s3(rule: types::CorsRule) -> CorsRule {
    let some = |list: Option<Vec<String>>| list.filter(|list| !list.is_empty());
    CorsRule {
        id: rule.id,
        allowed_headers: some(rule.allowed_headers),
        allowed_methods: rule.allowed_methods,
        allowed_origins: rule.allowed_origins,
        expose_headers: some(rule.expose_headers),
        max_age_seconds: rule.max_age_seconds,
    }
}

fn to_s3(rule: &CorsRule) -> Result<types::CorsRule> {
    types::CorsRule::builder()
        .set_id(rule.id.clone())
        .set_allowed_headers(rule.allowed_headers.clone())
        .set_allowed_methods(Some(rule.allowed_methods.clone()))
        .set_allowed_origins(Some(rule.allowed_origins.clone()))
        .set_expose_headers(rule.expose_headers.clone())
        .set_max_age_seconds(rule.max_age_seconds)
        .build()
        .map_err(incomplete)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_convert_both_ways() {
        for value in [
            json!({"allowedMethods": ["GET"], "allowedOrigins": ["*"]}),
            json!({"id": "web", "allowedHeaders": ["*"], "allowedMethods": ["GET", "PUT"],
                   "allowedOrigins": ["https://www.example.com"], "exposeHeaders": ["ETag"], "maxAgeSeconds": 60}),
        ] {
            let rule: CorsRule = serde_json::from_value(value).unwrap();
            assert_eq!(from_s3(to_s3(&rule).unwrap()), rule);
        }
    }
}
