//! The proxy between the operator and kube-apiserver.
//!
//! It records every write, counts reads, and cuts, delays, refuses and stops on demand. The
//! caller's own credentials go through, so RBAC holds.

mod rules;
mod serve;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use rules::{Action, Match};
pub use write::{Table, Target, Verb, Write};

use super::core::{Hook, Listener, Log, Stage, Upstream, Verdict};
use super::faults::{Fault, Faults};
use serve::{Gate, Reads};

/// A running proxy; it ends when dropped.
pub struct KubeProxy {
    gate: Arc<Gate>,
    listener: Listener,
}

impl KubeProxy {
    /// Starts one on a free loopback port in front of an API server (`https://127.0.0.1:PORT`),
    /// trusting these PEM certificates.
    pub fn start(upstream: &str, ca: &[u8]) -> Self {
        let gate = Arc::new(Gate {
            upstream: Upstream::new(upstream, ca),
            log: Log::default(),
            reads: parking_lot::Mutex::new(Reads::new()),
            heads: parking_lot::Mutex::new(None),
            faults: Faults::new(),
            hook: Hook::default(),
        });
        Self { listener: Listener::start(gate.clone()), gate }
    }

    /// The server of the operator's kubeconfig.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.listener.address)
    }

    /// All writes, in order of arrival.
    pub fn writes(&self) -> Vec<Write> {
        self.gate.log.since(0)
    }

    /// A point in the log, for [`KubeProxy::writes_since`].
    pub fn mark(&self) -> u64 {
        self.gate.log.mark()
    }

    /// The writes that arrived after the mark was taken.
    pub fn writes_since(&self, mark: u64) -> Vec<Write> {
        self.gate.log.since(mark)
    }

    /// How often it was read, by verb and `resource.group` (`secrets`, `vpcs.aws.konfig.io`).
    pub fn reads(&self) -> BTreeMap<(Verb, String), usize> {
        self.gate.reads.lock().clone()
    }

    /// From now on, [`KubeProxy::heads`] tells what was asked for, by reads too.
    pub fn keep_heads(&self) {
        self.gate.heads.lock().get_or_insert_default();
    }

    /// Method, path and headers of all requests since [`KubeProxy::keep_heads`], each once and without credentials.
    pub fn heads(&self) -> BTreeSet<String> {
        self.gate.heads.lock().clone().unwrap_or_default()
    }

    /// Forgets writes and reads; faults stay.
    pub fn clear(&self) {
        self.gate.log.clear();
        self.gate.reads.lock().clear();
    }

    /// The writes as a table, for the message of a failed test.
    pub fn table(&self) -> String {
        Table(&self.writes()).to_string()
    }

    /// Arms a fault. The first armed fault that strikes a request decides what becomes of it.
    pub fn fault(&self, matcher: Match, action: Action) -> Fault {
        let schedule = matcher.schedule;
        self.gate.faults.arm(matcher, schedule, action)
    }

    /// Disarms all faults and lets go the requests that they hold.
    pub fn clear_faults(&self) {
        self.gate.faults.clear();
    }

    /// Seeds the dice of the percentages.
    pub fn seed(&self, seed: u64) {
        self.gate.faults.seed(seed);
    }

    /// Closes all connections, watches too, and refuses new ones, until it is set back.
    pub fn cut(&self, cut: bool) {
        self.listener.set_cut(cut);
    }

    /// The same for a while; does not wait.
    pub fn cut_for(&self, time: Duration) {
        self.listener.cut_for(time);
    }

    /// Calls this at both stages of every write that no fault answered; it decides whether the write goes on.
    ///
    /// It may take its time, and kill the caller: the write does not end with the caller.
    pub fn on_write<F, Fut>(&self, hook: F)
    where
        F: Fn(Stage, Write) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Verdict> + Send + 'static,
    {
        self.gate.hook.set(hook);
    }

    /// Removes the hook.
    pub fn clear_hook(&self) {
        self.gate.hook.clear();
    }
}
