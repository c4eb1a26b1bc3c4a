//! What an object's status keeps for the engine: intents, ids, managed paths.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::tags::hex;
use crate::{Role, Scope};

/// One role's creation: the intent (written before the create call) and, after it, the id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Creation {
    /// The idempotency token of the attempt; empty for what was found and adopted.
    #[serde(default)]
    pub token: String,
    /// When the attempt was last about to be transmitted, or when that ended: the settle window
    /// counts from here.
    pub started_at: Timestamp,
    /// When the attempt was first about to be transmitted, where that was another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Counts the attempts that AWS may tell apart; starts at 1.
    pub attempt: u32,
    /// AWS refused the attempt: nothing was made by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// The account it is made in.
    pub account_id: String,
    /// The region it is made in.
    pub region: String,
    /// AWS's id, or the handle of the request that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The handle of an update or a deletion under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl Creation {
    /// The idempotency token of an attempt: 32 hex digits that follow from object and attempt.
    pub fn token_of(uid: &str, role: Role, attempt: u32) -> String {
        let digest = Sha256::digest(format!("{uid}/{}/{attempt}", role.0));
        hex(&digest[..16])
    }

    /// Since when the attempt may have reached AWS.
    pub fn attempted_since(&self) -> Timestamp {
        self.since.unwrap_or(self.started_at)
    }

    /// Whether it was recorded for this account and region.
    pub fn is_in(&self, scope: &Scope) -> bool {
        self.account_id == scope.account_id && self.region == scope.region
    }
}

/// The ids already made, by role.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made(BTreeMap<String, String>);

impl Made {
    /// The id of a role.
    pub fn get(&self, role: Role) -> Option<&str> {
        self.0.get(role.0).map(String::as_str)
    }
}

/// What the status of an object holds for the engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Intents and ids, by role name.
    pub creation: BTreeMap<String, Creation>,
    /// The paths that the spec set at the last sync.
    pub managed: BTreeSet<String>,
    /// It existed before us and is released, not deleted.
    pub adopted: bool,
    /// The hash of the inputs of the last sync.
    pub inputs: String,
    /// Corrections per path.
    pub corrections: BTreeMap<String, Corrections>,
    /// The fingerprints of secrets, by path.
    pub secrets: BTreeMap<String, Fingerprint>,
    /// The generation of the last report.
    pub observed_generation: i64,
    /// The last successful reconcile.
    pub last_sync: Option<Timestamp>,
}

/// How often a path had to be put right within the current window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Corrections {
    /// How often.
    pub count: u32,
    /// When the first of them was.
    pub since: Timestamp,
    /// When the last of them was.
    pub last: Timestamp,
}

/// What is known of a secret without knowing it. The fingerprints are keyed: without the operator's
/// key they tell nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fingerprint {
    /// What AWS has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// What a call carries or carried, whose end is not seen yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// That call was the one that created the resource.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The Secret's uid and version.
    #[serde(default)]
    pub version: String,
    /// The Secret's name and key.
    #[serde(default)]
    pub source: String,
    /// Names the operator's key.
    #[serde(default)]
    pub key: String,
}

impl Record {
    /// Reads a status. Fails on a `creation` that cannot be understood: to take it for none would
    /// be to create a second time. Everything else can be found out anew.
    pub fn of(status: &Value) -> Result<Self, serde_json::Error> {
        fn part<T: serde::de::DeserializeOwned + Default>(status: &Value, path: &str) -> T {
            let value = status.pointer(path).cloned().unwrap_or_default();
            serde_json::from_value(value).unwrap_or_default()
        }
        let creation = status.get("creation").filter(|creation| !creation.is_null());
        Ok(Self {
            creation: creation.map(BTreeMap::deserialize).transpose()?.unwrap_or_default(),
            managed: part(status, "/managed"),
            adopted: part(status, "/adopted"),
            inputs: part(status, "/sync/inputs"),
            corrections: part(status, "/sync/corrections"),
            secrets: part(status, "/secrets"),
            observed_generation: part(status, "/observedGeneration"),
            last_sync: part(status, "/lastSyncTime"),
        })
    }

    /// The creation of a role.
    pub fn creation(&self, role: Role) -> Option<&Creation> {
        self.creation.get(role.0)
    }

    /// The ids already made.
    pub fn made(&self) -> Made {
        let ids =
            self.creation.iter().filter_map(|(role, creation)| Some((role.clone(), creation.id.clone()?)));
        Made(ids.collect())
    }

    /// Whether nothing was ever begun in AWS.
    pub fn is_blank(&self) -> bool {
        self.creation.is_empty()
    }
}
