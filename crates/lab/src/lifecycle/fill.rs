//! Placeholders: `${status.vpcId}` of the object, `${VPC/other.status.vpcId}` of another one.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use serde_json::{Map, Value};

/// What placeholders are filled from: the object itself and, by `Kind/name`, others.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    own: Value,
    others: BTreeMap<String, Value>,
}

impl Objects {
    /// With the object itself.
    pub fn new(object: &DynamicObject) -> Result<Self> {
        Ok(Self { own: serde_json::to_value(object)?, others: BTreeMap::new() })
    }

    /// And another one.
    pub fn add(&mut self, kind: &str, name: &str, object: &DynamicObject) -> Result<()> {
        self.others.insert(format!("{kind}/{name}"), serde_json::to_value(object)?);
        Ok(())
    }

    /// The value of `status.vpcId` or `VPC/other.status.vpcId`.
    pub fn get(&self, path: &str) -> Result<&Value> {
        let (object, path) = match path.split_once('.') {
            Some((name, path)) if name.contains('/') => (self.others.get(name), path),
            _ => (Some(&self.own), path),
        };
        let object = object.context("no such object among the prerequisites")?;
        let found = object.pointer(&format!("/{}", path.replace('.', "/")));
        found.with_context(|| format!("no {path} in {object}"))
    }
}

/// The placeholders in all texts of a value, each once.
pub(super) fn placeholders(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    each_text(value, &mut |text| {
        found.extend(
            text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned()),
        );
    });
    found
}

/// A value with its placeholders filled. A text that is nothing but a placeholder becomes what the
/// placeholder stands for, be that a text or not.
pub(super) fn fill(value: &Value, filled: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => fill_text(text, filled),
        Value::Array(items) => items.iter().map(|item| fill(item, filled)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), fill(value, filled))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, filled: &BTreeMap<String, Value>) -> Value {
    let mut out = text.to_owned();
    for (name, value) in filled {
        let placeholder = format!("${{{name}}}");
        if text == placeholder {
            return value.clone();
        }
        out = out.replace(&placeholder, value.as_str().unwrap_or(&value.to_string()));
    }
    out.into()
}

fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fills() {
        let own = json!({"status": {"id": "vpc-1", "count": 3}});
        let others = BTreeMap::from([("VPC/b".to_owned(), json!({"status": {"id": "vpc-2"}}))]);
        let objects = Objects { own, others };
        let value = json!({"Ids": ["${status.id}", "${VPC/b.status.id}"], "N": "${status.count}", "T": "is ${status.id}"});
        let names = placeholders(&value);
        assert_eq!(names.len(), 4);
        let filled =
            names.into_iter().map(|name| (name.clone(), objects.get(&name).unwrap().clone())).collect();
        assert_eq!(fill(&value, &filled), json!({"Ids": ["vpc-1", "vpc-2"], "N": 3, "T": "is vpc-1"}));
        assert!(objects.get("VPC/c.status.id").is_err());
        assert!(objects.get("status.nothing").is_err());
    }
}
