//! Step two: what AWS has.

use std::collections::BTreeMap;

use resource::decide::{Claimed, Sight};
use resource::record::Creation;
use resource::schema::is_at_or_below;
use resource::tags::{OWNER_TAG, UID_TAG, parse_owner};
use resource::{Call, Candidate, Error, Observed, Phase, Result, Role};
use serde_json::{Value, json};

use super::{Answered, Inputs, Job};
use crate::cluster::ClusterError;
use crate::object::Object;

/// Lets a failure of AWS through to the caller as such.
macro_rules! aws {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

impl Job<'_> {
    /// The main role; and, only while that is not live, the others in order, up to the first that
    /// is still to be made.
    pub(super) async fn observe(
        &mut self,
        call: &Call,
        roles: &[Role],
        spec: Option<&Value>,
    ) -> Answered<BTreeMap<Role, Sight>> {
        let mut sights = BTreeMap::new();
        if self.made(Role::MAIN).is_some() {
            let main = aws!(self.see(call, Role::MAIN, spec).await?);
            let main = self.without_void_claim(main).await?;
            let is_live = matches!(main, Sight::Live(_));
            sights.insert(Role::MAIN, main);
            if is_live {
                return Ok(Ok(sights));
            }
        }
        // What is adopted by id has all that it needs: nothing is made for it.
        let adopting = self.external_id().is_some();
        for &role in roles.iter().filter(|role| !adopting || **role == Role::MAIN) {
            if sights.contains_key(&role) {
                continue;
            }
            let sight = match self.made(role) {
                Some(_) => {
                    let sight = aws!(self.see(call, role, spec).await?);
                    self.without_void_claim(sight).await?
                }
                None => Sight::Unmade(aws!(self.look(call, role, spec).await?)),
            };
            let is_live = matches!(sight, Sight::Live(_));
            sights.insert(role, sight);
            if !is_live {
                break;
            }
        }
        Ok(Ok(sights))
    }

    /// The last role that anything was begun of: roles are unmade in reverse.
    pub(super) async fn observe_made(
        &mut self,
        call: &Call,
        roles: &[Role],
        inputs: &Inputs,
    ) -> Answered<BTreeMap<Role, Sight>> {
        let last = roles.iter().rev().find(|role| self.record.creation(**role).is_some());
        let Some(&role) = last else { return Ok(Ok(BTreeMap::new())) };
        let sight = match self.made(role) {
            // Nothing of it is compared any more: no optional part is worth reading.
            Some(_) => {
                let sight = aws!(self.see(call, role, None).await?);
                self.without_void_claim(sight).await?
            }
            None => {
                let spec = Some(&inputs.spec).filter(|spec| !spec.is_null());
                Sight::Unmade(aws!(self.look(call, role, spec).await?))
            }
        };
        Ok(Ok(BTreeMap::from([(role, sight)])))
    }

    fn made(&self, role: Role) -> Option<&str> {
        self.record.creation(role)?.id.as_deref()
    }

    /// A role whose id, or whose request, is recorded.
    async fn see(&mut self, call: &Call, role: Role, spec: Option<&Value>) -> Answered<Sight> {
        if let Some(sight) = self.known.get(&role) {
            return Ok(Ok(sight.clone()));
        }
        let request = self.record.creation(role).and_then(|creation| creation.request.clone());
        let call = Call { request, ..call.clone() };
        // A read may have come from a replica that lags, so absence takes two of something wanted.
        let mut absences = if self.object.is_deleting() { 1 } else { 2 };
        loop {
            let id = self.made(role).unwrap_or_default().to_owned();
            match aws!(self.kind.observe(&call, role, &id, spec).await) {
                Observed::Live(live) => {
                    let is_done = !matches!(live.phase, Phase::Busy(_) | Phase::Deleting);
                    if is_done && call.request.is_some() {
                        self.request_done(role).await?;
                    }
                    return Ok(Ok(Sight::Live(live)));
                }
                Observed::Absent if absences > 1 => absences -= 1,
                Observed::Absent => {
                    return Ok(Ok(Sight::Absent { deleted_by_us: self.memory.deleted.contains(&id) }));
                }
                Observed::Became(id) => {
                    self.write_status(json!({"creation": {role.0: {"id": id}}})).await?;
                    self.publish_created(&id);
                }
                Observed::Forgotten => {
                    self.write_status(json!({"creation": {role.0: {"id": null}}})).await?;
                    let spec = Some(&call.spec).filter(|spec| !spec.is_null());
                    return Ok(Ok(Sight::Unmade(aws!(self.look(&call, role, spec).await?))));
                }
                Observed::Refused(error) => {
                    self.memory.removing.clear();
                    self.memory.sent.clear();
                    let ended = match &call.request {
                        Some(_) => json!({"request": null}),
                        None => json!({"id": null, "refused": true}),
                    };
                    self.write_status(json!({"creation": {role.0: ended}})).await?;
                    return Ok(Err(error));
                }
            }
        }
    }

    /// What the request took away is no longer ours to take away: AWS may show a value of its own there.
    async fn request_done(&mut self, role: Role) -> std::result::Result<(), ClusterError> {
        let removed = std::mem::take(&mut self.memory.removing);
        let is_removed = |path: &&String| removed.iter().any(|removed| is_at_or_below(removed, path));
        let left: Vec<_> = self.record.managed.iter().filter(|path| !is_removed(path)).collect();
        let mut status = json!({"creation": {role.0: {"request": null}}});
        if left.len() < self.record.managed.len() {
            status["managed"] = json!(left);
        }
        self.write_status(status).await
    }

    /// A claim that no longer counts is as good as none: left to the diff, which puts ours there.
    async fn without_void_claim(&self, sight: Sight) -> std::result::Result<Sight, ClusterError> {
        let Sight::Live(mut live) = sight else { return Ok(sight) };
        let candidate = Candidate { id: String::new(), tags: live.tags.clone(), by_name: true };
        let handed_over = live.owner().is_some() && live.owner() == self.object.wishes().adopt_from();
        if handed_over || self.is_void(&candidate).await? {
            live.tags.remove(UID_TAG);
            live.tags.remove(OWNER_TAG);
        }
        Ok(Sight::Live(live))
    }

    /// A role without an id: what AWS holds that may be it.
    async fn look(&self, call: &Call, role: Role, spec: Option<&Value>) -> Answered<Vec<Claimed>> {
        let open = self.record.creation(role).filter(|creation| !creation.refused);
        let call = &Call { attempted_since: open.map(Creation::attempted_since), ..call.clone() };
        let mut found = aws!(self.kind.find(call, role, spec).await);
        let named = self.external_id();
        if let Some(id) = named.filter(|_| role == Role::MAIN && !self.object.is_deleting()) {
            if !found.iter().any(|candidate| candidate.id == id) {
                found.push(aws!(self.named(call, id, spec).await));
            }
            found.retain(|candidate| candidate.id == id || self.is_mine(candidate));
        }
        let mut claimed = Vec::with_capacity(found.len());
        for candidate in found {
            let void = self.is_void(&candidate).await?;
            claimed.push(Claimed { candidate, void });
        }
        Ok(Ok(claimed))
    }

    /// What the annotation `external-id`, or the spec's field for that, names.
    async fn named(&self, call: &Call, id: &str, spec: Option<&Value>) -> Result<Candidate> {
        match self.kind.observe(call, Role::MAIN, id, spec).await? {
            Observed::Live(live) => Ok(Candidate { id: id.to_owned(), tags: live.tags, by_name: true }),
            _ => Err(Error::invalid(
                "external-id",
                format!("{id}, which is to be adopted, does not exist in AWS"),
            )),
        }
    }

    fn is_mine(&self, candidate: &Candidate) -> bool {
        candidate.tags.get(UID_TAG) == Some(&self.ownership.uid)
    }

    /// Whether the owner that a candidate names is of our cluster and exists no longer.
    async fn is_void(&self, candidate: &Candidate) -> std::result::Result<bool, ClusterError> {
        let Some(owner) = candidate.tags.get(OWNER_TAG).filter(|_| !self.is_mine(candidate)) else {
            return Ok(false);
        };
        if *owner == self.ownership.owner {
            // The one object of that name is this one, and it has another uid.
            return Ok(true);
        }
        let Some([cluster, namespace, kind, name]) = parse_owner(owner) else { return Ok(false) };
        let Some(kind) = self.cx.kinds.get(kind).filter(|_| cluster == self.cx.cluster_name) else {
            return Ok(false);
        };
        let object = self.cx.cluster.live(kind.meta(), namespace, name).await?;
        let uid = object.and_then(|object| object.metadata.uid);
        Ok(uid.is_none() || uid.as_ref() != candidate.tags.get(UID_TAG))
    }
}
