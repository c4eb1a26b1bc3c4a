//! The way of a call through the proxy: fault, hook, AWS's manners, emulator, hook, caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::super::core::{Cut, Hook, Log, Reply, Serve, Stage, Upstream, end_to_end};
use super::super::faults::{Fault, Faults};
use super::answer::Answer;
use super::asked::Asked;
use super::call::Call;
use super::databases::{self, Endpoint};
use super::eks::Eks;
use super::lag::Lag;
use super::lies::NatAddresses;
use super::plain::Plain;
use super::resources::Resource;
use super::rules::{Action, Match};
use super::settings::{self, Settings};
use super::slow::Slow;
use super::tokens::{Seen, Tokens};
use super::xml::Element;
use super::{lies, pages, s3};

/// All that the proxy knows.
pub(super) struct World {
    pub upstream: Upstream,
    /// Of services that the emulator doesn't have.
    pub others: HashMap<String, Upstream>,
    pub log: Log<Call>,
    pub faults: Faults<Match, Action>,
    pub hook: Hook<Call>,
    pub lag: Lag,
    pub slow: Slow,
    pub tokens: Tokens,
    pub nat_addresses: NatAddresses,
    pub eks: Eks,
    pub databases: Endpoint,
    pub settings: Settings,
    /// Items a page; 0 for whole lists.
    pub page: AtomicUsize,
    /// Every call unmasked, if a test wants that.
    pub plain: Mutex<Option<Vec<Plain>>>,
}

impl Serve for World {
    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        let mut asked = Asked::read(parts, body);
        asked.seq = self.log.push(|seq| asked.call(seq));
        if let Some(plain) = &mut *self.plain.lock() {
            plain.push(Plain::of(&asked));
        }
        // A task of its own: a caller that goes away (or is killed by the hook) must not undo the effect.
        let passing = tokio::spawn(async move { self.pass(&asked).await });
        passing.await.map_err(|_| Cut)?.map(Answer::response)
    }
}

/// A way in that is not watched.
pub(super) struct SideDoor(pub Arc<World>);

impl Serve for SideDoor {
    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        // A number that the log doesn't have.
        let asked = Asked { seq: u64::MAX, ..Asked::read(parts, body) };
        let mut answer = self.0.mannered(&asked).await?;
        answer.named();
        Ok(answer.response())
    }
}

/// What becomes of an answer.
enum Fate {
    Delivered,
    Lost(Duration),
    Denied(u16),
    Held(Fault),
}

impl World {
    async fn pass(&self, asked: &Asked) -> Result<Answer, Cut> {
        let fate = match self.strike(asked).await? {
            Struck::Answered(mut answer) => {
                self.record(asked, &mut answer);
                return Ok(answer);
            }
            Struck::Goes(fate) => fate,
        };
        self.hook.ask(Stage::Before, || self.log.get(asked.seq)).await?;
        let mut answer = self.idempotent(asked).await?;
        self.record(asked, &mut answer);
        self.hook.ask(Stage::After, || self.log.get(asked.seq)).await?;
        match fate {
            Fate::Delivered => Ok(answer),
            Fate::Lost(after) => {
                self.note(asked, "answer lost");
                tokio::time::sleep(after).await;
                Err(Cut)
            }
            Fate::Denied(status) => {
                self.note(asked, "answer replaced");
                Ok(Answer::server_error(asked, status))
            }
            Fate::Held(fault) => {
                self.note(asked, "answer held");
                fault.released().await;
                Ok(answer)
            }
        }
    }

