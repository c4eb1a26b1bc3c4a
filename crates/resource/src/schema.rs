//! What the engine must know of a field, written on its schema.
//!
//! Kinds put these on their fields as `#[schemars(transform = immutable)]` and the like; CRD,
//! diff, resolution, documentation and plan read them. They are stripped from the published CRD.

use schemars::{Schema, transform::Transform};
use serde_json::{Map, Value, json};

/// Marks a field that AWS cannot change after creation.
pub const IMMUTABLE: &str = "x-konfig-immutable";
/// What AWS takes at creation when the field is unset, and what it goes back to when removed.
pub const DEFAULT: &str = "x-konfig-default";
/// Marks a field that AWS can clear.
pub const CLEARABLE: &str = "x-konfig-clearable";
/// Describes a reference: kind, what it yields, its direct form.
pub const REF: &str = "x-konfig-ref";
/// Marks a reference that is needed only after creation and holds up its own part alone.
pub const LATER: &str = "x-konfig-later";
/// How a list compares: `"set"`, or `{"key": field}`. Unmarked lists are sequences.
pub const LIST: &str = "x-konfig-list";
/// Marks the tags.
pub const TAGS: &str = "x-konfig-tags";
/// Marks an IAM policy document.
pub const POLICY: &str = "x-konfig-policy";
/// Marks a field that is sent but never read back.
pub const WRITE_ONLY: &str = "x-konfig-write-only";
/// Marks a field that can stand in the way of a deletion: its change is applied while deleting, too.
pub const UNBLOCKS_DELETION: &str = "x-konfig-unblocks-deletion";

/// Marks a reference to a Secret.
pub const SECRET: &str = "x-konfig-secret";
/// Marks free-form JSON, in which `{"$ref": {kind, name, path}}` and `{"$secret": {name, key}}` stand
/// for values from other objects and from Secrets.
pub const FREE_FORM: &str = "x-konfig-free-form";

/// Marks the field that names an existing AWS resource to adopt.
pub const EXTERNAL_ID: &str = "x-konfig-external-id";

/// Every annotation starts with this.
const PREFIX: &str = "x-konfig-";

/// The field cannot change after creation.
pub fn immutable(schema: &mut Schema) {
    schema.insert(IMMUTABLE.to_owned(), Value::Bool(true));
}

/// The field can be cleared in AWS when it leaves the spec.
pub fn clearable(schema: &mut Schema) {
    schema.insert(CLEARABLE.to_owned(), Value::Bool(true));
}

/// The references in here are needed only after creation.
pub fn later(schema: &mut Schema) {
    schema.insert(LATER.to_owned(), Value::Bool(true));
}

/// The order of the list means nothing.
pub fn set(schema: &mut Schema) {
    schema.insert(LIST.to_owned(), "set".into());
}

/// The text is an IAM policy document, compared as a policy.
pub fn policy(schema: &mut Schema) {
    schema.insert(POLICY.to_owned(), Value::Bool(true));
}

/// The field is sent but never read back.
pub fn write_only(schema: &mut Schema) {
    schema.insert(WRITE_ONLY.to_owned(), Value::Bool(true));
}

/// The field can stand in the way of a deletion, so its change is applied while deleting, too.
pub fn unblocks_deletion(schema: &mut Schema) {
    schema.insert(UNBLOCKS_DELETION.to_owned(), Value::Bool(true));
}

/// The bare name is an object's or, where there is no such object, AWS's own.
pub fn or_direct(schema: &mut Schema) {
    if let Some(reference) = schema.get_mut(REF).and_then(Value::as_object_mut) {
        reference.insert("orDirect".to_owned(), Value::Bool(true));
    }
}

/// The JSON may have any shape; values from other objects and from Secrets may stand in it.
pub fn free_form(schema: &mut Schema) {
    schema.insert(FREE_FORM.to_owned(), Value::Bool(true));
    schema.remove("additionalProperties");
    schema.insert("type".to_owned(), "object".into());
    schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
}

/// The field names an existing AWS resource to adopt.
pub fn external_id(schema: &mut Schema) {
    schema.insert(EXTERNAL_ID.to_owned(), Value::Bool(true));
}

