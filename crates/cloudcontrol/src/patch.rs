//! The update of a resource: a JSON Patch (RFC 6902) of just what differs.

use resource::{Call, Changes, Error, Result};
use serde_json::{Value, json};

use crate::compare::is_secret;
use crate::schema::TypeSchema;

/// The field of our spec that the changes are about.
const FIELD: &str = "/desiredState";

/// The patch document for these changes, without the tags.
///
/// # Errors
/// When a property cannot be changed: AWS is not asked then.
pub fn document(
    schema: &TypeSchema,
    type_name: &str,
    call: &Call,
    target: &Value,
    changes: &Changes,
) -> Result<Vec<Value>> {
    let places: Vec<_> =
        changes.iter().filter_map(|change| Some((change.path.strip_prefix(FIELD)?, change))).collect();
    let fixed: Vec<_> =
        places.iter().map(|(place, _)| *place).filter(|place| schema.is_fixed(place)).collect();
    if !fixed.is_empty() {
        return Err(Error::invalid(
            "UpdateResource",
            format!(
                "{} of {type_name} cannot be changed after creation: set it back, or delete this object and \
                 create it anew",
                fixed.join(", ")
            ),
        ));
    }
    places.into_iter().map(|(place, change)| operation(call, target, place, change)).collect()
}

fn operation(call: &Call, target: &Value, place: &str, change: &resource::Change) -> Result<Value> {
    // A changed secret comes without its value.
    let wanted = target.pointer(&change.path).unwrap_or(&change.want);
    if wanted.is_null() {
        return Ok(json!({"op": "remove", "path": place}));
    }
    let value = with_secrets(call, &change.path, wanted)?;
    let op = if change.live.is_null() { "add" } else { "replace" };
    Ok(json!({"op": op, "path": place, "value": value}))
}

/// The value with its secrets in place.
///
/// # Errors
/// When a secret was not read.
pub fn with_secrets(call: &Call, path: &str, value: &Value) -> Result<Value> {
    if is_secret(value) {
        return Ok(json!(call.secret(path)?.expose()));
    }
    match value {
        Value::Object(fields) => {
            let filled = fields.iter().map(|(field, value)| {
                let path = resource::schema::pointer(path, field);
                Ok((field.clone(), with_secrets(call, &path, value)?))
            });
            filled.collect::<Result<serde_json::Map<_, _>>>().map(Value::Object)
        }
        Value::Array(items) => {
            let filled = items.iter().enumerate();
            filled.map(|(index, item)| with_secrets(call, &format!("{path}/{index}"), item)).collect()
        }
        plain => Ok(plain.clone()),
    }
}
