//! The way of a request through the proxy: fault, hook, API server, hook, caller.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::Value;

use super::super::core::{Body, Cut, Hook, Log, Reply, Serve, Stage, Upstream, end_to_end, full};
use super::super::faults::Faults;
use super::rules::{Action, Match};
use super::write::{Target, Verb, Write};

/// Requests that only read, counted by verb and `resource.group`.
pub(super) type Reads = BTreeMap<(Verb, String), usize>;

/// All that the proxy knows.
pub(super) struct Gate {
    pub upstream: Upstream,
    pub log: Log<Write>,
    pub reads: Mutex<Reads>,
    /// What stood above the bodies of all requests, if a test wants that.
    pub heads: Mutex<Option<BTreeSet<String>>>,
    pub faults: Faults<Match, Action>,
    pub hook: Hook<Write>,
}

/// A request with what was read off it; `seq` is its number in the log, if it is a write.
struct Asked {
    parts: Parts,
    body: Bytes,
    target: Target,
    seq: Option<u64>,
}

impl Serve for Gate {
    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        let value = read(&body);
        let target = Target::read(&parts, &value);
        if let Some(heads) = &mut *self.heads.lock() {
            heads.insert(head(&parts));
        }
        let seq = self.enter(&parts, &target, value);
        let asked = Asked { parts, body, target, seq };
        if asked.seq.is_none() {
            return self.pass(&asked).await;
        }
        // A task of its own: a writer that goes away (or is killed by the hook) must not undo the effect.
        tokio::spawn(async move { self.pass(&asked).await }).await.map_err(|_| Cut)?
    }
}

/// A body, as a text if it is no JSON.
fn read(body: &[u8]) -> Value {
    match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(_) if body.is_empty() => Value::Null,
        Err(_) => String::from_utf8_lossy(body).into(),
    }
}

/// Method, path and headers, but for the credentials.
fn head(parts: &Parts) -> String {
    let mut head = format!("{} {}", parts.method, parts.uri);
    for (name, value) in parts.headers.iter().filter(|(name, _)| **name != header::AUTHORIZATION) {
        write!(head, "\n{name}: {}", String::from_utf8_lossy(value.as_bytes())).expect("a String");
    }
    head
}

impl Gate {
    fn enter(&self, parts: &Parts, target: &Target, body: Value) -> Option<u64> {
        if !target.verb.is_write() {
            let what = [target.resource.as_str(), target.group.as_str()].join(".");
            let what = what.trim_matches('.');
            let what = if what.is_empty() { parts.uri.path() } else { what };
            *self.reads.lock().entry((target.verb, what.to_owned())).or_default() += 1;
            return None;
        }
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Some(self.log.push(|seq| Write {
            seq,
            at: Instant::now(),
            target: target.clone(),
            path: parts.uri.to_string(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body,
            status: None,
            forwarded: false,
            note: None,
        }))
    }

    async fn pass(&self, asked: &Asked) -> Reply {
        let mut lost = false;
        if let Some((action, fault)) = self.faults.strike(|matcher| matcher.matches(&asked.target)) {
            match action {
                Action::Status(status) => {
                    self.edit(asked, |write| (write.status, write.note) = (Some(status), Some("injected")));
                    return Ok(failure(status));
                }
                Action::ResetBefore => {
                    self.edit(asked, |write| write.note = Some("reset"));
                    return Err(Cut);
                }
                Action::ResetAfter => lost = true,
                Action::Delay(time) => tokio::time::sleep(time).await,
                Action::Hold => fault.released().await,
            }
        }
        self.hook(Stage::Before, asked).await?;
        self.edit(asked, |write| write.forwarded = true);
        let (parts, body) = self.upstream.send(&asked.parts, asked.body.clone()).await?.into_parts();
        self.edit(asked, |write| write.status = Some(parts.status.as_u16()));
        self.hook(Stage::After, asked).await?;
        if lost {
            self.edit(asked, |write| write.note = Some("answer lost"));
            return Err(Cut);
        }
        // Passed on chunk by chunk: a watch has no end.
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = parts.status;
        *response.headers_mut() = end_to_end(&parts.headers);
        Ok(response)
    }

    async fn hook(&self, stage: Stage, asked: &Asked) -> Result<(), Cut> {
        match asked.seq {
            Some(seq) => self.hook.ask(stage, || self.log.get(seq)).await,
            None => Ok(()),
        }
    }

    fn edit(&self, asked: &Asked, change: impl FnOnce(&mut Write)) {
        if let Some(seq) = asked.seq {
            self.log.edit(seq, change);
        }
    }
}

/// A `Status` object, as the API server words its refusals.
fn failure(status: u16) -> Response<Body> {
    let reason = match status {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected by the proxy", "reason": reason, "code": status,
    });
    let mut response = Response::new(full(body.to_string().into()));
    *response.status_mut() = StatusCode::from_u16(status).expect("an HTTP status");
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_kept_whatever_it_is() {
        assert_eq!(read(br#"{"a": 1}"#), json!({"a": 1}));
        assert_eq!(read(b"a: 1"), json!("a: 1"));
        assert_eq!(read(b"k8s\0\xff"), json!("k8s\0\u{fffd}"));
        assert_eq!(read(b""), Value::Null);
    }

    #[test]
    fn a_head_is_kept_without_the_credentials() {
        let request =
            Request::get("/api/v1/pods?limit=1").header("Authorization", "Bearer s").header("x-a", "b");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(head(&parts), "GET /api/v1/pods?limit=1\nx-a: b");
    }
}
