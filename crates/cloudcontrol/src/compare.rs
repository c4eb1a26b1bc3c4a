//! Whether what AWS reports is what was asked for, by the type's schema.

use serde_json::{Map, Value};

use crate::schema::TypeSchema;

/// What AWS has, with everything that satisfies the desired state written as it is there: then only
/// true differences are left to see.
pub fn as_desired(
    schema: &TypeSchema,
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
) -> Map<String, Value> {
    let compare = Compare { schema };
    compare.object("", schema.root(), desired, live)
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
            let path = format!("{base}/{}", field.replace('~', "~0").replace('/', "~1"));
            // What is never read back, and what stands for a secret, cannot be compared.
            if self.schema.is_write_only(&path) || is_secret(want) {
                shown.insert(field.clone(), want.clone());
                continue;
            }
            let part = self.schema.resolved(&part["properties"][field]);
            let Some(has) = live.get(field) else { continue };
            let value = match (want, has) {
                (Value::Object(want), Value::Object(has)) => {
                    Value::Object(self.object(&path, part, want, has))
                }
                _ if self.same(part, want, has) => want.clone(),
                _ => has.clone(),
            };
            shown.insert(field.clone(), value);
        }
        shown
    }

    /// Whether they mean the same to AWS. An object may have more in AWS than was asked for.
    fn same(&self, part: &Value, want: &Value, has: &Value) -> bool {
        match (want, has) {
            (Value::Object(want), Value::Object(has)) => want.iter().all(|(field, want)| {
                let part = self.schema.resolved(&part["properties"][field]);
                is_secret(want) || has.get(field).is_some_and(|has| self.same(part, want, has))
            }),
            (Value::Array(want), Value::Array(has)) => self.same_list(part, want, has),
            // CloudFormation takes numbers and booleans as texts, too.
            (Value::String(text), Value::Number(_) | Value::Bool(_)) => *text == has.to_string(),
            (Value::Number(_) | Value::Bool(_), Value::String(text)) => want.to_string() == *text,
            (Value::Number(want), Value::Number(has)) => want.as_f64() == has.as_f64(),
            // A document may be given as JSON and come back as text, or the other way round.
            (Value::Object(_), Value::String(text)) => serde_json::from_str::<Value>(text)
                .is_ok_and(|has| has.is_object() && self.same(part, want, &has)),
            (Value::String(text), Value::Object(_)) => serde_json::from_str::<Value>(text)
                .is_ok_and(|want| want.is_object() && self.same(part, &want, has)),
            _ => want == has,
        }
    }

    fn same_list(&self, part: &Value, want: &[Value], has: &[Value]) -> bool {
        if want.len() != has.len() {
            return false;
        }
        let item = self.schema.resolved(&part["items"]);
        if part["insertionOrder"] != false {
            return want.iter().zip(has).all(|(want, has)| self.same(item, want, has));
        }
        let mut left: Vec<_> = has.iter().collect();
        want.iter().all(|want| {
            let place = left.iter().position(|has| self.same(item, want, has));
            place.map(|place| left.swap_remove(place)).is_some()
        })
    }
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
}
