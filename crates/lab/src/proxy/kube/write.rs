//! A request to the API server as it is recorded, and how it is read off a path.

use std::fmt;
use std::time::Instant;

use http::Method;
use http::request::Parts;
use serde_json::Value;

/// A request's verb in Kubernetes' own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Whether it is meant to change something.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The verb.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural resource (`vpcs`); empty for paths outside the resource API (`/readyz`).
    pub resource: String,
    /// The namespace, if it is about one.
    pub namespace: Option<String>,
    /// The object's name; for a create the one in its body.
    pub name: Option<String>,
    /// `status`, `finalize`, …
    pub subresource: Option<String>,
}

/// One write that the operator made.
#[derive(Debug, Clone)]
pub struct Write {
    /// Its number; rises through the life of the proxy.
    pub seq: u64,
    /// When it arrived.
    pub at: Instant,
    /// What it is about.
    pub target: Target,
    /// The path, with its query.
    pub path: String,
    /// The body's content type: tells an apply from a merge patch.
    pub content_type: String,
    /// The body; a text if it is no JSON, null if there is none.
    pub body: Value,
    /// The status of the answer, also of one that was then lost.
    pub status: Option<u16>,
    /// Whether it reached the API server.
    pub forwarded: bool,
    /// What the proxy did to it.
    pub note: Option<&'static str>,
}

/// Writes as a table, for the message of a failed test.
pub struct Table<'a>(pub &'a [Write]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(start) = self.0.first().map(|write| write.at) else {
            return writeln!(f, "(no API writes)");
        };
        for write in self.0 {
            let status = write.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            writeln!(
                f,
                "{:>4} {:>8.3}s {:<40} {status:>3} {}{} {}",
                write.seq,
                write.at.duration_since(start).as_secs_f64(),
                write.target.to_string(),
                if write.forwarded { "" } else { "[not forwarded] " },
                write.note.map(|note| format!("[{note}]")).unwrap_or_default(),
                write.body.to_string().chars().take(200).collect::<String>(),
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.verb, self.resource)?;
        for part in [&self.subresource, &self.namespace, &self.name].into_iter().flatten() {
            write!(f, "/{part}")?;
        }
        Ok(())
    }
}

impl Target {
    pub(super) fn read(parts: &Parts, body: &Value) -> Self {
        let mut path = parts.uri.path().trim_matches('/').split('/');
        let (group, rest): (&str, Vec<&str>) = match path.next() {
            Some("api") => ("", path.skip(1).collect()),
            Some("apis") => (path.next().unwrap_or_default(), path.skip(1).collect()),
            _ => ("", Vec::new()),
        };
        let some = |text: &&str| Some((*text).to_owned());
        // `namespaces/x` is a namespace, `namespaces/x/vpcs` what is in it; but for its own subresources.
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, inside, ..] if !matches!(*inside, "status" | "finalize") => {
                (some(namespace), &rest[2..])
            }
            _ => (None, &rest[..]),
        };
        let name = rest.get(1).and_then(some);
        let verb = read_verb(parts, name.is_some());
        Self {
            verb,
            group: group.to_owned(),
            resource: rest.first().copied().unwrap_or_default().to_owned(),
            namespace,
            name: name.or_else(|| body.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)),
            subresource: rest.get(2).and_then(some),
        }
    }
}

fn read_verb(parts: &Parts, named: bool) -> Verb {
    let watches = || {
        let query = parts.uri.query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes())
            .any(|(key, value)| key == "watch" && matches!(&*value, "1" | "true"))
    };
    match parts.method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ if watches() => Verb::Watch,
        _ if named => Verb::Get,
        _ => Verb::List,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, path: &str) -> String {
        let (parts, ()) = http::Request::builder().method(method).uri(path).body(()).unwrap().into_parts();
        let target = Target::read(&parts, &serde_json::json!({"metadata": {"name": "in-body"}}));
        format!("{target} {}", target.group)
    }

    #[test]
    fn reads_paths() {
        for (method, path, expected) in [
            ("POST", "/apis/aws.konfig.io/v1alpha1/namespaces/a/vpcs", "Create vpcs/a/in-body aws.konfig.io"),
            (
                "PATCH",
                "/apis/aws.konfig.io/v1alpha1/namespaces/a/vpcs/b/status?x=y",
                "Patch vpcs/status/a/b aws.konfig.io",
            ),
            ("DELETE", "/api/v1/namespaces/a/secrets/s", "Delete secrets/a/s "),
            ("DELETE", "/api/v1/namespaces/a", "Delete namespaces/a "),
            ("PUT", "/api/v1/namespaces/a/finalize", "Update namespaces/finalize/a "),
            ("GET", "/apis/aws.konfig.io/v1alpha1/vpcs/b", "Get vpcs/b aws.konfig.io"),
            ("GET", "/apis/aws.konfig.io/v1alpha1/vpcs?watch=true", "Watch vpcs/in-body aws.konfig.io"),
            ("GET", "/api/v1/nodes", "List nodes/in-body "),
            ("GET", "/readyz", "List /in-body "),
        ] {
            assert_eq!(read(method, path), expected, "{path}");
        }
    }
}
