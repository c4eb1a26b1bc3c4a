//! What everybody saw of the object from its first to its last moment.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::history::Version;
use crate::kstatus;

/// Fails unless each recorded version reads right: `Current` when Ready at its generation, `Failed`
/// when it waits for a person, and at work otherwise.
pub(super) async fn ensure_kstatus(versions: &[Version]) -> Result<()> {
    let objects: Vec<_> = versions.iter().map(|version| &version.object).collect();
    for (version, read) in versions.iter().zip(kstatus::of(&objects).await?) {
        let expected = expected(version);
        ensure!(
            read.status == expected,
            "kstatus reads {} ({}) and should read {expected}: {}",
            read.status,
            read.message,
            json!(version.object)
        );
    }
    Ok(())
}

fn expected(version: &Version) -> &'static str {
    if version.object.metadata.deletion_timestamp.is_some() {
        "Terminating"
    } else if version.condition("Ready", "status") == Some("True") && observed(version) {
        "Current"
    } else if version.condition("Ready", "reason") == Some("Error") && observed(version) {
        "Failed"
    } else {
        "InProgress"
    }
}

fn observed(version: &Version) -> bool {
    version.field("/status/observedGeneration").and_then(Value::as_i64) == version.object.metadata.generation
}

/// When it was last in sync. Fails unless that is a time as RFC 3339 has it.
pub(super) fn last_sync(version: &Version) -> Result<jiff::Timestamp> {
    let time = version.field("/status/lastSyncTime").and_then(Value::as_str).context("no lastSyncTime")?;
    time.parse().with_context(|| format!("lastSyncTime is {time:?}"))
}
