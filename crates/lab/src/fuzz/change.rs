//! What is written into an object later, at random: other fields, fewer fields, another spec as a whole,
//! or annotations that tell the operator how to treat it.

use serde_json::{Map, Value, json};

use super::generate::Generator;
use super::words::TEXTS;

/// Annotations that mean something on an object, and one that means nothing; with values that mean
/// something in them, or nearly do.
const ANNOTATIONS: [(&str, &[&str]); 8] = [
    ("paused", &["true", "false", "True"]),
    ("reconcile", &["now", ""]),
    ("reconcile-interval", &["1s", "10m", "0s", "-1h", "999999999999h"]),
    ("deletion-policy", &["abandon", "delete", "Abandon", "retain"]),
    ("external-id", &["vpc-0123456789abcdef0", "orders"]),
    ("adopt-from", &["lab/default/VPC/net"]),
    ("recreate", &["true", "false"]),
    ("unheard-of", &["true"]),
];

/// A change of an object.
#[derive(Debug, Clone)]
pub enum Change {
    /// A merge patch.
    Merge(Value),
    /// Another spec instead of the one that is there.
    Replace(Value),
}

impl Change {
    /// One of an object with this spec.
    pub fn random(generator: &mut Generator<'_>, schema: &Value, spec: &Value) -> Self {
        match generator.below(10) {
            0..3 => Self::Merge(json!({"spec": others(generator, schema)})),
            3..5 => Self::Merge(json!({"spec": fewer(generator, spec)})),
            5..7 => Self::Replace(generator.spec(schema)),
            7 => Self::Merge(annotated(generator)),
            _ => {
                let mut patch = annotated(generator);
                patch["spec"] = others(generator, schema);
                Self::Merge(patch)
            }
        }
    }

    /// What it writes into the spec.
    pub fn spec(&self) -> &Value {
        match self {
            Self::Merge(patch) => &patch["spec"],
            Self::Replace(spec) => spec,
        }
    }
}

/// Fields with other values.
fn others(generator: &mut Generator<'_>, schema: &Value) -> Value {
    (0..=generator.below(2)).map(|_| generator.field(schema)).collect::<Map<_, _>>().into()
}

/// Fields, or what stands in them, taken away.
fn fewer(generator: &mut Generator<'_>, spec: &Value) -> Value {
    let mut patch = Map::new();
    for _ in 0..=generator.below(3) {
        patch.extend(without(generator, spec));
    }
    patch.into()
}

/// A patch that takes one thing away, on any level.
fn without(generator: &mut Generator<'_>, value: &Value) -> Option<(String, Value)> {
    let fields: Vec<_> = value.as_object().filter(|fields| !fields.is_empty())?.iter().collect();
    let (field, value) = fields[generator.below(fields.len())];
    let deeper = if generator.below(2) == 0 { without(generator, value) } else { None };
    let rest = deeper.map_or(Value::Null, |(field, value)| json!({field: value}));
    Some((field.clone(), rest))
}

fn annotated(generator: &mut Generator<'_>) -> Value {
    let annotations = (0..=generator.below(2)).map(|_| {
        let (name, values) = ANNOTATIONS[generator.below(ANNOTATIONS.len())];
        let value = match generator.below(10) {
            0..7 => json!(generator.pick(values)),
            7..9 => json!(generator.pick(&TEXTS)),
            _ => generator.anything(1),
        };
        (format!("aws.konfig.io/{name}"), value)
    });
    json!({"metadata": {"annotations": annotations.collect::<Map<_, _>>()}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::known::Known;

    type IsIt = fn(&Value) -> bool;

    fn changes() -> Vec<Value> {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
        let spec = json!({"a": "x", "tags": {"team": "net"}});
        let change = |seed| {
            let known = Known::default();
            match Change::random(&mut Generator::of_change(seed, &known), &schema, &spec) {
                Change::Merge(patch) => patch,
                Change::Replace(spec) => json!({"whole": spec}),
            }
        };
        (0..200).map(change).collect()
    }

    #[test]
    fn a_seed_makes_the_same_change() {
        assert_eq!(changes(), changes());
    }

    #[test]
    fn there_is_every_sort_of_change() {
        let changes = changes();
        let sorts: [(&str, IsIt); 6] = [
            ("another value", |patch| !patch["spec"]["b"].is_null()),
            ("a field less", |patch| patch["spec"].get("a").is_some_and(Value::is_null)),
            ("less in a field", |patch| patch["spec"]["tags"] == json!({"team": null})),
            ("another spec", |patch| patch["whole"].is_object()),
            ("annotations", |patch| patch["metadata"].is_object() && patch["spec"].is_null()),
            ("annotations and another value", |patch| {
                patch["metadata"].is_object() && patch["spec"].is_object()
            }),
        ];
        for (sort, is_it) in sorts {
            assert!(changes.iter().any(is_it), "no change with {sort} in {changes:#?}");
        }
    }
}
