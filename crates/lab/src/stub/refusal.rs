//! What AWS answers instead of doing it.

/// An error of AWS's.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
}

impl Refusal {
    /// The caller's fault.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: 400, code, message: message.into() }
    }

    /// The same, under another status.
    pub fn with(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// The stub doesn't have this operation.
    pub fn unknown(operation: &str) -> Self {
        Self::new("InvalidAction", format!("the stub has no {operation}"))
    }
}
