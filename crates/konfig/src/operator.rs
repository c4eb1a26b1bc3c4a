//! `konfig operator`: the engine with every kind, against one cluster.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use aws::Sessions;
use engine::{Accounts, CrossNamespace, Engine, Fence, Leadership, Options, SystemClock};
use kube::Config;
use prometheus_client::registry::Registry;
use resource::Scope;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::{Adopt, CrossNamespaceRefs, Flags};
use crate::{log, serve};

/// How long a stop may take: what AWS is doing is waited for and recorded. A little less than the
/// 120 s that the chart grants.
const GRACE: Duration = Duration::from_secs(110);

/// Runs until SIGTERM or SIGINT.
pub fn run(flags: Flags) -> Result<()> {
    log::init(flags.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(operate(flags))
}

async fn operate(flags: Flags) -> Result<()> {
    // Before anything says that it is up: a signal must never find the default, an unclean death.
    let signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let config = Config::infer()
        .await
        .context("no way to the Kubernetes API server: set KUBECONFIG or run in a cluster")?;
    let namespace = config.default_namespace.clone();
    let client = engine::client(config)?;
    let in_cluster = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let leadership = flags
        .leader_elect
        .unwrap_or(in_cluster)
        .then(|| Leadership::new(client.clone(), &namespace, resource::api::OPERATOR, identity()));
    let fence = leadership.as_ref().map_or_else(Fence::open, Leadership::fence);

    let mut registry = Registry::default();
    let sessions = Sessions::new(aws::Options {
        fence: Arc::new(move || {
            if fence.is_open() { Ok(()) } else { Err("this process does not hold the lease".to_owned()) }
        }),
        metrics: aws::Metrics::register(&mut registry),
    });
    let metrics = engine::Metrics::register(&mut registry);
    let kinds = catalog::kinds(&sessions);
    let engine =
        Engine::new(client, namespace, kinds, Arc::new(Own(sessions)), options(&flags), metrics, leadership)
            .await?;

    serve::metrics(flags.metrics_addr, registry).await?;
    serve::health(flags.health_addr, engine.is_up()).await?;
    work(engine, signals).await
}

async fn work(engine: Engine, (mut terminate, mut interrupt): (Signal, Signal)) -> Result<()> {
    let stop = CancellationToken::new();
    let mut working = tokio::spawn(engine.run(stop.clone()));
    tokio::select! {
        ended = &mut working => return Ok(ended??),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: AWS calls under way are finished and recorded first");
    stop.cancel();
    tokio::time::timeout(GRACE, working).await.context("some AWS calls did not end in time")???;
    tracing::info!("stopped");
    Ok(())
}

fn options(flags: &Flags) -> Options {
    Options {
        drift_interval: flags.drift_interval,
        workers: flags.workers,
        cluster_name: flags.cluster_name.clone(),
        default_tags: flags.default_tags.iter().cloned().collect(),
        adopt_unowned: flags.adopt == Adopt::Unowned,
        cross_namespace: match flags.cross_namespace_refs {
            CrossNamespaceRefs::Allow => CrossNamespace::Allow,
            CrossNamespaceRefs::Deny => CrossNamespace::Deny,
        },
        time_scale: flags.time_scale,
        clock: Arc::new(SystemClock),
    }
}

/// Who this process is in the Lease: the pod, and a random part for a restart within it.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| resource::api::OPERATOR.to_owned());
    format!("{host}_{:08x}", rand::random::<u32>())
}

/// The operator's own credentials.
struct Own(Arc<Sessions>);

#[async_trait]
impl Accounts for Own {
    async fn own_scope(&self) -> resource::Result<Scope> {
        self.0.own_scope().await
    }
}
