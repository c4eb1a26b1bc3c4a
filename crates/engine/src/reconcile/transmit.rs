//! Calls that change AWS, each with the write that must follow it. They run detached (R8):
//! neither a time-out, a restarted watch nor SIGTERM drops one half way; shutdown waits for them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::DynamicObject;
use resource::condition::{Reason, Verdict};
use resource::decide::Ground;
use resource::record::Creation;
use resource::schedule::SETTLE;
use resource::{Call, Changes, Class, Created, Live, Progress, Protection, Result, Role, diff};
use serde_json::{Map, Value, json};
use tokio::sync::{AcquireError, OwnedSemaphorePermit};
use tokio::time::Instant;

use super::{Answered, Inputs, Job};
use crate::cluster::{ClusterError, kept};
use crate::context::Context;
use crate::object::Object;

/// One of the workers. An error: the engine is being torn down.
type Worker = std::result::Result<OwnedSemaphorePermit, AcquireError>;

impl Job<'_> {
    /// R1 and R2: writes the intent, if the object still is as it was decided upon. The API server itself
    /// compares: it refuses what was decided on anything but the newest state of the object.
    /// False: it is not; decide anew.
    pub(super) async fn intend(
        &mut self,
        call: &mut Call,
        role: Role,
        attempt: u32,
        inputs: &Inputs,
    ) -> std::result::Result<bool, ClusterError> {
        let started_at = self.cx.now();
        let creation = Creation {
            token: Creation::token_of(&self.ownership.uid, role, attempt),
            started_at,
            since: self.resent_since(role, attempt),
            attempt,
            refused: false,
            account_id: call.scope.account_id.clone(),
            region: call.scope.region.clone(),
            id: None,
            request: None,
        };
        call.token = Some(creation.token.clone());
        call.attempted_since = creation.since;
        let mut intent = json!(creation);
        intent["refused"] = Value::Null;
        intent["id"] = Value::Null;
        intent["request"] = Value::Null;
        intent["since"] = json!(creation.since);
        let before = self.record.creation(role).cloned();
        let creating = Verdict::progressing(Reason::Creating, "AWS is asked to create it");
        // A retry goes on showing why the attempt before it failed.
        let mut status = match self.memory.failures {
            0 => self.status(&creating, None),
            _ => Map::new(),
        };
        status.insert("creation".to_owned(), json!({role.0: intent}));
        let is_new = role == Role::MAIN && creation.since.is_none();
        let managed = match is_new {
            // What something before it was given is not to be taken away from it.
            true => json!(diff::managed_paths(self.kind.schema(), &inputs.spec)),
            false => self.managed_by(inputs),
        };
        status.insert("managed".to_owned(), managed);
        status.insert("adopted".to_owned(), Value::Null);
        status.insert("secrets".to_owned(), self.carried_by_create(inputs, role));
        let status = Value::Object(status);
        let generation = self.generation;
        let still = move |live: &DynamicObject| {
            !live.is_deleting()
                && live.generation() == generation
                && live.record().is_ok_and(|record| record.creation(role) == before.as_ref())
        };
        let written = match self.cx.cluster.patch_status(self.meta(), &self.object, &status, still).await {
            Err(ClusterError::Changed(live)) => {
                self.took(*live);
                return Ok(false);
            }
            written => written?,
        };
        let is_kept = kept(&written, &format!("/creation/{}/token", role.0));
        self.took(written);
        if !is_kept {
            return Err(ClusterError::Pruned("creation"));
        }
        let took = Duration::try_from(self.cx.now().duration_since(started_at)).unwrap_or_default();
        if self.kind.protection(role, Some(&inputs.spec)) == Protection::None
            && took > self.cx.scaled(SETTLE) / 2
        {
            // The settle window counts from the intent, so it must not be old when the call is sent.
            self.write_status(json!({"creation": {role.0: {"refused": true}}})).await?;
            return Ok(false);
        }
        Ok(true)
    }

    /// What was managed, and what will be once this is done: an interrupted change loses neither.
    pub(super) fn managed_by(&self, inputs: &Inputs) -> Value {
        let mut managed = self.record.managed.clone();
        managed.extend(diff::managed_paths(self.kind.schema(), &inputs.spec));
        json!(managed)
    }

    /// Sends the create call and records what came of it, before anything else.
    pub(super) async fn create(
        &mut self,
        call: &Call,
        role: Role,
        inputs: &Inputs,
        worker: Worker,
    ) -> Answered<Created> {
        self.remember_carried(inputs);
        let (kind, call, spec, made) =
            (self.kind.clone(), call.clone(), inputs.spec.clone(), self.record.made());
        let (cx, object) = (self.cx.clone(), self.object.clone());
        let is_resent = self.is_resent(role);
        let (answer, written) = self
            .detached(async move {
                let _worker = worker;
                let answer = kind.create(&call, role, &spec, &made).await;
                cx.pace.answered(&call.scope, kind.meta(), &answer);
                // The call may have waited for its turn: reads may lag from now on, not from the intent.
                let outcome = match &answer {
                    Ok(created) => json!({"id": created.id, "startedAt": cx.now()}),
                    Err(error) if error.class == Class::Fenced => return (answer, None),
                    Err(error) if error.class.is_definite() && !is_resent => json!({"refused": true}),
                    Err(_) => json!({"startedAt": cx.now()}),
                };
                let status = json!({"creation": {role.0: outcome}});
                (answer, Some(persist(&cx, kind.meta(), &object, &status).await))
            })
            .await;
        self.memory.created = Some((self.cx.now(), Instant::now()));
        self.recorded(written)?;
        Ok(answer)
    }

    pub(super) async fn update(
        &mut self,
        call: &Call,
        live: &Live,
        target: &Value,
        changes: &Changes,
    ) -> Answered<Progress> {
        if let Err(held_back) = self.cx.pace.turn(&call.scope, self.meta()).await {
            return Ok(Err(held_back));
        }
        let id = self.record.made().get(Role::MAIN).unwrap_or_default().to_owned();
        let (kind, call, live) = (self.kind.clone(), call.clone(), live.clone());
        let (target, changes, cx) = (target.clone(), changes.clone(), self.cx.clone());
        let object = self.object.clone();
        let (answer, written) = self
            .detached(async move {
                let _worker = cx.workers.acquire().await;
                let answer = kind.update(&call, &id, &live, &target, &changes).await;
                cx.pace.answered(&call.scope, kind.meta(), &answer);
                let written = record_request(&cx, kind.meta(), &object, Role::MAIN, &answer).await;
                (answer, written)
            })
            .await;
        self.recorded(written)?;
        Ok(answer)
    }

    fn recorded(
        &mut self,
        written: Option<std::result::Result<DynamicObject, ClusterError>>,
    ) -> std::result::Result<(), ClusterError> {
        if let Some(written) = written {
            self.took(written?);
        }
        Ok(())
    }

    /// Whether an earlier transmission of the attempt may have made it: a refusal says nothing of that,
    /// and another token would make a second one.
    fn is_resent(&self, role: Role) -> bool {
        self.record.creation(role).is_some_and(|creation| creation.since.is_some())
    }

    /// Sends the create call of an attempt once more, to learn what it has made.
    pub(super) async fn recreate(&mut self, call: &Call, role: Role, inputs: &Inputs) -> Answered<Created> {
        let Some(sent) = self.record.creation(role).cloned() else { return Err(ClusterError::Gone) };
        self.write_status(json!({"creation": {role.0: {"since": sent.attempted_since()}}})).await?;
        let worker = self.cx.workers.clone().acquire_owned().await;
        let call = Call { token: Some(sent.token), ..call.clone() };
        self.create(&call, role, inputs, worker).await
    }

    /// A sent attempt keeps the time of its first transmission.
    fn resent_since(&self, role: Role, attempt: u32) -> Option<Timestamp> {
        let sent = self.record.creation(role).filter(|sent| sent.attempt == attempt && !sent.refused);
        sent.map(Creation::attempted_since)
    }

    pub(super) async fn delete(&mut self, call: &Call, role: Role, live: &Live) -> Answered<Progress> {
        if let Err(held_back) = self.cx.pace.turn(&call.scope, self.meta()).await {
            return Ok(Err(held_back));
        }
        let id = self.record.made().get(role).unwrap_or_default().to_owned();
        let (kind, call, live, cx) = (self.kind.clone(), call.clone(), live.clone(), self.cx.clone());
        let deleted = id.clone();
        let object = self.object.clone();
        let (answer, written) = self
            .detached(async move {
                let _worker = cx.workers.acquire().await;
                let answer = kind.delete(&call, role, &id, &live).await;
                cx.pace.answered(&call.scope, kind.meta(), &answer);
                let written = record_request(&cx, kind.meta(), &object, role, &answer).await;
                (answer, written)
            })
            .await;
        self.recorded(written)?;
        if answer.is_ok() {
            self.memory.deleted.insert(deleted);
        }
        Ok(answer)
    }

    /// Records that something in AWS is ours.
    pub(super) async fn claim(
        &mut self,
        call: &Call,
        inputs: &Inputs,
        role: Role,
        id: &str,
        ground: Ground,
    ) -> std::result::Result<(), ClusterError> {
        let mut creation = match (ground, self.record.creation(role)) {
            (Ground::Recovered, Some(creation)) => creation.clone(),
            (_, before) => Creation {
                token: String::new(),
                started_at: self.cx.now(),
                attempt: before.map(|creation| creation.attempt).unwrap_or_default(),
                refused: false,
                account_id: call.scope.account_id.clone(),
                region: call.scope.region.clone(),
                since: None,
                id: None,
                request: None,
            },
        };
        creation.id = Some(id.to_owned());
        let mut status = json!({"creation": {role.0: creation}});
        if role == Role::MAIN {
            status["adopted"] = json!(ground == Ground::Adopted);
            if let Some(secrets) = self.claimed_secrets(inputs, ground) {
                status["secrets"] = secrets;
            }
        }
        self.write_status(status).await
    }

    async fn detached<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let span = tracing::Span::current();
        let task = self.cx.tasks.spawn(tracing::Instrument::instrument(work, span));
        match task.await {
            Ok(done) => done,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// Records the handle of a request that AWS has accepted, if that is the answer.
async fn record_request(
    cx: &Arc<Context>,
    meta: &resource::Meta,
    object: &DynamicObject,
    role: Role,
    answer: &Result<Progress>,
) -> Option<std::result::Result<DynamicObject, ClusterError>> {
    let Ok(Progress::Pending(handle)) = answer else { return None };
    let status = json!({"creation": {role.0: {"request": handle}}});
    Some(persist(cx, meta, object, &status).await)
}

/// Writes until it is written: an id that gets lost is a second resource.
async fn persist(
    cx: &Arc<Context>,
    meta: &resource::Meta,
    object: &DynamicObject,
    status: &Value,
) -> std::result::Result<DynamicObject, ClusterError> {
    loop {
        match cx.cluster.patch_status(meta, object, status, |_| true).await {
            Err(ClusterError::Api(error)) => {
                tracing::error!(%error, %status, "cannot record what AWS made; trying on");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(ClusterError::Gone) => {
                tracing::error!(%status, "the object was removed by force while AWS made its resource");
                return Err(ClusterError::Gone);
            }
            written => return written,
        }
    }
}
