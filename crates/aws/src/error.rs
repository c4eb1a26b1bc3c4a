//! From the SDK's results to the project's.

use std::any::type_name;
use std::error::Error as StdError;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::interceptors::context::FinalizerInterceptorContextRef;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::{ErrorMetadata, ProvideErrorMetadata};
use aws_types::request_id::RequestId;
use resource::{Class, Error, Result};

use crate::class::{classify, label};
use crate::guard::Fenced;

/// Turns the SDK's result of a call into the project's.
pub trait Answer<T>: Sized {
    /// The output, or the error with its operation, code, message, request id and class.
    fn answer(self) -> Result<T>;

    /// As [`answer`](Self::answer), for a service that does not call its permissions as its
    /// operations: `permission` knows which one an operation needs.
    fn answer_permitted_by(self, permission: fn(&str) -> String) -> Result<T>;

    /// As [`answer`](Self::answer); None where AWS itself says with one of these codes that the
    /// resource is absent. For observing and deleting: on a create or update the same code may
    /// speak of something else that the call names.
    fn answer_or_absent(self, absent_codes: &[&str]) -> Result<Option<T>> {
        or_absent(self.answer(), absent_codes)
    }
}

/// None where AWS itself says with one of these codes that the resource is absent.
pub fn or_absent<T>(answer: Result<T>, absent_codes: &[&str]) -> Result<Option<T>> {
    match answer {
        // Without a request id it is not AWS that answered.
        Err(error) if !error.request_id.is_empty() && absent_codes.contains(&error.code.as_str()) => Ok(None),
        answer => answer.map(Some),
    }
}

impl<T, E> Answer<T> for std::result::Result<T, SdkError<E, HttpResponse>>
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    fn answer(self) -> Result<T> {
        let (service, operation) = origin::<E>();
        self.map_err(|failure| convert(operation, &failure, || format!("{service}:{operation}")))
    }

    fn answer_permitted_by(self, permission: fn(&str) -> String) -> Result<T> {
        let (_, operation) = origin::<E>();
        self.map_err(|failure| convert(operation, &failure, || permission(operation)))
    }
}

fn convert<E>(
    operation: &str,
    failure: &SdkError<E, HttpResponse>,
    permission: impl FnOnce() -> String,
) -> Error
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    match failure {
        SdkError::ServiceError(answer) => refusal(operation, answer.err().meta(), answer.raw(), permission),
        failure => unanswered(operation, failure, failure.raw_response()),
    }
}

/// AWS, or something before it, answered with an error.
fn refusal(
    operation: &str,
    meta: &ErrorMetadata,
    raw: &HttpResponse,
    permission: impl FnOnce() -> String,
) -> Error {
    let code = meta.code().unwrap_or_default().to_owned();
    let request_id = request_id(raw).unwrap_or_default().to_owned();
    let status = raw.status().as_u16();
    let class = refusal_class(operation, &code, &request_id, status);
    let message = match meta.message() {
        Some(message) => message.to_owned(),
        None if request_id.is_empty() => {
            format!("HTTP status {status} from something that is not AWS")
        }
        None if status < 400 => format!("AWS's answer (HTTP status {status}) cannot be understood"),
        None => format!("HTTP status {status}"),
    };
    let message = match class {
        // AWS's newer messages name the missing permission themselves.
        Class::Denied if !message.contains("to perform: ") => {
            format!("{message} (the credentials need the permission {})", permission())
        }
        _ => message,
    };
    Error { class, operation: operation.to_owned(), code, message, request_id }
}

fn refusal_class(operation: &str, code: &str, request_id: &str, status: u16) -> Class {
    // A proxy's or load balancer's own words say nothing about what AWS did.
    if code.is_empty() && request_id.is_empty() {
        return Class::Transient;
    }
    classify(operation, code, status)
}

