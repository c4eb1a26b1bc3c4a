//! A call as it is recorded.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// One call that the operator made.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its number; rises through the life of the proxy.
    pub seq: u64,
    /// When it arrived.
    pub at: Instant,
    /// The service's signing name: `ec2`, `iam`, `sts`, `s3`, …
    pub service: String,
    /// The operation (`CreateVpc`); of REST services other than EKS the method and the path.
    pub operation: String,
    /// Form fields, or the flattened JSON body; secrets are masked.
    pub params: BTreeMap<String, String>,
    /// The region it was signed for.
    pub region: String,
    /// Which of the SDK's attempts this is, if it says so.
    pub attempt: Option<u32>,
    /// Whether it changes something in AWS.
    pub mutating: bool,
    /// The status of the answer, also of one that was then lost.
    pub status: Option<u16>,
    /// AWS's error code.
    pub error_code: Option<String>,
    /// AWS's request id.
    pub request_id: Option<String>,
    /// Whether it reached the emulator.
    pub forwarded: bool,
    /// What the proxy did to it: `throttled`, `replayed`, `answer lost`, …
    pub note: Option<&'static str>,
}

impl Call {
    /// Whether AWS did it, also if the caller never learned.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status < 400)
    }
}

/// Calls as a table, for the message of a failed test.
pub struct Table<'a>(pub &'a [Call]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(start) = self.0.first().map(|call| call.at) else {
            return writeln!(f, "(no AWS calls)");
        };
        for call in self.0 {
            let status = call.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            let outcome = call.error_code.as_deref().unwrap_or_default();
            let params = call.params.iter().filter(|(key, _)| !matches!(key.as_str(), "Action" | "Version"));
            let params = params.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
            let params = params.chars().take(160).collect::<String>();
            writeln!(
                f,
                "{:>4} {:>8.3}s {:<4} {:<34} {status:>3} {outcome} {}{} {params}",
                call.seq,
                call.at.duration_since(start).as_secs_f64(),
                call.service,
                call.operation,
                if call.forwarded { "" } else { "[not forwarded] " },
                call.note.map(|note| format!("[{note}]")).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}
