//! One object, once: resolve, observe, decide, act, report. Each step is a file.

mod act;
mod observe;
mod report;
mod resolve;
mod secrets;
mod transmit;
mod unmake;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use kube::ResourceExt;
use kube::core::DynamicObject;
use resource::condition::{self, Reason, Verdict};
use resource::decide::{Allowed, Decision, Facts, Sight, decide};
use resource::diff::{Difference, diff};
use resource::record::Record;
use resource::tags::Ownership;
use resource::{Call, Error, Kind, Meta, Role, Scope, Secrets, schedule, schema};
use serde_json::{Value, json};
use tracing::Instrument;

use crate::cluster::ClusterError;
use crate::context::Context;
use crate::graph::Key;
use crate::memory::Memory;
use crate::metrics::{Outcome, of_kind};
use crate::object::Object;

use act::{Round, Step};
use resolve::{Inputs, Resolved};
use secrets::Read;

/// When an object is looked at next, if nothing wakes it before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    After(Duration),
    OnChange,
}

/// A reconcile takes no more steps than this; an object that needs more comes back.
const STEPS: usize = 12;

/// Reconciles one object.
pub async fn reconcile(cx: Arc<Context>, kind: Arc<dyn Kind>, object: DynamicObject) -> Next {
    let meta = kind.meta().clone();
    let label = of_kind(meta.kind);
    let span = tracing::info_span!(
        "reconcile",
        kind = meta.kind,
        namespace = object.namespace().unwrap_or_default(),
        // Not `name`: that is the span's own in JSON.
        object = object.name_any(),
    );
    let started = Instant::now();
    let depth = cx.metrics.depth.get_or_create(&label).clone();
    depth.inc();
    let next = turn(cx.clone(), kind, object).instrument(span).await;
    depth.dec();
    cx.metrics.durations.get_or_create(&label).observe(started.elapsed().as_secs_f64());
    next
}

async fn turn(cx: Arc<Context>, kind: Arc<dyn Kind>, object: DynamicObject) -> Next {
    let memory = cx.memories.of(&object.uid().unwrap_or_default());
    let mut memory = memory.lock().await;
    let mut job = Job::new(&cx, &kind, Arc::new(object), &mut memory);
    let mut ended = match AssertUnwindSafe(job.run()).catch_unwind().await {
        Ok(ended) => ended,
        Err(_) => job.panicked().await,
    };
    if let Err(error @ ClusterError::Pruned(_)) = &ended {
        let verdict = Verdict::stalled(error.to_string());
        ended = job.report(verdict, None, Next::After(Duration::from_secs(60))).await;
    }
    let (outcome, next) = match ended {
        Ok(ended) => ended,
        Err(ClusterError::Gone) => ("Gone", Next::OnChange),
        Err(ClusterError::Fenced) => ("Fenced", Next::After(Duration::from_secs(5))),
        Err(error) => {
            tracing::warn!(%error, "the API server stands in the way; trying again");
            job.memory.failures += 1;
            let wait =
                schedule::backoff(resource::Class::Transient, job.memory.failures, cx.options.clock.jitter());
            ("ClusterError", Next::After(cx.scaled(wait)))
        }
    };
    let outcome = Outcome { kind: kind.meta().kind.to_owned(), outcome: outcome.to_owned() };
    cx.metrics.reconciles.get_or_create(&outcome).inc();
    next
}

/// AWS may fail inside; the API server outside.
type Answered<T> = Result<resource::Result<T>, ClusterError>;

type Ended = (&'static str, Next);

/// One object's reconcile under way.
struct Job<'a> {
    cx: &'a Arc<Context>,
    kind: &'a Arc<dyn Kind>,
    object: Arc<DynamicObject>,
    /// Of the spec that is acted on: a write of ours may bring back a newer object.
    generation: i64,
    key: Key,
    record: Record,
    ownership: Ownership,
    memory: &'a mut Memory,
    /// What is known of a role without asking again: AWS just told us.
    known: BTreeMap<Role, Sight>,
    /// Something was created in this reconcile; what follows belongs to the creation.
    creating: bool,
    /// After an unclear answer, AWS was asked once more in this reconcile.
    looked_again: bool,
    /// Those that were read: nothing that goes outside may hold them.
    secrets: Secrets,
}

