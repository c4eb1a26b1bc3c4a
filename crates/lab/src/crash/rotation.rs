//! A Secret whose value changes.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::lifecycle::Lifecycle;
use crate::proxy::aws::{Call, Table, mask};
use crate::world::World;

/// The change of every Secret that an object has sent to AWS.
pub(super) struct Rotation {
    /// The fingerprints before.
    before: Value,
    /// The new value.
    value: String,
    /// The first call that can carry it.
    mark: u64,
}

impl Rotation {
    /// Changes the Secrets that the status names.
    pub async fn begin(world: &World, life: &Lifecycle) -> Result<Self> {
        let object = world.api(life.kind()).get(life.object()).await?;
        let before = object.data["status"]["secrets"].clone();
        let sources = before.as_object().context("nothing secret was sent")?;
        let (mark, value) = (world.aws.mark(), format!("rotated-at-{}", world.kube.mark()));
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
        for source in sources.values() {
            let source = source["source"].as_str().and_then(|source| source.split_once('/'));
            let (name, key) = source.context("a secret without a source")?;
            let patch = Patch::Merge(json!({"stringData": {key: value}}));
            secrets.patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(Self { before, value, mark })
    }

    /// Whether the status says that AWS has the new value.
    pub fn ensure_applied(&self, status: &Value) -> Result<()> {
        let all = status["secrets"].as_object().context("the fingerprints are lost")?;
        for (path, print) in all {
            let is_new = print["applied"] != self.before[path]["applied"];
            ensure!(is_new && print["pending"].is_null(), "{path} is not yet rotated: {print}");
        }
        Ok(())
    }

    /// Whether the last call that carried a secret carried the new one.
    pub fn ensure_sent(&self, world: &World) -> Result<()> {
        let calls = world.aws.calls_since(self.mark);
        let mut changes = calls.iter().rev().filter(|call| call.succeeded() && call.mutating);
        let carried = |call: &Call| call.params.values().find(|value| value.starts_with("****")).cloned();
        ensure!(
            changes.find_map(carried) == Some(mask(&self.value)),
            "AWS was not sent the new value last:\n{}",
            Table(&calls)
        );
        Ok(())
    }
}
