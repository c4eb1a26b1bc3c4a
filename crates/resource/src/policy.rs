//! IAM policy documents, compared as policies and not as text.
//!
//! AWS's grammar: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html>

use std::collections::BTreeMap;

use serde_json::Value;

/// Whether two policy documents mean the same. Texts that are no JSON compare as texts.
pub fn equal(left: &str, right: &str) -> bool {
    left == right
        || match (normalize(left), normalize(right)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        }
}

/// The document in one fixed form: lists where AWS allows a single value, sorted; account ids as
/// root ARNs; element names as AWS spells them.
fn normalize(text: &str) -> Option<Value> {
    let mut document: Value = serde_json::from_str(text).ok()?;
    let fields = document.as_object_mut()?;
    let statements = match fields.remove("Statement")? {
        Value::Array(statements) => statements,
        single => vec![single],
    };
    let mut statements: Vec<Value> = statements.into_iter().map(statement).collect();
    statements.sort_by_key(Value::to_string);
    fields.insert("Statement".to_owned(), statements.into());
    Some(document)
}

fn statement(statement: Value) -> Value {
    let Value::Object(fields) = statement else { return statement };
    let parts = fields.into_iter().map(|(name, value)| {
        let value = match name.as_str() {
            // IAM matches actions without regard to case.
            "Action" | "NotAction" => list(value, |action| action.to_lowercase()),
            "Resource" | "NotResource" => list(value, |resource| resource),
            "Principal" | "NotPrincipal" => principal(value),
            "Condition" => condition(value),
            _ => value,
        };
        (name, value)
    });
    Value::Object(parts.collect())
}

fn principal(value: Value) -> Value {
    match value {
        Value::Object(kinds) => {
            let kinds = kinds.into_iter().map(|(kind, names)| {
                let names = if kind == "AWS" { list(names, root_arn) } else { list(names, |name| name) };
                (kind, names)
            });
            Value::Object(kinds.collect())
        }
        // "*" and {"AWS": "*"} are the same principal.
        Value::String(all) if all == "*" => serde_json::json!({"AWS": ["*"]}),
        other => other,
    }
}

fn root_arn(name: String) -> String {
    let is_account = name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_account { format!("arn:aws:iam::{name}:root") } else { name }
}

fn condition(value: Value) -> Value {
    let Value::Object(operators) = value else { return value };
    let operators = operators.into_iter().map(|(operator, keys)| {
        let Value::Object(keys) = keys else { return (operator, keys) };
        // Condition keys are matched without regard to case.
        let keys: BTreeMap<_, _> =
            keys.into_iter().map(|(key, values)| (key.to_lowercase(), list(values, |value| value))).collect();
        (operator, keys.into_iter().collect())
    });
    Value::Object(operators.collect())
}

/// A single value as a list; sorted, without repetitions.
fn list(value: Value, each: impl Fn(String) -> String) -> Value {
    let values = match value {
        Value::Array(values) => values,
        single => vec![single],
    };
    let mut texts: Vec<String> = values
        .into_iter()
        .map(|value| match value {
            Value::String(text) => each(text),
            // AWS reads `true` and `5` in conditions as their texts.
            other => other.to_string(),
        })
        .collect();
    texts.sort();
    texts.dedup();
    texts.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(principal: &str, action: &str) -> String {
        format!(
            r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow","Principal":{principal},"Action":{action}}}}}"#
        )
    }

    #[test]
    fn spelling_is_no_difference() {
        let base = trust(r#"{"AWS":"123456789012"}"#, r#""sts:AssumeRole""#);
        for same in [
            trust(r#"{"AWS":["arn:aws:iam::123456789012:root"]}"#, r#"["sts:AssumeRole"]"#),
            trust(r#"{ "AWS" : "123456789012" }"#, r#""sts:assumerole""#),
            base.replace(r#""Version":"2012-10-17","#, "").replacen('{', r#"{"Version":"2012-10-17","#, 1),
        ] {
            assert!(equal(&base, &same), "{same}");
        }
    }

    #[test]
    fn meaning_is_a_difference() {
        let base = trust(r#"{"AWS":"123456789012"}"#, r#""sts:AssumeRole""#);
        for other in [
            trust(r#"{"AWS":"AROAEXAMPLEID"}"#, r#""sts:AssumeRole""#),
            trust(r#"{"AWS":"123456789012"}"#, r#"["sts:AssumeRole","sts:TagSession"]"#),
            trust(r#"{"Service":"123456789012"}"#, r#""sts:AssumeRole""#),
            "not json".to_owned(),
        ] {
            assert!(!equal(&base, &other), "{other}");
        }
    }

    #[test]
    fn order_of_statements_and_values_is_no_difference() {
        let left =
            r#"{"Statement":[{"Sid":"a","Action":["s3:Get*","s3:Put*"]},{"Sid":"b","Action":"s3:*"}]}"#;
        let right =
            r#"{"Statement":[{"Action":"s3:*","Sid":"b"},{"Action":["s3:Put*","s3:Get*"],"Sid":"a"}]}"#;
        assert!(equal(left, right));
    }
}
