//! The calls that came, in the order in which they took effect.

use std::collections::BTreeMap;

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::proxy::aws::asked::Asked;
use crate::proxy::core::end_to_end;

/// A call that can be sent again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    /// Its name, such as `CreateVpc`.
    pub operation: String,
    /// GET, PUT and so on.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The headers that are not about one connection.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// What is kept of the calls.
#[derive(Default)]
pub(super) struct Record {
    counts: BTreeMap<String, u64>,
    /// Whether the calls themselves are kept, too.
    pub keeps: bool,
    calls: Vec<Recorded>,
}

impl Record {
    pub fn add(&mut self, asked: &Asked) {
        *self.counts.entry(asked.operation.clone()).or_default() += 1;
        if self.keeps {
            self.calls.push(recorded(asked));
        }
    }

    /// How many there were of each operation.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    pub fn calls(&self) -> &[Recorded] {
        &self.calls
    }
}

fn recorded(asked: &Asked) -> Recorded {
    let texts = |headers: HeaderMap| {
        let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            Some((name.to_string(), value.to_str().ok()?.to_owned()))
        };
        headers.iter().filter_map(text).collect()
    };
    Recorded {
        operation: asked.operation.clone(),
        method: asked.parts.method.to_string(),
        uri: asked.parts.uri.to_string(),
        headers: texts(end_to_end(&asked.parts.headers)),
        body: String::from_utf8_lossy(&asked.body).into_owned(),
    }
}
