//! What the data files set, by place in the spec: values that AWS takes, and names of what exists.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lifecycle::Lifecycle;

/// The values of one kind, by place: `/tags/team`, `/ingressRules/*/protocol`.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<String, Vec<Value>>);

impl Known {
    /// All that the data files of a kind ever write into its spec.
    pub fn of(lives: &[&Lifecycle]) -> Self {
        let mut known = Self::default();
        for life in lives {
            known.learn("", &life.manifest["spec"]);
            life.changes.iter().for_each(|change| known.learn("", &change.spec));
        }
        known
    }

    /// The values at a place.
    pub fn at(&self, place: &str) -> &[Value] {
        self.0.get(place).map(Vec::as_slice).unwrap_or_default()
    }

    fn learn(&mut self, place: &str, value: &Value) {
        match value {
            Value::Null => return,
            Value::Object(fields) => {
                fields.iter().for_each(|(field, value)| self.learn(&format!("{place}/{field}"), value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(&format!("{place}/*"), item)),
            _ => {}
        }
        self.0.entry(place.to_owned()).or_default().push(value.clone());
    }
}
