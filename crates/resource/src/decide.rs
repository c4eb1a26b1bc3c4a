//! What to do next, from what is known. Pure: it cannot fail and calls nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::condition::Reason;
use crate::diff::Difference;
use crate::record::{Creation, Record};
use crate::tags::{OWNER_TAG, Ownership, UID_TAG};
use crate::{Candidate, Live, Phase, Protection, Role};

/// What was seen of one role.
#[derive(Clone, Debug)]
pub enum Sight {
    /// No id is recorded; this is what AWS holds by owner tag or unique name.
    Unmade(Vec<Claimed>),
    /// An id is recorded and AWS confirms that it is gone.
    Absent {
        /// Our own delete of it was answered with success after it was seen alive.
        deleted_by_us: bool,
    },
    /// It is there.
    Live(Live),
}

/// A candidate, and whether its owner tag still counts.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// What AWS holds.
    pub candidate: Candidate,
    /// The owner it names is of our cluster and no longer exists.
    pub void: bool,
}

/// Everything a decision rests on.
pub struct Facts<'a> {
    /// The object is being deleted.
    pub deleting: bool,
    /// Who we are in AWS's tags.
    pub me: &'a Ownership,
    /// What the status holds.
    pub record: &'a Record,
    /// The roles that the spec needs, in order of creation.
    pub roles: &'a [Role],
    /// What was seen.
    pub sights: &'a BTreeMap<Role, Sight>,
    /// How the main role, where it is live, differs from the spec.
    pub difference: &'a Difference,
    /// What protects the create call of each role.
    pub protection: &'a dyn Fn(Role) -> Protection,
    /// Now.
    pub now: Timestamp,
    /// How long AWS's reads may lag behind a create.
    pub settle: Duration,
    /// What the user and the operator's flags allow.
    pub allowed: Allowed<'a>,
}

/// What the user and the operator's flags allow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed<'a> {
    /// `--adopt unowned`: take what bears the unique name and has no owner.
    pub adopt_unowned: bool,
    /// The annotation `external-id` names the resource: it may be adopted without a unique name.
    pub external_id: bool,
    /// The annotation `adopt-from`: take over from this owner.
    pub adopt_from: Option<&'a str>,
    /// Something precious that was lost in AWS waits for a word.
    pub recreate: bool,
    /// On deletion, the AWS resource stays.
    pub release: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing now: say why, come back.
    Wait(Wait),
    /// AWS is as the spec says.
    Nothing,
    /// Write down that this is ours.
    Claim {
        /// The role it fills.
        role: Role,
        /// Its AWS id.
        id: String,
        /// On which ground.
        ground: Ground,
    },
    /// Make it, as this attempt. Of an object that is being deleted: send that attempt once more, only
    /// its token leads to what it made.
    Create {
        /// The role to make.
        role: Role,
        /// The attempt to make it with.
        attempt: u32,
    },
    /// Put the differences right.
    Update,
    /// Delete it in AWS.
    Delete(Role),
    /// It is gone: strike it from the record.
    Forget(Role),
    /// Leave AWS as it is, without our tags, and let the object go.
    Abandon,
    /// Nothing is left: let the object go.
    Release,
}

/// On which ground something in AWS is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// We made it and lost the answer.
    Recovered,
    /// Its owner, an earlier object of ours, no longer exists.
    TakenOver,
    /// It existed before us.
    Adopted,
}

/// Why nothing is done now.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The reason for the Ready condition.
    pub reason: Reason,
    /// What a person should know.
    pub message: String,
    /// What brings us back.
    pub until: Until,
}

/// What brings a waiting object back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// AWS is at work: ask again at the kind's polling interval.
    Polled,
    /// The settle window: look again at this time at the latest.
    Settled(Timestamp),
    /// Only a person, or a slow retry, helps.
    Changed,
}

impl Wait {
    fn error(message: String) -> Decision {
        Decision::Wait(Wait { reason: Reason::Error, message, until: Until::Changed })
    }

    fn polled(reason: Reason, message: String) -> Decision {
        Decision::Wait(Wait { reason, message, until: Until::Polled })
    }
}

/// Decides.
pub fn decide(facts: &Facts) -> Decision {
    if facts.deleting { facts.leave() } else { facts.keep() }
}

