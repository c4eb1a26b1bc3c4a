//! What every EC2 kind does alike: read many at once, find by owner, tag.

use std::future::Future;

use aws::{Answer, Batch, Clients, Turn};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, Tag};
use resource::tags::OWNER_TAG;
use resource::{Call, Candidate, Changes, Class, Error, Result, Tags};

use crate::tags;

/// A type of the EC2 API that can be described by filter and bears tags.
pub(crate) trait Described: Clone + Send + Sync + 'static {
    /// The operation that describes it, for messages.
    const OPERATION: &'static str;
    /// The filter that selects by id; unlike a list of ids it does not fail on a missing one.
    const ID_FILTER: &'static str;
    /// The codes that mean: this one does not exist.
    const ABSENT: &'static [&'static str];

    /// Its id.
    fn id(&self) -> &str;
    /// Its tags.
    fn tags(&self) -> &[Tag];
    /// All that pass the filters, from every page.
    fn matching(client: &Client, filters: Vec<Filter>) -> impl Future<Output = Result<Vec<Self>>> + Send;
    /// The answer to a read by id; None where that says that it does not exist.
    fn single(client: &Client, id: &str) -> impl Future<Output = Result<Option<Vec<Self>>>> + Send;
}

/// One type of the EC2 API: how a kind reads, finds and tags it.
pub(crate) struct Store<T> {
    clients: Clients<Client>,
    by_id: Batch<T>,
    by_owner: Batch<T>,
}

impl<T: Described> Store<T> {
    /// A store over the service's clients.
    pub(crate) fn new(clients: &Clients<Client>) -> Self {
        let (readers, finders) = (clients.clone(), clients.clone());
        Self {
            clients: clients.clone(),
            by_id: Batch::new(move |scope, ids| {
                let readers = readers.clone();
                async move { read_many(&readers.get(&scope).await?, ids).await }
            }),
            by_owner: Batch::new(move |scope, owners| {
                let finders = finders.clone();
                async move { find_many(&finders.get(&scope).await?, owners).await }
            }),
        }
    }

    /// The client for the account and region of a call.
    pub(crate) async fn client(&self, call: &Call) -> Result<Client> {
        self.clients.get(&call.scope).await
    }

    /// Reads one, together with others that are read just now. None: AWS confirmed that it does
    /// not exist.
    pub(crate) async fn read(&self, call: &Call, id: &str) -> Result<Option<T>> {
        if let Some(found) = self.by_id.get(&call.scope, id).await?.pop() {
            return Ok(Some(found));
        }
        let found = {
            let _turn = self.clients.turn().await;
            T::single(&self.client(call).await?, id).await?
        };
        let Some(found) = found else { return Ok(None) };
        let found = found.into_iter().find(|item| item.id() == id);
        let incomplete = || Error::new(Class::Transient, T::OPERATION, format!("the answer lacks {id}"));
        found.map(Some).ok_or_else(incomplete)
    }

    /// All that bear the owner tag of this object.
    pub(crate) async fn owned(&self, call: &Call) -> Result<Vec<T>> {
        self.by_owner.get(&call.scope, &call.ownership.owner).await
    }

    /// All that pass these filters. A value may hold wildcards, so more than meant may pass.
    pub(crate) async fn matching(&self, call: &Call, filters: &[(&str, &str)]) -> Result<Vec<T>> {
        let filters = filters.iter().map(|(name, value)| filter(name, [(*value).to_owned()])).collect();
        let _turn = self.clients.turn().await;
        T::matching(&self.client(call).await?, filters).await
    }

