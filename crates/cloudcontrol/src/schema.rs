//! What the schema of a CloudFormation type tells: what can be changed, what is written and never
//! read, what identifies it, how it is tagged.
//!
//! The schemas come from the cfn-lint wheel: `cargo xtask schemas` packs them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, LazyLock};

use flate2::read::GzDecoder;
use parking_lot::RwLock;
use serde_json::{Map, Value};

/// One line of JSON for each type, sorted by name.
static PACK: &[u8] = include_bytes!("../schemas.jsonl.gz");

/// The schema of one type.
#[derive(Debug)]
pub struct TypeSchema(Value);

impl TypeSchema {
    /// The schema of a type, by its name; None where AWS has no such type.
    pub fn of(type_name: &str) -> Option<Arc<Self>> {
        static KNOWN: LazyLock<RwLock<HashMap<String, Option<Arc<TypeSchema>>>>> =
            LazyLock::new(RwLock::default);
        if let Some(known) = KNOWN.read().get(type_name) {
            return known.clone();
        }
        let found = find(type_name).map(|schema| Arc::new(Self(schema)));
        KNOWN.write().insert(type_name.to_owned(), found.clone());
        found
    }

    /// Whether AWS can do this with the type: create, read, update, delete or list.
    pub fn handles(&self, operation: &str) -> bool {
        self.0["handlers"].get(operation).is_some()
    }

    /// Whether Cloud Control knows the type at all.
    pub fn has_handlers(&self) -> bool {
        self.0["handlers"].as_object().is_some_and(|handlers| !handlers.is_empty())
    }

    /// Whether a property, by JSON pointer into the desired state, cannot be changed.
    pub fn is_create_only(&self, pointer: &str) -> bool {
        self.lists("createOnlyProperties", pointer)
    }

    /// Whether AWS cannot change a property once the resource is made.
    pub fn is_fixed(&self, pointer: &str) -> bool {
        self.is_create_only(pointer) || !self.handles("update")
    }

    /// Those of these properties that AWS changes under conditions only.
    pub fn conditional<'a>(&self, pointers: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        pointers.filter(|pointer| self.lists("conditionalCreateOnlyProperties", pointer)).collect()
    }

    /// Whether a property is written and never read back.
    pub fn is_write_only(&self, pointer: &str) -> bool {
        self.lists("writeOnlyProperties", pointer)
    }

    /// Whether AWS makes the property.
    pub fn is_read_only(&self, pointer: &str) -> bool {
        self.lists("readOnlyProperties", pointer)
    }

    /// The identifier that a desired state gives itself; None where AWS makes a part of it.
    pub fn identifier(&self, desired: &Map<String, Value>) -> Option<String> {
        let parts =
            self.identifying().map(|pointer| match Value::Object(desired.clone()).pointer(pointer)? {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
        parts.collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty()).map(|parts| parts.join("|"))
    }

    /// The property that holds the tags, where the type takes tags that have a key and a value and
    /// nothing else.
    pub fn tag_property(&self) -> Option<&str> {
        let tagging = &self.0["tagging"];
        if tagging["taggable"] == false || self.0["taggable"] == false {
            return None;
        }
        let name =
            tagging["tagProperty"].as_str().unwrap_or("/properties/Tags").strip_prefix("/properties/")?;
        let part = self.resolved(self.0["properties"].get(name)?);
        let fields = self.resolved(&part["items"])["properties"].as_object();
        let is_plain = fields.is_none_or(|fields| fields.len() == 2 && fields.contains_key("Key"));
        is_plain.then_some(name)
    }

    /// Whether the tags are a list of `{Key, Value}`; otherwise they are a map.
    pub fn tags_are_list(&self) -> bool {
        let part = self.tag_property().and_then(|name| self.0["properties"].get(name));
        part.is_some_and(|part| self.resolved(part)["type"] == "array")
    }

    /// The properties that identify a resource, by JSON pointer.
    pub fn identifying(&self) -> impl Iterator<Item = &str> {
        let parts = self.0["primaryIdentifier"].as_array().into_iter().flatten();
        parts.filter_map(|part| part.as_str()?.strip_prefix("/properties"))
    }

    /// Whether tags can be changed after creation.
    pub fn tags_can_change(&self) -> bool {
        self.0["tagging"]["tagUpdatable"] != false && self.handles("update")
    }

    /// The schema of the desired state.
    pub fn root(&self) -> &Value {
        &self.0
    }

    /// A part of the schema with its `$ref` followed.
    pub fn resolved<'a>(&'a self, part: &'a Value) -> &'a Value {
        let target = part["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        target.and_then(|target| self.0.pointer(target)).unwrap_or(part)
    }

    /// Whether a list of the schema's names the property or something that holds it. `*` in the list
    /// stands for any item.
    fn lists(&self, list: &str, pointer: &str) -> bool {
        let names = self.0[list].as_array().into_iter().flatten().filter_map(Value::as_str);
        let place: Vec<_> = pointer.split('/').skip(1).collect();
        names.filter_map(|name| name.strip_prefix("/properties/")).any(|name| {
            let name: Vec<_> = name.split('/').filter(|part| *part != "properties").collect();
            name.len() <= place.len()
                && name.iter().zip(&place).all(|(name, part)| *name == "*" || name == part)
        })
    }
}

fn find(type_name: &str) -> Option<Value> {
    let needle = format!("\"typeName\":\"{type_name}\"");
    let lines = BufReader::new(GzDecoder::new(PACK)).lines();
    let line = lines.map_while(Result::ok).find(|line| line.contains(&needle))?;
    serde_json::from_str(&line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(name: &str) -> Arc<TypeSchema> {
        TypeSchema::of(name).unwrap()
    }

    fn desired(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_log_group_is_known() {
        let group = schema("AWS::Logs::LogGroup");
        assert!(group.is_create_only("/LogGroupName") && !group.is_create_only("/RetentionInDays"));
        assert!(group.is_read_only("/Arn") && group.handles("update"));
        assert_eq!(group.identifier(&desired(json!({"LogGroupName": "a"}))).as_deref(), Some("a"));
        assert_eq!(group.identifier(&desired(json!({}))), None);
        assert_eq!((group.tag_property(), group.tags_are_list()), (Some("Tags"), true));
    }

    #[test]
    fn what_is_written_and_never_read_is_known() {
        let instance = schema("AWS::RDS::DBInstance");
        assert!(instance.is_write_only("/MasterUserPassword"));
        assert!(!instance.is_write_only("/DBInstanceClass"));
    }

    #[test]
    fn an_identifier_of_several_parts_is_joined() {
        let stage = schema("AWS::ApiGateway::Stage");
        let desired = desired(json!({"RestApiId": "api", "StageName": "prod"}));
        assert_eq!(stage.identifier(&desired).as_deref(), Some("api|prod"));
    }

    #[test]
    fn tags_that_are_more_than_key_and_value_are_a_property_like_others() {
        assert_eq!(schema("AWS::AutoScaling::AutoScalingGroup").tag_property(), None);
        assert_eq!(schema("AWS::SSM::Parameter").tag_property(), Some("Tags"));
        assert_eq!(schema("AWS::CloudFront::PublicKey").tag_property(), None);
    }

    #[test]
    fn an_unknown_type_is_none() {
        assert!(TypeSchema::of("AWS::No::Such").is_none());
        assert!(!schema("AWS::Greengrass::DeviceDefinition").has_handlers());
    }
}
