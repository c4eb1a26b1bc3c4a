//! The progress of a request, as Cloud Control tells it.

use aws::{Answer, or_absent};
use aws_sdk_cloudcontrol::types::{HandlerErrorCode, OperationStatus, ProgressEvent};
use resource::{Class, Error, Result};

/// How far a request is.
#[derive(Debug)]
pub enum Progressed {
    /// Under way; the token tells how it goes.
    Running(String),
    /// Done; the identifier of the resource.
    Done(String),
    /// Failed for good.
    Failed(Failure),
}

/// How a request failed.
#[derive(Debug)]
pub struct Failure {
    /// AWS's words.
    pub error: Error,
    /// The resource that it may have left behind.
    pub identifier: Option<String>,
}

/// Reads a progress event of an operation.
pub fn read(operation: &str, event: Option<&ProgressEvent>) -> Progressed {
    let Some(event) = event else {
        let error = Error::new(Class::Transient, operation, "the answer tells no progress");
        return Progressed::Failed(Failure { error, identifier: None });
    };
    match event.operation_status() {
        Some(OperationStatus::Success) => Progressed::Done(event.identifier().unwrap_or_default().to_owned()),
        Some(OperationStatus::Failed | OperationStatus::CancelComplete) => {
            Progressed::Failed(failure(operation, event))
        }
        _ => Progressed::Running(event.request_token().unwrap_or_default().to_owned()),
    }
}

/// The answer to a call; errors have the classes that only hold here.
pub fn answer<T>(result: impl Answer<T>) -> Result<T> {
    result.answer_permitted_by(permission).map_err(|error| match error.code.as_str() {
        // Another request on the same resource has not ended yet.
        "ConcurrentOperationException" => error.class(Class::Busy),
        "TypeNotFoundException" => error.class(Class::Invalid),
        "GeneralServiceException" => error.class(Class::Transient),
        _ => error,
    })
}

/// The same; None where AWS itself answers with one of these codes.
pub fn answer_or_absent<T>(result: impl Answer<T>, codes: &[&str]) -> Result<Option<T>> {
    or_absent(answer(result), codes)
}

/// IAM knows Cloud Control's operations as CloudFormation's.
fn permission(operation: &str) -> String {
    format!("cloudformation:{operation}")
}

/// The refusal of an update, with the properties in it of which AWS decides from case to case whether
/// they can be changed.
pub fn not_updatable(error: Error, conditional: Vec<&str>) -> Error {
    if !error.code.starts_with("NotUpdatable") || conditional.is_empty() {
        return error;
    }
    let message = format!(
        "{}; AWS changes {} under conditions only: set it back to what AWS has, or delete this object and create it \
         anew",
        error.message,
        conditional.join(", ")
    );
    Error { class: Class::Invalid, message, ..error }
}

fn failure(operation: &str, event: &ProgressEvent) -> Failure {
    let code = event.error_code().map(HandlerErrorCode::as_str).unwrap_or_default();
    let message = event.status_message().unwrap_or("AWS gives no reason").to_owned();
    Failure {
        error: Error { code: code.to_owned(), ..Error::new(class(code), operation, message) },
        // What exists already is not of this request.
        identifier: event.identifier().filter(|_| code != "AlreadyExists").map(str::to_owned),
    }
}

/// What a handler's error code means:
/// <https://docs.aws.amazon.com/cloudcontrolapi/latest/userguide/resource-operations.html>.
fn class(code: &str) -> Class {
    match code {
        "AccessDenied" | "UnauthorizedTaggingOperation" => Class::Denied,
        "InvalidCredentials" => Class::Credentials,
        "AlreadyExists" => Class::Exists,
        "NotFound" => Class::NotFound,
        "ResourceConflict" => Class::Busy,
        "Throttling" => Class::Throttled,
        "ServiceLimitExceeded" => Class::Quota,
        "GeneralServiceException"
        | "NetworkFailure"
        | "ServiceInternalError"
        | "InternalFailure"
        | "ServiceTimeout" => Class::Transient,
        _ => Class::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_reads_as_what_to_do() {
        let event = |status| {
            ProgressEvent::builder().operation_status(status).request_token("t").identifier("i").build()
        };
        assert!(
            matches!(read("CreateResource", Some(&event(OperationStatus::InProgress))), Progressed::Running(token) if token == "t")
        );
        assert!(
            matches!(read("CreateResource", Some(&event(OperationStatus::Success))), Progressed::Done(id) if id == "i")
        );
        let failed = ProgressEvent::builder()
            .operation_status(OperationStatus::Failed)
            .error_code(HandlerErrorCode::NotUpdatable)
            .status_message("Name is create-only")
            .build();
        let Progressed::Failed(Failure { error, .. }) = read("UpdateResource", Some(&failed)) else {
            panic!()
        };
        assert_eq!((error.class, error.code.as_str()), (Class::Invalid, "NotUpdatable"));
        assert!(error.to_string().contains("Name is create-only"), "{error}");
    }
}
