//! The phases of a measurement, one after the other against the same control plane.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use lab::Operator;
use serde_json::Value;
use tokio::time::sleep;

use crate::api::{self, Requests};
use crate::load::Load;
use crate::progress::Progress;
use crate::site::Site;
use crate::table::{Phase, Run};
use crate::usage::Usage;
use crate::watch::{Ready, until};

/// How many of our own requests to the API server are under way at once.
const WRITERS: usize = 8;
/// Long enough for what was begun to end, and for memory to settle.
const QUIET: Duration = Duration::from_secs(10);
/// No check falls due in it.
const NEVER: Duration = Duration::from_secs(6 * 3600);

/// What was counted up to a moment.
struct Mark {
    at: Instant,
    usage: Usage,
    calls: BTreeMap<String, u64>,
    requests: Requests,
}

impl Mark {
    async fn take(site: &Site, operator: &Operator) -> Result<Self> {
        let (calls, requests) = tokio::try_join!(site.aws.calls(), api::requests(&site.client))?;
        Ok(Self { at: Instant::now(), usage: Usage::of(operator.id())?, calls, requests })
    }

    /// Before the operator's first moment.
    async fn zero(site: &Site) -> Result<Self> {
        let (calls, requests) = tokio::try_join!(site.aws.calls(), api::requests(&site.client))?;
        Ok(Self { at: Instant::now(), usage: Usage::default(), calls, requests })
    }

    /// What came since, `took` after this mark.
    async fn phase(
        &self,
        name: &'static str,
        took: Duration,
        site: &Site,
        operator: &Operator,
    ) -> Result<Phase> {
        let now = Self::take(site, operator).await?;
        Ok(Phase {
            name,
            took,
            cpu: now.usage.cpu - self.usage.cpu,
            usage: now.usage,
            calls: api::since(&now.calls, &self.calls),
            requests: api::since(&now.requests, &self.requests),
        })
    }
}

/// Measures all phases of a scenario.
pub async fn run(load: &Load, progress: &mut Progress) -> Result<Run> {
    progress.step(format!("{}: control plane, stub, operator", load.name));
    let site = Site::prepare().await?;
    let mut operator = site.operator(NEVER).await?;
    let mut phases = Vec::new();
    phases.push(idle(&site, &operator).await?);
    phases.extend(create(load, &site, &operator, progress).await?);
    phases.push(touch(load, &site, &operator, progress).await?);
    operator.term(QUIET * 3).await?;
    let (mut operator, restarted) = restart(load, &site, progress).await?;
    phases.push(restarted);
    operator.term(QUIET * 3).await?;
    let interval = Duration::from_secs(30.max(load.count as u64 / 50));
    let (operator, checked) = check(load, &site, interval, progress).await?;
    phases.push(checked);
    phases.push(cycle(load, &site, &operator, interval, progress).await?);
    Ok(Run { name: load.name.clone(), about: load.about, count: load.count, interval, phases })
}

/// With all CRDs and no objects.
async fn idle(site: &Site, operator: &Operator) -> Result<Phase> {
    let mark = Mark::take(site, operator).await?;
    sleep(QUIET).await;
    mark.phase("idle, no objects", QUIET, site, operator).await
}

/// From the first POST until all are Ready, and once more when nothing is left to do.
async fn create(
    load: &Load,
    site: &Site,
    operator: &Operator,
    progress: &mut Progress,
) -> Result<[Phase; 2]> {
    progress.step(format!("{}: create", load.name));
    let ready = Ready::of(site, load.kinds());
    let mark = Mark::take(site, operator).await?;
    let started = Instant::now();
    let created = each(&load.objects, async |object| site.create(object).await);
    let seen = until(load.count, async || Ok(ready.count()), |done| progress.at(done, load.count));
    tokio::try_join!(created, seen)?;
    let took = started.elapsed();
    // The last object's own writes are still under way.
    sleep(Duration::from_secs(2)).await;
    let created = mark.phase("create", took, site, operator).await?;
    let mark = Mark::take(site, operator).await?;
    sleep(QUIET).await;
    Ok([created, mark.phase("all Ready, nothing to do", QUIET, site, operator).await?])
}

/// Every object is queued once more, with nothing changed that matters.
async fn touch(load: &Load, site: &Site, operator: &Operator, progress: &mut Progress) -> Result<Phase> {
    progress.step(format!("{}: touch", load.name));
    let mark = Mark::take(site, operator).await?;
    let before = reconciles(operator, "").await?;
    let started = Instant::now();
    each(&load.objects, async |object| site.touch(object).await).await?;
    let seen = async || Ok(reconciles(operator, "").await?.saturating_sub(before));
    until(load.count, seen, |done| progress.at(done, load.count)).await?;
    let mut phase = mark.phase("queued again, unchanged", started.elapsed(), site, operator).await?;
    // The touches are ours.
    phase.requests.clear();
    Ok(phase)
}

/// A new process, until it has looked at every object; none is due.
async fn restart(load: &Load, site: &Site, progress: &mut Progress) -> Result<(Operator, Phase)> {
    progress.step(format!("{}: restart", load.name));
    let mark = Mark::zero(site).await?;
    let mut operator = site.spawn(NEVER)?;
    operator.wait_ready(Duration::from_secs(120)).await?;
    let seen = async || reconciles(&operator, "").await;
    until(load.count, seen, |done| progress.at(done, load.count)).await?;
    let phase = mark.phase("restart, nothing due", mark.at.elapsed(), site, &operator).await?;
    Ok((operator, phase))
}

/// A new process, until it has checked every object against AWS.
async fn check(
    load: &Load,
    site: &Site,
    interval: Duration,
    progress: &mut Progress,
) -> Result<(Operator, Phase)> {
    progress.step(format!("{}: wait until all are due", load.name));
    sleep(interval.mul_f64(1.1)).await;
    progress.step(format!("{}: restart, all due", load.name));
    let mark = Mark::zero(site).await?;
    let mut operator = site.spawn(interval)?;
    operator.wait_ready(Duration::from_secs(120)).await?;
    let seen = async || reconciles(&operator, "Synced").await;
    until(load.count, seen, |done| progress.at(done, load.count)).await?;
    let phase = mark.phase("restart, all due", mark.at.elapsed(), site, &operator).await?;
    Ok((operator, phase))
}

/// One drift interval of an operator that runs.
async fn cycle(
    load: &Load,
    site: &Site,
    operator: &Operator,
    interval: Duration,
    progress: &mut Progress,
) -> Result<Phase> {
    progress.step(format!("{}: one drift interval, {} s", load.name, interval.as_secs()));
    // So that it begins between two cycles, not in the middle of one.
    sleep(interval / 4).await;
    let mark = Mark::take(site, operator).await?;
    sleep(interval.saturating_sub(mark.at.elapsed())).await;
    mark.phase("drift cycle", interval, site, operator).await
}

/// How many reconciles ended so far, with that outcome or with any.
async fn reconciles(operator: &Operator, outcome: &str) -> Result<usize> {
    let labels = [("outcome", outcome)];
    let labels = if outcome.is_empty() { &labels[..0] } else { &labels[..] };
    Ok(operator.metric("konfig_reconciles_total", labels).await? as usize)
}

async fn each(objects: &[Value], work: impl AsyncFn(&Value) -> Result<()>) -> Result<()> {
    stream::iter(objects).map(Ok).try_for_each_concurrent(WRITERS, |object| work(object)).await
}
