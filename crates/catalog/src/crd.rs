//! The CustomResourceDefinition of a kind, from its annotated schema.

use resource::api::{GROUP, OPERATOR, VERSION};
use resource::schema::{IMMUTABLE, is, properties, published};
use resource::{Kind, Meta};
use serde_json::{Map, Value, json};

/// What stays of JSON schema's `format` (the others are unknown to Kubernetes).
const FORMATS: [&str; 4] = ["int32", "int64", "double", "date-time"];

/// The CustomResourceDefinition of a kind.
pub fn crd(kind: &dyn Kind) -> Value {
    let meta = kind.meta();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{GROUP}", meta.plural),
            // Taking the definition away takes every object, and so every AWS resource, with it.
            "annotations": {"helm.sh/resource-policy": "keep"},
            "labels": {"app.kubernetes.io/name": OPERATOR},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": meta.kind,
                "listKind": format!("{}List", meta.kind),
                "plural": meta.plural,
                "singular": meta.kind.to_lowercase(),
                "shortNames": meta.short_names,
                "categories": ["konfig"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(meta),
                "schema": {"openAPIV3Schema": root(kind)},
            }],
        },
    })
}

fn columns(meta: &Meta) -> Value {
    let ready = |field: &str| format!(".status.conditions[?(@.type==\"Ready\")].{field}");
    json!([
        {"name": "READY", "type": "string", "jsonPath": ready("status")},
        {"name": "REASON", "type": "string", "jsonPath": ready("reason")},
        {"name": "IDENTIFIER", "type": "string", "jsonPath": format!(".status.{}", meta.identifier)},
        {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "MESSAGE", "type": "string", "jsonPath": ready("message"), "priority": 1},
    ])
}

fn root(kind: &dyn Kind) -> Value {
    json!({
        "type": "object",
        "description": kind.meta().about,
        "required": ["spec"],
        "properties": {
            "spec": spec(kind),
            "status": status(kind),
        },
    })
}

fn spec(kind: &dyn Kind) -> Value {
    let annotated = kind.schema();
    let mut schema = structural(&published(annotated));
    schema["description"] = json!(format!("What is wanted of the {}.", kind.meta().kind));
    schema["properties"]["providerRef"] = provider_ref();
    let rules = immutability(annotated);
    if !rules.is_empty() {
        let own = schema.get("x-kubernetes-validations").and_then(Value::as_array).cloned();
        schema["x-kubernetes-validations"] = own.unwrap_or_default().into_iter().chain(rules).collect();
    }
    schema
}

/// The rules stand on the parent: on the field itself they would not fire when an optional one is
/// added or removed.
fn immutability(annotated: &Value) -> Vec<Value> {
    let required = annotated.get("required").and_then(Value::as_array);
    let immutable = properties(annotated).filter(|(_, part)| is(part, IMMUTABLE));
    immutable
        .map(|(field, _)| {
            let is_required = required.is_some_and(|required| required.iter().any(|name| name == field));
            let rule = if is_required {
                format!("self.{field} == oldSelf.{field}")
            } else {
                format!(
                    "has(self.{field}) == has(oldSelf.{field}) && \
                     (!has(self.{field}) || self.{field} == oldSelf.{field})"
                )
            };
            let message = format!("{field} cannot be changed in AWS: delete this object and create it anew");
            json!({"rule": rule, "message": message, "fieldPath": format!(".{field}")})
        })
        .collect()
}

fn provider_ref() -> Value {
    json!({
        "type": "object",
        "description": "The AWSProvider that leads to the account and region; the operator's own credentials if unset.",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of the AWSProvider."},
            "region": {"type": "string", "minLength": 1, "maxLength": 32, "description": "Another region than the provider's."},
        },
    })
}

fn status(kind: &dyn Kind) -> Value {
    let mut fields: Map<String, Value> = Map::new();
    for (field, part) in properties(kind.status_schema()) {
        fields.insert(field.clone(), lenient(&structural(&published(part))));
    }
    fields.extend(common_status());
    json!({
        "type": "object",
        "description": "What AWS has, and how far the operator is.",
        // kstatus takes an object without status for finished; this one reads as in progress.
        "default": {"observedGeneration": -1},
        "properties": fields,
    })
}

