//! Long values in short words: `{$repeat: {text: a, times: 3}}` and the like.

use serde_json::{Map, Value, json};

/// The value with everything written out.
pub fn expand(value: Value) -> Value {
    match value {
        Value::Object(fields) => match single(&fields) {
            Some(("$repeat", of)) => json!(text(&of["text"]).repeat(number(&of["times"]))),
            Some(("$join", parts)) => {
                let parts = parts.as_array().expect("a list to join").iter();
                json!(parts.map(|part| text(&expand(part.clone())).to_owned()).collect::<String>())
            }
            Some(("$keys", times)) => {
                (0..number(times)).map(|key| (format!("key-{key}"), json!("x"))).collect::<Map<_, _>>().into()
            }
            Some(("$list", of)) => vec![expand(of["of"].clone()); number(&of["times"])].into(),
            Some(("$deep", depth)) => (0..number(depth)).fold(json!(1), |inner, _| json!({"a": inner})),
            _ => {
                fields.into_iter().map(|(field, value)| (field, expand(value))).collect::<Map<_, _>>().into()
            }
        },
        Value::Array(items) => items.into_iter().map(expand).collect(),
        plain => plain,
    }
}

fn single(fields: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut all = fields.iter();
    let (field, value) = all.next()?;
    all.next().is_none().then_some((field.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}
