//! Policy documents on their way to and from IAM.

use percent_encoding::percent_decode_str;
use resource::{Error, Result};
use serde_json::Value;

/// Refuses what cannot be a policy document.
pub(crate) fn check(field: &str, text: &str) -> Result<()> {
    let refuse = |why: String| {
        let example = r#"{"Version": "2012-10-17", "Statement": [...]}"#;
        Err(Error::invalid(
            &format!("spec.{field}"),
            format!("{why}; write a policy document such as {example}"),
        ))
    };
    match serde_json::from_str::<Value>(text) {
        Err(error) => refuse(format!("this is not JSON: {error}")),
        Ok(Value::Object(fields)) if fields.contains_key("Statement") => Ok(()),
        Ok(Value::Object(_)) => refuse("the document has no Statement".to_owned()),
        Ok(_) => refuse("the document is not a JSON object".to_owned()),
    }
}

/// IAM returns documents URL-encoded.
pub(crate) fn decode(encoded: &str) -> String {
    percent_decode_str(encoded).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_no_policy_is_refused_with_its_place_and_an_example() {
        for (text, says) in [
            ("{\"Version\": }", "line 1 column 13"),
            ("", "not JSON"),
            ("[]", "not a JSON object"),
            ("{\"Version\": \"2012-10-17\"}", "no Statement"),
        ] {
            let error = check("assumeRolePolicyDocument", text).unwrap_err();
            assert!(error.message.contains(says), "{text}: {error}");
            assert!(error.message.contains("2012-10-17"));
            assert_eq!(error.operation, "spec.assumeRolePolicyDocument");
        }
        assert!(check("assumeRolePolicyDocument", r#"{"Statement": []}"#).is_ok());
    }

    #[test]
    fn documents_are_decoded() {
        assert_eq!(decode("%7B%22Statement%22%3A%5B%5D%7D"), r#"{"Statement":[]}"#);
        assert_eq!(decode(r#"{"a":"b+c"}"#), r#"{"a":"b+c"}"#);
    }
}