fn common_status() -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let number =
        |description: &str| json!({"type": "integer", "format": "int64", "description": description});
    let time =
        |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let map = |description: &str, values: Value| json!({"type": "object", "description": description, "additionalProperties": values});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let fields = json!({
        "conditions": {
            "type": "array",
            "description": "Ready, with its reason; Reconciling or Stalled while not Ready; Paused while paused.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {
                    "type": text("Ready, Reconciling, Stalled or Paused."),
                    "status": text("True, False or Unknown."),
                    "reason": text("Synced, Creating, Updating, Deleting, DependencyNotReady, Error or Throttled."),
                    "message": text("What is going on, and what can be done about it."),
                    "lastTransitionTime": time("When the status last changed."),
                    "observedGeneration": number("The generation that this was said of."),
                },
            },
        },
        "observedGeneration": number("The generation that was last looked at."),
        "lastSyncTime": time("When AWS was last seen to be, or made to be, as the spec says."),
        "awsProvider": {
            "type": "object",
            "description": "Where in AWS the resource is.",
            "properties": {
                "name": text("The AWSProvider; absent for the operator's own credentials."),
                "accountId": text("The account."),
                "region": text("The region."),
            },
        },
        "adopted": {"type": "boolean", "description": "It existed before this object and is released, not deleted, with it."},
        "managed": {
            "type": "array",
            "description": "The spec's paths that were last brought to AWS: what leaves the spec is put back to its default or cleared.",
            "items": {"type": "string"},
        },
        "creation": map(
            "For each AWS resource of this object: the intent, written before the create call, and its id.",
            object(json!({
                "token": text("The idempotency token of the attempt."),
                "startedAt": time("When the create call was last about to be sent, or when it ended."),
                "since": time("When the attempt was first about to be sent, where it was sent again."),
                "attempt": number("Counts the attempts."),
                "refused": {"type": "boolean", "description": "Nothing is left of the attempt."},
                "accountId": text("The account it is made in."),
                "region": text("The region it is made in."),
                "id": text("AWS's id, or the handle of the request that makes it."),
                "request": text("The handle of an update or a deletion under way."),
            })),
        ),
        "secrets": map(
            "What is known of each secret without knowing it: keyed fingerprints, by the spec's path.",
            object(json!({
                "applied": text("What AWS has."),
                "pending": text("What a call carries or carried, whose end is not seen yet."),
                "created": {"type": "boolean", "description": "That call was the one that created the resource."},
                "version": text("The Secret's uid and version."),
                "source": text("The Secret's name and key."),
                "key": text("Names the operator's fingerprint key."),
            })),
        ),
        "sync": {
            "type": "object",
            "description": "What the operator remembers of the last sync.",
            "properties": {
                "inputs": text("A hash of everything that went into it."),
                "corrections": map(
                    "How often each path had to be put right.",
                    object(json!({
                        "count": number("How often."),
                        "since": time("The first time."),
                        "last": time("The last time."),
                    })),
                ),
            },
        },
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// A schema as Kubernetes wants it: no titles, no nulls, no formats it doesn't know.
fn structural(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let keep = |key: &str, value: &Value| match key {
                "$schema" | "title" | "nullable" | "default" => false,
                "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
                _ => true,
            };
            let is_properties = !fields.contains_key("type") && fields.values().all(Value::is_object);
            fields
                .iter()
                .filter(|(key, value)| is_properties || keep(key, value))
                .map(|(key, value)| {
                    let value = match (key.as_str(), value) {
                        // The source's line breaks are not the reader's.
                        ("description", Value::String(text)) => json!(reflowed(text)),
                        ("enum", Value::Array(values)) => {
                            values.iter().filter(|value| !value.is_null()).cloned().collect()
                        }
                        _ => structural(value),
                    };
                    (key.clone(), value)
                })
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(structural).collect(),
        other => other.clone(),
    }
}

/// A text whose paragraphs are lines.
fn reflowed(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

/// A status is reported, not validated: what AWS adds tomorrow must not keep a condition from being
/// written.
fn lenient(schema: &Value) -> Value {
    const STRICT: [&str; 11] = [
        "enum",
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "required",
        "x-kubernetes-validations",
        "maxProperties",
    ];
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, value)| !STRICT.contains(&key.as_str()) || value.is_object())
            .map(|(key, value)| (key.clone(), lenient(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
