//! The errors of the API.

use http::StatusCode;
use serde_json::{Value, json};

/// An error that answers a call.
#[derive(Debug)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("InvalidRequestException", message)
    }

    pub fn status(&self) -> StatusCode {
        match self.code {
            "HandlerFailureException"
            | "HandlerInternalFailureException"
            | "NetworkFailureException"
            | "ServiceInternalErrorException"
            | "ConcurrentModificationException" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    pub fn body(&self) -> Value {
        json!({"__type": format!("com.amazon.cloudapiservice#{}", self.code), "Message": self.message})
    }
}
