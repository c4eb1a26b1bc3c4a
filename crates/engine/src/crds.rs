//! Which kinds are installed: a kind is watched while its CRD is there.

use std::collections::HashMap;
use std::sync::Arc;

use futures::TryStreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use resource::Kind;
use resource::api::GROUP;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::ALLOW_DELETION;
use crate::context::Context;
use crate::faces::Faces;
use crate::packed::{Names, Packed};
use crate::vital::Vital;
use crate::watch::run;

type Crd = PartialObjectMeta<CustomResourceDefinition>;

/// Starts and stops the watch of each kind with its CRD.
pub struct Installed {
    client: Client,
    cx: Arc<Context>,
    known: watch::Sender<bool>,
    stop: CancellationToken,
    running: HashMap<&'static str, Running>,
    watches: TaskTracker,
}

struct Running {
    stop: CancellationToken,
    store: Store<Packed>,
    /// Whether all its objects are known.
    listed: watch::Receiver<bool>,
    /// The annotation and state of the CRD that decide whether its objects may be deleted.
    leave: (bool, Option<String>),
}

impl Installed {
    pub fn new(
        client: Client,
        cx: Arc<Context>,
        known: watch::Sender<bool>,
        stop: CancellationToken,
    ) -> Self {
        Self { client, cx, known, stop, running: HashMap::new(), watches: TaskTracker::new() }
    }

    /// Follows the CRDs until told to stop, then waits for every reconcile under way.
    pub async fn follow(mut self) {
        let api: Api<Crd> = Api::all(self.client.clone());
        let stop = self.stop.clone();
        let mut events = std::pin::pin!(watcher(api, Config::default()).default_backoff());
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => break,
                event = events.try_next() => event,
            };
            match event {
                Ok(Some(event)) => self.see(event),
                Ok(None) => break,
                Err(error) => tracing::warn!(%error, "cannot watch CustomResourceDefinitions; trying on"),
            }
        }
        for running in self.running.values() {
            running.stop.cancel();
        }
        self.watches.close();
        self.watches.wait().await;
    }

    fn see(&mut self, event: Event<Crd>) {
        match event {
            Event::Init => {}
            Event::InitApply(crd) | Event::Apply(crd) => self.installed(&crd),
            Event::InitDone => self.announce(),
            Event::Delete(crd) => self.removed(&crd),
        }
    }

    fn kind_of(&self, crd: &Crd) -> Option<Arc<dyn Kind>> {
        let name = crd.name_any();
        let plural = name.strip_suffix(GROUP)?.strip_suffix('.')?;
        self.cx.kinds.values().find(|kind| kind.meta().plural == plural).cloned()
    }

    fn installed(&mut self, crd: &Crd) {
        let Some(kind) = self.kind_of(crd) else { return };
        let name = kind.meta().kind;
        let leave =
            (crd.metadata.deletion_timestamp.is_some(), crd.annotations().get(ALLOW_DELETION).cloned());
        if let Some(running) = self.running.get_mut(name) {
            if running.leave != leave {
                running.leave = leave;
                for object in running.store.state() {
                    self.cx.graph.wake(&object.key(name));
                }
            }
            return;
        }
        tracing::info!(kind = name, "watching");
        let writer = Writer::new(Names::of(kind.meta()));
        let store = writer.as_reader();
        let stop = CancellationToken::new();
        self.cx.stores.write().insert(name.to_owned(), store.clone());
        let (is_listed, listed) = watch::channel(false);
        let faces = Faces::new(self.cx.clone(), kind.clone(), is_listed);
        let vital = Vital { name, told: stop.clone(), engine: self.stop.clone() };
        let watch = run(self.client.clone(), self.cx.clone(), kind, writer, faces, stop.clone());
        self.watches.spawn(async move {
            let _vital = vital;
            watch.await;
        });
        self.running.insert(name, Running { stop, store, listed, leave });
    }

    fn removed(&mut self, crd: &Crd) {
        let Some(kind) = self.kind_of(crd) else { return };
        let name = kind.meta().kind;
        if let Some(running) = self.running.remove(name) {
            tracing::info!(kind = name, "its CustomResourceDefinition is gone; no longer watching");
            running.stop.cancel();
            self.cx.stores.write().remove(name);
        }
    }

    /// Lets reconciling begin once the objects of every kind installed now are known.
    ///
    /// (Not by `Store::wait_until_ready`: the controller waits on it too, and it wakes one waiter only.)
    fn announce(&self) {
        let listed: Vec<_> = self.running.values().map(|running| running.listed.clone()).collect();
        let known = self.known.clone();
        tokio::spawn(async move {
            for mut listed in listed {
                // A dropped sender: its kind was removed meanwhile.
                let _ = listed.wait_for(|listed| *listed).await;
            }
            known.send_replace(true);
        });
    }
}
