//! Logs that go to CloudWatch: AWS takes what to turn on and what to turn off.

use aws_sdk_rds::types::{CloudwatchLogsExportConfiguration, PendingCloudwatchLogsExports};
use resource::{Changes, Result};

/// The field of both kinds.
const FIELD: &str = "enabledCloudwatchLogsExports";

/// What to turn on and off.
pub(crate) fn changed(changes: &Changes) -> Result<Option<CloudwatchLogsExportConfiguration>> {
    if !changes.touch(FIELD) {
        return Ok(None);
    }
    let some = |types: Vec<String>| (!types.is_empty()).then_some(types);
    let (enable, disable) = (changes.added(FIELD)?, changes.removed(FIELD)?);
    let configuration = CloudwatchLogsExportConfiguration::builder()
        .set_enable_log_types(some(enable))
        .set_disable_log_types(some(disable));
    Ok(Some(configuration.build()))
}

/// The logs that go there once AWS has done what it is at.
pub(crate) fn exported(live: &[String], pending: &PendingCloudwatchLogsExports) -> Vec<String> {
    let mut exported = live.to_vec();
    exported.retain(|log| !pending.log_types_to_disable().contains(log));
    let coming = pending.log_types_to_enable().iter().filter(|log| !live.contains(log));
    exported.extend(coming.cloned());
    exported
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pending_counts() {
        let pending = PendingCloudwatchLogsExports::builder()
            .log_types_to_enable("audit")
            .log_types_to_enable("error")
            .log_types_to_disable("general")
            .build();
        let live = ["general".to_owned(), "error".to_owned()];
        assert_eq!(exported(&live, &pending), ["error", "audit"]);
    }
}