/// No answer came, or none that can be read.
fn unanswered<E>(operation: &str, failure: &SdkError<E, HttpResponse>, raw: Option<&HttpResponse>) -> Error
where
    E: StdError + 'static,
{
    let cause = innermost(failure);
    let (class, message) = match (unsent(failure), failure) {
        (Some((class, message)), _) => (class, message),
        (None, SdkError::ConstructionFailure(_)) => (Class::Invalid, format!("not sent: {cause}")),
        (None, SdkError::ResponseError(_)) => (Class::Transient, format!("unreadable answer: {cause}")),
        (None, _) => (Class::Transient, format!("no answer from AWS: {cause}")),
    };
    let mut error = Error::new(class, operation, message);
    error.request_id = raw.and_then(request_id).unwrap_or_default().to_owned();
    error
}

/// The failures that are known to have kept a call from being sent.
fn unsent(failure: &(dyn StdError + 'static)) -> Option<(Class, String)> {
    chain(failure).find_map(|cause| {
        if let Some(fenced) = cause.downcast_ref::<Fenced>() {
            return Some((Class::Fenced, fenced.to_string()));
        }
        let credentials = cause.downcast_ref::<CredentialsError>()?;
        let message = format!("not sent: no usable AWS credentials: {}", innermost(credentials));
        Some((Class::Credentials, message))
    })
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (**error).source())
}

fn innermost(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Service and operation from the name of the operation's error type, such as
/// `aws_sdk_ec2::operation::create_vpc::CreateVpcError`.
fn origin<E>() -> (&'static str, &'static str) {
    let name = type_name::<E>();
    let service = name.strip_prefix("aws_sdk_").and_then(|rest| rest.split("::").next());
    let error = name.rsplit("::").next().unwrap_or(name);
    (service.unwrap_or_default(), error.strip_suffix("Error").unwrap_or(error))
}

/// From the header; some services write it into the body only.
fn request_id(response: &HttpResponse) -> Option<&str> {
    let in_body = || {
        let body = body(response)?;
        between(body, "<RequestID>", "<").or_else(|| between(body, "<RequestId>", "<"))
    };
    RequestId::request_id(response).or_else(in_body)
}

/// How one attempt ended.
pub(crate) struct Attempt<'a> {
    pub(crate) outcome: &'static str,
    pub(crate) code: &'a str,
    pub(crate) request_id: &'a str,
}

/// Reads the end of an attempt where the type of the operation's error is not known.
pub(crate) fn attempt<'a>(operation: &str, context: &'a FinalizerInterceptorContextRef<'_>) -> Attempt<'a> {
    let response = context.response();
    let request_id = response.and_then(request_id).unwrap_or_default();
    let failure = match context.output_or_error() {
        Some(Ok(_)) => {
            return Attempt { outcome: "ok", code: "", request_id };
        }
        Some(Err(failure)) => Some(failure),
        None => None,
    };
    let (class, code) = match (response, failure) {
        (Some(response), Some(failure)) if failure.is_operation_error() => {
            let code = code(response).unwrap_or_default();
            (refusal_class(operation, code, request_id, response.status().as_u16()), code)
        }
        (_, Some(failure)) => (unsent(failure).map_or(Class::Transient, |(class, _)| class), ""),
        (_, None) => (Class::Transient, ""),
    };
    Attempt { outcome: label(class), code, request_id }
}

/// The error code as the protocols write it: a header, JSON's `__type`, or XML's `Code`.
fn code(response: &HttpResponse) -> Option<&str> {
    let header =
        response.headers().get("x-amzn-errortype").map(|code| code.split(':').next().unwrap_or(code));
    let in_body = || {
        let body = body(response)?;
        between(body, "<Code>", "<").or_else(|| between(body, "\"__type\":\"", "\""))
    };
    let code = header.or_else(in_body)?;
    Some(code.rsplit('#').next().unwrap_or(code))
}

fn body(response: &HttpResponse) -> Option<&str> {
    std::str::from_utf8(response.body().bytes()?).ok()
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(found, _)| found)
}
