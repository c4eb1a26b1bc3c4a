//! What the verbs of a kind answer.

use serde_json::Value;

use crate::Error;

use crate::tags::{OWNER_TAG, Tags, UID_TAG};

/// What AWS has of one role of an object.
#[derive(Clone, Debug)]
pub enum Observed<Spec = Value, Status = Value> {
    /// AWS confirmed, by the code or answer that means just this, that it is not there.
    Absent,
    /// It is there.
    Live(Live<Spec, Status>),
    /// What was recorded is the handle of a request that has ended; this is the id it led to.
    Became(String),
    /// The request that was recorded has failed for good, and left nothing behind that it did not
    /// find there.
    Refused(Error),
    /// AWS no longer knows the request whose handle was recorded in place of an id: whether it made
    /// anything is open, as after a lost answer.
    Forgotten,
}

impl<Spec, Status> From<Live<Spec, Status>> for Observed<Spec, Status> {
    fn from(live: Live<Spec, Status>) -> Self {
        Observed::Live(live)
    }
}

/// A resource as AWS shows it, in the shape of the spec.
#[derive(Clone, Debug)]
pub struct Live<Spec = Value, Status = Value> {
    /// AWS's side written as a spec, with all its tags under `tags`.
    pub spec: Spec,
    /// The kind's own status fields.
    pub status: Status,
    /// Whether it can be used and changed now.
    pub phase: Phase,
    /// All tags AWS holds; empty for kinds without tags.
    pub tags: Tags,
}

impl<Spec, Status> Live<Spec, Status> {
    /// The uid of the Kubernetes object that claims it in AWS.
    pub fn uid(&self) -> Option<&str> {
        self.tags.get(UID_TAG).map(String::as_str)
    }

    /// The owner named in AWS.
    pub fn owner(&self) -> Option<&str> {
        self.tags.get(OWNER_TAG).map(String::as_str)
    }
}

/// The state of something live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In working order.
    Ready,
    /// AWS is still at it (creating, updating); the text says what.
    Busy(String),
    /// AWS is deleting it.
    Deleting,
    /// AWS gave up on it.
    Failed {
        /// AWS's code and message.
        why: String,
        /// It can only be deleted and made anew, and its name is free for that.
        replace: bool,
    },
}

/// Something in AWS that may be what an object wants or once made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its AWS id.
    pub id: String,
    /// All its tags.
    pub tags: Tags,
    /// It bears the unique name (or natural key) that the spec asks for.
    pub by_name: bool,
}

/// What a create call led to.
#[derive(Clone, Debug)]
pub struct Created<Spec = Value, Status = Value> {
    /// The id, or the handle by which the finished resource is found.
    pub id: String,
    /// What the answer already shows of it; saves reading it back.
    pub live: Option<Live<Spec, Status>>,
}

/// How far a synchronous call got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// AWS confirmed all of it.
    Done,
    /// AWS accepted it and is still at it.
    Busy,
    /// AWS accepted it and is still at it; the handle tells how it goes. The next observe is given it.
    Pending(String),
}