/// The map holds the resource's tags.
pub fn tags(schema: &mut Schema) {
    schema.insert(TAGS.to_owned(), Value::Bool(true));
    schema.insert("maxProperties".to_owned(), 48.into());
    schema.insert(
        "x-kubernetes-validations".to_owned(),
        json!([
            {"rule": "self.all(k, !k.startsWith('aws:') && !k.startsWith('konfig.io/'))",
             "message": "tag keys that start with aws: or konfig.io/ are reserved; choose another"},
            {"rule": "self.all(k, size(k) <= 128 && size(self[k]) <= 256)",
             "message": "AWS allows 128 characters for a tag key and 256 for its value"},
        ]),
    );
    if let Some(values) = schema.get_mut("additionalProperties").and_then(Value::as_object_mut) {
        values.insert("maxLength".to_owned(), 256.into());
    }
}

/// The list is keyed by one of its items' fields.
pub fn keyed_by(field: &'static str) -> impl Transform {
    move |schema: &mut Schema| {
        schema.insert(LIST.to_owned(), json!({"key": field}));
    }
}

/// AWS takes this value at creation when the field is unset.
pub fn default_to(value: impl Into<Value>) -> impl Transform {
    let value = value.into();
    move |schema: &mut Schema| {
        schema.insert(DEFAULT.to_owned(), value.clone());
    }
}

/// Applies an annotation to each item of a list.
pub fn each(mut transform: impl Transform) -> impl Transform {
    move |schema: &mut Schema| {
        let items = schema.get_mut("items").and_then(|items| <&mut Schema>::try_from(items).ok());
        if let Some(items) = items {
            transform.transform(items);
        }
    }
}

/// A CEL rule on the field, with the message that says what to write instead.
pub fn rule(rule: impl Into<String>, message: &'static str) -> impl Transform {
    let rule = rule.into();
    move |schema: &mut Schema| {
        let rules = schema.ensure_object().entry("x-kubernetes-validations").or_insert_with(|| json!([]));
        if let Some(rules) = rules.as_array_mut() {
            rules.push(json!({"rule": rule, "message": message}));
        }
    }
}

/// The text matches a regular expression. Unlike a `pattern`, which is all that Kubernetes then
/// shows, it says what to write instead.
pub fn matches(regex: &'static str, message: &'static str) -> impl Transform {
    rule(format!("self.matches(r'{regex}')"), message)
}

/// The field is an IPv4 range such as `10.0.0.0/16`, with no host bits set.
pub fn cidr_v4(schema: &mut Schema) {
    schema.insert("maxLength".to_owned(), 18.into());
    rule(
        "isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked()",
        "must be an IPv4 range written from its first address, such as 10.0.0.0/16",
    )
    .transform(schema);
}

/// The field is an IPv6 range such as `2001:db8::/56`.
pub fn cidr_v6(schema: &mut Schema) {
    schema.insert("maxLength".to_owned(), 43.into());
    rule("isCIDR(self) && cidr(self).ip().family() == 6", "must be an IPv6 range, such as 2001:db8::/56")
        .transform(schema);
}

/// The properties of an object schema, in order.
pub fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether a boolean annotation is set.
pub fn is(schema: &Value, annotation: &str) -> bool {
    schema.get(annotation).and_then(Value::as_bool).unwrap_or(false)
}

/// The schema without our annotations: what may be published.
pub fn published(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !key.starts_with(PREFIX))
            .map(|(key, value)| (key.clone(), published(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(published).collect(),
        other => other.clone(),
    }
}

/// The path below `base` to `field`, as a JSON pointer.
pub fn pointer(base: &str, field: &str) -> String {
    format!("{base}/{}", field.replace('~', "~0").replace('/', "~1"))
}

/// Whether a path is another one, or leads to something below it.
pub fn is_at_or_below(base: &str, path: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where the tags stand in a spec of this schema.
pub fn has_tags(schema: &Value) -> bool {
    schema.pointer("/properties/tags").is_some_and(|tags| is(tags, TAGS))
}