impl Facts<'_> {
    /// An object that is wanted.
    fn keep(&self) -> Decision {
        for &role in self.roles {
            let decision = match self.sights.get(&role) {
                None => continue,
                Some(Sight::Unmade(found)) => Some(self.claim_or_create(role, found)),
                Some(Sight::Absent { deleted_by_us: true }) => Some(Decision::Forget(role)),
                Some(Sight::Absent { deleted_by_us: false }) => Some(self.lost(role)),
                Some(Sight::Live(live)) => self.keep_live(role, live),
            };
            if let Some(decision) = decision {
                return decision;
            }
        }
        if self.difference.changes.is_empty() { Decision::Nothing } else { Decision::Update }
    }

    fn keep_live(&self, role: Role, live: &Live) -> Option<Decision> {
        if let Some(conflict) = self.conflict(live) {
            return Some(Wait::error(conflict));
        }
        match &live.phase {
            Phase::Ready => None,
            Phase::Busy(what) => Some(Wait::polled(self.busy_reason(), format!("AWS is at work: {what}"))),
            Phase::Deleting => Some(Wait::polled(
                self.busy_reason(),
                "it is being deleted in AWS; what comes after that is decided then".to_owned(),
            )),
            Phase::Failed { why, replace: true } if self.record.adopted => Some(Wait::error(format!(
                "{why}; it existed before this object, so it is not replaced: delete it in AWS, and it is made anew"
            ))),
            Phase::Failed { replace: true, .. } => Some(Decision::Delete(role)),
            Phase::Failed { why, replace: false } => Some(Wait::error(why.clone())),
        }
    }

    fn busy_reason(&self) -> Reason {
        if self.record.last_sync.is_some() { Reason::Updating } else { Reason::Creating }
    }

    /// An id is recorded and AWS says it is gone.
    fn lost(&self, role: Role) -> Decision {
        if let Some(wait) = self.settling(role) {
            return wait;
        }
        let is_guarded = role == Role::MAIN && self.record.last_sync.is_some();
        if is_guarded && !self.allowed.recreate {
            return Wait::error(
                "it was deleted in AWS by somebody; what it held is gone, so it is not made anew by \
                 itself: set the annotation aws.konfig.io/recreate to \"true\" for that, or restore \
                 it and set aws.konfig.io/external-id"
                    .to_owned(),
            );
        }
        Decision::Forget(role)
    }

    /// Within the settle window of its creation, "not found" only means "not seen yet".
    fn settling(&self, role: Role) -> Option<Decision> {
        let creation = self.record.creation(role)?;
        let until = self.settled_at(creation)?;
        (self.now < until).then(|| {
            let message = "just created; AWS does not show it everywhere yet".to_owned();
            Decision::Wait(Wait { reason: Reason::Creating, message, until: Until::Settled(until) })
        })
    }

    /// None for what was adopted: that was seen, not made.
    fn settled_at(&self, creation: &Creation) -> Option<Timestamp> {
        let made_by_us = !creation.token.is_empty() && !creation.refused;
        made_by_us.then(|| creation.started_at + self.settle)
    }

    /// No id is recorded: is one of the candidates ours, or shall it be made?
    fn claim_or_create(&self, role: Role, found: &[Claimed]) -> Decision {
        match self.claim(role, found) {
            Some(decision) => decision,
            None => self.create(role),
        }
    }

    fn create(&self, role: Role) -> Decision {
        let Some(creation) = self.record.creation(role) else {
            return Decision::Create { role, attempt: 1 };
        };
        if creation.refused {
            return Decision::Create { role, attempt: creation.attempt + 1 };
        }
        match (self.protection)(role) {
            Protection::None => {}
            Protection::TokenFor(lifetime) if self.now > creation.attempted_since() + lifetime => {
                return Wait::error(format!(
                    "{}, and a second one is not made. Look for it in AWS, and set aws.konfig.io/external-id to its \
                     identifier; or, if there is none, delete this object and create it anew",
                    out_of_reach(creation)
                ));
            }
            // The attempt may have reached AWS, but AWS itself refuses a second: it may go out again.
            _ => return Decision::Create { role, attempt: creation.attempt },
        }
        let until = creation.started_at + self.settle;
        if self.now < until {
            let message =
                "the answer to the create call was lost; looking for what it may have made".to_owned();
            return Decision::Wait(Wait { reason: Reason::Creating, message, until: Until::Settled(until) });
        }
        Decision::Create { role, attempt: creation.attempt + 1 }
    }

    fn claim(&self, role: Role, found: &[Claimed]) -> Option<Decision> {
        let ours: Vec<_> = found.iter().filter(|claimed| uid(claimed) == Some(&self.me.uid)).collect();
        if let Some(decision) = self.pick(role, &ours, Ground::Recovered) {
            return Some(decision);
        }
        let void: Vec<_> = found.iter().filter(|claimed| claimed.void).collect();
        if let Some(decision) = self.pick(role, &void, Ground::TakenOver) {
            return Some(decision);
        }
        found.iter().find(|claimed| claimed.candidate.by_name).map(|holder| self.holder(role, holder))
    }

    fn pick(&self, role: Role, found: &[&Claimed], ground: Ground) -> Option<Decision> {
        match found {
            [] => None,
            [one] => Some(Decision::Claim { role, id: one.candidate.id.clone(), ground }),
            several => {
                let ids: Vec<_> = several.iter().map(|claimed| claimed.candidate.id.as_str()).collect();
                Some(Wait::error(format!(
                    "several resources in AWS claim to be this one: {}; nothing is created or deleted \
                     until one is left: delete the others, or take the tag {UID_TAG} off them",
                    ids.join(", ")
                )))
            }
        }
    }

    /// Something bears the unique name we want and is not known to be ours.
    fn holder(&self, role: Role, holder: &Claimed) -> Decision {
        let id = holder.candidate.id.clone();
        match holder.candidate.tags.get(OWNER_TAG) {
            Some(owner) if self.allowed.adopt_from == Some(owner) => {
                Decision::Claim { role, id, ground: Ground::Adopted }
            }
            Some(owner) => Wait::error(self.owned_by(&id, owner)),
            None if self.allowed.external_id => Decision::Claim { role, id, ground: Ground::Adopted },
            // The look came before the intent: under an intent, what is found untagged is what we made.
            None if self.record.creation(role).is_some_and(|creation| !creation.refused) => {
                Decision::Claim { role, id, ground: Ground::Recovered }
            }
            None if self.allowed.adopt_unowned => Decision::Claim { role, id, ground: Ground::Adopted },
            None => Wait::error(format!(
                "{id} exists in AWS and was not made by this object; to adopt it, set the annotation \
                 aws.konfig.io/external-id: {id}"
            )),
        }
    }

    fn conflict(&self, live: &Live) -> Option<String> {
        let uid = live.uid()?;
        (uid != self.me.uid).then(|| {
            let owner = live.owner().unwrap_or("an unnamed owner");
            format!(
                "the resource in AWS now belongs to {owner} (uid {uid}), not to {} (uid {})",
                self.me.owner, self.me.uid
            )
        })
    }

    fn owned_by(&self, id: &str, owner: &str) -> String {
        format!(
            "{id} in AWS belongs to {owner}; this object is {}. Delete one of the two, or set the \
             annotation aws.konfig.io/adopt-from: {owner} here to take it over",
            self.me.owner
        )
    }

    /// An object that is being deleted: the roles go in reverse order, then the finalizer.
    fn leave(&self) -> Decision {
        if self.allowed.release && !self.record.is_blank() {
            return Decision::Abandon;
        }
        for &role in self.roles.iter().rev() {
            let Some(sight) = self.sights.get(&role) else { continue };
            return match sight {
                Sight::Unmade(found) => self.leave_unmade(role, found),
                Sight::Absent { deleted_by_us } => match self.settling(role) {
                    Some(wait) if !deleted_by_us => deleting(wait),
                    _ => Decision::Forget(role),
                },
                Sight::Live(live) => self.leave_live(role, live),
            };
        }
        Decision::Release
    }

    /// An intent without an id: what it may have made is found first.
    fn leave_unmade(&self, role: Role, found: &[Claimed]) -> Decision {
        let creation = self.record.creation(role);
        let made: Vec<_> = found
            .iter()
            .filter(|claimed| match uid(claimed) {
                Some(uid) => uid == &self.me.uid,
                None => claimed.candidate.by_name && creation.is_some_and(|creation| !creation.refused),
            })
            .collect();
        if let Some(decision) = self.pick(role, &made, Ground::Recovered) {
            return decision;
        }
        let open = creation.filter(|creation| !creation.refused);
        if let (Some(creation), Protection::TokenFor(lifetime)) = (open, (self.protection)(role)) {
            return self.leave_hidden(role, creation, lifetime);
        }
        match self.settling(role) {
            Some(wait) => deleting(wait),
            None => Decision::Forget(role),
        }
    }

    /// Only the token leads to what a lost create call may have made.
    fn leave_hidden(&self, role: Role, creation: &Creation, lifetime: Duration) -> Decision {
        if self.now <= creation.attempted_since() + lifetime {
            return Decision::Create { role, attempt: creation.attempt };
        }
        Wait::error(format!(
            "{}, nor deleted. Look for it in AWS and delete it there, then set the annotation \
             aws.konfig.io/deletion-policy: abandon to let this object go",
            out_of_reach(creation)
        ))
    }

    fn leave_live(&self, role: Role, live: &Live) -> Decision {
        if let Some(conflict) = self.conflict(live) {
            return Wait::error(format!(
                "{conflict}; not deleted: set the annotation aws.konfig.io/deletion-policy: abandon to let \
                 this object go"
            ));
        }
        match &live.phase {
            Phase::Deleting => Wait::polled(Reason::Deleting, "AWS is deleting it".to_owned()),
            _ => Decision::Delete(role),
        }
    }
}

/// What AWS made, if it did, and will no longer tell.
fn out_of_reach(creation: &Creation) -> String {
    format!(
        "what came of the create call of {} is unknown, and AWS has forgotten its token since: what it may have \
         made cannot be found",
        creation.attempted_since()
    )
}

fn uid(claimed: &Claimed) -> Option<&String> {
    claimed.candidate.tags.get(UID_TAG)
}

fn deleting(decision: Decision) -> Decision {
    match decision {
        Decision::Wait(wait) => Decision::Wait(Wait { reason: Reason::Deleting, ..wait }),
        other => other,
    }
}
