//! Where in an answer of AWS something stands.

use serde_json::Value;

/// The part of `value` at a path: a JSON pointer that may also step to some items of a list, and
/// then gives a list (`*`: all; `*State.Name=up`: those of whose `State` the `Name` is `up`), or to
/// the first such item (`Key=team`). A text that is JSON is stepped into as such. What isn't there
/// is null.
#[must_use]
pub fn pick(value: &Value, path: &str) -> Value {
    let steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    walk(value, &steps.collect::<Vec<_>>())
}

fn walk(value: &Value, steps: &[String]) -> Value {
    let Some((step, rest)) = steps.split_first() else { return value.clone() };
    if let Some(text) = value.as_str() {
        let value = serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
        return value.map_or(Value::Null, |value| walk(&value, steps));
    }
    let next = match value {
        Value::Array(items) => {
            if let Some(which) = step.strip_prefix('*') {
                let chosen = items.iter().filter(|item| which.is_empty() || is(item, which));
                return chosen.map(|item| walk(item, rest)).collect();
            }
            let at = step.parse::<usize>().ok();
            at.map_or_else(|| items.iter().find(|item| is(item, step)), |at| items.get(at))
        }
        value => value.get(step),
    };
    next.map_or(Value::Null, |next| walk(next, rest))
}

/// Whether an item is as `State.Name=up` says.
fn is(item: &Value, which: &str) -> bool {
    let Some((path, text)) = which.split_once('=') else { return false };
    let found = item.pointer(&format!("/{}", path.replace('.', "/")));
    found.is_some_and(|found| {
        found.as_str() == Some(text) || serde_json::from_str(text).is_ok_and(|value: Value| value == *found)
    })
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
            "Blocks": [
                {"Cidr": "10.0.0.0/16", "State": {"Code": "off"}},
                {"Cidr": "10.1.0.0/16", "State": {"Code": "on"}, "Size": 16},
            ],
        });
        for (path, expected) in [
            ("/Tags/Key=a~1b/Value", json!("1")),
            ("/Tags/Key=d/Value", Value::Null),
            ("/Tags/1/Value", json!("2")),
            ("/Blocks/*/Cidr", json!(["10.0.0.0/16", "10.1.0.0/16"])),
            ("/Blocks/Cidr=10.1.0.0~116/State/Code", json!("on")),
            ("/Blocks/*State.Code=on/Cidr", json!(["10.1.0.0/16"])),
            ("/Blocks/Size=16/Cidr", json!("10.1.0.0/16")),
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
