//! The Secrets of the cluster.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::Key;
use crate::world::State;

/// Stands in every password, and is never to be seen; the rest of one is there to be escaped.
pub const CANARY: &str = "canary7Fq";

/// The key of an object's Secret.
pub fn key_of(name: &str) -> Key {
    Key { plural: "secrets".to_owned(), namespace: "default".to_owned(), name: format!("{name}-password") }
}

/// Gives a Secret another value.
pub fn change(state: &mut State, name: &str, number: u64, at: Duration, time: &str) {
    let data = json!({"data": {"password": base64(&format!("{CANARY}+%&\"<{number}"))}});
    let key = key_of(name);
    let Some(mut object) = state.api.get(&key).cloned() else {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": data["data"]});
        // It isn't there, so it can be made.
        let _ = state.api.create(key, object, at, time);
        return;
    };
    object["data"] = data["data"].clone();
    state.api.set(&key, object, at);
}

/// The value of a Secret.
pub fn value(state: &State, name: &str) -> Option<String> {
    let data = state.api.get(&key_of(name))?["data"]["password"].as_str()?;
    Some(unbase64(data))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(text: &str) -> Value {
    let encode = |chunk: &[u8]| {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        let digit = |at: usize| match at <= chunk.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    Value::String(text.as_bytes().chunks(3).flat_map(encode).collect())
}

fn unbase64(text: &str) -> String {
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .map(|at| at as u32)
        .collect();
    let decode = |chunk: &[u32]| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | chunk.get(at).copied().unwrap_or_default());
        (0..chunk.len() - 1).map(move |at| (bits >> (16 - 8 * at)) as u8).collect::<Vec<_>>()
    };
    String::from_utf8_lossy(&digits.chunks(4).flat_map(decode).collect::<Vec<_>>()).into_owned()
}
