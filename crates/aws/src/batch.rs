//! Joins reads of many objects into one call.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use resource::{Class, Error, Result, Scope};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// The most values AWS takes in one filter.
const LIMIT: usize = 200;
/// A batch is sent once no read has joined it for so long,
const LINGER: Duration = Duration::from_millis(15);
/// or after so many times that.
const PATIENCE: u32 = 6;

type Fetch<V> = dyn Fn(Scope, Vec<String>) -> BoxFuture<'static, Result<Vec<(String, V)>>> + Send + Sync;

/// Reads by key, of which those that come close together share one call. Clones share it too.
///
/// Nothing is kept: a read joins only a batch that is not yet sent, so no answer is older than
/// the question.
pub struct Batch<V> {
    inner: Arc<Inner<V>>,
}

struct Inner<V> {
    fetch: Box<Fetch<V>>,
    limit: usize,
    linger: Duration,
    state: Mutex<State<V>>,
}

struct State<V> {
    /// The batches that can still be joined.
    open: HashMap<Scope, Open<V>>,
    started: u64,
}

struct Open<V> {
    /// Tells it from a later batch of the same scope.
    number: u64,
    waiting: Waiting<V>,
}

type Waiting<V> = BTreeMap<String, Vec<oneshot::Sender<Result<Vec<V>>>>>;

