//! Calls with nothing masked, for who must know where a secret went.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::asked::Asked;

/// A call as it was sent. Kept only where a test asks for it: nobody prints it by accident.
#[derive(Clone)]
pub struct Plain {
    /// The operation, as in [`Call`](super::Call).
    pub operation: String,
    /// The parameters, as in [`Call`](super::Call), but unmasked.
    pub params: BTreeMap<String, String>,
    /// Method, path and headers; and the body, if its parameters are not known.
    pub head: String,
}

impl Plain {
    pub(super) fn of(asked: &Asked) -> Self {
        let parts = &asked.parts;
        let mut head = format!("{} {}", parts.method, parts.uri);
        for (name, value) in &parts.headers {
            write!(head, "\n{name}: {}", String::from_utf8_lossy(value.as_bytes())).expect("a String");
        }
        let content = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
        if !content.is_some_and(|content| content.contains("form") || content.contains("json")) {
            write!(head, "\n\n{}", String::from_utf8_lossy(&asked.body)).expect("a String");
        }
        Self { operation: asked.operation.clone(), params: asked.params.clone(), head }
    }
}
