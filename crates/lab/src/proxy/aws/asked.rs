//! How a call is read off a request.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use serde_json::Value;

use super::call::Call;
use super::rest;

/// How a service words its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Ec2,
    Query,
    Json,
    RestJson,
    RestXml,
}

/// A request with what was read off it.
pub(crate) struct Asked {
    pub seq: u64,
    pub parts: Parts,
    pub body: Bytes,
    pub protocol: Protocol,
    pub service: String,
    pub operation: String,
    pub region: String,
    /// As in [`Call::params`], but unmasked.
    pub params: BTreeMap<String, String>,
}

impl Asked {
    pub fn read(parts: Parts, body: Bytes) -> Self {
        let scope = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        let scope = scope.and_then(credential_scope);
        let mut params = read_params(&parts, &body);
        let service =
            scope.map_or_else(|| unsigned_service(&params).to_owned(), |scope| scope.service.to_owned());
        let operation = read_operation(&parts, &service, &params);
        if let Some((name, value)) = rest::subject(&service, parts.uri.path()) {
            params.insert(name.to_owned(), value.to_owned());
        }
        Self {
            seq: 0,
            protocol: read_protocol(&parts, &service, &params),
            region: scope.map(|scope| scope.region.to_owned()).unwrap_or_default(),
            parts,
            body,
            service,
            operation,
            params,
        }
    }

    pub fn call(&self, seq: u64) -> Call {
        let attempt = self.parts.headers.get("amz-sdk-request").and_then(|value| value.to_str().ok());
        Call {
            seq,
            at: Instant::now(),
            service: self.service.clone(),
            operation: self.operation.clone(),
            params: self.params.iter().map(|(key, value)| (key.clone(), masked(key, value))).collect(),
            region: self.region.clone(),
            attempt: attempt.and_then(read_attempt),
            mutating: self.is_mutating(),
            status: None,
            error_code: None,
            request_id: None,
            forwarded: false,
            note: None,
        }
    }

    pub fn is_mutating(&self) -> bool {
        match self.protocol {
            Protocol::RestJson | Protocol::RestXml => {
                !matches!(self.parts.method, Method::GET | Method::HEAD)
            }
            _ => !READING.iter().any(|verb| self.operation.starts_with(verb)),
        }
    }

    /// Whether the body is a form, which the proxy may write anew.
    pub fn is_form(&self) -> bool {
        matches!(self.protocol, Protocol::Ec2 | Protocol::Query)
    }

    /// The values of a parameter that may be a list: `VpcId`, `VpcId.1`, `VpcId.2`, …
    pub fn values(&self, name: &str) -> Vec<&str> {
        let of_list = |key: &str| {
            let index = key.strip_prefix(name)?.strip_prefix('.')?;
            index.parse::<usize>().ok()
        };
        let listed = self.params.iter().filter(|(key, _)| key.as_str() == name || of_list(key).is_some());
        listed.map(|(_, value)| value.as_str()).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scope<'a> {
    region: &'a str,
    service: &'a str,
}

/// `… Credential=AKID/20261129/eu-west-1/ec2/aws4_request, …`
fn credential_scope(authorization: &str) -> Option<Scope<'_>> {
    let (_, rest) = authorization.split_once("Credential=")?;
    let mut scope = rest.split([',', ' ']).next()?.split('/');
    let region = scope.nth(2)?;
    Some(Scope { region, service: scope.next()? })
}

/// AssumeRoleWithWebIdentity is not signed: the API version tells the service.
fn unsigned_service(params: &BTreeMap<String, String>) -> &'static str {
    match params.get("Version").map(String::as_str) {
        Some("2016-11-15") => "ec2",
        Some("2010-05-08") => "iam",
        Some("2011-06-15") => "sts",
        _ => "unknown",
    }
}

fn read_attempt(header: &str) -> Option<u32> {
    header.split(';').find_map(|part| part.trim().strip_prefix("attempt=")?.parse().ok())
}

fn read_operation(parts: &Parts, service: &str, params: &BTreeMap<String, String>) -> String {
    if let Some(target) = parts.headers.get("x-amz-target").and_then(|value| value.to_str().ok()) {
        return target.rsplit('.').next().unwrap_or(target).to_owned();
    }
    match params.get("Action") {
        Some(action) => action.clone(),
        None => rest::operation(service, &parts.method, parts.uri.path(), params)
            .map_or_else(|| format!("{} {}", parts.method, parts.uri.path()), str::to_owned),
    }
}

fn read_protocol(parts: &Parts, service: &str, params: &BTreeMap<String, String>) -> Protocol {
    if parts.headers.contains_key("x-amz-target") {
        return Protocol::Json;
    }
    match service {
        "ec2" => Protocol::Ec2,
        "s3" | "route53" | "cloudfront" => Protocol::RestXml,
        _ if params.contains_key("Action") => Protocol::Query,
        _ => Protocol::RestJson,
    }
}

