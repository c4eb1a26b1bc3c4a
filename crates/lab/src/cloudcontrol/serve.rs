//! AWS JSON 1.0 over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::api::answer;
use super::refusal::Refusal;
use super::store::Store;
use crate::proxy::core::{Cut, Reply, Serve, full};

const TARGET: &str = "CloudApiService.";

#[derive(Default)]
pub(super) struct Service {
    store: Mutex<Store>,
    answers: AtomicU64,
}

impl Service {
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }

    fn answer(&self, target: Option<&str>, body: &[u8]) -> Result<Value, Refusal> {
        let operation = target.and_then(|target| target.strip_prefix(TARGET));
        let operation =
            operation.ok_or_else(|| Refusal::new("UnknownOperationException", "no X-Amz-Target"))?;
        let input = serde_json::from_slice(body)
            .map_err(|error| Refusal::new("SerializationException", error.to_string()))?;
        answer(&mut self.store(), operation, &input)
    }
}

impl Serve for Service {
    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        let target = parts.headers.get("x-amz-target").and_then(|value| value.to_str().ok());
        let (status, answer) = match self.answer(target, &body) {
            Ok(answer) => (StatusCode::OK, answer),
            Err(refusal) => (refusal.status(), refusal.body()),
        };
        let id = format!("00000000-0000-4000-9000-{:012x}", self.answers.fetch_add(1, Ordering::Relaxed));
        let mut response = Response::new(full(Bytes::from(answer.to_string())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        headers.insert("x-amzn-requestid", HeaderValue::from_str(&id).map_err(|_| Cut)?);
        Ok(response)
    }
}
