//! Secrets: referred to in a spec, read at reconcile time, never printed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::SECRET;
use crate::scrub::scrub;
use crate::{Error, Result};

/// `{name, key}` of a Kubernetes Secret in the object's namespace, as a field of a spec.
///
/// Its value reaches a kind beside the spec, by [`crate::Call::secret`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRef {
    /// The Secret's name.
    pub name: String,
    /// The key in the Secret's data.
    pub key: String,
}

impl JsonSchema for SecretRef {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SecretRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "required": ["name", "key"],
            "properties": {
                "name": {
                    "type": "string", "minLength": 1, "maxLength": 253,
                    "description": "Name of a Secret in this namespace.",
                    "x-kubernetes-validations": [{
                        "rule": "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                        "message": "must be the name of a Secret: lower-case letters, digits, - and ., such as db-password",
                    }],
                },
                "key": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Key in the Secret's data."},
            },
            SECRET: true,
        })
    }
}

/// A secret text. It prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one call that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The secrets of one object that were read for this reconcile, by JSON pointer into its spec.
#[derive(Clone, Debug, Default)]
pub struct Secrets(BTreeMap<String, Secret>);

impl Secrets {
    /// Adds one.
    pub fn insert(&mut self, path: String, secret: Secret) {
        self.0.insert(path, secret);
    }

    /// The secret of a field.
    ///
    /// # Errors
    /// When it was not read: the field is not set, or nothing that was decided needs it.
    pub fn get(&self, path: &str) -> Result<&Secret> {
        self.0.get(path).ok_or_else(|| Error::invalid("secret", format!("the Secret of {path} was not read")))
    }

    /// Takes every secret out of a text that goes outside, however each character of it is written there,
    /// and out of base64.
    pub fn scrub(&self, text: &str) -> String {
        scrub(text, &self.0.values().map(Secret::expose).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(text: &str) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.insert("/password".to_owned(), Secret::new(text));
        secrets
    }

    #[test]
    fn it_prints_as_stars() {
        assert_eq!(format!("{:?}", secrets("canary")), r#"Secrets({"/password": ***})"#);
    }

    #[test]
    fn not_even_a_panic_tells_it() {
        let payload = std::panic::catch_unwind(|| panic!("{:?}", secrets("canary"))).unwrap_err();
        let said = payload.downcast_ref::<String>().unwrap();
        assert!(said.contains("***") && !said.contains("canary"), "{said}");
    }

    #[test]
    fn it_is_taken_out_however_it_is_written() {
        let secrets = secrets("a+b %c&\"<d>'é");
        for written in [
            "a+b %c&\"<d>'é",
            "a%2Bb%20%25c%26%22%3Cd%3E%27%C3%A9",
            "a%2Bb+%25c%26%22%3Cd%3E%27%C3%A9",
            "a+b %c&amp;&quot;&lt;d&gt;&apos;é",
            "a+b %c&amp;&#34;&lt;d&gt;&#39;é",
            r#"a+b %c&\"<d>'é"#,
        ] {
            assert_eq!(secrets.scrub(&format!("({written})")), "(***)", "{written}");
        }
    }

    #[test]
    fn it_is_taken_out_of_base64_whatever_precedes_it() {
        // echo -n 'x correct horse', 'correct horse' and 'xy correct horse', each through base64.
        for written in ["eCBjb3JyZWN0IGhvcnNl", "Y29ycmVjdCBob3JzZQ==", "eHkgY29ycmVjdCBob3JzZQ=="] {
            let scrubbed = secrets("correct horse").scrub(written);
            assert!(scrubbed.contains("***") && !scrubbed.contains("cmVjd"), "{scrubbed}");
        }
    }
}
