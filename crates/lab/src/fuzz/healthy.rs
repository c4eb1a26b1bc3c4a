//! Objects that nothing is wrong with, and how long they take to become Ready.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::manifest;
use crate::subject::condition;
use crate::wait::eventually;
use crate::world::World;

/// What a lot is made of.
const KINDS: [&str; 3] = ["VPC", "IAMRole", "S3Bucket"];
const PATIENCE: Duration = Duration::from_secs(180);

/// A VPC, a role and a bucket, one lot after the other.
pub struct Healthy<'a> {
    world: &'a World,
    lots: usize,
    /// What each lot took until all of it was Ready.
    pub times: Times,
}

/// Durations, and what they say.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<Duration>);

impl<'a> Healthy<'a> {
    /// None yet.
    #[must_use]
    pub fn new(world: &'a World) -> Self {
        Self { world, lots: 0, times: Times::default() }
    }

    /// Makes one lot, waits until it is Ready, and takes it away again.
    pub async fn lot(&mut self) -> Result<()> {
        self.lots += 1;
        let name = format!("healthy-{}", self.lots);
        let bucket = manifest::of("S3Bucket", &name, json!({ "bucketName": format!("konfig-{name}") }));
        let start = Instant::now();
        self.world.apply(&manifest::all(&[manifest::vpc(&name), manifest::role(&name), bucket])).await?;
        let lot = KINDS.map(|kind| self.world.subject(kind, &name));
        // Late is a matter for the end: by then it must be there at all.
        eventually(PATIENCE, &format!("{name} to be Ready"), async || {
            for kind in KINDS {
                let object = self.world.api(kind).get(&name).await?;
                let ready = condition(&object, "Ready");
                ensure!(ready["status"] == "True", "{kind}: {ready}");
            }
            Ok(())
        })
        .await?;
        self.times.0.push(start.elapsed());
        for one in &lot {
            one.delete().await?;
        }
        eventually(PATIENCE, &format!("{name} to go"), async || {
            for kind in KINDS {
                ensure!(self.world.api(kind).get_opt(&name).await?.is_none(), "{kind} is still there");
            }
            Ok(())
        })
        .await
    }
}

impl Times {
    /// The longest; nothing if there is none.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        write!(f, "{} lots, median {middle:.2?}, longest {:.2?}", sorted.len(), self.longest())
    }
}