fn read_params(parts: &Parts, body: &[u8]) -> BTreeMap<String, String> {
    let query = parts.uri.query().unwrap_or_default();
    let mut params: BTreeMap<_, _> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let content = parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content.contains("form-urlencoded") {
        params.extend(form_urlencoded::parse(body).into_owned());
    } else if content.contains("json") {
        flatten("", &serde_json::from_slice(body).unwrap_or_default(), &mut params);
    }
    params
}

/// `{"a": {"b": [1]}}` as `a.b.1 = 1`: lists count from 1, as they do in forms.
fn flatten(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(&below(key), value, into)),
        Value::Array(items) => {
            items.iter().zip(1..).for_each(|(value, n)| flatten(&below(&n.to_string()), value, into));
        }
        Value::Null => {}
        Value::String(text) => drop(into.insert(prefix.to_owned(), text.clone())),
        other => drop(into.insert(prefix.to_owned(), other.to_string())),
    }
}

const SECRETS: [&str; 8] = [
    "password",
    "authtoken",
    "privatekey",
    "secretstring",
    "secretbinary",
    "secretaccesskey",
    "webidentitytoken",
    "samlassertion",
];

fn masked(key: &str, value: &str) -> String {
    let key = key.to_ascii_lowercase();
    if SECRETS.iter().any(|secret| key.contains(secret)) { mask(value) } else { value.to_owned() }
}

/// How a secret is recorded: two that are the same can be told from two that are not.
#[must_use]
pub fn mask(secret: &str) -> String {
    let mut hasher = DefaultHasher::new();
    secret.hash(&mut hasher);
    format!("****{:016x}", hasher.finish())
}

const READING: [&str; 12] = [
    "Describe",
    "Get",
    "List",
    "Head",
    "BatchGet",
    "Search",
    "Lookup",
    "Simulate",
    "AssumeRole",
    "Decode",
    "Check",
    "Validate",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)], method: &str, uri: &str, body: &str) -> Asked {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Asked::read(parts, Bytes::copy_from_slice(body.as_bytes()))
    }

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

    #[test]
    fn reads_a_query_call() {
        let auth = "AWS4-HMAC-SHA256 Credential=AKID/20261129/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=x";
        let headers = [FORM, ("authorization", auth), ("amz-sdk-request", "attempt=2; max=3")];
        let asked =
            asked(&headers, "POST", "/", "Action=CreateVpc&CidrBlock=10.0.0.0%2F16&Version=2016-11-15");
        let call = asked.call(7);
        assert_eq!(
            (call.service.as_str(), call.operation.as_str(), call.region.as_str()),
            ("ec2", "CreateVpc", "eu-west-1")
        );
        assert_eq!((call.seq, call.attempt, call.mutating), (7, Some(2), true));
        assert_eq!(call.params["CidrBlock"], "10.0.0.0/16");
        assert_eq!(asked.protocol, Protocol::Ec2);
    }

    #[test]
    fn reads_an_unsigned_call() {
        let asked = asked(
            &[FORM],
            "POST",
            "/",
            "Action=AssumeRoleWithWebIdentity&WebIdentityToken=s&Version=2011-06-15",
        );
        let call = asked.call(0);
        assert_eq!((call.service.as_str(), call.mutating), ("sts", false));
        assert_eq!(call.params["WebIdentityToken"], mask("s"));
        assert_ne!(mask("s"), mask("t"));
    }

    #[test]
    fn reads_json_and_rest_calls() {
        let headers =
            [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "secretsmanager.CreateSecret")];
        let body = r#"{"Name":"n","SecretString":"s","Tags":[{"Key":"k","Value":"v"}]}"#;
        let secret = asked(&headers, "POST", "/", body).call(0);
        assert_eq!(secret.operation, "CreateSecret");
        assert_eq!(secret.params["SecretString"], mask("s"));
        assert_eq!(secret.params["Tags.1.Value"], "v");

        let auth = "AWS4-HMAC-SHA256 Credential=AKID/20261129/eu-west-1/eks/aws4_request, Signature=x";
        let cluster = asked(&[("authorization", auth)], "GET", "/clusters/a", "");
        assert_eq!((cluster.operation.as_str(), cluster.protocol), ("DescribeCluster", Protocol::RestJson));
        assert!(!cluster.call(0).mutating);
        assert_eq!(cluster.params["name"], "a");
    }

    #[test]
    fn reads_lists() {
        let asked = asked(&[FORM], "POST", "/", "VpcId.2=b&VpcId.1=a&VpcIdx.1=no&Filter.1.Value.1=no");
        assert_eq!(asked.values("VpcId"), ["a", "b"]);
    }
}
