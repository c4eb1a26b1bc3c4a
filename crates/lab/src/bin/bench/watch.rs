//! Which objects are Ready, from a watch of each kind.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::site::Site;

/// Counts the Ready objects until it is dropped.
pub struct Ready {
    count: Arc<AtomicUsize>,
    watches: Vec<JoinHandle<()>>,
}

impl Ready {
    pub fn of(site: &Site, kinds: impl IntoIterator<Item = String>) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let watch = |kind: String| {
            let (api, count) = (site.api(&kind), Arc::clone(&count));
            tokio::spawn(async move {
                let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
                let mut seen = HashSet::new();
                while let Some(event) = events.next().await {
                    if let Ok(Event::Apply(object) | Event::InitApply(object)) = event
                        && is_ready(&object)
                        && seen.insert(object.name_any())
                    {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        let watches = kinds.into_iter().map(watch).collect();
        Self { count, watches }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

fn is_ready(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// Waits until `count` yields at least `wanted`; `show` is told how far it is.
pub async fn until(
    wanted: usize,
    mut count: impl AsyncFnMut() -> Result<usize>,
    mut show: impl FnMut(usize),
) -> Result<()> {
    let mut last = (0, tokio::time::Instant::now());
    loop {
        let now = count().await?;
        show(now);
        if now >= wanted {
            return Ok(());
        }
        if now > last.0 {
            last = (now, tokio::time::Instant::now());
        }
        anyhow::ensure!(last.1.elapsed() < PATIENCE, "stuck at {now} of {wanted}");
        tokio::time::sleep(POLL).await;
    }
}

/// How long nothing may happen.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);
const POLL: std::time::Duration = std::time::Duration::from_millis(100);
