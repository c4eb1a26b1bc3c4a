//! Step four: what was decided of an object that is wanted is done.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use resource::condition::{Reason, Verdict};
use resource::decide::{Decision, Ground, Sight, Until, Wait};
use resource::diff::{Difference, managed_paths};
use resource::record::{Corrections, Creation};
use resource::schedule::{self, SETTLE_POLL};
use resource::{Call, Changes, Class, Error, Live, Phase, Progress, Role, tags};
use serde_json::{Value, json};

use super::report::Verb;
use super::resolve::hash_of;
use super::{Ended, Inputs, Job, Next, secrets};
use crate::cluster::ClusterError;
use crate::events::Happening;
use crate::metrics::of_kind;

/// Whether there is more to do now.
pub enum Step {
    Again,
    End(Ended),
}

pub(super) type Acted = Result<Step, ClusterError>;

/// A path that had to be put right this often, however far apart, is put right more slowly.
const PATIENCE: u32 = 5;
/// The longest pause between two corrections of one path.
const LONGEST: Duration = Duration::from_secs(3600);

/// What one round of the reconcile of a wanted object rests on.
pub(super) struct Round<'r> {
    pub call: &'r Call,
    pub inputs: &'r Inputs,
    pub difference: &'r Difference,
    pub interval: Duration,
}

