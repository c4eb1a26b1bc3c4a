//! Accounts, regions and the settings every client shares.

use std::sync::Arc;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_sts::config::Builder;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder as HttpBuilder, ConnectorBuilder};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use resource::{Class, Error, Result, Scope};
use tokio::sync::OnceCell;

use crate::guard::GuardedHttp;
use crate::{Answer, Fence, Guard, Metrics};

/// How long a call may be under way after the fence let it through.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a read is tried here; the rest is left to the engine's backoff. The guard lowers it
/// to one for whatever changes AWS.
const READ_ATTEMPTS: u32 = 3;

/// What all sessions share.
pub struct Options {
    /// Asked before each call that changes AWS.
    pub fence: Arc<dyn Fence>,
    /// Where calls are counted.
    pub metrics: Metrics,
}

/// Credentials and settings for the accounts and regions that are acted in.
pub struct Sessions {
    options: Options,
    base: OnceCell<SdkConfig>,
    own: OnceCell<Scope>,
}

impl Sessions {
    /// Sessions with the credentials and region of the environment, read on first use.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self { options, base: OnceCell::new(), own: OnceCell::new() })
    }

    /// Sessions with a configuration at hand, for a test's endpoint. Retries, time-outs and the
    /// guard apply to it all the same.
    pub fn from_config(options: Options, config: SdkConfig) -> Arc<Self> {
        Arc::new(Self { options, base: OnceCell::new_with(Some(config)), own: OnceCell::new() })
    }

    /// Where the operator's own credentials lead: the account by STS, once a session, the region
    /// from the environment.
    pub async fn own_scope(&self) -> Result<Scope> {
        self.own.get_or_try_init(|| self.identify()).await.cloned()
    }

    /// The configuration to build clients from. They need the [`guard`](Self::guard) as well:
    /// [`Clients`](crate::Clients) does both.
    pub async fn config(&self, scope: &Scope) -> Result<SdkConfig> {
        if !scope.provider.is_empty() {
            let message = format!("the provider {} is not known here", scope.provider);
            return Err(Error::invalid("Session", message));
        }
        Ok(settled(self.base().await, &scope.region))
    }

    /// The guard for the clients of a scope.
    pub fn guard(&self, scope: &Scope) -> Guard {
        Guard::new(scope, self.options.fence.clone(), self.options.metrics.clone())
    }

    async fn base(&self) -> &SdkConfig {
        let load =
            || async { aws_config::defaults(BehaviorVersion::latest()).http_client(https()).load().await };
        self.base.get_or_init(load).await
    }

    async fn identify(&self) -> Result<Scope> {
        let region = self.base().await.region().map(ToString::to_string).ok_or_else(|| {
            Error::invalid("GetCallerIdentity", "no AWS region is configured: set AWS_REGION")
        })?;
        let mut scope =
            Scope { provider: String::new(), account_id: String::new(), region, partition: String::new() };
        let config = self.config(&scope).await?;
        let config = Builder::from(&config).interceptor(self.guard(&scope)).build();
        let client = aws_sdk_sts::Client::from_conf(config);
        let identity = client.get_caller_identity().send().await.answer()?;
        // arn:<partition>:sts::<account>:...
        scope.partition = identity.arn().and_then(|arn| arn.split(':').nth(1)).unwrap_or_default().to_owned();
        scope.account_id = identity.account().unwrap_or_default().to_owned();
        if scope.account_id.is_empty() || scope.partition.is_empty() {
            let message = "AWS names neither account nor partition of these credentials";
            return Err(Error::new(Class::Transient, "GetCallerIdentity", message));
        }
        Ok(scope)
    }
}

/// A configuration with everything that is decided here, and an HTTP client that refuses calls
/// past the guard.
fn settled(base: &SdkConfig, region: &str) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT)
        .build();
    base.to_builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(region.to_owned()))
        .timeout_config(timeouts)
        .retry_config(RetryConfig::adaptive().with_max_attempts(READ_ATTEMPTS))
        .http_client(GuardedHttp::new(base.http_client().unwrap_or_else(https)))
        .build()
}

/// The HTTP client as the SDK would make its own, so that all clients share its connections.
fn https() -> SharedHttpClient {
    HttpBuilder::new().build_with_connector_fn(|settings, components| {
        let mut connector = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(|components| components.sleep_impl()));
        connector.set_proxy_config(Some(ProxyConfig::from_env()));
        connector.build()
    })
}
