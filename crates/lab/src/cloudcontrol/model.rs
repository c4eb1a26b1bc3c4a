//! What a handler makes of properties: identifiers, what AWS adds, and what it never shows.

use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::types::Type;
use super::validate::faults;

/// Refuses properties that the type's schema does not allow.
pub(super) fn must_be_valid(of: &Type, properties: &Value) -> Result<(), Refusal> {
    let faults = faults(of.schema(), properties);
    if faults.is_empty() {
        return Ok(());
    }
    Err(Refusal::new("ValidationException", format!("Model validation failed ({})", faults.join("; "))))
}

/// The identifier that properties give themselves.
pub(super) fn identifier(of: &Type, properties: &Value) -> Option<String> {
    let parts = of.places("primaryIdentifier");
    let part = |place: &Vec<&str>| {
        Some(match properties.pointer(&format!("/{}", place.join("/")))? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    };
    let parts = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
    (!parts.is_empty()).then(|| parts.join("|"))
}

/// Puts in what AWS makes: read-only properties, and names that were left out.
pub(super) fn complete(of: &Type, properties: &mut Value, serial: u64) {
    let name = of.name().rsplit("::").next().unwrap_or_default();
    let service = of.name().split("::").nth(1).unwrap_or_default().to_lowercase();
    let names = of.places("primaryIdentifier");
    let names = names.iter().filter(|place| place.len() == 1).map(|place| place[0]);
    for field in names.chain(of.made_by_aws()) {
        if properties.get(field).is_some() || !is_text(of, field) {
            continue;
        }
        let id = format!("{}-{serial:08x}", name.to_lowercase());
        properties[field] = if field.ends_with("Arn") {
            let subject = identifier(of, properties).unwrap_or(id);
            json!(format!("arn:aws:{service}:eu-west-1:123456789012:{}/{subject}", name.to_lowercase()))
        } else {
            json!(id)
        };
    }
}

fn is_text(of: &Type, field: &str) -> bool {
    let part = &of.schema()["properties"][field];
    let part = match part["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
        Some(target) => of.schema().pointer(target).unwrap_or(part),
        None => part,
    };
    part["type"] == "string"
}

/// Properties as a read shows them.
pub(super) fn shown(of: &Type, properties: &Value) -> Value {
    let mut shown = properties.clone();
    for place in of.places("writeOnlyProperties") {
        take(&mut shown, &place);
    }
    shown
}

/// The properties that AWS makes and a caller may not name.
pub(super) fn named_read_only(of: &Type, properties: &Value) -> Vec<String> {
    let named = of.places("readOnlyProperties").into_iter().filter(|place| holds(properties, place));
    named.map(|place| format!("/properties/{}", place.join("/"))).collect()
}

/// The places of a list that two versions of the properties differ in.
pub(super) fn changed(of: &Type, list: &str, before: &Value, after: &Value) -> Vec<String> {
    let at = |value: &Value, place: &[&str]| value.pointer(&format!("/{}", place.join("/"))).cloned();
    let places = of.places(list).into_iter().filter(|place| at(before, place) != at(after, place));
    places.map(|place| format!("/properties/{}", place.join("/"))).collect()
}

fn take(value: &mut Value, place: &[&str]) {
    match (place, value) {
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| take(item, rest)),
        (["*", rest @ ..], Value::Object(fields)) => fields.values_mut().for_each(|field| take(field, rest)),
        ([last], Value::Object(fields)) => drop(fields.remove(*last)),
        ([first, rest @ ..], Value::Object(fields)) => {
            if let Some(field) = fields.get_mut(*first) {
                take(field, rest);
            }
        }
        _ => {}
    }
}

fn holds(value: &Value, place: &[&str]) -> bool {
    match (place, value) {
        ([], _) => true,
        (["*", rest @ ..], Value::Array(items)) => items.iter().any(|item| holds(item, rest)),
        ([first, rest @ ..], Value::Object(fields)) => {
            fields.get(*first).is_some_and(|field| holds(field, rest))
        }
        _ => false,
    }
}

/// JSON that a caller sends as text.
pub(super) fn parsed(name: &str, text: Option<&str>) -> Result<Value, Refusal> {
    let text = text.ok_or_else(|| Refusal::invalid(format!("{name} is required")))?;
    serde_json::from_str(text).map_err(|error| Refusal::invalid(format!("{name} is not valid JSON: {error}")))
}

/// The properties of a caller, an object.
pub(super) fn properties(text: Option<&str>) -> Result<Value, Refusal> {
    let value = parsed("DesiredState", text)?;
    match value {
        Value::Object(fields) => Ok(Value::Object(without_nulls(fields))),
        _ => Err(Refusal::invalid("DesiredState is not a JSON object")),
    }
}

fn without_nulls(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}
