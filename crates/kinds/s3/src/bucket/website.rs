//! A bucket as a static web site.

use async_trait::async_trait;
use aws_sdk_s3::error::BuildError;
use aws_sdk_s3::types::{self, ErrorDocument, IndexDocument, RedirectAllRequestsTo, WebsiteConfiguration};
use resource::schema::{clearable, rule};
use resource::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::parts;
use super::schema::one_of;

/// The bucket as a static web site: pages of its own, or a redirect of everything.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.indexDocument) != has(self.redirectAllTo)",
    "write either indexDocument (pages of its own) or redirectAllTo",
))]
#[schemars(transform = rule(
    "!has(self.redirectAllTo) || (!has(self.errorDocument) && !has(self.routingRules))",
    "redirectAllTo goes with neither errorDocument nor routingRules",
))]
pub(super) struct WebsiteConfig {
    /// The page that stands for a directory, such as index.html.
    #[schemars(length(min = 1, max = 1024), transform = clearable)]
    #[schemars(transform = rule("!self.contains('/')", "is the name of a page, without a slash"))]
    pub(super) index_document: Option<String>,
    /// The page that is shown when something is not found.
    #[schemars(length(min = 1, max = 1024), transform = clearable)]
    pub(super) error_document: Option<String>,
    /// Another host that all requests are sent to.
    pub(super) redirect_all_to: Option<RedirectAllTo>,
    /// Redirects of some requests. The first that fits counts.
    #[schemars(length(max = 50), transform = clearable)]
    pub(super) routing_rules: Option<Vec<RoutingRule>>,
}

/// Another host that all requests are sent to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RedirectAllTo {
    /// The host, such as www.example.com.
    #[schemars(required, length(min = 1, max = 253), transform = clearable)]
    pub(super) host_name: Option<String>,
    /// http or https. Left out, that of the request.
    #[schemars(transform = one_of(&["http", "https"]), transform = clearable)]
    pub(super) protocol: Option<String>,
}

/// A redirect of some requests.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RoutingRule {
    /// Which requests. Left out, all.
    pub(super) condition: Option<Condition>,
    /// Where they are sent.
    pub(super) redirect: Redirect,
}

/// Which requests a redirect is for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    /// Those that would be answered with this status, such as 404.
    #[schemars(length(min = 3, max = 3))]
    pub(super) http_error_code_returned_equals: Option<String>,
    /// Those whose path begins with this.
    #[schemars(length(max = 1024))]
    pub(super) key_prefix_equals: Option<String>,
}

/// Where requests are sent. What is left out stays as it was asked for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.replaceKeyWith) || !has(self.replaceKeyPrefixWith)",
    "write either replaceKeyWith or replaceKeyPrefixWith, not both",
))]
pub(super) struct Redirect {
    /// The host.
    #[schemars(length(max = 253))]
    pub(super) host_name: Option<String>,
    /// The status of the answer, such as 301.
    #[schemars(length(min = 3, max = 3))]
    pub(super) http_redirect_code: Option<String>,
    /// http or https.
    #[schemars(transform = one_of(&["http", "https"]))]
    pub(super) protocol: Option<String>,
    /// What takes the place of the prefix in the condition.
    #[schemars(length(max = 1024))]
    pub(super) replace_key_prefix_with: Option<String>,
    /// What takes the place of the whole path.
    #[schemars(length(max = 1024))]
    pub(super) replace_key_with: Option<String>,
}

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "websiteConfig"
    }

    async fn read(&self, bucket: &Bucket, wanted: &Spec, live: &mut Spec) -> Result<()> {
        let unset = &["NoSuchWebsiteConfiguration"];
        let answer = bucket.answer_or_unset(ask!(bucket, get_bucket_website), unset)?;
        let configuration = answer.map(|answer| {
            WebsiteConfiguration::builder()
                .set_index_document(answer.index_document)
                .set_error_document(answer.error_document)
                .set_redirect_all_requests_to(answer.redirect_all_requests_to)
                .set_routing_rules(answer.routing_rules)
                .build()
        });
        let wanted = wanted.website_config.as_ref();
        live.website_config = configuration.map(|configuration| to_stay(wanted, from_s3(&configuration)));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        match to_s3(after.website_config.as_ref())? {
            Some(configuration) => {
                let answer = ask!(bucket, put_bucket_website, website_configuration = configuration);
                bucket.answer(answer).map(drop)
            }
            None => bucket.answer(ask!(bucket, delete_bucket_website)).map(drop),
        }
    }
}

