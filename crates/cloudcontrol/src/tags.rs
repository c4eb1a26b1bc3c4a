//! Tags as a type's schema wants them: a list of `{Key, Value}` or a map.

use resource::Tags;
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

/// Tags as the type takes them.
pub fn write(schema: &TypeSchema, tags: &Tags) -> Value {
    if schema.tags_are_list() {
        return tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    }
    json!(tags)
}