impl<V> Clone for Batch<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<V: Clone + Send + Sync + 'static> Batch<V> {
    /// Batches that `fetch` reads: it gets at most 200 distinct keys and yields what it finds, each
    /// with its key. It follows every page, and asks by filter, not by id list, where one missing
    /// id would fail the whole call.
    pub fn new<F, Fut>(fetch: F) -> Self
    where
        F: Fn(Scope, Vec<String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<(String, V)>>> + Send + 'static,
    {
        Self::with_limits(LIMIT, LINGER, fetch)
    }

    /// As [`new`](Self::new), with other bounds on size and wait.
    pub fn with_limits<F, Fut>(limit: usize, linger: Duration, fetch: F) -> Self
    where
        F: Fn(Scope, Vec<String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<(String, V)>>> + Send + 'static,
    {
        let fetch = Box::new(move |scope, keys| fetch(scope, keys).boxed());
        let state = Mutex::new(State { open: HashMap::new(), started: 0 });
        Self { inner: Arc::new(Inner { fetch, limit, linger, state }) }
    }

    /// Everything found under a key; empty where nothing is. That alone is no proof of absence:
    /// filters lag, so confirm it with a single read.
    pub async fn get(&self, scope: &Scope, key: impl Into<String>) -> Result<Vec<V>> {
        let (answer, answered) = oneshot::channel();
        self.join(scope, key.into(), answer);
        let lost = "the batched read ended without an answer";
        answered.await.unwrap_or_else(|_| Err(Error::new(Class::Transient, "Batch", lost)))
    }

    fn join(&self, scope: &Scope, key: String, answer: oneshot::Sender<Result<Vec<V>>>) {
        let mut state = self.inner.state.lock();
        let State { open, started } = &mut *state;
        let batch = open.entry(scope.clone()).or_insert_with(|| {
            *started += 1;
            tokio::spawn(self.inner.clone().send_when_due(scope.clone(), *started));
            Open { number: *started, waiting: Waiting::new() }
        });
        batch.waiting.entry(key).or_default().push(answer);
        if batch.waiting.len() >= self.inner.limit
            && let Some(batch) = open.remove(scope)
        {
            tokio::spawn(self.inner.clone().send(scope.clone(), batch.waiting));
        }
    }
}

// In tasks of their own: a reader that gives up takes nobody's answer away.
impl<V: Clone + Send + Sync + 'static> Inner<V> {
    async fn send_when_due(self: Arc<Self>, scope: Scope, number: u64) {
        let mut joined = 1;
        for _ in 0..PATIENCE {
            sleep(self.linger).await;
            let before = std::mem::replace(&mut joined, self.joined(&scope, number));
            if joined == before {
                break;
            }
        }
        let due = self.take(&scope, number);
        if let Some(waiting) = due {
            self.send(scope, waiting).await;
        }
    }

    /// How many reads have joined the batch.
    fn joined(&self, scope: &Scope, number: u64) -> usize {
        let state = self.state.lock();
        let batch = state.open.get(scope).filter(|batch| batch.number == number);
        batch.map_or(0, |batch| batch.waiting.values().map(Vec::len).sum())
    }

    /// The batch, unless it was full and is sent already.
    fn take(&self, scope: &Scope, number: u64) -> Option<Waiting<V>> {
        let open = &mut self.state.lock().open;
        open.get(scope).filter(|batch| batch.number == number)?;
        open.remove(scope).map(|batch| batch.waiting)
    }

    async fn send(self: Arc<Self>, scope: Scope, waiting: Waiting<V>) {
        let answer = (self.fetch)(scope, waiting.keys().cloned().collect()).await;
        let found = answer.map(|items| {
            let mut found: HashMap<String, Vec<V>> = HashMap::new();
            for (key, value) in items {
                found.entry(key).or_default().push(value);
            }
            found
        });
        for (key, readers) in waiting {
            let answer = match &found {
                Ok(found) => Ok(found.get(&key).cloned().unwrap_or_default()),
                Err(error) => Err(error.clone()),
            };
            for reader in readers {
                // A reader that has gone needs no answer.
                let _ = reader.send(answer.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures::future::join_all;

    use super::*;

    fn scope(region: &str) -> Scope {
        Scope {
            provider: String::new(),
            account_id: "123456789012".to_owned(),
            region: region.to_owned(),
            partition: "aws".to_owned(),
        }
    }

    type Calls = Arc<Mutex<Vec<(String, Vec<String>)>>>;

    /// Finds everything but `none`, `twins` twice, and fails on `bad`.
    fn batch(limit: usize) -> (Batch<String>, Calls) {
        let calls = Calls::default();
        let seen = calls.clone();
        let batch = Batch::with_limits(limit, LINGER, move |scope, keys: Vec<String>| {
            seen.lock().push((scope.region, keys.clone()));
            async move {
                sleep(Duration::from_millis(100)).await;
                if keys.iter().any(|key| key == "bad") {
                    return Err(Error::new(Class::Throttled, "DescribeThings", "slow down"));
                }
                let twins = keys.clone().into_iter().filter(|key| key == "twins");
                let found = keys.clone().into_iter().chain(twins).filter(|key| key != "none");
                Ok(found.map(|key| (key.clone(), format!("{key}!"))).collect())
            }
        });
        (batch, calls)
    }

    #[tokio::test]
    async fn reads_that_come_together_share_a_call() {
        let (batch, calls) = batch(200);
        let here = scope("eu-central-1");
        let keys = ["a", "b", "a", "none", "twins"];
        let answers = join_all(keys.map(|key| batch.get(&here, key))).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers[0], ["a!"]);
        assert_eq!(answers[2], ["a!"]);
        assert!(answers[3].is_empty());
        assert_eq!(answers[4], ["twins!", "twins!"]);
        let calls = calls.lock();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].1, ["a", "b", "none", "twins"]);
    }

    #[tokio::test]
    async fn scopes_are_read_apart() {
        let (batch, calls) = batch(200);
        let (here, there) = (scope("eu-central-1"), scope("us-east-1"));
        let (a, b) = tokio::join!(batch.get(&here, "a"), batch.get(&there, "a"));
        assert!(a.is_ok() && b.is_ok());
        assert_eq!(calls.lock().len(), 2);
    }

    #[tokio::test]
    async fn a_read_does_not_join_a_batch_under_way() {
        let (batch, calls) = batch(200);
        let here = scope("eu-central-1");
        let later = async {
            sleep(LINGER * 3).await;
            batch.get(&here, "a").await
        };
        let (first, second) = tokio::join!(batch.get(&here, "a"), later);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(calls.lock().len(), 2);
    }

    #[tokio::test]
    async fn a_full_batch_goes_at_once_and_no_batch_is_larger() {
        let (batch, calls) = batch(3);
        let here = scope("eu-central-1");
        let reads = (0..7).map(|number| batch.get(&here, number.to_string()));
        let answers = join_all(reads).await;
        for (number, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.unwrap(), [format!("{number}!")]);
        }
        let sizes: Vec<_> = calls.lock().iter().map(|(_, keys)| keys.len()).collect();
        assert_eq!(sizes, [3, 3, 1]);
    }

    #[tokio::test]
    async fn an_error_reaches_every_reader() {
        let (batch, _) = batch(200);
        let here = scope("eu-central-1");
        let (a, b) = tokio::join!(batch.get(&here, "a"), batch.get(&here, "bad"));
        assert_eq!(a.unwrap_err().class, Class::Throttled);
        assert_eq!(b.unwrap_err().class, Class::Throttled);
    }

    #[tokio::test]
    async fn a_reader_that_gives_up_leaves_the_others_their_answer() {
        let (batch, _) = batch(200);
        let here = scope("eu-central-1");
        let impatient = tokio::time::timeout(LINGER * 2, batch.get(&here, "a"));
        let (gone, stayed) = tokio::join!(impatient, batch.get(&here, "b"));
        assert!(gone.is_err());
        assert_eq!(stayed.unwrap(), ["b!"]);
    }

    #[tokio::test]
    async fn a_read_that_breaks_is_an_error_not_an_absence() {
        let batch: Batch<String> = Batch::new(|_, keys: Vec<String>| async move {
            assert!(keys.is_empty(), "breaks");
            Ok(Vec::new())
        });
        let error = batch.get(&scope("eu-central-1"), "a").await.unwrap_err();
        assert_eq!(error.class, Class::Transient);
    }
}
