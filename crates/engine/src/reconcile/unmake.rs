//! Step four, of an object that is being deleted: role by role, then the finalizer.

use std::collections::BTreeMap;
use std::time::Duration;

use resource::condition::{Reason, Verdict};
use resource::decide::{Decision, Sight, Until, Wait};
use resource::{Call, Live, Observed, Progress, Role, diff};
use serde_json::json;

use super::act::{Acted, Step, live};
use super::report::Verb;
use super::{Ended, Inputs, Job, Next};
use crate::cluster::ClusterError;
use crate::events::Happening;
use crate::object::Object;

/// An uninstall by mistake must not take production with it.
const HELD: &str = "the CustomResourceDefinition is being deleted, and its objects with it; their AWS resources \
                    are kept. To delete them too, annotate the CustomResourceDefinition with \
                    aws.konfig.io/allow-deletion: \"true\"";

impl Job<'_> {
    /// Acts for an object that is being deleted.
    pub(super) async fn unmake(
        &mut self,
        call: &Call,
        inputs: &Inputs,
        decision: Decision,
        sights: &BTreeMap<Role, Sight>,
    ) -> Acted {
        match decision {
            Decision::Wait(wait) => self.wait(wait, live(sights, Role::MAIN)).await,
            Decision::Claim { role, id, ground } => {
                self.take(call, &Inputs::default(), role, &id, ground).await
            }
            Decision::Delete(role) => self.remove(call, role, sights).await,
            Decision::Forget(role) => {
                self.known.remove(&role);
                self.write_status(json!({"creation": {role.0: null}})).await?;
                Ok(Step::Again)
            }
            Decision::Abandon => self.abandon(call).await,
            Decision::Release => self.let_go().await.map(Step::End),
            Decision::Create { role, .. } => self.find_by_token(call, inputs, role).await,
            Decision::Nothing | Decision::Update => Ok(Step::Again),
        }
    }

    /// Only the token of a create call whose answer was lost leads to what it made: it is sent again,
    /// and what it names is deleted.
    async fn find_by_token(&mut self, call: &Call, inputs: &Inputs, role: Role) -> Acted {
        if inputs.hash.is_empty() {
            let message = "the answer to the create call was lost, and what it said can no longer be made out, as \
                           its references or its spec are not what they were: restore them, and what it made is \
                           found and deleted; or look for it in AWS, and set aws.konfig.io/deletion-policy: abandon";
            let next = self.backoff(resource::Class::Dependency);
            return self.report(Verdict::stalled(message), None, next).await.map(Step::End);
        }
        self.announce(
            Reason::Deleting,
            "the create call whose answer was lost is sent again, to find what it made",
        )
        .await?;
        match self.recreate(call, role, inputs).await? {
            Ok(_) => Ok(Step::Again),
            Err(error) => self.fail(error, Verb::Delete).await.map(Step::End),
        }
    }

    async fn remove(&mut self, call: &Call, role: Role, sights: &BTreeMap<Role, Sight>) -> Acted {
        let Some(live) = live(sights, role) else { return Ok(Step::Again) };
        if self.cx.cluster.holds(self.meta()).await? {
            return self.report(Verdict::stalled(HELD), Some(live), Next::OnChange).await.map(Step::End);
        }
        self.announce(Reason::Deleting, "AWS is asked to delete it").await?;
        // What the user set meanwhile to let it go (deletionProtection off) counts, too.
        let unblocking = diff::unblocking(self.kind.schema(), &call.spec, &live.spec);
        if !unblocking.is_empty() {
            match self.update(call, live, &call.spec, &unblocking).await? {
                Ok(Progress::Done) => {}
                Ok(_) => {
                    let message =
                        format!("AWS is changing {}, then it is deleted", unblocking.paths().join(", "));
                    let wait = Wait { reason: Reason::Deleting, message, until: Until::Polled };
                    return self.wait(wait, None).await;
                }
                Err(error) => return self.fail(error, Verb::Delete).await.map(Step::End),
            }
        }
        let is_repeated = self.record.made().get(role).is_some_and(|id| self.memory.deleted.contains(id));
        match self.delete(call, role, live).await? {
            // Done before, and still shown: a read that lags. It catches up in its own time.
            Ok(Progress::Done) if !is_repeated => {
                self.memory.failures = 0;
                Ok(Step::Again)
            }
            Ok(_) => {
                let message = "AWS is deleting it".to_owned();
                self.wait(Wait { reason: Reason::Deleting, message, until: Until::Polled }, None).await
            }
            Err(error) => self.fail(error, Verb::Delete).await.map(Step::End),
        }
    }

    /// Leaves AWS as it is, takes our tags off where that works, and lets the object go.
    async fn abandon(&mut self, call: &Call) -> Acted {
        let keys: Vec<String> = self.ownership.tags().into_keys().collect();
        for role in self.kind.roles(None) {
            let made = self.record.made();
            let Some(id) = made.get(role).filter(|_| self.has_tags()) else { continue };
            let untagged = match self.kind.observe(call, role, id, None).await {
                Ok(Observed::Live(live)) if self.may_untag(&live) => {
                    self.kind.untag(call, role, id, &keys).await
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = untagged {
                if error.class.heals_by_itself() {
                    return self.fail(error, Verb::Update).await.map(Step::End);
                }
                let error = self.without_secrets(&error.to_string()).await;
                tracing::warn!(error, id, "released, but our tags could not be taken off");
            }
        }
        self.leave_in_aws().await.map(Step::End)
    }

    /// Whether the tags on it are not somebody else's. Half of ours may be gone, or not be shown yet: what is
    /// left of them would have the next object of this name take it for its own, and delete it.
    fn may_untag(&self, live: &Live) -> bool {
        match live.uid() {
            Some(uid) => uid == self.ownership.uid,
            None => live.owner().is_none_or(|owner| owner == self.ownership.owner),
        }
    }

    pub(super) async fn leave_in_aws(&mut self) -> Result<Ended, ClusterError> {
        self.publish(Happening::normal("Released", "left in AWS; this object no longer manages it"));
        self.cx.cluster.remove_finalizer(self.meta(), &self.object).await?;
        Ok(("Gone", Next::OnChange))
    }

    /// Nothing is left in AWS, or nothing was ever made.
    pub(super) async fn let_go(&mut self) -> Result<Ended, ClusterError> {
        // R2: a cache may lag behind an intent.
        let live = self.cx.cluster.refresh(self.meta(), &self.object).await?;
        let is_blank = live.record().is_ok_and(|record| record.is_blank());
        self.took(live);
        if !is_blank {
            return Ok(("Unfinished", Next::After(Duration::ZERO)));
        }
        if !self.memory.deleted.is_empty() {
            self.publish(Happening::normal("Deleted", "deleted in AWS"));
        }
        self.cx.cluster.remove_finalizer(self.meta(), &self.object).await?;
        Ok(("Gone", Next::OnChange))
    }
}
