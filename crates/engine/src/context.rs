//! What every reconcile shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::runtime::reflector::Store;
use parking_lot::RwLock;
use resource::{Kind, Scope, Tags};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::events::Events;
use crate::graph::{Graph, Key};
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::packed::{Names, Packed};
use crate::secrets::Secrets;

/// The accounts the operator works in.
#[async_trait]
pub trait Accounts: Send + Sync + 'static {
    /// The account and region of the operator's own credentials.
    async fn own_scope(&self) -> resource::Result<Scope>;
}

/// Whether references may lead to another namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossNamespace {
    /// They may.
    Allow,
    /// They may not.
    Deny,
}

/// How the engine runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often every object is checked against AWS.
    pub drift_interval: Duration,
    /// How many objects are acted on at once.
    pub workers: usize,
    /// The cluster's name in ownership tags; the uid of kube-system if none is given.
    pub cluster_name: Option<String>,
    /// Tags that every resource gets beside its own.
    pub default_tags: Tags,
    /// Take what bears an object's unique name and has no owner.
    pub adopt_unowned: bool,
    /// Whether references may lead to another namespace.
    pub cross_namespace: CrossNamespace,
    /// Scales polling intervals and settle windows, for tests.
    pub time_scale: f64,
    /// Time and chance: the system's, but in simulations.
    pub clock: Arc<dyn Clock>,
}

/// What every reconcile shares.
pub(crate) struct Context {
    pub options: Options,
    pub cluster_name: String,
    pub kinds: BTreeMap<&'static str, Arc<dyn Kind>>,
    pub accounts: Arc<dyn Accounts>,
    pub cluster: Cluster,
    pub stores: RwLock<HashMap<String, Store<Packed>>>,
    /// What references to each kind yield: JSON pointers into its objects.
    pub yields: RwLock<BTreeMap<String, BTreeSet<String>>>,
    pub secrets: Secrets,
    pub graph: Graph,
    pub memories: Memories,
    pub events: Events,
    pub metrics: Metrics,
    pub workers: Arc<Semaphore>,
    pub pace: Pace,
    /// Turns true once every installed kind's objects are known: before, "missing" means nothing.
    pub known: watch::Receiver<bool>,
    /// What must not be cut off: AWS calls with the writes that follow them.
    pub tasks: TaskTracker,
}

impl Context {
    /// The time now, as status and schedules use it.
    pub fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// A duration of AWS's (polling, settling), scaled for tests.
    pub fn scaled(&self, duration: Duration) -> Duration {
        duration.mul_f64(self.options.time_scale)
    }

    /// An object as the watch last saw it. None where it isn't there, or its kind isn't watched.
    pub fn lookup(&self, key: &Key) -> Option<DynamicObject> {
        let names = Names::of(self.kinds.get(key.kind.as_str())?.meta());
        let packed = self.stores.read().get(&key.kind)?.get(&key.object_ref(names))?;
        packed.open()
    }

    /// A reference takes this, too, from objects of a kind: its change wakes those that refer to it.
    pub fn yield_too(&self, kind: &str, pointer: &str) {
        let is_known = self.yields.read().get(kind).is_some_and(|pointers| pointers.contains(pointer));
        if !is_known {
            self.yields.write().entry(kind.to_owned()).or_default().insert(pointer.to_owned());
        }
    }

    /// Whether objects of this kind can exist: it is known, and its CRD is installed.
    pub fn is_watched(&self, kind: &str) -> bool {
        self.stores.read().contains_key(kind)
    }
}
