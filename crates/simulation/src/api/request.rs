//! What a request asks of the API server.

use std::collections::BTreeMap;

use http::{Method, Uri};
use serde_json::Value;

use super::Key;

/// A request that was understood.
#[derive(Clone, Debug)]
pub enum Asked {
    /// All objects of a resource.
    List(String),
    /// Their changes since a version.
    Watch(String, u64),
    /// One object.
    Get(Key),
    /// A new one.
    Create(Key, Value),
    /// A merge patch; of the status alone.
    Patch(Key, Value, bool),
}

impl Asked {
    /// Reads a request.
    pub fn of(method: &Method, uri: &Uri, body: &[u8]) -> Option<Self> {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        // api/v1/…, apis/<group>/<version>/…
        let rest = &parts[if parts.first() == Some(&"api") { 2 } else { 3 }..];
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let plural = (*rest.first()?).to_owned();
        let key = |name: &str| Key {
            plural: plural.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let json = || serde_json::from_slice::<Value>(body).ok();
        match (method.as_str(), &rest[1..]) {
            ("GET", []) => {
                let query = query(uri);
                let version = query.get("resourceVersion").and_then(|version| version.parse().ok());
                Some(match query.contains_key("watch") {
                    true => Self::Watch(plural, version.unwrap_or_default()),
                    false => Self::List(plural),
                })
            }
            ("GET", [name]) => Some(Self::Get(key(name))),
            ("POST", []) => {
                let object = json()?;
                let name = object["metadata"]["name"].as_str()?.to_owned();
                Some(Self::Create(key(&name), object))
            }
            ("PATCH", [name]) => Some(Self::Patch(key(name), json()?, false)),
            ("PATCH", [name, "status"]) => Some(Self::Patch(key(name), json()?, true)),
            _ => None,
        }
    }

    /// The resource that it is about.
    pub fn plural(&self) -> &str {
        match self {
            Self::List(plural) | Self::Watch(plural, _) => plural,
            Self::Get(key) | Self::Create(key, _) | Self::Patch(key, _, _) => &key.plural,
        }
    }

    /// What chance and the trace call it.
    pub fn name(&self) -> String {
        match self {
            Self::List(plural) => format!("list {plural}"),
            Self::Watch(plural, _) => format!("watch {plural}"),
            Self::Get(key) => format!("get {key}"),
            // The name of an event holds the time of day.
            Self::Create(key, object) if key.plural == "events" => {
                let regarding = &object["regarding"];
                format!(
                    "event on {}/{}: {}",
                    text(&regarding["kind"]),
                    text(&regarding["name"]),
                    text(&object["reason"])
                )
            }
            Self::Create(key, _) => format!("create {key}"),
            Self::Patch(key, _, false) => format!("patch {key}"),
            Self::Patch(key, _, true) => format!("patch {key} status"),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn query(uri: &Uri) -> BTreeMap<&str, &str> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect()
}