/// Pages and a redirect of everything exclude each other: what is wanted drives out what is there.
fn to_stay(wanted: Option<&WebsiteConfig>, live: WebsiteConfig) -> WebsiteConfig {
    match wanted {
        Some(wanted) if wanted.redirect_all_to.is_some() => {
            WebsiteConfig { redirect_all_to: live.redirect_all_to, ..WebsiteConfig::default() }
        }
        Some(wanted) if wanted.index_document.is_some() => WebsiteConfig { redirect_all_to: None, ..live },
        _ => live,
    }
}

/// Where the site is reached. Some regions write a dash before their name, the others a dot.
pub(super) fn endpoint(name: &str, region: &str, suffix: &str) -> String {
    const DASHED: &[&str] = &[
        "us-east-1",
        "us-west-1",
        "us-west-2",
        "ap-northeast-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "eu-west-1",
        "sa-east-1",
        "us-gov-west-1",
    ];
    let separator = if DASHED.contains(&region) { '-' } else { '.' };
    format!("http://{name}.s3-website{separator}{region}.{suffix}")
}

fn from_s3(configuration: &WebsiteConfiguration) -> WebsiteConfig {
    let redirect = configuration.redirect_all_requests_to().map(|redirect| RedirectAllTo {
        host_name: Some(redirect.host_name.clone()),
        protocol: redirect.protocol().map(|protocol| protocol.as_str().to_owned()),
    });
    WebsiteConfig {
        index_document: configuration.index_document().map(|document| document.suffix.clone()),
        error_document: configuration.error_document().map(|document| document.key.clone()),
        redirect_all_to: redirect,
        routing_rules: Some(configuration.routing_rules().iter().map(rule_from_s3).collect()),
    }
}

fn rule_from_s3(rule: &types::RoutingRule) -> RoutingRule {
    let redirect = rule.redirect();
    RoutingRule {
        condition: rule.condition().map(|condition| Condition {
            http_error_code_returned_equals: condition.http_error_code_returned_equals.clone(),
            key_prefix_equals: condition.key_prefix_equals.clone(),
        }),
        redirect: redirect.map_or_else(Redirect::default, |redirect| Redirect {
            host_name: redirect.host_name.clone(),
            http_redirect_code: redirect.http_redirect_code.clone(),
            protocol: redirect.protocol().map(|protocol| protocol.as_str().to_owned()),
            replace_key_prefix_with: redirect.replace_key_prefix_with.clone(),
            replace_key_with: redirect.replace_key_with.clone(),
        }),
    }
}

/// None where nothing is left of the site.
fn to_s3(config: Option<&WebsiteConfig>) -> Result<Option<WebsiteConfiguration>> {
    let Some(config) = config else { return Ok(None) };
    let redirect = config.redirect_all_to.as_ref().filter(|redirect| redirect.host_name.is_some());
    if config.index_document.is_none() && redirect.is_none() {
        return Ok(None);
    }
    let index = config.index_document.as_ref().map(|page| IndexDocument::builder().suffix(page).build());
    let error = config.error_document.as_ref().map(|page| ErrorDocument::builder().key(page).build());
    let redirect = redirect.map(|redirect| {
        let protocol = redirect.protocol.as_deref().map(types::Protocol::from);
        let to = RedirectAllRequestsTo::builder().set_host_name(redirect.host_name.clone());
        to.set_protocol(protocol).build()
    });
    let rules: Vec<_> = config.routing_rules.iter().flatten().map(rule_to_s3).collect();
    let configuration = WebsiteConfiguration::builder()
        .set_index_document(index.transpose().map_err(incomplete)?)
        .set_error_document(error.transpose().map_err(incomplete)?)
        .set_redirect_all_requests_to(redirect.transpose().map_err(incomplete)?)
        .set_routing_rules(Some(rules).filter(|rules| !rules.is_empty()));
    Ok(Some(configuration.build()))
}

