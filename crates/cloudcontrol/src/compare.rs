//! Whether what AWS reports is what was asked for, by the type's schema.

use resource::schema::pointer;
use serde_json::{Map, Value};

use crate::schema::TypeSchema;

/// What AWS has, with everything that satisfies the desired state written as it is there: then only
/// true differences are left to see.
pub fn as_desired(
    schema: &TypeSchema,
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
) -> Map<String, Value> {
    Compare { schema }.object("", schema.root(), desired, live)
}

struct Compare<'a> {
    schema: &'a TypeSchema,
}

impl Compare<'_> {
    fn object(
        &self,
        base: &str,
        part: &Value,
        desired: &Map<String, Value>,
        live: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut shown = live.clone();
        for (field, want) in desired {
            let path = pointer(base, field);
            let part = self.schema.resolved(&part["properties"][field]);
            let value = match (want, live.get(field)) {
                _ if self.is_hidden(&path, want) => want.clone(),
                (Value::Object(want), Some(Value::Object(has))) => {
                    Value::Object(self.object(&path, part, want, has))
                }
                // All that is wanted of it may be hidden.
                (Value::Object(want), None) => match self.object(&path, part, want, &Map::new()) {
                    shown if shown.is_empty() => continue,
                    shown => Value::Object(shown),
                },
                (_, None) => continue,
                (want, Some(has)) if self.same(&path, part, want, has) => want.clone(),
                (_, Some(has)) => has.clone(),
            };
            shown.insert(field.clone(), value);
        }
        shown
    }

    /// What is never read back, and what stands for a secret, cannot be compared.
    fn is_hidden(&self, path: &str, want: &Value) -> bool {
        self.schema.is_write_only(path) || is_secret(want)
    }

    /// Whether they mean the same to AWS. An object may have more in AWS than was asked for.
    fn same(&self, path: &str, part: &Value, want: &Value, has: &Value) -> bool {
        match (want, has) {
            _ if self.is_hidden(path, want) => true,
            (Value::Object(want), Value::Object(has)) => want.iter().all(|(field, want)| {
                let path = pointer(path, field);
                let part = self.schema.resolved(&part["properties"][field]);
                self.is_hidden(&path, want)
                    || has.get(field).is_some_and(|has| self.same(&path, part, want, has))
            }),
            (Value::Array(want), Value::Array(has)) => self.same_list(path, part, want, has),
            // CloudFormation takes numbers and booleans as texts, too.
            (Value::String(text), Value::Number(_) | Value::Bool(_)) => reads_as(text, has),
            (Value::Number(_) | Value::Bool(_), Value::String(text)) => reads_as(text, want),
            (Value::Number(want), Value::Number(has)) => want.as_f64() == has.as_f64(),
            // A document may be given as JSON and come back as text, or the other way round.
            (Value::Object(_), Value::String(text)) => serde_json::from_str::<Value>(text)
                .is_ok_and(|has| has.is_object() && self.same(path, part, want, &has)),
            (Value::String(text), Value::Object(_)) => serde_json::from_str::<Value>(text)
                .is_ok_and(|want| want.is_object() && self.same(path, part, &want, has)),
            _ => want == has,
        }
    }

    fn same_list(&self, path: &str, part: &Value, want: &[Value], has: &[Value]) -> bool {
        if want.len() != has.len() {
            return false;
        }
        let item = self.schema.resolved(&part["items"]);
        let path = format!("{path}/*");
        if part["insertionOrder"] != false {
            return want.iter().zip(has).all(|(want, has)| self.same(&path, item, want, has));
        }
        let mut left: Vec<_> = has.iter().collect();
        want.iter().all(|want| {
            let place = left.iter().position(|has| self.same(&path, item, want, has));
            place.map(|place| left.swap_remove(place)).is_some()
        })
    }
}

/// What AWS reports, without secrets and without fields that hold nothing.
pub fn reported(desired: &Map<String, Value>, properties: Map<String, Value>) -> Map<String, Value> {
    let fields = properties.into_iter().filter(|(_, value)| !value.is_null());
    let clean = fields.map(|(field, value)| {
        let value = without_nulls(value);
        let value = desired.get(&field).map_or_else(|| value.clone(), |want| masked(want, value.clone()));
        (field, value)
    });
    clean.collect()
}

/// What AWS has, with stars where a secret stands in what is wanted. In a list, which order AWS may
/// change, this holds for the same place in every item.
fn masked(want: &Value, has: Value) -> Value {
    match (want, has) {
        (want, _) if is_secret(want) => Value::from("***"),
        (Value::Object(want), Value::Object(has)) => {
            let mask = |(field, has)| match want.get(&field) {
                Some(want) => (field, masked(want, has)),
                None => (field, has),
            };
            Value::Object(has.into_iter().map(mask).collect())
        }
        (Value::Array(want), Value::Array(has)) => {
            let mask = |has| want.iter().fold(has, |has, want| masked(want, has));
            has.into_iter().map(mask).collect()
        }
        (_, has) => has,
    }
}

