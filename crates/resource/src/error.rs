//! One error type for every AWS call, sorted by what the engine does about it.

use thiserror::Error as ThisError;

/// The result of a call on a kind.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is, and so what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Looks like "not found". Absence is never concluded from this alone: the kind says which
    /// code means that *this* resource is absent.
    NotFound,
    /// AWS asks to slow down. The call had no effect.
    Throttled,
    /// The credentials may not do this.
    Denied,
    /// The credentials themselves are expired or unknown; retried.
    Credentials,
    /// The resource is in the wrong state for this now: waiting, not an error.
    Busy,
    /// Something else in AWS still uses it, or it needs something else first.
    Dependency,
    /// The name is taken.
    Exists,
    /// A concurrent change; retried.
    Conflict,
    /// An account limit is reached.
    Quota,
    /// AWS refuses the request as it stands.
    Invalid,
    /// The idempotency token was used with other parameters.
    TokenMismatch,
    /// A principal or role that AWS does not know everywhere yet; retried for two minutes.
    NotPropagated,
    /// This process may not change AWS now: it lost, or does not yet hold, the lease.
    Fenced,
    /// Time-out, connection reset or 5xx: the call may or may not have had its effect.
    Transient,
}

impl Class {
    /// Whether AWS answered that it did nothing. Only then is a create known not to have happened.
    pub fn is_definite(self) -> bool {
        !matches!(self, Class::Transient | Class::TokenMismatch | Class::Exists)
    }

    /// Whether retrying without any change by a person can help soon.
    pub fn heals_by_itself(self) -> bool {
        matches!(
            self,
            Class::Throttled
                | Class::Credentials
                | Class::Busy
                | Class::Dependency
                | Class::Conflict
                | Class::NotPropagated
                | Class::Fenced
                | Class::Transient
        )
    }
}

/// A failed AWS call.
#[derive(Clone, Debug, ThisError)]
#[error("{operation}: {}{message}{}", code_prefix(.code), request_suffix(.request_id))]
pub struct Error {
    /// What the engine does about it.
    pub class: Class,
    /// The AWS operation, such as `CreateVpc`.
    pub operation: String,
    /// AWS's error code; empty where no answer came.
    pub code: String,
    /// AWS's own message.
    pub message: String,
    /// AWS's request id; empty where no answer came.
    pub request_id: String,
}

impl Error {
    /// A failure found before any call: the input itself is wrong.
    pub fn invalid(operation: &str, message: impl Into<String>) -> Self {
        Self::new(Class::Invalid, operation, message)
    }

    /// A failure without an answer of AWS behind it.
    pub fn new(class: Class, operation: &str, message: impl Into<String>) -> Self {
        Self {
            class,
            operation: operation.to_owned(),
            code: String::new(),
            message: message.into(),
            request_id: String::new(),
        }
    }

    /// The same failure under another class, where a kind knows better than the general list.
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }
}

fn code_prefix(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!("{code}: ") }
}

fn request_suffix(request_id: &str) -> String {
    if request_id.is_empty() { String::new() } else { format!(" (request id {request_id})") }
}