impl Job<'_> {
    /// Acts for an object that is wanted.
    pub(super) async fn act(
        &mut self,
        round: &Round<'_>,
        decision: Decision,
        sights: &BTreeMap<Role, Sight>,
    ) -> Acted {
        let (live, call, inputs) = (live(sights, Role::MAIN), round.call, round.inputs);
        match decision {
            Decision::Wait(wait) => self.wait(wait, live).await,
            Decision::Nothing => self.settle(round, live, BTreeMap::new()).await,
            Decision::Claim { role, id, ground } => self.take(call, inputs, role, &id, ground).await,
            Decision::Create { role, attempt } => self.make(call, role, attempt, inputs).await,
            Decision::Update => match live {
                Some(live) => self.put_right(round, live).await,
                None => Ok(Step::Again),
            },
            Decision::Delete(role) => self.replace(call, role, sights).await,
            Decision::Forget(role) => self.make_anew(role).await,
            // Decided only of an object that is being deleted.
            Decision::Abandon | Decision::Release => Ok(Step::Again),
        }
    }

    pub(super) async fn wait(&mut self, wait: Wait, live: Option<&Live>) -> Acted {
        let next = match wait.until {
            Until::Polled => Next::After(self.cx.scaled(self.meta().polling.0)),
            Until::Settled(until) => {
                let left = Duration::try_from(until.duration_since(self.cx.now())).unwrap_or_default();
                Next::After(left.min(self.cx.scaled(SETTLE_POLL)).max(Duration::from_millis(50)))
            }
            Until::Changed => self.backoff(Class::Invalid),
        };
        let stalled = wait.reason == Reason::Error;
        let verdict = Verdict { reason: wait.reason, message: wait.message, stalled };
        self.report(verdict, live, next).await.map(Step::End)
    }

    pub(super) async fn take(
        &mut self,
        call: &Call,
        inputs: &Inputs,
        role: Role,
        id: &str,
        ground: Ground,
    ) -> Acted {
        self.claim(call, inputs, role, id, ground).await?;
        let happening = match ground {
            Ground::Recovered => {
                Happening::normal("Recovered", format!("found {id}, made by an earlier create call"))
            }
            Ground::TakenOver => {
                Happening::normal("TakenOver", format!("took over {id}: the object that owned it is gone"))
            }
            Ground::Adopted => {
                let note = format!("adopted {id}; deleting this object will release it, not delete it");
                Happening::normal("Adopted", note)
            }
        };
        self.publish(happening);
        Ok(Step::Again)
    }

    async fn make(&mut self, call: &Call, role: Role, attempt: u32, inputs: &Inputs) -> Acted {
        let first_try = self.record.creation(role).is_none_or(|creation| creation.attempt != attempt);
        let mut call = call.clone();
        self.creating = true;
        // First the turn and the worker, then the intent: it must not grow old in a queue.
        if let Err(held_back) = self.cx.pace.turn(&call.scope, self.meta()).await {
            return self.fail(held_back, Verb::Create).await.map(Step::End);
        }
        let worker = self.cx.workers.clone().acquire_owned().await;
        if !self.intend(&mut call, role, attempt, inputs).await? {
            return Ok(Step::Again);
        }
        match self.create(&call, role, inputs, worker).await? {
            Ok(created) => {
                self.memory.failures = 0;
                if let Some(live) = created.live {
                    self.known.insert(role, Sight::Live(live));
                }
                if !self.kind.is_handle(&created.id) {
                    self.publish_created(&created.id);
                }
                Ok(Step::Again)
            }
            Err(error) => self.not_made(error, role, first_try).await,
        }
    }

    /// What is unclear goes to find; what stays unclear comes back later.
    async fn not_made(&mut self, error: Error, role: Role, first_try: bool) -> Acted {
        if error.class == Class::Exists && first_try {
            // To the first transmission of an attempt: somebody else made it, so this one is dead.
            self.write_status(json!({"creation": {role.0: {"refused": true}}})).await?;
        }
        let is_unclear = matches!(error.class, Class::Exists | Class::TokenMismatch | Class::Transient);
        if is_unclear && !std::mem::replace(&mut self.looked_again, true) {
            return Ok(Step::Again);
        }
        let since = *self.memory.failing_since.get_or_insert_with(|| self.cx.now());
        let settled = self.cx.now() > since + self.cx.scaled(schedule::SETTLE);
        match error.class {
            Class::Exists | Class::TokenMismatch if !settled => {
                let message = format!("AWS says that it exists, but does not show it yet: {error}");
                let verdict = Verdict::progressing(Reason::Creating, message);
                let next = Next::After(self.cx.scaled(SETTLE_POLL));
                return self.report(verdict, None, next).await.map(Step::End);
            }
            Class::TokenMismatch => {
                self.write_status(json!({"creation": {role.0: {"refused": true}}})).await?
            }
            _ => {}
        }
        self.fail(error, Verb::Create).await.map(Step::End)
    }

    async fn put_right(&mut self, round: &Round<'_>, live: &Live) -> Acted {
        let (inputs, difference) = (round.inputs, round.difference);
        let changes = &difference.changes;
        let held_up = inputs
            .unready
            .iter()
            .find(|(path, _)| changes.iter().any(|change| change.path.starts_with(*path)));
        if let Some((path, why)) = held_up {
            let verdict =
                Verdict::progressing(Reason::DependencyNotReady, format!("{path} is to change, but {why}"));
            return self.report(verdict, Some(live), Next::OnChange).await.map(Step::End);
        }
        // Until the first sync, everything belongs to the creation.
        self.creating |= self.record.last_sync.is_none();
        let is_drift = inputs.same_spec(&self.record.inputs) && !self.creating;
        let corrections = match is_drift.then(|| self.count(changes.paths(), round.interval)).transpose() {
            Ok(corrections) => corrections,
            Err(wait) => return self.hammered(changes.paths(), wait, live).await,
        };
        if let Some(wait) = self.insisted(changes, round.interval).filter(|_| !is_drift) {
            return self.hammered(changes.paths(), wait, live).await;
        }
        if !self.managed_by(inputs).eq(&json!(self.record.managed)) {
            self.write_status(json!({"managed": self.managed_by(inputs)})).await?;
        }
        if !self.creating && !is_drift {
            self.announce(
                Reason::Updating,
                &format!("AWS is asked to change {}", changes.paths().join(", ")),
            )
            .await?;
        }
        let call = &self.with_carried(round.call, inputs, changes).await?;
        match self.update(call, live, &difference.target, changes).await? {
            Ok(progress) => self.put(&Round { call, ..*round }, live, progress, corrections).await,
            Err(error) => self.fail_seeing(Some(live), error, Verb::Update).await.map(Step::End),
        }
    }

    /// The changes are with AWS; `corrections` are those of a drift.
    async fn put(
        &mut self,
        round: &Round<'_>,
        live: &Live,
        progress: Progress,
        corrections: Option<BTreeMap<String, Corrections>>,
    ) -> Acted {
        let (difference, is_drift) = (round.difference, corrections.is_some());
        if !is_drift {
            self.memory.asked.count(hash_of_changes(&difference.changes), self.cx.now());
        }
        // Our own tags were written by nobody, so they are named only where somebody changed them.
        let reserved = |path: &String| {
            path.strip_prefix("/tags/").is_some_and(|key| tags::is_reserved(&key.replace("~1", "/")))
        };
        let mut paths = difference.changes.paths();
        paths.retain(|path| is_drift || !reserved(path));
        let named = paths.join(", ");
        if is_drift {
            self.cx.metrics.corrections.get_or_create(&of_kind(self.meta().kind)).inc_by(paths.len() as u64);
            self.publish(Happening::normal("DriftCorrected", format!("put back in AWS: {named}")));
        } else if !self.creating && !paths.is_empty() {
            self.publish(Happening::normal("Updated", format!("changed in AWS: {named}")));
        }
        if progress != Progress::Done {
            let wait = Wait {
                reason: Reason::Updating,
                message: format!("AWS is changing {named}"),
                until: Until::Polled,
            };
            self.known.remove(&Role::MAIN);
            let removed = difference.changes.iter().filter(|change| change.want.is_null());
            self.memory.removing = removed.map(|change| change.path.clone()).collect();
            if let Some(corrections) = corrections {
                self.write_status(json!({"sync": {"corrections": corrections}})).await?;
            }
            return self.wait(wait, Some(live)).await;
        }
        self.settle(round, Some(live), corrections.unwrap_or_default()).await
    }

    /// Everything that could be done is done.
    async fn settle(
        &mut self,
        round: &Round<'_>,
        live: Option<&Live>,
        corrections: BTreeMap<String, Corrections>,
    ) -> Acted {
        let Round { call, inputs, difference, interval } = *round;
        let to_send = self.secrets_to_send(inputs);
        if let Some(live) = live.filter(|_| !to_send.is_empty()) {
            return self.rotate(call, live, inputs, &to_send).await;
        }
        if !difference.forbidden.is_empty() || !inputs.held.is_empty() {
            // AWS has them, whatever else keeps the object from being in sync.
            self.record_applied(inputs).await?;
        }
        if !difference.forbidden.is_empty() {
            let fields: Vec<_> = difference
                .forbidden
                .iter()
                .map(|change| {
                    format!("{} is {} in AWS and {} in the spec", change.path, change.live, change.want)
                })
                .collect();
            let message = format!(
                "{}: AWS cannot change this after creation. Set the spec back to what AWS has, or delete this \
                 object and create it anew",
                fields.join("; ")
            );
            return self.report(Verdict::stalled(message), live, Next::After(interval)).await.map(Step::End);
        }
        if !inputs.held.is_empty() {
            let message = format!("all but these parts is in place: {}", inputs.held.join("; "));
            let verdict = Verdict::progressing(Reason::DependencyNotReady, message);
            return self.report(verdict, live, Next::After(interval)).await.map(Step::End);
        }
        let mut counts = self.record.corrections.clone();
        counts.extend(corrections);
        counts.retain(|_, count| is_recent(count.last, self.cx.now()));
        self.synced(live, inputs, self.managed_now(inputs), json!(counts), interval).await.map(Step::End)
    }

    /// What is managed from now on. Right after a change of ours, a read that lags may not show what is to be
    /// taken back: that stays managed until a later check.
    fn managed_now(&self, inputs: &Inputs) -> Value {
        let settled = self.memory.asked.last.map(|last| last + self.cx.scaled(schedule::SETTLE));
        match settled.is_some_and(|settled| self.cx.now() < settled) {
            true => self.managed_by(inputs),
            false => json!(managed_paths(self.kind.schema(), &inputs.spec)),
        }
    }

    /// Gives AWS secrets that changed, in a call of their own.
    async fn rotate(&mut self, call: &Call, live: &Live, inputs: &Inputs, paths: &[String]) -> Acted {
        let named = paths.join(", ");
        self.intend_secrets(inputs, paths).await?;
        self.announce(Reason::Updating, &format!("AWS is given the changed {named}")).await?;
        let progress = match self.update(call, live, &inputs.spec, &secrets::changes(paths)).await? {
            Ok(progress) => progress,
            Err(error) => return self.fail(error, Verb::Update).await.map(Step::End),
        };
        self.sent_secrets(inputs, paths);
        self.known.remove(&Role::MAIN);
        self.publish(Happening::normal("Updated", format!("changed in AWS: {named}")));
        if progress == Progress::Done {
            return Ok(Step::Again);
        }
        let message = format!("AWS is applying the changed {named}");
        self.wait(Wait { reason: Reason::Updating, message, until: Until::Polled }, Some(live)).await
    }

    /// Counts a correction of each path. Err: too often already; wait this long.
    fn count(
        &self,
        paths: Vec<String>,
        interval: Duration,
    ) -> Result<BTreeMap<String, Corrections>, Duration> {
        let now = self.cx.now();
        let mut counted = BTreeMap::new();
        for path in paths {
            let before = self.record.corrections.get(&path).filter(|before| is_recent(before.last, now));
            let (count, since) = before.map_or((0, now), |before| (before.count, before.since));
            if let Some(wait) = before.and_then(|before| pause(before.count, before.last, interval, now)) {
                return Err(wait);
            }
            counted.insert(path, Corrections { count: count + 1, since, last: now });
        }
        Ok(counted)
    }

    /// How long to wait where AWS took this very change often already, and shows nothing of it. A
    /// creation and a change of the spec are no drift, but they can be in vain for ever just as well.
    fn insisted(&self, changes: &Changes, interval: Duration) -> Option<Duration> {
        let asked = &self.memory.asked;
        let last = asked.last.filter(|_| asked.change == hash_of_changes(changes))?;
        pause(asked.times, last, interval, self.cx.now())
    }

    async fn hammered(&mut self, paths: Vec<String>, wait: Duration, live: &Live) -> Acted {
        let message = format!(
            "{} keeps differing in AWS although it was put right {PATIENCE} times: something else changes it, or \
             AWS writes it differently. Trying again more slowly",
            paths.join(", ")
        );
        self.report(Verdict::stalled(message), Some(live), Next::After(wait)).await.map(Step::End)
    }

    /// AWS gave up on it and its name is free: it goes, and the next attempt comes later.
    async fn replace(&mut self, call: &Call, role: Role, sights: &BTreeMap<Role, Sight>) -> Acted {
        let Some(live) = live(sights, role) else { return Ok(Step::Again) };
        let Phase::Failed { why, .. } = live.phase.clone() else { return Ok(Step::Again) };
        if let Err(error) = self.delete(call, role, live).await? {
            return self.fail(error, Verb::Delete).await.map(Step::End);
        }
        let next = self.backoff(Class::Dependency);
        let verdict =
            Verdict::progressing(Reason::Error, format!("{why}; it is deleted and will be made anew"));
        self.report(verdict, Some(live), next).await.map(Step::End)
    }

    /// What was made is gone: struck from the record, so that it is made again.
    async fn make_anew(&mut self, role: Role) -> Acted {
        let id = self.record.made().get(role).unwrap_or_default().to_owned();
        if !self.memory.deleted.contains(&id) {
            self.publish(Happening::warning(
                "DeletedInAWS",
                format!("{id} was deleted in AWS; making it again"),
            ));
        }
        self.known.clear();
        let Some(before) = self.record.creation(role).cloned() else { return Ok(Step::Again) };
        // Nothing of that attempt is left: the next one is another.
        let mut creation = json!(Creation { id: None, refused: true, ..before });
        creation["id"] = json!(null);
        self.write_status(json!({"creation": {role.0: creation}})).await?;
        Ok(Step::Again)
    }

    pub(super) fn backoff(&mut self, class: Class) -> Next {
        self.memory.failures += 1;
        self.memory.failing_since.get_or_insert_with(|| self.cx.now());
        let wait = schedule::backoff(class, self.memory.failures, self.cx.options.clock.jitter());
        Next::After(self.cx.scaled(wait))
    }
}

/// Whether it is not too long ago to count. What lies in the future was dated by a clock that was wrong.
fn is_recent(last: Timestamp, now: Timestamp) -> bool {
    now < last + LONGEST && last < now + LONGEST
}

/// What is left of the pause after so many times in vain.
fn pause(times: u32, last: Timestamp, interval: Duration, now: Timestamp) -> Option<Duration> {
    let doublings = times.checked_sub(PATIENCE)?;
    let due = last + interval.saturating_mul(1 << doublings.min(10)).min(LONGEST);
    let left = Duration::try_from(due.duration_since(now)).ok()?;
    (!left.is_zero()).then_some(left)
}

fn hash_of_changes(changes: &Changes) -> String {
    let each = changes.iter().map(|change| json!([change.path, change.want, change.live]));
    hash_of(&each.collect())
}

pub(super) fn live(sights: &BTreeMap<Role, Sight>, role: Role) -> Option<&Live> {
    match sights.get(&role) {
        Some(Sight::Live(live)) => Some(live),
        _ => None,
    }
}
