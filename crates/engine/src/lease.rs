//! Leadership by a Lease, with a deadline that is checked before every write.
//!
//! The deadline is kept on the boot-time clock, which goes on while a machine sleeps: a process
//! that was frozen past its lease finds the deadline passed before it can transmit anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use rustix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;

/// How long a lease lasts without renewal.
const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed or tried for.
const RENEWAL: Duration = Duration::from_secs(5);
/// Writes stop this long before the lease runs out: one may be under way at the deadline.
const MARGIN: Duration = Duration::from_secs(3);
/// What one transmission may take; a successor waits it out, unless the lease was released.
const ATTEMPT: Duration = Duration::from_secs(20);

/// Whether this process may write now.
#[derive(Clone, Debug)]
pub struct Fence(Arc<AtomicI64>);

impl Fence {
    fn closed() -> Self {
        Fence(Arc::new(AtomicI64::new(i64::MIN)))
    }

    /// Always open: for a process that runs without leader election.
    pub fn open() -> Self {
        Fence(Arc::new(AtomicI64::new(i64::MAX)))
    }

    /// Whether this process may write now.
    pub fn is_open(&self) -> bool {
        boot_time() < self.0.load(Ordering::SeqCst)
    }

    fn extend(&self, from: i64) {
        self.0.store(from + millis(DURATION - MARGIN), Ordering::SeqCst);
    }

    fn close(&self) {
        self.0.store(i64::MIN, Ordering::SeqCst);
    }
}

/// Milliseconds since boot, sleep included.
fn boot_time() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A candidate for a lease.
pub struct Leadership {
    api: Api<Lease>,
    name: String,
    identity: String,
    fence: Fence,
}

/// What a look at the lease led to.
enum Look {
    Held,
    /// Ours now; it was held by somebody who did not release it.
    Seized,
    Lost,
}

impl Leadership {
    /// A candidate; the fence stays closed until the lease is held.
    pub fn new(client: kube::Client, namespace: &str, name: &str, identity: String) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity,
            fence: Fence::closed(),
        }
    }

    /// What to check before every write.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until this process leads.
    pub async fn acquire(&self) {
        // A lease is taken to have expired only once it stood unchanged for its whole duration
        // on our own clock: clocks of two machines are never compared.
        let mut seen: Option<(String, i64)> = None;
        loop {
            match self.look(&mut seen).await {
                Ok(Look::Held) => return,
                Ok(Look::Seized) => {
                    tracing::info!(
                        "took over an expired lease; waiting until its holder's last call has ended"
                    );
                    self.fence.close();
                    return self.outwait().await;
                }
                Ok(Look::Lost) => tracing::debug!(lease = self.name, "another process leads"),
                Err(error) => tracing::warn!(%error, lease = self.name, "cannot read or write the lease"),
            }
            tokio::time::sleep(RENEWAL).await;
        }
    }

    async fn outwait(&self) {
        let until = tokio::time::Instant::now() + ATTEMPT;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(RENEWAL).await;
            let from = boot_time();
            let renewed = self.renew().await;
            if matches!(renewed, Ok(true)) && tokio::time::Instant::now() >= until {
                return self.fence.extend(from);
            }
        }
    }

    /// Renews until told to stop, then releases. Returns early when leadership is lost.
    pub async fn hold(&self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RENEWAL) => {}
            }
            let from = boot_time();
            match tokio::time::timeout(RENEWAL, self.renew()).await {
                Ok(Ok(true)) => self.fence.extend(from),
                Ok(Ok(false)) => {
                    self.fence.close();
                    return tracing::error!(lease = self.name, "lost the lease to another process");
                }
                Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease"),
                Err(_) => tracing::warn!("renewing the lease took too long"),
            }
            if !self.fence.is_open() {
                return tracing::error!(lease = self.name, "the lease ran out");
            }
        }
    }

    /// Gives the lease up, so that a successor need not wait. Only after the last write.
    pub async fn release(&self) {
        self.fence.close();
        let Ok(Some(mut lease)) = self.api.get_opt(&self.name).await else { return };
        if holder(&lease) != Some(&self.identity) {
            return;
        }
        if let Some(spec) = lease.spec.as_mut() {
            spec.holder_identity = None;
        }
        if let Err(error) = self.api.replace(&self.name, &PostParams::default(), &lease).await {
            tracing::warn!(%error, "cannot release the lease; a successor waits for it to expire");
        }
    }

    async fn look(&self, seen: &mut Option<(String, i64)>) -> kube::Result<Look> {
        let from = boot_time();
        let Some(lease) = self.api.get_opt(&self.name).await? else {
            let lease = self.lease(None, 0);
            return Ok(match self.api.create(&PostParams::default(), &lease).await {
                Ok(_) => self.won(from, Look::Held),
                Err(kube::Error::Api(status)) if status.code == 409 => Look::Lost,
                Err(error) => return Err(error),
            });
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let is_free = holder(&lease).is_none_or(|holder| holder.is_empty());
        if !is_free {
            let since = match seen {
                Some((known, since)) if *known == version => *since,
                _ => {
                    *seen = Some((version, from));
                    from
                }
            };
            if from - since < millis(DURATION) {
                return Ok(Look::Lost);
            }
        }
        let taken = self.take(lease).await?;
        let look = if is_free { Look::Held } else { Look::Seized };
        Ok(if taken { self.won(from, look) } else { Look::Lost })
    }

    fn won(&self, from: i64, look: Look) -> Look {
        self.fence.extend(from);
        look
    }

    async fn renew(&self) -> kube::Result<bool> {
        let lease = self.api.get(&self.name).await?;
        if holder(&lease) != Some(&self.identity) {
            return Ok(false);
        }
        self.take(lease).await
    }

    async fn take(&self, lease: Lease) -> kube::Result<bool> {
        let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default();
        let same = holder(&lease) == Some(&self.identity);
        let mut next = self.lease(lease.metadata.resource_version, transitions + i32::from(!same));
        if let (true, Some(before), Some(spec)) = (same, lease.spec, next.spec.as_mut()) {
            spec.acquire_time = before.acquire_time;
        }
        match self.api.replace(&self.name, &PostParams::default(), &next).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn lease(&self, version: Option<String>, transitions: i32) -> Lease {
        let now = MicroTime(Timestamp::now());
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                lease_transitions: Some(transitions),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn holder(lease: &Lease) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref()
}
