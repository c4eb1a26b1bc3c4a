//! What a kind is told beside the spec when one of its verbs is called.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tags::Ownership;
use crate::{Result, Secret, Secrets, Tags};

/// Where in AWS a resource lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// The name of the `AWSProvider`; empty for the operator's own credentials.
    #[serde(default)]
    pub provider: String,
    /// The twelve-digit account id, as STS reports it.
    pub account_id: String,
    /// The region, such as `eu-central-1`.
    pub region: String,
    /// The partition: `aws`, `aws-cn` or `aws-us-gov`.
    #[serde(default)]
    pub partition: String,
}

/// One object's call on a kind.
#[derive(Clone, Debug)]
pub struct Call {
    /// The account and region to act in.
    pub scope: Scope,
    /// Who the resource belongs to.
    pub ownership: Ownership,
    /// The idempotency token of this attempt (32 hex digits), when something is created.
    pub token: Option<String>,
    /// All tags a new resource gets in its create call: ownership, defaults, the spec's.
    pub tags: Tags,
    /// The object's spec as last understood, for what AWS does not keep (such as whether a deletion
    /// leaves a snapshot). As the user wrote it, where it cannot be understood any more.
    pub spec: Value,
    /// The secrets that were read for this call.
    pub secrets: Secrets,
}

impl Call {
    /// The idempotency token, for the SDK builders that take an optional one.
    pub fn token(&self) -> Option<String> {
        self.token.clone()
    }

    /// The secret of a field, by JSON pointer into the spec: `/masterUserPasswordRef`.
    ///
    /// # Errors
    /// When it was not read: only creates, and updates that touch the field, come with it.
    pub fn secret(&self, path: &str) -> Result<&Secret> {
        self.secrets.get(path)
    }
}
