//! The schemas of the CloudFormation types.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, LazyLock};

use flate2::read::GzDecoder;
use parking_lot::Mutex;
use serde_json::Value;

use super::refusal::Refusal;

/// One line of JSON for each type.
static PACK: &[u8] = include_bytes!("../../../cloudcontrol/schemas.jsonl.gz");

/// The schema of a type.
#[derive(Debug)]
pub(super) struct Type(Value);

impl Type {
    pub fn of(name: &str) -> Result<Arc<Self>, Refusal> {
        static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Type>>>> = LazyLock::new(Mutex::default);
        if let Some(known) = KNOWN.lock().get(name) {
            return Ok(known.clone());
        }
        let missing = || Refusal::new("TypeNotFoundException", format!("The type '{name}' cannot be found."));
        let schema = Arc::new(Self(find(name).ok_or_else(missing)?));
        KNOWN.lock().insert(name.to_owned(), schema.clone());
        Ok(schema)
    }

    pub fn name(&self) -> &str {
        self.0["typeName"].as_str().unwrap_or_default()
    }

    pub fn schema(&self) -> &Value {
        &self.0
    }

    /// Refuses what the type has no handler for.
    pub fn must_handle(&self, action: &str) -> Result<(), Refusal> {
        if self.0["handlers"].get(action).is_some() {
            return Ok(());
        }
        let message =
            format!("Resource type {} does not support {} action", self.name(), action.to_uppercase());
        Err(Refusal::new("UnsupportedActionException", message))
    }

    /// The places that a list of the schema names: `createOnlyProperties`, …
    pub fn places(&self, list: &str) -> Vec<Vec<&str>> {
        let names = self.0[list].as_array().into_iter().flatten().filter_map(Value::as_str);
        names
            .filter_map(|name| name.strip_prefix("/properties/"))
            .map(|name| name.split('/').collect())
            .collect()
    }

    /// The top-level properties that AWS makes.
    pub fn made_by_aws(&self) -> Vec<&str> {
        self.places("readOnlyProperties")
            .iter()
            .filter(|place| place.len() == 1)
            .map(|place| place[0])
            .collect()
    }
}

fn find(name: &str) -> Option<Value> {
    let needle = format!("\"typeName\":\"{name}\"");
    let lines = BufReader::new(GzDecoder::new(PACK)).lines().map_while(Result::ok);
    lines.filter(|line| line.contains(&needle)).find_map(|line| {
        let schema: Value = serde_json::from_str(&line).ok()?;
        (schema["typeName"] == name).then_some(schema)
    })
}
