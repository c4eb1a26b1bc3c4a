//! Secrets: referred to in a spec, read at reconcile time, never printed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::schema::SECRET;
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
                "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of a Secret in this namespace."},
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

    /// Takes every secret out of a text that goes outside: as it is, and as URLs, XML, JSON and
    /// base64 write it.
    pub fn scrub(&self, text: &str) -> String {
        let mut spellings: Vec<String> = self.0.values().flat_map(|secret| spellings(&secret.0)).collect();
        // The longest first: a shorter one may be part of it.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.iter().fold(text.to_owned(), |text, spelling| text.replace(spelling, "***"))
    }
}

/// How a secret may be written in what others send and print.
fn spellings(secret: &str) -> Vec<String> {
    if secret.is_empty() {
        return Vec::new();
    }
    let json = json!(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let percent = |space: &str| -> String {
        secret
            .bytes()
            .map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    char::from(byte).to_string()
                }
                b' ' => space.to_owned(),
                other => format!("%{other:02X}"),
            })
            .collect()
    };
    let xml = |quot: &str, apos: &str| {
        secret
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', quot)
            .replace('\'', apos)
    };
    let mut all = vec![
        secret.to_owned(),
        json,
        percent("%20"),
        percent("+"),
        percent("%20").to_lowercase(),
        xml("&quot;", "&apos;"),
        xml("&#34;", "&#39;"),
        xml("&#x22;", "&#x27;"),
        xml("\"", "'"),
    ];
    all.extend(base64_of(secret));
    all.dedup();
    all
}

/// Base64 of the text, and of what any text that holds it has in common whatever precedes it.
fn base64_of(secret: &str) -> Vec<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..3)
        .filter_map(|shift| {
            let bits: Vec<bool> = std::iter::repeat_n(0u8, shift)
                .chain(secret.bytes())
                .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
                .collect();
            let digit = |six: &[bool]| six.iter().fold(0usize, |digit, bit| digit * 2 + usize::from(*bit));
            let digits: Vec<u8> = bits.chunks_exact(6).map(|six| ALPHABET[digit(six)]).collect();
            // The first digits depend on what precedes it.
            let text: String =
                digits.iter().skip((shift * 8).div_ceil(6)).map(|byte| char::from(*byte)).collect();
            (text.len() >= 4).then_some(text)
        })
        .collect()
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
