//! The proxy between the operator and an AWS emulator.
//!
//! It records every call, strikes calls with faults, and adds what AWS does and the emulators
//! leave out: request ids, reads that lag, idempotency tokens, pages, slow states.

pub(crate) mod answer;
pub(crate) mod asked;
mod call;
mod databases;
mod eks;
mod eks_update;
mod lag;
mod lies;
mod pages;
mod plain;
mod resources;
mod rest;
mod rules;
mod s3;
mod serve;
mod settings;
mod slow;
mod tokens;
pub(crate) mod xml;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

pub use asked::mask;
pub use call::{Call, Table};
pub use plain::Plain;
pub use rules::{Action, Match};

use super::core::{Hook, Listener, Log, Stage, Upstream, Verdict};
use super::faults::{Fault, Faults, glob};
use databases::Endpoint;
use eks::Eks;
use lag::Lag;
use lies::NatAddresses;
use serve::{SideDoor, World};
use slow::Slow;
use tokens::Tokens;

/// A running proxy; it ends when dropped.
pub struct AwsProxy {
    world: Arc<World>,
    listener: Listener,
    side_door: OnceLock<Listener>,
}

impl AwsProxy {
    /// Starts one on a free loopback port in front of an emulator (`http://127.0.0.1:PORT`).
    pub fn start(upstream: &str) -> Self {
        Self::start_with(upstream, &[])
    }

    /// The same, with services that are elsewhere, by signing name.
    pub fn start_with(upstream: &str, others: &[(&str, String)]) -> Self {
        let elsewhere = |(service, base): &(&str, String)| ((*service).to_owned(), Upstream::new(base, &[]));
        let world = Arc::new(World {
            upstream: Upstream::new(upstream, &[]),
            others: others.iter().map(elsewhere).collect(),
            log: Log::default(),
            faults: Faults::new(),
            hook: Hook::default(),
            lag: Lag::default(),
            slow: Slow::default(),
            tokens: Tokens::default(),
            nat_addresses: NatAddresses::default(),
            eks: Eks::default(),
            databases: Endpoint::default(),
            settings: settings::Settings::default(),
            page: AtomicUsize::new(0),
            plain: Mutex::new(None),
        });
        Self { listener: Listener::start(world.clone()), side_door: OnceLock::new(), world }
    }

    /// What to give the operator as `AWS_ENDPOINT_URL`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.listener.address)
    }

    /// The same world for a foreign hand or a witness: its calls meet no fault or hook and are not logged.
    pub fn side_door(&self) -> String {
        let listener = self.side_door.get_or_init(|| Listener::start(Arc::new(SideDoor(self.world.clone()))));
        format!("http://{}", listener.address)
    }

    /// All calls, in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.world.log.since(0)
    }

    /// A point in the log, for [`AwsProxy::calls_since`].
    pub fn mark(&self) -> u64 {
        self.world.log.mark()
    }

    /// The calls that arrived after the mark was taken.
    pub fn calls_since(&self, mark: u64) -> Vec<Call> {
        self.world.log.since(mark)
    }

    /// From now on, [`AwsProxy::plain_calls`] tells what was sent, with nothing masked.
    pub fn keep_plain_calls(&self) {
        self.world.plain.lock().get_or_insert_default();
    }

    /// All calls as they were sent since [`AwsProxy::keep_plain_calls`].
    pub fn plain_calls(&self) -> Vec<Plain> {
        self.world.plain.lock().clone().unwrap_or_default()
    }

    /// The calls that were meant to change something.
    pub fn mutating_calls(&self) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.mutating).collect()
    }

    /// How many calls there were of an operation (`*` and `?` stand for anything).
    pub fn count(&self, operation: &str) -> usize {
        self.calls().iter().filter(|call| glob(operation, &call.operation)).count()
    }

    /// Forgets the calls; faults and the state of the world stay.
    pub fn clear(&self) {
        self.world.log.clear();
    }

    /// The calls as a table, for the message of a failed test.
    pub fn table(&self) -> String {
        Table(&self.calls()).to_string()
    }

    /// Arms a fault. The first armed fault that strikes a call decides what becomes of it.
    pub fn fault(&self, matcher: Match, action: Action) -> Fault {
        let schedule = matcher.schedule;
        self.world.faults.arm(matcher, schedule, action)
    }

    /// Disarms all faults and lets go the calls that they hold.
    pub fn clear_faults(&self) {
        self.world.faults.clear();
    }

    /// Seeds the dice of the percentages.
    pub fn seed(&self, seed: u64) {
        self.world.faults.seed(seed);
    }

    /// From now on, what a create makes stays hidden from reads for that long. Zero ends it for new creates.
    pub fn lag(&self, time: Duration) {
        self.world.lag.set(time);
    }

    /// From now on, lists come in pages of `n` at most; 0 for whole ones.
    pub fn paginate(&self, n: usize) {
        self.world.page.store(n, Ordering::Relaxed);
    }

    /// From now on, what this operation makes is `pending` for the next `polls` describes that show it,
    /// or what it deletes `deleting`. 0 ends it.
    pub fn slow(&self, operation: &str, polls: usize) {
        if !self.world.eks.set_slow(operation, polls) {
            self.world.slow.set(operation, polls);
        }
    }

    /// From now on, a DB instance that is created without a port has its endpoint at this one, where a
    /// server of the lab's listens.
    pub fn database_port(&self, port: u16) {
        self.world.databases.set(port);
    }

    /// AWS accepts the next update of an EKS cluster by this operation, and then fails at it.
    pub fn fail_update(&self, operation: &str, code: &str, message: &str) {
        self.world.eks.fail_next(operation, code, message);
    }

    /// The EKS cluster of this name is FAILED, with this health issue, until it is deleted.
    pub fn break_cluster(&self, name: &str, code: &str, message: &str) {
        self.world.eks.break_cluster(name, code, message);
    }

    /// Closes all connections and refuses new ones, until it is set back.
    pub fn cut(&self, cut: bool) {
        self.listener.set_cut(cut);
    }

    /// Calls this at both stages of every call that no fault answered; it decides whether the call goes on.
    ///
    /// It may take its time, and kill the caller: the call does not end with the caller.
    pub fn on_call<F, Fut>(&self, hook: F)
    where
        F: Fn(Stage, Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Verdict> + Send + 'static,
    {
        self.world.hook.set(hook);
    }

    /// Removes the hook.
    pub fn clear_hook(&self) {
        self.world.hook.clear();
    }
}
