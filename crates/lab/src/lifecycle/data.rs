//! What a data file holds. `e2e/lifecycle/README.md` shows how one is written.
//!
//! `${status.vpcId}` in any text stands for that field of the object; `${VPC/other.status.vpcId}`
//! for one of a prerequisite; `${vpc:/Tags/Key=team/Value}` for what a look finds there.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::emulator::Flavor;

/// The life of one object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lifecycle {
    /// The file's name without `.yaml`; a kind may have several.
    #[serde(skip)]
    pub name: String,
    /// The emulator that is right about this kind.
    pub emulator: Emulation,
    /// What is applied first, and awaited: whole objects.
    #[serde(default)]
    pub prerequisites: Vec<Value>,
    /// What somebody else makes in AWS beforehand.
    #[serde(default)]
    pub prepare: Vec<Hand>,
    /// Operations whose outcome takes AWS so many polls: states that take time.
    #[serde(default)]
    pub slow: BTreeMap<String, usize>,
    /// The object.
    pub manifest: Value,
    /// The status field that identifies the AWS resource, and is another after a loss.
    pub identifier: String,
    /// The status fields that a Ready object has beside it.
    #[serde(default)]
    pub status: Vec<String>,
    /// The calls of one check of an object that is as it should be.
    pub check: Vec<String>,
    /// Ways to see what AWS holds, by name.
    pub looks: BTreeMap<String, Look>,
    /// Looks that find lists, and how many items these hold while the object lives; none once it
    /// is gone.
    pub tally: BTreeMap<String, usize>,
    /// Its creation.
    pub create: Step,
    /// What others put on it, which must stay through everything.
    #[serde(default)]
    pub foreign: Option<Foreign>,
    /// Changes of the spec, one after the other.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// What others change in AWS; it is put back.
    #[serde(default)]
    pub drifts: Vec<Drift>,
    /// Fields taken out of the spec, one after the other.
    #[serde(default)]
    pub removals: Vec<Change>,
    /// Changes that are refused at admission.
    #[serde(default)]
    pub immutable: Vec<Refusal>,
    /// What it held is lost with it: it is made again only on a person's word.
    #[serde(default)]
    pub precious: bool,
    /// Deletions in AWS by others; it is made again.
    #[serde(default)]
    pub losses: Vec<Loss>,
    /// Its deletion.
    pub delete: Step,
    /// What cannot be done to a field, and why: `drifts/masterUserPasswordRef: AWS never shows it`.
    #[serde(default)]
    pub exempt: BTreeMap<String, String>,
}

/// An emulator, by its name.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Emulation {
    /// moto.
    Moto,
    /// ministack.
    Ministack,
}

impl From<Emulation> for Flavor {
    fn from(emulation: Emulation) -> Self {
        match emulation {
            Emulation::Moto => Self::Moto,
            Emulation::Ministack => Self::Ministack,
        }
    }
}

/// A call by another client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hand {
    /// Service and operation as boto3 names them: `ec2.create_tags`.
    pub call: String,
    /// Its parameters.
    #[serde(default)]
    pub with: Value,
}

/// A way to see what AWS holds: a call by another client, and where in its answer to look.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// Service and operation as boto3 names them: `ec2.describe_vpcs`.
    pub call: String,
    /// Its parameters.
    #[serde(default)]
    pub with: Value,
    /// The part of the answer that is looked at; see [`pick`](super::pick()).
    #[serde(default)]
    pub at: String,
}

/// By look, what stands where: `vpc: {/CidrBlock: 10.0.0.0/16}`. `error` stands for the code with
/// which the call fails.
pub type Sees = BTreeMap<String, BTreeMap<String, Value>>;

/// What the operator asks of AWS, in any order, and what AWS then holds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The mutating calls, each as often as it is made.
    #[serde(default)]
    pub calls: Vec<String>,
    /// What AWS then holds.
    #[serde(default)]
    pub sees: Sees,
}

/// What others put on the object.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// How they do.
    pub by: Vec<Hand>,
    /// How it is seen that it stays.
    pub sees: Sees,
}

/// A change of the spec.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// A merge patch for the spec: null takes a field out.
    pub spec: Value,
    /// The mutating calls, each as often as it is made.
    #[serde(default)]
    pub calls: Vec<String>,
    /// What AWS then holds.
    #[serde(default)]
    pub sees: Sees,
}

/// A change in AWS by others that is put back.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// How they do it.
    pub by: Vec<Hand>,
    /// The paths of the spec that the event names.
    pub paths: Vec<String>,
    /// The mutating calls that put it back.
    pub calls: Vec<String>,
    /// What AWS then holds.
    pub sees: Sees,
}

/// A change that is refused at admission.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// A merge patch for the spec.
    pub spec: Value,
    /// A part of the message.
    pub says: String,
}

/// A deletion in AWS by others.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Loss {
    /// How they do it.
    pub by: Vec<Hand>,
    /// The mutating calls that make it again.
    pub calls: Vec<String>,
    /// It keeps its identifier: one that is made of names.
    #[serde(default)]
    pub same_identifier: bool,
    /// What AWS then holds.
    #[serde(default)]
    pub sees: Sees,
}

impl Lifecycle {
    /// The Errors that its life leads to: something precious that is lost waits in one.
    #[must_use]
    pub fn errors(&self) -> usize {
        if self.precious { self.losses.len() } else { 0 }
    }

    /// The object's kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        text(&self.manifest, "/kind")
    }

    /// The object's name.
    #[must_use]
    pub fn object(&self) -> &str {
        text(&self.manifest, "/metadata/name")
    }

    /// The changes of its spec, and what is taken out of it afterwards.
    pub fn edits(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().chain(&self.removals)
    }

    /// The prerequisites that become Ready, by kind and name: not Secrets.
    pub fn required(&self) -> impl Iterator<Item = (&str, &str)> {
        let ours =
            self.prerequisites.iter().filter(|object| text(object, "/apiVersion").contains(".konfig.io/"));
        ours.map(|object| (text(object, "/kind"), text(object, "/metadata/name")))
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
