//! What happens around every call: fencing, the number of transmissions, counting, logging.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use aws_sdk_sts::config::retry::RetryPartition;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextMut, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::retry::RetryConfig;
use resource::{Class, Scope};
use tracing::debug;

use crate::class::label;
use crate::{Metrics, error};

/// Beginnings of the operations that only read. Anything else counts as a change.
const READS: &[&str] = &["Describe", "Get", "List", "Head", "BatchGet"];

const NAME: &str = "konfig guard";

/// Whether AWS may be changed now.
///
/// Asked right before each transmission. What it lets through may be under way for up to
/// [`ATTEMPT_TIMEOUT`](crate::ATTEMPT_TIMEOUT) longer.
pub trait Fence: Send + Sync + 'static {
    /// Why not, as an error.
    fn check(&self) -> Result<(), String>;
}

impl<F: Fn() -> Result<(), String> + Send + Sync + 'static> Fence for F {
    fn check(&self) -> Result<(), String> {
        self()
    }
}

/// The interceptor that every client carries.
///
/// It transmits a change at most once and only while the fence is open, keeps retries of one
/// account, region and service from slowing down another, and counts and logs each attempt.
#[derive(Clone)]
pub struct Guard {
    account_id: String,
    region: String,
    fence: Arc<dyn Fence>,
    metrics: Metrics,
}

impl Guard {
    pub(crate) fn new(scope: &Scope, fence: Arc<dyn Fence>, metrics: Metrics) -> Self {
        Self { account_id: scope.account_id.clone(), region: scope.region.clone(), fence, metrics }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Guard({}/{})", self.account_id, self.region)
    }
}

/// The fence's reason, as the error of a call that was not sent.
#[derive(Debug)]
pub(crate) struct Fenced(pub(crate) String);

impl fmt::Display for Fenced {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "not sent: {}", self.0)
    }
}

impl std::error::Error for Fenced {}

/// When the attempt began.
#[derive(Debug)]
struct Started(Instant);

impl Storable for Started {
    type Storer = StoreReplace<Self>;
}

/// Service and operation; without them nothing can be told about a call, so none is made.
fn names(cfg: &ConfigBag) -> Result<(&str, &str), BoxError> {
    let metadata = cfg.load::<Metadata>().ok_or("the call names no operation")?;
    Ok((metadata.service(), metadata.name()))
}

fn no_more_attempts(cfg: &ConfigBag) -> RetryConfig {
    cfg.load::<RetryConfig>().cloned().unwrap_or_else(RetryConfig::standard).with_max_attempts(1)
}

fn changes_aws(operation: &str) -> bool {
    !READS.iter().any(|verb| operation.starts_with(verb))
}

impl Intercept for Guard {
    fn name(&self) -> &'static str {
        NAME
    }

    // The interceptors' own layer is what the retry strategy reads first. Any earlier hook comes
    // too soon: the SDK puts its merged retry configuration there after `read_before_execution`.
    fn modify_before_serialization(
        &self,
        _context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let (service, operation) = names(cfg)?;
        let partition = RetryPartition::new(format!("{service}/{}/{}", self.account_id, self.region));
        // In the standard mode: the SDK's rate limiter would hold a create call back after its intent.
        // Changes are paced by the engine, before it.
        let once = changes_aws(operation).then(|| RetryConfig::standard().with_max_attempts(1));
        let state = cfg.interceptor_state();
        state.store_put(partition);
        if let Some(once) = once {
            state.store_put(once);
        }
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        cfg.interceptor_state().store_put(Started(Instant::now()));
        Ok(())
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let (_, operation) = names(cfg)?;
        if changes_aws(operation) {
            self.fence.check().map_err(Fenced)?;
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let (service, operation) = names(cfg)?;
        let took = cfg.load::<Started>().map(|started| started.0.elapsed()).unwrap_or_default();
        let attempt = error::attempt(operation, context);
        self.metrics.record(service, operation, attempt.outcome, took);
        debug!(
            service,
            operation,
            outcome = attempt.outcome,
            code = attempt.code,
            request_id = attempt.request_id,
            took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "AWS call"
        );
        if attempt.outcome == label(Class::Throttled) {
            // The SDK's limiter would hold the retry back for 18 s inside the call; the engine comes
            // back sooner, and shows that it waits. The limiter slows down the next calls all the same.
            let once = no_more_attempts(cfg);
            cfg.interceptor_state().store_put(once);
        }
        Ok(())
    }
}

/// An HTTP client that only clients with a guard can use.
#[derive(Debug)]
pub(crate) struct GuardedHttp(SharedHttpClient);

impl GuardedHttp {
    pub(crate) fn new(inner: SharedHttpClient) -> Self {
        Self(inner)
    }
}

impl HttpClient for GuardedHttp {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn validate_final_config(&self, components: &RuntimeComponents, cfg: &ConfigBag) -> Result<(), BoxError> {
        if !components.interceptors().any(|interceptor| interceptor.name() == NAME) {
            return Err("the client was built without the guard; build it with aws::Clients".into());
        }
        self.0.validate_final_config(components, cfg)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}
