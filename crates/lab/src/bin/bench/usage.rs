//! What a process has used, as Linux counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time and memory of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User and system time since its start.
    pub cpu: Duration,
    /// Resident memory, in kB: with the parts of the binary that were used.
    pub resident: u64,
    /// What of it is the process's own, in kB.
    pub anonymous: u64,
    /// The most that was ever resident, in kB.
    pub peak: u64,
}

impl Usage {
    /// Of a process, now.
    pub fn of(id: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{id}/{file}");
            fs::read_to_string(&path).with_context(|| path)
        };
        let (stat, status) = (read("stat")?, read("status")?);
        // The name in parentheses may hold spaces; utime and stime are the 12th and 13th after it.
        let (_, fields) = stat.rsplit_once(") ").context("/proc stat")?;
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap_or_default()).sum();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let field = |name: &str| field(name).with_context(|| format!("{name} in /proc status"));
        Ok(Self {
            // Linux counts in hundredths of a second on every platform.
            cpu: Duration::from_millis(ticks * 10),
            resident: field("VmRSS")?,
            anonymous: field("RssAnon")?,
            peak: field("VmHWM")?,
        })
    }
}
