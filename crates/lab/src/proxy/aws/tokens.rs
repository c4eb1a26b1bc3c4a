//! Idempotency tokens as AWS honours them; the emulators make a second resource.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::answer::Answer;
use super::asked::Asked;

const NAMES: [&str; 4] = ["ClientToken", "ClientRequestToken", "clientToken", "clientRequestToken"];

/// The first successful answer to each token.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, Arc<Slot>>>);

/// Locked while the first call is under way, so that a second waits for its answer.
pub(super) type Slot = tokio::sync::Mutex<Option<Seen>>;

pub(super) struct Seen {
    params: BTreeMap<String, String>,
    answer: Answer,
}

impl Tokens {
    pub fn slot(&self, asked: &Asked) -> Option<Arc<Slot>> {
        // The double of Cloud Control has tokens of its own.
        if asked.service == "cloudcontrolapi" {
            return None;
        }
        let token = NAMES.iter().find_map(|name| asked.params.get(*name))?;
        let key = format!("{}/{}/{}/{token}", asked.service, asked.region, asked.operation);
        Some(self.0.lock().entry(key).or_default().clone())
    }
}

impl Seen {
    pub fn new(asked: &Asked, answer: &Answer) -> Self {
        Self { params: asked.params.clone(), answer: answer.clone() }
    }

    /// The answer to a token that has been seen: what it made, or the refusal of other parameters.
    pub fn replay(&self, asked: &Asked) -> Answer {
        if self.params == asked.params {
            return self.answer.again();
        }
        let message = "The client token you have provided is associated with a resource that was made with other parameters.";
        Answer::error(asked, 400, "IdempotentParameterMismatch", message)
    }
}