    async fn strike(&self, asked: &Asked) -> Result<Struck, Cut> {
        let Some((action, fault)) = self.faults.strike(|matcher| matcher.matches(asked)) else {
            return Ok(Struck::Goes(Fate::Delivered));
        };
        let struck = match action {
            Action::Throttle => Struck::Answered(Answer::throttle(asked)),
            Action::Expire => Struck::Answered(Answer::expired(asked)),
            Action::ServerError(status) => Struck::Answered(Answer::server_error(asked, status)),
            Action::Error { status, code, message } => {
                Struck::Answered(Answer::error(asked, status, &code, &message))
            }
            Action::ResetBefore => {
                self.note(asked, "reset");
                return Err(Cut);
            }
            Action::ResetAfter => Struck::Goes(Fate::Lost(Duration::ZERO)),
            Action::ServerErrorAfter(status) => Struck::Goes(Fate::Denied(status)),
            Action::HoldAnswer => Struck::Goes(Fate::Held(fault)),
            Action::TimeoutAfterEffect(time) => Struck::Goes(Fate::Lost(time)),
            Action::Delay(time) => {
                self.note(asked, "delayed");
                tokio::time::sleep(time).await;
                Struck::Goes(Fate::Delivered)
            }
            Action::Hold => {
                self.note(asked, "held");
                fault.released().await;
                Struck::Goes(Fate::Delivered)
            }
        };
        if let Struck::Answered(_) = struck {
            self.note(asked, "injected");
        }
        Ok(struck)
    }

    /// The answer, once for each idempotency token.
    async fn idempotent(&self, asked: &Asked) -> Result<Answer, Cut> {
        let Some(slot) = self.tokens.slot(asked) else {
            return self.mannered(asked).await;
        };
        let mut slot = slot.lock().await;
        if let Some(seen) = &*slot {
            self.note(asked, "replayed");
            return Ok(seen.replay(asked));
        }
        let answer = self.mannered(asked).await?;
        if answer.is_success() {
            *slot = Some(Seen::new(asked, &answer));
        }
        Ok(answer)
    }

    /// The emulator's answer, with AWS's manners.
    async fn mannered(&self, asked: &Asked) -> Result<Answer, Cut> {
        if let Some(refusal) = self.lag.refuse(asked) {
            self.note(asked, "lag");
            return Ok(refusal);
        }
        if let Some(refusal) = lies::refuse(self, asked).await? {
            self.note(asked, "refused");
            return Ok(refusal);
        }
        if let Some(refusal) = databases::refuse(self, asked).await? {
            self.note(asked, "refused");
            return Ok(refusal);
        }
        if let Some(answer) = self.postpone(asked).await? {
            self.note(asked, "postponed");
            return Ok(answer);
        }
        if let Some(answer) = self.eks(asked).await? {
            return Ok(answer);
        }
        let before = lies::rules_before(self, asked).await?;
        let mut answer = self.forward(asked).await?;
        if answer.is_success() {
            s3::tag(self, asked).await?;
        }
        s3::mend(asked, &mut answer);
        if !asked.is_form() || !answer.is_success() {
            return Ok(answer);
        }
        let Some(came) = answer.xml() else {
            return Ok(answer);
        };
        let mut root = came.clone();
        if let Some(before) = before {
            lies::complete_rules(self, asked, &before, &mut root).await?;
        }
        self.settings.learn(asked);
        self.settings.fill(&mut root);
        self.nat_addresses.learn(asked, &root);
        self.nat_addresses.fill(&mut root);
        lies::filter(asked, &mut root);
        self.lag.learn(asked, &root);
        self.lag.filter(asked, &mut root);
        self.slow.learn(asked, &mut root);
        if let Some(resource) = Resource::described_by(&asked.operation) {
            for id in self.slow.show(resource, &mut root) {
                self.ask(asked, &[("Action", resource.delete), (resource.param, &id)]).await?;
                self.slow.done(&id);
            }
        }
        let page = self.page.load(Ordering::Relaxed);
        let mut refusal = lies::missing(asked, &root);
        if refusal.is_none() && page > 0 {
            refusal = pages::cut(asked, &mut root, page);
        }
        if let Some(refusal) = refusal {
            return Ok(refusal);
        }
        if root != came {
            answer.put(&root);
        }
        Ok(answer)
    }

