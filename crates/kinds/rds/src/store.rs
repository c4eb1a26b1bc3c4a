//! What instances and clusters do alike: read many at once, find by name.

use std::future::Future;

use aws::{Batch, Clients};
use aws_sdk_rds::Client;
use aws_sdk_rds::types::{Filter, Tag};
use resource::{Call, Candidate, Class, Error, Result};

use crate::tags::{from_rds, untag};

/// A type of the RDS API that can be described by a filter on its identifier.
pub(crate) trait Described: Clone + Send + Sync + 'static {
    /// The operation that describes it, for messages.
    const OPERATION: &'static str;
    /// The codes that mean: this one does not exist.
    const ABSENT: &'static [&'static str];

    /// Its identifier, the name that the user gave it.
    fn id(&self) -> &str;
    /// Its ARN.
    fn arn(&self) -> &str;
    /// Its tags.
    fn tags(&self) -> &[Tag];
    /// All with one of these identifiers, from every page.
    fn matching(client: &Client, ids: Vec<String>) -> impl Future<Output = Result<Vec<Self>>> + Send;
    /// The answer to a read by identifier; None where that says that it does not exist.
    fn single(client: &Client, id: &str) -> impl Future<Output = Result<Option<Vec<Self>>>> + Send;
}

/// One type of the RDS API: how a kind reads and finds it.
pub(crate) struct Store<T> {
    clients: Clients<Client>,
    by_id: Batch<T>,
}

impl<T: Described> Store<T> {
    /// A store over the service's clients.
    pub(crate) fn new(clients: &Clients<Client>) -> Self {
        let readers = clients.clone();
        let by_id = Batch::new(move |scope, ids| {
            let readers = readers.clone();
            async move {
                let found = T::matching(&readers.get(&scope).await?, ids).await?;
                Ok(found.into_iter().map(|item| (item.id().to_owned(), item)).collect())
            }
        });
        Self { clients: clients.clone(), by_id }
    }

    /// The client for the account and region of a call.
    pub(crate) async fn client(&self, call: &Call) -> Result<Client> {
        self.clients.get(&call.scope).await
    }

    /// Reads one, together with others that are read just now. None: AWS confirmed that it does
    /// not exist.
    pub(crate) async fn read(&self, call: &Call, id: &str) -> Result<Option<T>> {
        match self.by_id.get(&call.scope, id).await?.pop() {
            Some(found) => Ok(Some(found)),
            None => self.read_alone(call, id).await,
        }
    }

    /// Reads one by itself.
    async fn read_alone(&self, call: &Call, id: &str) -> Result<Option<T>> {
        let Some(found) = T::single(&self.client(call).await?, id).await? else { return Ok(None) };
        let found = found.into_iter().find(|item| item.id().eq_ignore_ascii_case(id));
        let incomplete = || Error::new(Class::Transient, T::OPERATION, format!("the answer lacks {id}"));
        found.map(Some).ok_or_else(incomplete)
    }

    /// What bears this name: AWS has no other way to look.
    pub(crate) async fn find(&self, call: &Call, id: Option<&str>) -> Result<Vec<Candidate>> {
        let Some(id) = id else { return Ok(Vec::new()) };
        let found = self.read_alone(call, id).await?;
        let candidate =
            |item: T| Candidate { id: item.id().to_owned(), tags: from_rds(item.tags()), by_name: true };
        Ok(found.map(candidate).into_iter().collect())
    }

    /// Removes tags.
    pub(crate) async fn untag(&self, call: &Call, id: &str, keys: &[String]) -> Result<()> {
        let Some(item) = self.read(call, id).await? else { return Ok(()) };
        untag(&self.client(call).await?, item.arn(), T::ABSENT, keys).await
    }
}

/// The filter of this name with these values.
pub(crate) fn filter(name: &str, values: Vec<String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values)).build()
}

/// What a create call made. An answer without it leaves open whether anything was made.
pub(crate) fn made<T: Described>(operation: &str, item: Option<T>) -> Result<T> {
    let lost = || Error::new(Class::Transient, operation, "the answer does not say what was made");
    item.filter(|item| !item.id().is_empty()).ok_or_else(lost)
}