fn incomplete(error: BuildError) -> Error {
    Error::invalid("spec.websiteConfig", error.to_string())
}

fn rule_to_s3(rule: &RoutingRule) -> types::RoutingRule {
    let condition = rule.condition.as_ref().map(|condition| {
        types::Condition::builder()
            .set_http_error_code_returned_equals(condition.http_error_code_returned_equals.clone())
            .set_key_prefix_equals(condition.key_prefix_equals.clone())
            .build()
    });
    let redirect = types::Redirect::builder()
        .set_host_name(rule.redirect.host_name.clone())
        .set_http_redirect_code(rule.redirect.http_redirect_code.clone())
        .set_protocol(rule.redirect.protocol.as_deref().map(types::Protocol::from))
        .set_replace_key_prefix_with(rule.redirect.replace_key_prefix_with.clone())
        .set_replace_key_with(rule.redirect.replace_key_with.clone());
    types::RoutingRule::builder().set_condition(condition).redirect(redirect.build()).build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn config(value: Value) -> WebsiteConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn sites_convert_both_ways() {
        for value in [
            json!({"indexDocument": "index.html", "routingRules": []}),
            json!({"indexDocument": "index.html", "errorDocument": "errors/404.html", "routingRules": [
                {"condition": {"httpErrorCodeReturnedEquals": "404", "keyPrefixEquals": "old/"},
                 "redirect": {"hostName": "new.example.com", "httpRedirectCode": "301", "protocol": "https",
                              "replaceKeyPrefixWith": "new/"}},
                {"redirect": {"replaceKeyWith": "home.html"}},
            ]}),
            json!({"redirectAllTo": {"hostName": "www.example.com", "protocol": "https"}, "routingRules": []}),
        ] {
            let config = config(value);
            assert_eq!(from_s3(&to_s3(Some(&config)).unwrap().unwrap()), config);
        }
    }

    #[test]
    fn without_pages_or_redirect_no_site_is_left() {
        for nothing in [json!({}), json!({"routingRules": []}), json!({"redirectAllTo": {}})] {
            assert_eq!(to_s3(Some(&config(nothing))).unwrap(), None);
        }
        assert_eq!(to_s3(None).unwrap(), None);
    }

    #[test]
    fn what_is_wanted_drives_out_what_excludes_it() {
        let pages = config(json!({"indexDocument": "index.html", "errorDocument": "e.html"}));
        let redirect = config(json!({"redirectAllTo": {"hostName": "www.example.com"}}));
        assert_eq!(to_stay(Some(&redirect), pages.clone()), WebsiteConfig::default());
        assert_eq!(to_stay(Some(&pages), redirect.clone()), WebsiteConfig::default());
        assert_eq!(to_stay(Some(&pages), pages.clone()), pages);
        assert_eq!(to_stay(None, redirect.clone()), redirect);
    }

    #[test]
    fn endpoints_are_written_as_their_region_does() {
        let endpoint = |region, suffix| endpoint("site", region, suffix);
        assert_eq!(endpoint("eu-west-1", "amazonaws.com"), "http://site.s3-website-eu-west-1.amazonaws.com");
        assert_eq!(
            endpoint("eu-central-1", "amazonaws.com"),
            "http://site.s3-website.eu-central-1.amazonaws.com"
        );
        assert_eq!(
            endpoint("cn-north-1", "amazonaws.com.cn"),
            "http://site.s3-website.cn-north-1.amazonaws.com.cn"
        );
    }
}