/// The places of what is written and never read back, other than secrets.
pub fn written(schema: &TypeSchema, desired: &Map<String, Value>) -> Vec<String> {
    fn walk(schema: &TypeSchema, path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            _ if is_secret(value) => {}
            Value::Object(fields) => {
                fields.iter().for_each(|(field, value)| walk(schema, &pointer(path, field), value, found));
            }
            Value::Array(items) if !schema.is_write_only(path) => {
                let items = items.iter().enumerate();
                items.for_each(|(index, item)| walk(schema, &format!("{path}/{index}"), item, found));
            }
            _ if schema.is_write_only(path) => found.push(path.to_owned()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(schema, "", &Value::Object(desired.clone()), &mut found);
    found
}

/// Without the fields that hold nothing.
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(field, value)| (field, without_nulls(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        plain => plain,
    }
}

/// How deep objects and lists stand within each other.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn reads_as(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|text| text == *value)
}

/// `{"$secret": …}`.
pub fn is_secret(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("$secret"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(type_name: &str, desired: Value, live: Value) -> Value {
        let schema = TypeSchema::of(type_name).unwrap();
        let object = |value: Value| value.as_object().unwrap().clone();
        Value::Object(as_desired(&schema, &object(desired), &object(live)))
    }

    #[test]
    fn what_aws_adds_is_no_difference() {
        let live = json!({"LogGroupName": "a", "RetentionInDays": 7, "Arn": "arn:…"});
        assert_eq!(
            shown("AWS::Logs::LogGroup", json!({"RetentionInDays": "7"}), live.clone())["RetentionInDays"],
            "7"
        );
        assert_eq!(shown("AWS::Logs::LogGroup", json!({"RetentionInDays": 14}), live)["RetentionInDays"], 7);
    }

    #[test]
    fn order_counts_where_the_schema_says_so() {
        let tags =
            |one: &str, two: &str| json!({"Tags": [{"Key": one, "Value": "x"}, {"Key": two, "Value": "x"}]});
        let shown = shown("AWS::Logs::LogGroup", tags("a", "b"), tags("b", "a"));
        assert_eq!(shown, tags("a", "b"));
    }

    #[test]
    fn what_cannot_be_read_is_taken_as_it_is_wanted() {
        let secret = json!({"$secret": {"name": "db", "key": "password"}});
        let desired = json!({"MasterUserPassword": secret, "DBInstanceClass": "db.t3.micro"});
        let shown = shown("AWS::RDS::DBInstance", desired.clone(), json!({"DBInstanceClass": "db.t3.micro"}));
        assert_eq!(shown, desired);
    }

    #[test]
    fn hidden_parts_of_list_items_are_not_compared() {
        let live = json!({"SpotFleetRequestConfigData": {"LaunchSpecifications": [{"ImageId": "ami-1"}]}});
        let groups = json!([{"DeviceIndex": 0, "Groups": ["sg-1"]}]);
        let mut desired = live.clone();
        desired["SpotFleetRequestConfigData"]["TagSpecifications"] = json!([]);
        assert_eq!(shown("AWS::EC2::SpotFleet", desired.clone(), live.clone()), desired);
        desired["SpotFleetRequestConfigData"]["LaunchSpecifications"][0]["NetworkInterfaces"] = groups;
        assert_eq!(
            shown("AWS::EC2::SpotFleet", desired, live.clone())["SpotFleetRequestConfigData"]["LaunchSpecifications"],
            live["SpotFleetRequestConfigData"]["LaunchSpecifications"]
        );
    }

    #[test]
    fn an_object_of_hidden_parts_alone_is_no_difference() {
        let secret = json!({"$secret": {"name": "ad", "key": "password"}});
        let desired = json!({"ServiceAccountCredentials": {"AccountPassword": secret}});
        assert_eq!(shown("AWS::AppStream::DirectoryConfig", desired.clone(), json!({})), desired);
    }

    #[test]
    fn secrets_are_masked_where_aws_reports_them() {
        let secret = json!({"$secret": {"name": "a", "key": "b"}});
        let want = json!({"Value": secret, "List": [{"Name": "a", "Value": secret}]});
        let has = json!({"Value": "canary", "Other": 1, "List": [{"Name": "b", "Value": "canary"}, {"Value": "canary"}]});
        let expected =
            json!({"Value": "***", "Other": 1, "List": [{"Name": "b", "Value": "***"}, {"Value": "***"}]});
        assert_eq!(masked(&want, has), expected);
    }

    #[test]
    fn what_is_written_and_never_read_is_found() {
        let schema = TypeSchema::of("AWS::SecretsManager::Secret").unwrap();
        let desired =
            json!({"Name": "a", "SecretString": "b", "GenerateSecretString": {"PasswordLength": 8}});
        assert_eq!(
            written(&schema, desired.as_object().unwrap()),
            ["/GenerateSecretString/PasswordLength", "/SecretString"]
        );
    }
}
