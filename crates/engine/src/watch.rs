//! Watching the objects of one kind: who is to be reconciled, and who is to be woken.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::future::{pending, ready};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use kube::api::Api;
use kube::core::DynamicObject;
use kube::runtime::controller::{self, Action, Config as ControllerConfig, Controller};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{PredicateConfig, WatchStreamExt, watcher as watch};
use kube::{Client, ResourceExt};
use resource::Kind;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::graph::Key;
use crate::object::{Object, api_resource};
use crate::reconcile::{Next, reconcile};

/// How many objects are listed at a time: a page is held as text, as JSON and as objects at once.
const PAGE: u32 = 100;

/// Watches and reconciles the objects of one kind until told to stop.
pub async fn run(
    client: Client,
    cx: Arc<Context>,
    kind: Arc<dyn Kind>,
    writer: Writer<DynamicObject>,
    mut faces: Faces,
    stop: CancellationToken,
) {
    let (resource, name) = (api_resource(kind.meta()), kind.meta().kind);
    let wakeups = cx.graph.open(&resource);
    let wakeups = stream::unfold(wakeups, |mut wakeups| async { Some((wakeups.recv().await?, wakeups)) });
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let reader = writer.as_reader();
    let listed = faces.is_listed.subscribe();
    let objects = watch(api, watcher::Config::default().page_size(PAGE))
        .default_backoff()
        .modify(|object| object.metadata.managed_fields = None)
        .reflect(writer)
        .inspect_ok(move |event| faces.see(event))
        .applied_objects()
        .predicate_filter(matters, PredicateConfig::default());
    let work = Controller::for_stream_with(objects, reader, resource)
        // No bound here: what is bounded is the calls, not the objects that wait for them.
        .with_config(ControllerConfig::default().concurrency(0))
        .reconcile_on(wakeups)
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(
            one,
            |_, _: &Infallible, _| Action::await_change(),
            Arc::new(Shared { cx, kind, stop: stop.clone() }),
        )
        .for_each(|result| {
            match result {
                // It went while a wake-up for it was queued.
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(%error, kind = name, "cannot watch its objects; trying on"),
            }
            ready(())
        });
    // Told to stop before its objects are listed, kube's controller waits for ever for the list. Nothing of
    // it is under way by then.
    let stopped_early = async {
        stop.cancelled().await;
        if *listed.borrow() {
            pending::<()>().await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stopped_early => {}
    }
}

/// A change of an object that can make a difference to its reconcile. Status is not among them:
/// we write it.
fn matters(object: &DynamicObject) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    object.metadata.generation.hash(&mut hasher);
    object.metadata.deletion_timestamp.is_some().hash(&mut hasher);
    object.finalizers().hash(&mut hasher);
    object.annotations().hash(&mut hasher);
    Some(hasher.finish())
}

/// What the reconciles of a kind share.
struct Shared {
    cx: Arc<Context>,
    kind: Arc<dyn Kind>,
    stop: CancellationToken,
}

async fn one(object: Arc<DynamicObject>, shared: Arc<Shared>) -> Result<Action, Infallible> {
    let (cx, kind) = (shared.cx.clone(), shared.kind.clone());
    let mut known = cx.known.clone();
    // Told to stop before everything is known, nothing is begun: it would wait for ever.
    let Some(Ok(_)) = shared.stop.run_until_cancelled(known.wait_for(|known| *known)).await else {
        return Ok(Action::await_change());
    };
    Ok(match reconcile(cx, kind, object).await {
        Next::After(wait) => Action::requeue(wait),
        Next::OnChange => Action::await_change(),
    })
}

/// What each object of a kind shows to those that refer to it.
pub struct Faces {
    cx: Arc<Context>,
    kind: Arc<dyn Kind>,
    /// Turns true once all objects are known.
    is_listed: Sender<bool>,
    seen: HashMap<Key, u64>,
    /// While the watch starts anew: what the list holds. What is missing from it went unseen.
    listed: BTreeSet<Key>,
}

impl Faces {
    pub fn new(cx: Arc<Context>, kind: Arc<dyn Kind>, is_listed: Sender<bool>) -> Self {
        Self { cx, kind, is_listed, seen: HashMap::new(), listed: BTreeSet::new() }
    }

    fn see(&mut self, event: &Event<DynamicObject>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(self.key(object));
                self.show(object);
            }
            Event::Apply(object) => self.show(object),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<_> = self.seen.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                gone.iter().for_each(|key| self.gone(key));
                self.is_listed.send_replace(true);
            }
            Event::Delete(object) => {
                self.cx.memories.forget(&object.uid().unwrap_or_default());
                self.gone(&self.key(object));
            }
        }
    }

    fn show(&mut self, object: &DynamicObject) {
        let (key, face) = (self.key(object), self.face(object));
        if self.seen.insert(key.clone(), face) != Some(face) {
            self.cx.graph.wake_referrers(&key);
            if object.is_ready() {
                self.wake_hopeful();
            }
        }
    }

    fn gone(&mut self, key: &Key) {
        self.seen.remove(key);
        self.cx.graph.gone(key);
        self.wake_hopeful();
    }

    /// Wakes objects of other kinds that may have waited for one of this kind without naming it.
    fn wake_hopeful(&self) {
        let kind = self.kind.meta().kind;
        let others = self.cx.kinds.values().filter(|other| other.meta().woken_by.contains(&kind));
        for other in others {
            let Some(store) = self.cx.stores.read().get(other.meta().kind).cloned() else { continue };
            for object in store.state_filter(|object| object.is_waiting()) {
                self.cx.graph.wake(&key_of(other.meta().kind, &object));
            }
        }
    }

    fn key(&self, object: &DynamicObject) -> Key {
        key_of(self.kind.meta().kind, object)
    }

    fn face(&self, object: &DynamicObject) -> u64 {
        let mut hasher = DefaultHasher::new();
        object.uid().hash(&mut hasher);
        object.is_ready().hash(&mut hasher);
        // Those who wait say what for.
        object.ready_reason().hash(&mut hasher);
        object.is_deleting().hash(&mut hasher);
        for pointer in self.cx.yields.read().get(self.kind.meta().kind).into_iter().flatten() {
            object.data.pointer(pointer).map(ToString::to_string).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The key of an object of this kind.
pub fn key_of(kind: &str, object: &DynamicObject) -> Key {
    Key { kind: kind.to_owned(), namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}
