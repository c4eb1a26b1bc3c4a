//! Watching the objects of one kind, and reconciling those that have a turn.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::Api;
use kube::core::DynamicObject;
use kube::runtime::controller::{self, Action, Config as ControllerConfig, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use resource::Kind;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::faces::Faces;
use crate::object::api_resource;
use crate::packed::{Names, Packed};
use crate::reconcile::{Next, reconcile};
use crate::turns::{Cause, Turns};

/// How many objects are listed at a time: a page is held as text, as JSON and as objects at once.
const PAGE: u32 = 100;

/// Watches and reconciles the objects of one kind until told to stop.
pub async fn run(
    client: Client,
    cx: Arc<Context>,
    kind: Arc<dyn Kind>,
    writer: Writer<Packed>,
    mut faces: Faces,
    stop: CancellationToken,
) {
    let (names, api) = (Names::of(kind.meta()), Api::all_with(client, &api_resource(kind.meta())));
    let turns = Turns::new(kind.meta().reads, cx.options.workers);
    let shared = Arc::new(Shared { cx, kind, turns, stop: stop.clone() });
    let (packer, reader) = (shared.clone(), writer.as_reader());
    let listed = faces.is_listed();
    let objects = watch(api, watcher::Config::default().page_size(PAGE))
        .default_backoff()
        .try_filter_map(move |event| ready(Ok(packer.pack(event))))
        .reflect(writer)
        .try_filter_map(move |event| ready(Ok(faces.see(event))));
    let work = Controller::for_stream_with(objects, reader, names)
        // No bound here: those that wait for a turn take next to no memory. (They are polled with the rest, which
        // costs from some thousand on.)
        .with_config(ControllerConfig::default().concurrency(0))
        .reconcile_on(shared.clone().wakeups())
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(one, |_, _: &Infallible, _| Action::await_change(), shared)
        .for_each(move |result| {
            match result {
                // It went while a wake-up for it was queued.
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, kind = names.kind, "cannot watch its objects; trying on");
                }
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

/// What the reconciles of a kind share.
struct Shared {
    cx: Arc<Context>,
    kind: Arc<dyn Kind>,
    turns: Turns,
    stop: CancellationToken,
}

impl Shared {
    /// An event as the cache takes it. None where it cannot: that is logged.
    fn pack(&self, event: Event<DynamicObject>) -> Option<Event<Packed>> {
        let yields = self.cx.yields.read();
        let (none, kind) = (BTreeSet::new(), self.kind.meta().kind);
        let taken = yields.get(kind).unwrap_or(&none);
        let pack = |object| {
            let packed = Packed::new(object, taken);
            packed.inspect_err(|error| tracing::error!(%error, kind, "an object cannot be cached")).ok()
        };
        Some(match event {
            Event::Apply(object) => Event::Apply(pack(object)?),
            Event::Delete(object) => Event::Delete(pack(object)?),
            Event::InitApply(object) => Event::InitApply(pack(object)?),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        })
    }

    /// Whom others wake.
    fn wakeups(self: Arc<Self>) -> impl futures::Stream<Item = ObjectRef<Packed>> + Send {
        let queue = self.cx.graph.open(Names::of(self.kind.meta()));
        stream::unfold((queue, self), |(mut queue, shared)| async {
            let woken = queue.recv().await?;
            if let Some(object) = shared.cached(&woken) {
                shared.cx.memories.wake(object.uid());
            }
            Some((woken, (queue, shared)))
        })
    }

    fn cached(&self, object: &ObjectRef<Packed>) -> Option<Arc<Packed>> {
        self.cx.stores.read().get(self.kind.meta().kind)?.get(object)
    }
}

async fn one(object: Arc<Packed>, shared: Arc<Shared>) -> Result<Action, Infallible> {
    let (cx, kind) = (shared.cx.clone(), shared.kind.clone());
    let mut known = cx.known.clone();
    // Told to stop before everything is known, nothing is begun: it would wait for ever.
    let Some(Ok(_)) = shared.stop.run_until_cancelled(known.wait_for(|known| *known)).await else {
        return Ok(Action::await_change());
    };
    let woken = cx.memories.take_woken(object.uid());
    let cause = if object.is_ready && !woken { Cause::Clock } else { Cause::Change };
    let Some(Some(_turn)) = shared.stop.run_until_cancelled(shared.turns.take(cause)).await else {
        return Ok(Action::await_change());
    };
    // It may have changed while it waited.
    let object = shared.cached(&ObjectRef::from_obj_with(&*object, Names::of(kind.meta())));
    let Some(object) = object.and_then(|object| object.open()) else { return Ok(Action::await_change()) };
    // Boxed: those that wait need no room for it yet.
    Ok(match Box::pin(reconcile(cx.clone(), kind, object)).await {
        Next::After(wait) => Action::requeue(wait),
        Next::OnChange => Action::await_change(),
    })
}
