//! What a test asserts on beside the objects: calls, events, metrics.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams};

use crate::kstatus;
use crate::operator::Operator;
use crate::proxy::aws::{Call, Table};
use crate::wait::throughout;
use crate::world::World;

/// A Kubernetes event, as far as a person reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// What happened, in one word.
    pub reason: String,
    /// The same in full.
    pub note: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// How often it was said.
    pub times: i32,
}

impl World {
    /// The events of the test's namespace about an object, in order.
    pub async fn events(&self, kind: &str, name: &str) -> Result<Vec<Told>> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut events = api.list(&ListParams::default()).await?.items;
        events.retain(|event| {
            event.regarding.as_ref().is_some_and(|regarding| {
                regarding.kind.as_deref() == Some(kind) && regarding.name.as_deref() == Some(name)
            })
        });
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        Ok(events.into_iter().map(told).collect())
    }

    /// The calls since a mark, but for STS's: who we are is asked once a session.
    #[must_use]
    pub fn calls_since(&self, mark: u64) -> Vec<Call> {
        self.aws.calls_since(mark).into_iter().filter(|call| call.service != "sts").collect()
    }

    /// The operations of the mutating calls since a mark.
    #[must_use]
    pub fn changes_since(&self, mark: u64) -> Vec<String> {
        let changes = self.calls_since(mark).into_iter().filter(|call| call.mutating);
        changes.map(|call| call.operation).collect()
    }

    /// Watches for a while that no call has been made since a mark.
    pub async fn no_calls_since(&self, mark: u64, period: Duration, why: &str) -> Result<()> {
        throughout(period, why, async || {
            let calls = self.calls_since(mark);
            ensure!(calls.is_empty(), "{}", Table(&calls));
            Ok(())
        })
        .await
    }

    /// An object as it is now.
    pub async fn object(&self, kind: &str, name: &str) -> Result<DynamicObject> {
        Ok(self.api(kind).get(name).await?)
    }

    /// A status field of an object, as text.
    pub async fn status(&self, kind: &str, name: &str, field: &str) -> Result<String> {
        let object = self.object(kind, name).await?;
        let value = object.data["status"][field].as_str();
        Ok(value
            .with_context(|| format!("{kind} {name} has no status.{field}: {:#}", object.data))?
            .to_owned())
    }

    /// What kstatus makes of an object now.
    pub async fn kstatus(&self, kind: &str, name: &str) -> Result<String> {
        let seen = kstatus::of(&[self.object(kind, name).await?]).await?;
        Ok(seen.into_iter().next().context("kstatus said nothing")?.status)
    }
}

impl Operator {
    /// The sum of a metric's samples that bear all these labels; 0 where there is none.
    pub async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let text = self.metrics().await?;
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let samples = text.lines().filter(|line| {
            let rest = line.strip_prefix(name).unwrap_or("#");
            rest.starts_with(['{', ' ']) && labels.iter().all(|label| rest.contains(label.as_str()))
        });
        Ok(samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}

fn told(event: Event) -> Told {
    Told {
        reason: event.reason.unwrap_or_default(),
        note: event.note.unwrap_or_default(),
        warning: event.type_.as_deref() == Some("Warning"),
        times: event.series.map_or(1, |series| series.count),
    }
}
