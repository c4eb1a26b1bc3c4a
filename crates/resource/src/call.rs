//! What a kind is told beside the spec when one of its verbs is called.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::pointer;
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
    /// The handle of a request that was begun on this role and whose end was not seen yet.
    pub request: Option<String>,
    /// Since when the current attempt to create it may have reached AWS.
    pub attempted_since: Option<Timestamp>,
    /// All tags a new resource gets in its create call: ownership, defaults, the spec's.
    pub tags: Tags,
    /// The object's spec as last understood, for what AWS does not keep (such as whether a deletion
    /// leaves a snapshot). As the user wrote it, where it cannot be understood any more.
    pub spec: Value,
    /// The paths that the spec set at the last sync: what is no longer set is still to be cleared.
    pub managed: BTreeSet<String>,
    /// The secrets that were read for this call.
    pub secrets: Secrets,
}

impl Call {
    /// The idempotency token, for the SDK builders that take an optional one.
    pub fn token(&self) -> Option<String> {
        self.token.clone()
    }

    /// Whether this top-level field, or anything below it, was set at the last sync.
    pub fn manages(&self, field: &str) -> bool {
        let path = pointer("", field);
        let below = format!("{path}/");
        self.managed.iter().any(|managed| *managed == path || managed.starts_with(&below))
    }

    /// The secret of a field, by JSON pointer into the spec: `/masterUserPasswordRef`.
    ///
    /// # Errors
    /// When it was not read: only creates, and updates that touch the field, come with it.
    pub fn secret(&self, path: &str) -> Result<&Secret> {
        self.secrets.get(path)
    }
}
