//! The critical path: dependent objects, against their AWS calls alone.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::Value;

use crate::load;
use crate::progress::Progress;
use crate::site::{Aws, Site};
use crate::table::Path;
use crate::watch::{Ready, until};

/// What each AWS call takes.
pub const LATENCIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
/// No check falls due in it.
const NEVER: Duration = Duration::from_secs(6 * 3600);

/// Measures a chain and a stack.
pub async fn run(progress: &mut Progress) -> Result<Vec<Path>> {
    let mut paths = Vec::new();
    for latency in LATENCIES {
        for (name, objects) in [("VPC, Subnet", load::chain()), ("a stack of eight", load::stack(0))] {
            progress.step(format!("path: {name}, {} ms a call", latency.as_millis()));
            paths.push(measure(name, &objects, latency).await?);
        }
    }
    Ok(paths)
}

async fn measure(name: &'static str, objects: &[Value], latency: Duration) -> Result<Path> {
    let site = Site::prepare().await?;
    site.aws.slow(latency).await?;
    let _operator = site.operator(NEVER).await?;
    let kinds = objects.iter().filter_map(|object| object["kind"].as_str()).map(str::to_owned);
    let ready = Ready::of(&site, kinds.collect::<std::collections::BTreeSet<_>>());
    // The operator is up, but its connections and ours are new.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let started = Instant::now();
    try_join_all(objects.iter().map(|object| site.create(object))).await?;
    until(objects.len(), async || Ok(ready.count()), |_| {}).await?;
    let took = started.elapsed();
    let calls = site.aws.recorded().await?;
    let alone = replay(&calls, latency).await?;
    Ok(Path { name, latency, calls: calls.len(), took, alone })
}

/// The same calls in the same order, one after the other, against a new stub: it gives the same ids,
/// so each call means the same.
async fn replay(calls: &[lab::stub::Recorded], latency: Duration) -> Result<Duration> {
    let aws = Aws::start().await?;
    aws.slow(latency).await?;
    let started = Instant::now();
    for call in calls {
        let status = aws.send(call).await?;
        let is_question = call.operation.starts_with("Get") || call.operation.starts_with("Describe");
        ensure!(status < 400 || is_question, "{} was answered {status} when replayed", call.operation);
    }
    Ok(started.elapsed())
}
