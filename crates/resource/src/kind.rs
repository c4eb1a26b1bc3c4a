//! The contract between the engine and a kind, erased to JSON.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::record::Made;
use crate::{Call, Candidate, Changes, Created, Live, Observed, Progress, Result};

/// One of the AWS resources that an object stands for. Most kinds have [`Role::MAIN`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role(pub &'static str);

impl Role {
    /// The resource that the kind is named after.
    pub const MAIN: Role = Role("main");
}

/// What keeps AWS from making a second resource when a create call is sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing: a second transmission makes a second resource.
    None,
    /// An idempotency token, which we set.
    Token,
    /// An idempotency token that AWS forgets after this long, of something that cannot be found
    /// again without it.
    TokenFor(Duration),
    /// A unique name or natural key: AWS refuses the second.
    UniqueName,
}

/// How a deletion goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// AWS deletes at once.
    Immediate,
    /// AWS takes its time; the object stays until AWS confirms.
    Asynchronous,
    /// AWS refuses while something still uses it.
    Blockable,
}

/// How a kind is read at a periodic check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Many objects in one call.
    Batched,
    /// A call (or more) for each object.
    OneByOne,
}

/// How often AWS is asked while it is still at something.
#[derive(Clone, Copy, Debug)]
pub struct Polling(pub Duration);

impl Default for Polling {
    fn default() -> Self {
        Polling(Duration::from_secs(5))
    }
}

/// What is fixed about a kind.
#[derive(Clone, Debug)]
pub struct Meta {
    /// The Kubernetes kind, such as `VPC`.
    pub kind: &'static str,
    /// The plural, lower case: the name of the API resource.
    pub plural: &'static str,
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// One sentence: what it is and which AWS resource it stands for.
    pub about: &'static str,
    /// The status field that identifies the resource in AWS (a printer column).
    pub identifier: &'static str,
    /// How a deletion goes.
    pub deletion: Deletion,
    /// How it is read at a periodic check.
    pub reads: Reads,
    /// How often AWS is asked while it is still at something.
    pub polling: Polling,
    /// Deleted in AWS by somebody, it waits for a person's word before it is made anew.
    pub precious: bool,
    /// Kinds that, turning Ready, may bring what AWS missed: objects of this kind that wait on AWS
    /// for something outside their spec are looked at again then.
    pub woken_by: &'static [&'static str],
    /// The IAM actions it needs.
    pub permissions: &'static [&'static str],
}

/// A kind as the engine runs it: a description and five verbs.
///
/// `spec` is always canonical, with references resolved to their direct form.
/// A kind never sees a Kubernetes client.
#[async_trait]
pub trait Kind: Send + Sync + 'static {
    /// What is fixed about it.
    fn meta(&self) -> &Meta;
    /// The annotated JSON schema of its spec (see [`crate::schema`]).
    fn schema(&self) -> &Value;
    /// The JSON schema of its own status fields.
    fn status_schema(&self) -> &Value;
    /// The AWS resources that this spec needs, in the order in which they are made; without a spec,
    /// all that any spec may need.
    fn roles(&self, spec: Option<&Value>) -> Vec<Role>;
    /// What protects the create call of a role; without a spec, whatever that is.
    fn protection(&self, role: Role, spec: Option<&Value>) -> Protection;
    /// Whether a recorded id is the handle of the request that makes it; see [`Observed::Became`].
    fn is_handle(&self, id: &str) -> bool;
    /// The spec as AWS would write it (case, host bits of a CIDR, one rule for each source).
    /// Fails, before any call, on what AWS could only refuse.
    fn canonical(&self, spec: Value) -> Result<Value>;
    /// Whether AWS cannot change what stands at this path of the spec once it is made; beside what the
    /// schema marks as immutable.
    fn is_fixed(&self, _spec: &Value, _path: &str) -> bool {
        false
    }
    /// The paths of this spec that are sent and never read back, beside secrets: they are sent when
    /// they change, in an update of their own.
    fn write_only(&self, _spec: &Value) -> Vec<String> {
        Vec::new()
    }
    /// What AWS has of a role already made. `spec` is None while an object with a broken spec is
    /// deleted; it only tells which optional parts are worth reading.
    async fn observe(&self, call: &Call, role: Role, id: &str, spec: Option<&Value>) -> Result<Observed>;
    /// What AWS may hold of a role by owner tag, or by unique name.
    async fn find(&self, call: &Call, role: Role, spec: Option<&Value>) -> Result<Vec<Candidate>>;
    /// Makes one AWS resource, with one mutating call.
    async fn create(&self, call: &Call, role: Role, spec: &Value, made: &Made) -> Result<Created>;
    /// Brings what is live to `target` where `changes` says they differ.
    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live,
        target: &Value,
        changes: &Changes,
    ) -> Result<Progress>;
    /// Deletes a role, after letting go of what only it holds.
    async fn delete(&self, call: &Call, role: Role, id: &str, live: &Live) -> Result<Progress>;
    /// Takes our tags off something that is released.
    async fn untag(&self, call: &Call, role: Role, id: &str, keys: &[String]) -> Result<()>;
}
