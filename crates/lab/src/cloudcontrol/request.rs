//! A request under way.

use serde_json::{Value, json};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// CreateResource.
    Create,
    /// UpdateResource.
    Update,
    /// DeleteResource.
    Delete,
}

impl Operation {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// How a request fails.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// The HandlerErrorCode.
    pub code: String,
    pub message: String,
    /// What it made stays.
    pub strands: bool,
}

impl Failure {
    pub fn new(code: &str, message: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned(), strands: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    InProgress,
    Success,
    Failed,
    CancelInProgress,
    CancelComplete,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::InProgress => "IN_PROGRESS",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::CancelInProgress => "CANCEL_IN_PROGRESS",
            Self::CancelComplete => "CANCEL_COMPLETE",
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Success | Self::Failed | Self::CancelComplete)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub token: String,
    pub operation: Operation,
    pub type_name: String,
    pub identifier: Option<String>,
    /// The properties that it leads to; null for a deletion.
    pub properties: Value,
    pub status: Status,
    /// Looks that pass before it ends.
    pub left: usize,
    /// How it will fail, or has failed.
    pub failure: Option<Failure>,
    /// Seconds since the epoch.
    pub time: f64,
}

impl Request {
    pub fn is_on(&self, type_name: &str, identifier: &str) -> bool {
        self.type_name == type_name && self.identifier.as_deref() == Some(identifier)
    }

    /// As the API shows it.
    pub fn event(&self) -> Value {
        let mut event = json!({
            "TypeName": self.type_name,
            "RequestToken": self.token,
            "Operation": self.operation.word(),
            "OperationStatus": self.status.word(),
            "EventTime": self.time,
        });
        if let Some(identifier) = &self.identifier {
            event["Identifier"] = json!(identifier);
        }
        if let (Status::Failed, Some(failure)) = (self.status, &self.failure) {
            event["ErrorCode"] = json!(failure.code);
            event["StatusMessage"] = json!(failure.message);
        }
        event
    }
}
