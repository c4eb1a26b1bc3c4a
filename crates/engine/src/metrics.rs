//! What the engine counts, for Prometheus.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    /// The Kubernetes kind.
    pub kind: String,
}

/// A kind and how its reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    /// The Kubernetes kind.
    pub kind: String,
    /// The reason of the Ready condition, or `Skipped`, `Paused`, `Gone` and the like.
    pub outcome: String,
}

/// What the engine counts.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) reconciles: Family<Outcome, Counter>,
    pub(crate) durations: Family<OfKind, Histogram>,
    pub(crate) corrections: Family<OfKind, Counter>,
    pub(crate) time_to_ready: Family<OfKind, Histogram>,
    pub(crate) depth: Family<OfKind, Gauge<i64, AtomicI64>>,
}

impl Metrics {
    /// Registers all of them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            durations: Family::new_with_constructor(|| {
                Histogram::new([0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0])
            }),
            corrections: Family::default(),
            time_to_ready: Family::new_with_constructor(|| {
                Histogram::new([0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0])
            }),
            depth: Family::default(),
        };
        let Self { reconciles, durations, corrections, time_to_ready, depth } = metrics.clone();
        registry.register("konfig_reconciles", "Reconciles by kind and outcome", reconciles);
        registry.register("konfig_reconcile_duration_seconds", "How long a reconcile took", durations);
        registry.register(
            "konfig_drift_corrections",
            "Paths put back because AWS differed from an unchanged spec",
            corrections,
        );
        registry.register(
            "konfig_time_to_ready_seconds",
            "From an object's creation to its first Ready",
            time_to_ready,
        );
        registry.register("konfig_queue_depth", "Objects being reconciled or waiting for a worker", depth);
        metrics
    }
}

/// The label of a kind.
pub(crate) fn of_kind(kind: &str) -> OfKind {
    OfKind { kind: kind.to_owned() }
}
