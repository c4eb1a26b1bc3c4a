//! The way of a call: its latency, its effect, its answer. Below `/_stub/` the stub itself is asked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::json;

use super::ec2::Ec2;
use super::iam::{Iam, caller_identity};
use super::record::Record;
use super::refusal::Refusal;
use super::s3::S3;
use crate::proxy::aws::answer::Answer;
use crate::proxy::aws::asked::Asked;
use crate::proxy::aws::xml::Element;
use crate::proxy::core::{Cut, Reply, Serve, full};

const CONTROL: &str = "/_stub/";

#[derive(Default)]
pub(super) struct Service {
    world: Mutex<World>,
    latency: Mutex<Duration>,
}

/// All that is kept.
#[derive(Default)]
struct World {
    ec2: Ec2,
    iam: Iam,
    s3: S3,
    record: Record,
}

impl Service {
    pub fn set_latency(&self, latency: Duration) {
        *self.latency.lock() = latency;
    }

    /// `calls`, `requests`, `record`, `latency/MS`.
    fn control(&self, word: &str) -> Option<String> {
        let mut world = self.world.lock();
        match word.split_once('/') {
            None if word == "calls" => Some(json!(world.record.counts()).to_string()),
            None if word == "requests" => Some(json!(world.record.calls()).to_string()),
            None if word == "record" => {
                world.record.keeps = true;
                Some(String::new())
            }
            Some(("latency", milliseconds)) => {
                self.set_latency(Duration::from_millis(milliseconds.parse().ok()?));
                Some(String::new())
            }
            _ => None,
        }
    }
}

impl World {
    fn answer(&mut self, asked: &Asked) -> Answer {
        self.record.add(asked);
        let done = match asked.service.as_str() {
            "ec2" => self.ec2.answer(asked).map(Some),
            "iam" => self.iam.answer(asked).map(Some),
            "sts" => caller_identity(asked).map(Some),
            "s3" => self.s3.answer(asked),
            _ => Err(Refusal::unknown(&asked.operation)),
        };
        let mut answer = match done {
            Ok(root) => success(root.as_ref()),
            Err(refusal) => Answer::error(asked, refusal.status, refusal.code, &refusal.message),
        };
        answer.named();
        answer
    }
}

fn success(root: Option<&Element>) -> Answer {
    let xml = (header::CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    let mut answer =
        Answer { status: StatusCode::OK, headers: HeaderMap::from_iter([xml]), body: Bytes::new() };
    if let Some(root) = root {
        answer.put(root);
    }
    answer
}

impl Serve for Service {
    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        if let Some(word) = parts.uri.path().strip_prefix(CONTROL) {
            let said = self.control(word);
            let mut response = Response::new(full(Bytes::from(said.clone().unwrap_or_default())));
            if said.is_none() {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            return Ok(response);
        }
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        let asked = Asked::read(parts, body);
        let latency = *self.latency.lock();
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let answer = self.world.lock().answer(&asked);
        Ok(answer.response())
    }
}
