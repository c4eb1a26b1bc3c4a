//! Where in an answer of AWS something stands.

use serde_json::Value;

/// The part of `value` at a path: a JSON pointer whose steps may also be `Key=team` (the first item
/// of a list whose field has that value) and `*` (every item; the result is a list). What isn't
/// there is null.
#[must_use]
pub fn pick(value: &Value, path: &str) -> Value {
    let steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    walk(value, &steps.collect::<Vec<_>>())
}

fn walk(value: &Value, steps: &[String]) -> Value {
    let Some((step, rest)) = steps.split_first() else { return value.clone() };
    let nothing = Value::Null;
    match value {
        Value::Array(items) if step == "*" => items.iter().map(|item| walk(item, rest)).collect(),
        Value::Array(items) => walk(one(items, step).unwrap_or(&nothing), rest),
        Value::Object(fields) => walk(fields.get(step).unwrap_or(&nothing), rest),
        _ => Value::Null,
    }
}

fn one<'a>(items: &'a [Value], step: &str) -> Option<&'a Value> {
    match step.split_once('=') {
        Some((key, text)) => items.iter().find(|item| item[key] == text),
        None => items.get(step.parse::<usize>().ok()?),
    }
}

/// Whether two values are the same where the order of a list means nothing.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => sorted(one) == sorted(other),
        _ => one == other,
    }
}

fn sorted(items: &[Value]) -> Vec<String> {
    let mut items: Vec<_> = items.iter().map(Value::to_string).collect();
    items.sort();
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn picks() {
        let vpc = json!({
            "Tags": [{"Key": "a/b", "Value": "1"}, {"Key": "c", "Value": "2"}],
            "Blocks": [{"Cidr": "10.0.0.0/16"}, {"Cidr": "10.1.0.0/16"}],
        });
        for (path, expected) in [
            ("/Tags/Key=a~1b/Value", json!("1")),
            ("/Tags/Key=d/Value", Value::Null),
            ("/Tags/1/Value", json!("2")),
            ("/Blocks/*/Cidr", json!(["10.0.0.0/16", "10.1.0.0/16"])),
            ("/Blocks/Cidr=10.1.0.0~116", json!({"Cidr": "10.1.0.0/16"})),
            ("/Nothing/here", Value::Null),
            ("", vpc.clone()),
        ] {
            assert_eq!(pick(&vpc, path), expected, "{path}");
        }
    }

    #[test]
    fn lists_are_the_same_in_any_order() {
        assert!(same(&json!(["a", "b"]), &json!(["b", "a"])));
        assert!(!same(&json!(["a", "a"]), &json!(["a", "b"])));
        assert!(!same(&json!("a"), &json!(["a"])));
    }
}
