//! The engine as a whole: put together, led, stopped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::Api;
use parking_lot::RwLock;
use resource::Kind;
use resource::schema::{self, FREE_FORM, REF, SECRET};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::Cluster;
use crate::context::{Accounts, Context, Options};
use crate::crds::Installed;
use crate::events::Events;
use crate::graph::Graph;
use crate::lease::{Fence, Leadership};
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::secrets::Secrets;
use crate::vital::Vital;

/// Why an engine ended before it was told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Ended {
    /// Another process may lead now.
    #[error("no longer the leader; exiting so that a fresh process can stand by")]
    NotLeading,
    /// A part of it ended, and it would have looked alive and done nothing.
    #[error(
        "a part of the operator ended by a bug, which the log shows; exiting so that a fresh process can go on"
    )]
    Broken,
}

/// Runs kinds against one cluster.
pub struct Engine {
    client: Client,
    cx: Arc<Context>,
    known: watch::Sender<bool>,
    leadership: Option<Leadership>,
}

impl Engine {
    /// Puts the engine together; `namespace` is the operator's own. Without `leadership`, this is the only process.
    ///
    /// # Errors
    /// When the cluster's identity (the uid of the namespace kube-system) cannot be read.
    pub async fn new(
        client: Client,
        namespace: String,
        kinds: Vec<Arc<dyn Kind>>,
        accounts: Arc<dyn Accounts>,
        options: Options,
        metrics: Metrics,
        leadership: Option<Leadership>,
    ) -> Result<Self, kube::Error> {
        let cluster_name = match &options.cluster_name {
            Some(name) => name.clone(),
            None => {
                let namespaces: Api<Namespace> = Api::all(client.clone());
                namespaces.get("kube-system").await?.metadata.uid.unwrap_or_default()
            }
        };
        let fence = leadership.as_ref().map_or_else(Fence::open, Leadership::fence);
        let (known, is_known) = watch::channel(false);
        let cx = Context {
            cluster_name,
            yields: RwLock::new(yields(&kinds)),
            secrets: Secrets::new(client.clone(), namespace),
            kinds: kinds.into_iter().map(|kind| (kind.meta().kind, kind)).collect(),
            accounts,
            cluster: Cluster::new(client.clone(), fence),
            stores: RwLock::new(HashMap::new()),
            graph: Graph::default(),
            memories: Memories::default(),
            events: Events::new(client.clone()),
            metrics,
            workers: Arc::new(Semaphore::new(options.workers.max(1))),
            pace: Pace::default(),
            known: is_known,
            tasks: TaskTracker::new(),
            options,
        };
        Ok(Self { client, cx: Arc::new(cx), known, leadership })
    }

    /// Turns true once this process either works or stands by.
    pub fn is_up(&self) -> watch::Receiver<bool> {
        match &self.leadership {
            Some(_) => watch::channel(true).1,
            None => self.cx.known.clone(),
        }
    }

    /// Follows Secrets, if there is any kind that takes one.
    fn follow_secrets(&self, stop: CancellationToken) -> tokio::task::JoinHandle<()> {
        let cx = self.cx.clone();
        tokio::spawn(async move {
            if cx.kinds.values().any(|kind| takes_secrets(kind.schema())) {
                let _vital = Vital { name: "Secrets", told: stop.clone(), engine: stop.clone() };
                cx.secrets.follow(&cx.graph, stop).await;
            }
        })
    }

    /// Runs until told to stop; then every AWS call under way ends and is recorded.
    ///
    /// # Errors
    /// When it ended before it was told to. The process must then exit.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Ended> {
        if let Some(leadership) = &self.leadership {
            tokio::select! {
                () = leadership.acquire() => tracing::info!("leading"),
                () = stop.cancelled() => return Ok(()),
            }
        }
        let inner = stop.child_token();
        let secrets = self.follow_secrets(inner.clone());
        let work = Installed::new(self.client.clone(), self.cx.clone(), self.known, inner.clone()).follow();
        let mut ended = Ended::Broken;
        match &self.leadership {
            None => work.await,
            Some(leadership) => {
                let worked = CancellationToken::new();
                let hold = async {
                    leadership.hold(worked.clone()).await;
                    if !worked.is_cancelled() {
                        ended = Ended::NotLeading;
                    }
                    inner.cancel();
                };
                let work = async {
                    work.await;
                    worked.cancel();
                };
                tokio::join!(hold, work);
            }
        }
        secrets.abort();
        self.cx.tasks.close();
        self.cx.tasks.wait().await;
        if let Some(leadership) = &self.leadership {
            leadership.release().await;
        }
        if stop.is_cancelled() { Ok(()) } else { Err(ended) }
    }
}

/// Whether any field of a kind may refer to a Secret.
fn takes_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            [SECRET, FREE_FORM].iter().any(|mark| schema::is(schema, mark))
                || fields.values().any(takes_secrets)
        }
        _ => false,
    }
}

/// What the references of all kinds yield, by target kind.
fn yields(kinds: &[Arc<dyn Kind>]) -> BTreeMap<String, BTreeSet<String>> {
    fn collect(schema: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
        match schema {
            Value::Object(fields) => {
                if let Some(reference) = fields.get(REF)
                    && let (Some(kind), Some(pointer)) =
                        (reference["kind"].as_str(), reference["yields"].as_str())
                {
                    found.entry(kind.to_owned()).or_default().insert(pointer.to_owned());
                }
                fields.values().for_each(|value| collect(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    kinds.iter().for_each(|kind| collect(kind.schema(), &mut found));
    found
}