    /// Waits for its turn to read what objects cannot share.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.clients.turn().await
    }

    /// Sets and removes the tags that differ.
    pub(crate) async fn retag(&self, call: &Call, id: &str, changes: &Changes) -> Result<()> {
        self.tag(call, id, &changes.tags_to_set()).await?;
        self.untag(call, id, &changes.tags_to_remove()).await
    }

    /// Sets tags.
    pub(crate) async fn tag(&self, call: &Call, id: &str, set: &Tags) -> Result<()> {
        if !set.is_empty() {
            let client = self.client(call).await?;
            client.create_tags().resources(id).set_tags(Some(tags::to_ec2(set))).send().await.answer()?;
        }
        Ok(())
    }

    /// Removes tags; of something that is gone, they are too.
    pub(crate) async fn untag(&self, call: &Call, id: &str, keys: &[String]) -> Result<()> {
        if !keys.is_empty() {
            let client = self.client(call).await?;
            // Without a value, the tag goes whatever its value is.
            let keys = keys.iter().map(|key| Tag::builder().key(key).build()).collect();
            let answer = client.delete_tags().resources(id).set_tags(Some(keys)).send().await;
            answer.answer_or_absent(T::ABSENT)?;
        }
        Ok(())
    }
}

/// What a create call made. An answer without it leaves open whether anything was made.
pub(crate) fn made<T: Described>(operation: &str, item: Option<T>) -> Result<T> {
    let lost = || Error::new(Class::Transient, operation, "the answer does not say what was made");
    item.filter(|item| !item.id().is_empty()).ok_or_else(lost)
}

/// Candidates by owner tag and by name, each once.
pub(crate) fn candidates<T: Described>(owned: &[T], named: &[T]) -> Vec<Candidate> {
    let is_named = |item: &T| named.iter().any(|named| named.id() == item.id());
    let candidate = |item: &T| Candidate {
        id: item.id().to_owned(),
        tags: tags::from_ec2(item.tags()),
        by_name: is_named(item),
    };
    let only_owned = owned.iter().filter(|item| !is_named(item));
    named.iter().chain(only_owned).map(candidate).collect()
}

/// One filter with its values.
pub(crate) fn filter(name: &str, values: impl IntoIterator<Item = String>) -> Filter {
    Filter::builder().name(name).set_values(Some(values.into_iter().collect())).build()
}

async fn read_many<T: Described>(client: &Client, ids: Vec<String>) -> Result<Vec<(String, T)>> {
    let found = T::matching(client, vec![filter(T::ID_FILTER, ids)]).await?;
    Ok(found.into_iter().map(|item| (item.id().to_owned(), item)).collect())
}

async fn find_many<T: Described>(client: &Client, owners: Vec<String>) -> Result<Vec<(String, T)>> {
    let found = T::matching(client, vec![filter(&format!("tag:{OWNER_TAG}"), owners)]).await?;
    Ok(found.into_iter().filter_map(with_owner).collect())
}

/// With the owner that its own tags name: the filter alone proves nothing, some endpoints ignore it.
fn with_owner<T: Described>(item: T) -> Option<(String, T)> {
    let owner = item.tags().iter().find(|tag| tag.key() == Some(OWNER_TAG))?;
    Some((owner.value()?.to_owned(), item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::Vpc;

    fn vpc(id: &str, owner: Option<&str>) -> Vpc {
        let tag = owner.map(|owner| Tag::builder().key(OWNER_TAG).value(owner).build());
        Vpc::builder().vpc_id(id).set_tags(Some(tag.into_iter().collect())).build()
    }

    #[test]
    fn the_owner_is_what_its_own_tags_say() {
        let owner = with_owner(vpc("vpc-1", Some("a"))).map(|(owner, _)| owner);
        assert_eq!(owner.as_deref(), Some("a"));
        assert!(with_owner(vpc("vpc-2", None)).is_none());
    }

    #[test]
    fn an_answer_without_an_id_is_unclear() {
        assert_eq!(
            made("CreateVpc", Some(vpc("vpc-1", None))).map(|vpc| vpc.id().to_owned()).ok().as_deref(),
            Some("vpc-1")
        );
        for lost in [None, Some(Vpc::builder().build())] {
            assert_eq!(made("CreateVpc", lost).map_err(|error| error.class).err(), Some(Class::Transient));
        }
    }

    #[test]
    fn what_is_found_twice_is_one_candidate() {
        let (one, two) = (vpc("vpc-1", Some("a")), vpc("vpc-2", Some("a")));
        let found = candidates(&[one.clone(), two], &[one]);
        let found: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.by_name)).collect();
        assert_eq!(found, [("vpc-1", true), ("vpc-2", false)]);
    }
}
