//! What is counted about calls to AWS.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds: from a read that is close by to the time-out of one attempt.
const BUCKETS: [f64; 11] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    service: String,
    operation: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    service: String,
    operation: String,
    outcome: &'static str,
}

/// Counts and durations of calls to AWS, one for every attempt.
#[derive(Clone, Debug)]
pub struct Metrics {
    calls: Family<Call, Counter>,
    durations: Family<Operation, Histogram, fn() -> Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { calls: Family::default(), durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)) }
    }
}

impl Metrics {
    /// Metrics that the registry shows from now on.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "konfig_aws_calls",
            "Calls sent to AWS, one for every attempt, by outcome",
            metrics.calls.clone(),
        );
        registry.register(
            "konfig_aws_call_duration_seconds",
            "How long an attempt to call AWS took",
            metrics.durations.clone(),
        );
        metrics
    }

    pub(crate) fn record(&self, service: &str, operation: &str, outcome: &'static str, took: Duration) {
        let (service, operation) = (service.to_owned(), operation.to_owned());
        let labels = Operation { service: service.clone(), operation: operation.clone() };
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
        self.calls.get_or_create(&Call { service, operation, outcome }).inc();
    }
}
