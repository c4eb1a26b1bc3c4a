//! Tags as a type's schema wants them: a list of `{Key, Value}` or a map.

use resource::{Error, Result, Tags};
use serde_json::{Map, Value, json};

use crate::schema::TypeSchema;

/// The tags in what AWS reports.
pub fn read(schema: &TypeSchema, properties: &Map<String, Value>) -> Tags {
    let held = schema.tag_property().and_then(|name| properties.get(name));
    match held {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|tag| {
                Some((tag["Key"].as_str()?.to_owned(), tag["Value"].as_str().unwrap_or_default().to_owned()))
            })
            .collect(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        _ => Tags::new(),
    }
}

/// Takes the tags out of a desired state: they are compared one by one, as all tags are.
///
/// # Errors
/// Where they are not plain.
pub fn take(schema: &TypeSchema, desired: &mut Map<String, Value>) -> Result<Tags> {
    let held = schema.tag_property().and_then(|name| desired.remove(name));
    let plain = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(Error::invalid("desiredState", "a tag needs a plain value; a secret is no tag")),
    };
    match held {
        Some(Value::Object(map)) => map.iter().map(|(key, value)| Ok((key.clone(), plain(value)?))).collect(),
        Some(Value::Array(list)) => {
            list.iter().map(|tag| Ok((plain(&tag["Key"])?, plain(&tag["Value"])?))).collect()
        }
        _ => Ok(Tags::new()),
    }
}

/// Tags as the type takes them.
pub fn write(schema: &TypeSchema, tags: &Tags) -> Value {
    if schema.tags_are_list() {
        return tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    }
    json!(tags)
}