    /// A slow delete: answered now, done by the describe that shows it last.
    async fn postpone(&self, asked: &Asked) -> Result<Option<Answer>, Cut> {
        let Some(resource) = Resource::deleted_by(&asked.operation) else {
            return Ok(None);
        };
        let Some(id) = asked.params.get(resource.param) else {
            return Ok(None);
        };
        if !self.slow.is_slow(&asked.operation) {
            return Ok(None);
        }
        let by_id = format!("{}.1", resource.param);
        let found = self.ask(asked, &[("Action", resource.describe), (&by_id, id)]).await?;
        let item = found.find(resource.set).and_then(|set| set.children().next());
        let state = item.and_then(|item| item.child_text(resource.state?));
        match state.as_deref() {
            None | Some("deleted") => Ok(None),
            Some(_) => Ok(self.slow.postpone(asked, resource, id)),
        }
    }

    pub async fn forward(&self, asked: &Asked) -> Result<Answer, Cut> {
        self.log.edit(asked.seq, |call| call.forwarded = true);
        let whole = if self.page.load(Ordering::Relaxed) > 0 { pages::whole(asked) } else { None };
        let form = settings::flushing(self, asked).await?;
        let form = form.or(whole).or_else(|| self.databases.form(asked));
        self.send(asked, form.map_or_else(|| asked.body.clone(), Bytes::from)).await
    }

    /// A question of the proxy's own, in the caller's name; not logged.
    pub async fn ask(&self, asked: &Asked, fields: &[(&str, &str)]) -> Result<Element, Cut> {
        let version = asked.params.get("Version").map(|version| ("Version", version.as_str()));
        let fields = fields.iter().copied().chain(version);
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let answer = self.send(asked, form.into()).await?;
        let mut root = answer.xml().unwrap_or_else(|| Element::new("Response"));
        self.nat_addresses.fill(&mut root);
        Ok(root)
    }

    /// The same of a REST service.
    pub async fn ask_rest(&self, asked: &Asked, method: Method, path: &str) -> Result<Answer, Cut> {
        let mut question = asked.parts.clone();
        question.method = method;
        question.uri = path.parse().map_err(|_| Cut)?;
        self.relay(&self.upstream, &question, Bytes::new()).await
    }

    /// A change that a REST service should have made by itself.
    pub async fn put_rest(&self, asked: &Asked, path: &str, body: String) -> Result<Answer, Cut> {
        let mut change = asked.parts.clone();
        change.uri = path.parse().map_err(|_| Cut)?;
        self.relay(&self.upstream, &change, body.into()).await
    }

    async fn send(&self, asked: &Asked, body: Bytes) -> Result<Answer, Cut> {
        let upstream = self.others.get(&asked.service).unwrap_or(&self.upstream);
        self.relay(upstream, &asked.parts, body).await
    }

    async fn relay(&self, upstream: &Upstream, question: &Parts, body: Bytes) -> Result<Answer, Cut> {
        let (parts, body) = upstream.send(question, body).await?.into_parts();
        let mut headers = end_to_end(&parts.headers);
        if question.method == Method::HEAD
            && let Some(length) = parts.headers.get(header::CONTENT_LENGTH)
        {
            headers.insert(header::CONTENT_LENGTH, length.clone());
        }
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        Ok(Answer { status: parts.status, headers, body })
    }

    fn note(&self, asked: &Asked, note: &'static str) {
        self.log.edit(asked.seq, |call| call.note = Some(note));
    }

    fn record(&self, asked: &Asked, answer: &mut Answer) {
        let request_id = answer.named();
        self.log.edit(asked.seq, |call| {
            call.status = Some(answer.status.as_u16());
            call.error_code = answer.error_code();
            call.request_id = Some(request_id);
        });
    }
}

/// What a fault makes of a call.
enum Struck {
    Answered(Answer),
    Goes(Fate),
}
