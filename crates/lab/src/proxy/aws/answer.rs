//! An answer on its way to the operator, and the errors that the proxy words itself.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::super::core::{Body, full};
use super::asked::{Asked, Protocol};
use super::xml::Element;

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// A success in EC2's words.
    pub fn ec2(operation: &str, fields: &[(&str, &str)]) -> Self {
        let mut root = Element::new(&format!("{operation}Response"));
        root.set("requestId", &new_request_id());
        fields.iter().for_each(|(name, text)| root.set(name, text));
        let mut answer =
            Self { status: StatusCode::OK, headers: content_type("text/xml"), body: Bytes::new() };
        answer.put(&root);
        answer
    }

    /// An error, worded as the service that was asked words its errors.
    pub fn error(asked: &Asked, status: u16, code: &str, message: &str) -> Self {
        let request_id = new_request_id();
        let (content, body) = match asked.protocol {
            Protocol::Ec2 => ("text/xml", ec2_error(code, message, &request_id)),
            Protocol::Query | Protocol::RestXml if asked.service != "s3" => {
                ("text/xml", query_error(status, code, message, &request_id))
            }
            Protocol::Query | Protocol::RestXml => {
                ("application/xml", error_element(code, message, &request_id))
            }
            Protocol::Json | Protocol::RestJson => {
                ("application/json", serde_json::json!({"__type": code, "message": message}).to_string())
            }
        };
        let mut headers = content_type(content);
        put_header(&mut headers, "x-amzn-requestid", &request_id);
        if matches!(asked.protocol, Protocol::Json | Protocol::RestJson) {
            put_header(&mut headers, "x-amzn-errortype", code);
        }
        let status = StatusCode::from_u16(status).expect("an HTTP status");
        Self { status, headers, body: body.into() }
    }

    /// The throttle of the service that was asked.
    pub fn throttle(asked: &Asked) -> Self {
        let (status, code, message) = match (asked.service.as_str(), asked.protocol) {
            ("ec2", _) => (503, "RequestLimitExceeded", "Request limit exceeded."),
            ("s3", _) => (503, "SlowDown", "Please reduce your request rate."),
            ("eks", _) => (429, "ThrottlingException", "Rate exceeded"),
            (_, Protocol::Json | Protocol::RestJson) => (400, "ThrottlingException", "Rate exceeded"),
            _ => (400, "Throttling", "Rate exceeded"),
        };
        Self::error(asked, status, code, message)
    }

    /// What the service that was asked says to temporary credentials that have run out.
    pub fn expired(asked: &Asked) -> Self {
        let (status, code, message) = match (asked.service.as_str(), asked.protocol) {
            ("ec2", _) => (400, "RequestExpired", "Request has expired."),
            ("s3", _) => (400, "ExpiredToken", "The provided token has expired."),
            (_, Protocol::Json | Protocol::RestJson) => {
                (403, "ExpiredTokenException", "The security token included in the request is expired")
            }
            _ => (403, "ExpiredToken", "The security token included in the request is expired"),
        };
        Self::error(asked, status, code, message)
    }

    /// AWS's own failure.
    pub fn server_error(asked: &Asked, status: u16) -> Self {
        let code = match (status, asked.protocol) {
            (503, Protocol::Ec2) => "Unavailable",
            (503, _) => "ServiceUnavailable",
            (_, Protocol::Ec2) => "InternalError",
            _ => "InternalFailure",
        };
        Self::error(asked, status, code, "The request processing has failed because of an unknown error.")
    }

    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    pub fn xml(&self) -> Option<Element> {
        Element::parse(std::str::from_utf8(&self.body).ok()?)
    }

    pub fn put(&mut self, root: &Element) {
        self.body = root.document().into();
    }

    pub fn error_code(&self) -> Option<String> {
        if self.status.as_u16() < 400 {
            return None;
        }
        if let Some(code) = self.headers.get("x-amzn-errortype") {
            return code.to_str().ok().map(|code| code.split(':').next().unwrap_or(code).to_owned());
        }
        if let Some(root) = self.xml() {
            return root.find("Code").map(Element::text);
        }
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        let code = body.get("__type").or_else(|| body.get("code"))?.as_str()?;
        Some(code.rsplit('#').next().unwrap_or(code).to_owned())
    }

    /// AWS names each answer; an emulator may forget.
    pub fn named(&mut self) -> String {
        let present =
            ["x-amzn-requestid", "x-amz-request-id"].iter().find_map(|name| self.headers.get(*name));
        if let Some(id) = present.and_then(|id| id.to_str().ok()) {
            return id.to_owned();
        }
        let id = new_request_id();
        put_header(&mut self.headers, "x-amzn-requestid", &id);
        id
    }

    /// The same answer, given a second time.
    pub fn again(&self) -> Self {
        let mut again = self.clone();
        again.headers.remove("x-amzn-requestid");
        again.headers.remove("x-amz-request-id");
        again
    }

    pub fn response(self) -> Response<Body> {
        let mut response = Response::new(full(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

fn ec2_error(code: &str, message: &str, request_id: &str) -> String {
    let mut errors = Element::new("Errors");
    errors.push(error(code, message));
    let mut root = Element::new("Response");
    root.push(errors);
    root.set("RequestID", request_id);
    root.document()
}

fn query_error(status: u16, code: &str, message: &str, request_id: &str) -> String {
    let mut error = error(code, message);
    error.set("Type", if status < 500 { "Sender" } else { "Receiver" });
    let mut root = Element::new("ErrorResponse");
    root.push(error);
    root.set("RequestId", request_id);
    root.document()
}

fn error_element(code: &str, message: &str, request_id: &str) -> String {
    let mut root = error(code, message);
    root.set("RequestId", request_id);
    root.document()
}

fn error(code: &str, message: &str) -> Element {
    let mut error = Element::new("Error");
    error.set("Code", code);
    error.set("Message", message);
    error
}

fn content_type(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static(value))])
}

fn put_header(headers: &mut HeaderMap, name: &'static str, value: &str) {
    headers.insert(name, HeaderValue::from_str(value).expect("a header value"));
}

fn new_request_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("00000000-0000-4000-8000-{:012x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