impl<'a> Job<'a> {
    fn new(
        cx: &'a Arc<Context>,
        kind: &'a Arc<dyn Kind>,
        object: Arc<DynamicObject>,
        memory: &'a mut Memory,
    ) -> Self {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let kind_name = kind.meta().kind;
        let uid = object.uid().unwrap_or_default();
        let ownership = Ownership::new(&cx.cluster_name, &namespace, kind_name, &name, &uid);
        let key = Key { kind: kind_name.to_owned(), namespace, name };
        let (record, known) = (Record::default(), BTreeMap::new());
        Self {
            cx,
            kind,
            generation: object.generation(),
            object,
            key,
            record,
            ownership,
            memory,
            known,
            creating: false,
            looked_again: false,
            secrets: Secrets::default(),
        }
    }

    fn meta(&self) -> &'a Meta {
        self.kind.meta()
    }

    async fn run(&mut self) -> Result<Ended, ClusterError> {
        if self.object.version() < self.memory.written {
            self.object = Arc::new(self.cx.cluster.refresh(self.meta(), &self.object).await?);
        }
        let deleting = self.object.is_deleting();
        if deleting && !self.object.has_finalizer() {
            return Ok(("Gone", Next::OnChange));
        }
        let paused = self.object.wishes().paused() && !deleting;
        self.show_paused(paused).await?;
        if paused {
            return Ok(("Paused", Next::OnChange));
        }
        if !self.object.has_finalizer() {
            let written = self.cx.cluster.add_finalizer(self.meta(), &self.object).await?;
            self.took(written);
        }
        match self.object.record() {
            Ok(record) => self.record = record,
            Err(error) => {
                let message = format!(
                    "status.creation cannot be understood ({error}), so nothing is done in AWS: restore it, \
                     or remove it if nothing was ever created"
                );
                // Putting a status right wakes nobody.
                let next = self.backoff(resource::Class::Invalid);
                return self.report(Verdict::stalled(message), None, next).await;
            }
        }
        if let Some(message) = self.object.wishes().misspelt() {
            return self.report(Verdict::stalled(message), None, Next::OnChange).await;
        }
        if deleting { self.leave().await } else { self.keep().await }
    }

    /// A bug in what was done for this object is no reason to forsake the others of its kind.
    async fn panicked(&mut self) -> Result<Ended, ClusterError> {
        tracing::error!("the reconcile panicked, which is a bug in the operator");
        let message = "the operator failed in itself, which is a bug; its log shows where, at the time of this \
                       condition. It tries again more and more slowly; other objects are not concerned";
        let next = self.backoff(resource::Class::Invalid);
        self.report(Verdict::stalled(message), None, next).await
    }

    /// An object that is wanted.
    async fn keep(&mut self) -> Result<Ended, ClusterError> {
        let scope = match self.scope().await {
            Ok(scope) => scope,
            Err(verdict) => return self.retry(verdict).await,
        };
        let interval = match self.interval() {
            Ok(interval) => interval,
            Err(message) => return self.report(Verdict::stalled(message), None, Next::OnChange).await,
        };
        for step in 0..STEPS {
            if self.object.is_deleting() {
                // A write of ours has brought that to light; the watch shows it, too.
                return Ok(("Unfinished", Next::OnChange));
            }
            self.generation = self.object.generation();
            let inputs = match self.resolve() {
                Ok(Resolved::Ready(inputs)) => inputs,
                Ok(Resolved::Waiting(message)) => {
                    let verdict = Verdict::progressing(Reason::DependencyNotReady, message);
                    return self.report(verdict, None, Next::OnChange).await;
                }
                Err(error) => return self.fail(error, report::Verb::Read).await,
            };
            let mut inputs = inputs;
            match self.read_secrets(&mut inputs).await? {
                Ok(Read::Done) => self.secrets = inputs.secrets.clone(),
                Ok(Read::Waiting(message)) => {
                    let verdict = Verdict::progressing(Reason::DependencyNotReady, message);
                    return self.report(verdict, None, Next::OnChange).await;
                }
                Err(error) => return self.fail(error, report::Verb::Read).await,
            }
            if step == 0
                && let Some(wait) = self.not_due(&inputs, interval)
            {
                return Ok(("Skipped", Next::After(wait)));
            }
            if self.memory.inputs != inputs.hash {
                self.memory.failures = 0;
                self.memory.failing_since = None;
                self.memory.inputs.clone_from(&inputs.hash);
            }
            let call = self.call(&scope, &inputs);
            let roles = self.kind.roles(Some(&inputs.spec));
            let sights = match self.observe(&call, &roles, Some(&self.wanted(&inputs))).await? {
                Ok(sights) => sights,
                Err(error) => return self.fail(error, report::Verb::Read).await,
            };
            let difference = self.difference(&sights, &inputs);
            let decision = self.decide(false, &inputs, &roles, &sights, &difference);
            let round = Round { call: &call, inputs: &inputs, difference: &difference, interval };
            match self.act(&round, decision, &sights).await? {
                Step::Again => {}
                Step::End(ended) => return Ok(ended),
            }
        }
        Ok(("Unfinished", Next::After(Duration::from_secs(1))))
    }

    /// An object that is being deleted. It needs nothing but what was recorded.
    async fn leave(&mut self) -> Result<Ended, ClusterError> {
        if self.record.is_blank() {
            return self.let_go().await;
        }
        let scope = match self.recorded_scope().await {
            Ok(scope) => scope,
            // Our tags on it are out of reach; that is no reason to hold the object.
            Err(Ok(_)) if self.allowed().release => return self.leave_in_aws().await,
            Err(verdict) => return self.retry(verdict).await,
        };
        self.generation = self.object.generation();
        let mut inputs = self.last_inputs();
        // Nothing is sent any more, but AWS's words may still quote them.
        if let Ok(Read::Done) = self.read_secrets(&mut inputs).await? {
            self.secrets = inputs.secrets.clone();
        }
        let call = self.call(&scope, &inputs);
        let roles = self.kind.roles(None);
        for _ in 0..STEPS {
            let sights = match self.observe_made(&call, &roles, &inputs).await? {
                Ok(sights) => sights,
                Err(error) => return self.fail(error, report::Verb::Read).await,
            };
            let decision = self.decide(true, &inputs, &roles, &sights, &Difference::default());
            match self.unmake(&call, &inputs, decision, &sights).await? {
                Step::Again => {}
                Step::End(ended) => return Ok(ended),
            }
        }
        Ok(("Unfinished", Next::After(Duration::from_secs(1))))
    }

    fn decide(
        &self,
        deleting: bool,
        inputs: &Inputs,
        roles: &[Role],
        sights: &BTreeMap<Role, Sight>,
        difference: &Difference,
    ) -> Decision {
        decide(&Facts {
            deleting,
            me: &self.ownership,
            record: &self.record,
            roles,
            sights,
            difference,
            protection: &|role| self.kind.protection(role, Some(&inputs.spec)),
            now: self.memory.settled_now(self.cx.now()),
            settle: self.cx.scaled(schedule::SETTLE),
            allowed: self.allowed(),
        })
    }

    fn allowed(&self) -> Allowed<'_> {
        let adopt_unowned = self.cx.options.adopt_unowned;
        let wishes = self.object.wishes();
        let allowed = wishes.allowed(self.record.adopted, self.meta().precious, adopt_unowned);
        Allowed { external_id: self.external_id().is_some(), ..allowed }
    }

    /// The spec, with what it set at the last sync and no longer does at its default: a part that
    /// is read only if it is wanted is read once more, to see whether it must be put back.
    fn wanted(&self, inputs: &Inputs) -> Value {
        diff(self.kind.schema(), &inputs.spec, &Value::Null, &self.record.managed, &inputs.partial).target
    }

    fn difference(&self, sights: &BTreeMap<Role, Sight>, inputs: &Inputs) -> Difference {
        match sights.get(&Role::MAIN) {
            Some(Sight::Live(live)) => {
                let (schema, managed) = (self.kind.schema(), &self.record.managed);
                let mut difference = diff(schema, &inputs.spec, &live.spec, managed, &inputs.partial);
                difference.forbid(|path| self.kind.is_fixed(&inputs.spec, path));
                difference
            }
            _ => Difference::default(),
        }
    }

    fn call(&self, scope: &Scope, inputs: &Inputs) -> Call {
        let tags = inputs.spec.get("tags").cloned().unwrap_or_default();
        Call {
            scope: scope.clone(),
            ownership: self.ownership.clone(),
            token: None,
            request: None,
            attempted_since: None,
            tags: serde_json::from_value(tags).unwrap_or_default(),
            spec: inputs.spec.clone(),
            managed: self.record.managed.clone(),
            secrets: inputs.secrets.clone(),
        }
    }

    /// How long until the next check of an object that is in sync; None when it is due.
    fn not_due(&self, inputs: &Inputs, interval: Duration) -> Option<Duration> {
        let unchanged = self.object.is_ready() && self.record.inputs == inputs.hash && inputs.held.is_empty();
        // Of long after now: the clock was wrong then.
        let last = self.record.last_sync.filter(|last| unchanged && *last < self.cx.now() + interval)?;
        let due = schedule::next_check(last, interval, self.meta().reads, &self.ownership.uid);
        Duration::try_from(due.duration_since(self.cx.now())).ok().filter(|wait| !wait.is_zero())
    }

    fn interval(&self) -> Result<Duration, String> {
        match self.object.wishes().interval() {
            Some(text) => schedule::parse_interval(text)
                .map_err(|error| format!("annotation aws.konfig.io/reconcile-interval: {error}")),
            None => Ok(self.cx.options.drift_interval),
        }
    }

    /// Where this object lives. A move is refused: it would leave the old resource behind.
    async fn scope(&self) -> Result<Scope, Result<Verdict, Error>> {
        if let Some(provider) = self.object.spec().pointer("/providerRef/name") {
            let message = format!("AWSProvider {provider} does not exist");
            return Err(Ok(Verdict::progressing(Reason::DependencyNotReady, message)));
        }
        let scope = self.cx.accounts.own_scope().await.map_err(Err)?;
        match self.record.creation.values().find(|creation| !creation.is_in(&scope)) {
            None => Ok(scope),
            Some(creation) => Err(Ok(Verdict::stalled(format!(
                "it was made in account {}, region {}, but the operator now works in account {}, region {}; \
                 nothing is done in either: give the operator its former credentials and region back, or \
                 delete this object and create it anew",
                creation.account_id, creation.region, scope.account_id, scope.region
            )))),
        }
    }

    /// Where what was made of a deleted object lives: as recorded, in whatever region.
    async fn recorded_scope(&self) -> Result<Scope, Result<Verdict, Error>> {
        let scope = self.cx.accounts.own_scope().await.map_err(Err)?;
        let Some(creation) = self.record.creation.values().next() else { return Ok(scope) };
        if creation.account_id == scope.account_id {
            return Ok(Scope { region: creation.region.clone(), ..scope });
        }
        Err(Ok(Verdict::stalled(format!(
            "it was made in account {}, but the operator's credentials now lead to account {}; it can be \
             deleted only there: restore the credentials, or set aws.konfig.io/deletion-policy: abandon",
            creation.account_id, scope.account_id
        ))))
    }

    async fn retry(&mut self, why: Result<Verdict, Error>) -> Result<Ended, ClusterError> {
        match why {
            Ok(verdict) => self.report(verdict, None, Next::After(Duration::from_secs(300))).await,
            Err(error) => self.fail(error, report::Verb::Read).await,
        }
    }

    async fn show_paused(&mut self, paused: bool) -> Result<(), ClusterError> {
        let before = &self.object.status()["conditions"];
        if condition::find(before, "Paused").is_some() == paused {
            return Ok(());
        }
        let conditions = condition::with_paused(before, paused, self.object.generation(), self.cx.now());
        self.write_status(json!({"conditions": conditions})).await
    }

    /// Writes a part of the status that no other write depends on.
    async fn write_status(&mut self, status: Value) -> Result<(), ClusterError> {
        let written = self.cx.cluster.patch_status(self.meta(), &self.object, &status, |_| true).await?;
        self.took(written);
        Ok(())
    }

    /// The object as a write of ours has left it.
    fn took(&mut self, written: DynamicObject) {
        self.memory.written = written.version();
        self.object = Arc::new(written);
        if let Ok(record) = self.object.record() {
            self.record = record;
        }
    }

    /// What exists in AWS and is to be adopted: by the annotation, or by the field for that.
    fn external_id(&self) -> Option<&str> {
        let mut fields = schema::properties(self.kind.schema());
        let by_field = || {
            let (field, _) = fields.find(|(_, part)| schema::is(part, schema::EXTERNAL_ID))?;
            self.object.spec().get(field)?.as_str()
        };
        self.object.wishes().external_id().or_else(by_field)
    }

    fn has_tags(&self) -> bool {
        schema::has_tags(self.kind.schema())
    }
}
