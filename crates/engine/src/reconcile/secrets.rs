//! Secrets of an object: whether they changed, and when they go to AWS.
//!
//! A fingerprint is written as pending before any call that carries the secret, and as applied once
//! AWS shows it done. Whoever resumes after a crash compares with what is recorded.

use std::collections::BTreeMap;

use resource::decide::Ground;
use resource::record::Fingerprint;
use resource::schema::is_at_or_below;
use resource::{Call, Changes, Error, Role, Secret};
use serde_json::{Value, json};

use super::Job;
use super::resolve::{Inputs, SecretUse, hash_of};
use crate::cluster::ClusterError;
use crate::secrets::{Fingerprints, key_of};

/// The source of what stands in the spec itself.
const SPEC: &str = "spec";

/// What reading the Secrets led to.
pub(super) enum Read {
    Done,
    /// A Secret, or a key in it, is missing; the message names it.
    Waiting(String),
}

impl Job<'_> {
    /// Reads the Secrets that may have to go to AWS. One whose version was seen and applied before is
    /// not read again.
    pub(super) async fn read_secrets(
        &self,
        inputs: &mut Inputs,
    ) -> Result<Result<Read, Error>, ClusterError> {
        let written = self.kind.write_only(&inputs.spec);
        if inputs.secret_uses.is_empty() && written.is_empty() {
            return Ok(Ok(Read::Done));
        }
        let fingerprints = self.cx.secrets.fingerprints().await?;
        let made = self.record.made().get(Role::MAIN).is_some();
        for path in written {
            // What the spec itself holds and AWS never shows is known by a fingerprint, too.
            let value = inputs.spec.pointer(&path).cloned().unwrap_or_default();
            let (version, value) = (hash_of(&value), Secret::new(value.to_string()));
            let print = self.fingerprint(fingerprints, &path, SPEC.to_owned(), version, &value);
            inputs.fingerprints.insert(path, print);
        }
        for used in inputs.secret_uses.clone() {
            let key = key_of(&self.key.namespace, &used.name);
            let Some(version) = self.cx.secrets.version(&key).await? else {
                return Ok(Ok(Read::Waiting(format!("{key} does not exist"))));
            };
            let recorded = self.record.secrets.get(&used.path);
            let source = format!("{}/{}", used.name, used.key);
            let is_settled = |known: &&Fingerprint| {
                let same =
                    known.version == version && known.source == source && known.key == fingerprints.key_id;
                made && same && known.pending.is_none()
            };
            if let Some(known) = recorded.filter(is_settled) {
                inputs.fingerprints.insert(used.path, known.clone());
                continue;
            }
            let secret = match self.cx.secrets.read(&key, &used.key).await? {
                None => return Ok(Ok(Read::Waiting(format!("{key} has no key {}", used.key)))),
                Some(Err(error)) => return Ok(Err(error)),
                Some(Ok(secret)) => secret,
            };
            let print = self.fingerprint(fingerprints, &used.path, source, version, &secret);
            inputs.secrets.insert(used.path.clone(), secret);
            inputs.fingerprints.insert(used.path, print);
        }
        let versions: Vec<_> = inputs.fingerprints.values().map(|print| &print.version).collect();
        inputs.hash = format!("{}.{}", inputs.hash, hash_of(&json!(versions)));
        Ok(Ok(Read::Done))
    }

    /// The call with the secrets that stand in what changes: they are sent along with the rest of it.
    pub(super) async fn with_carried(
        &mut self,
        call: &Call,
        inputs: &Inputs,
        changes: &Changes,
    ) -> Result<Call, ClusterError> {
        let mut call = call.clone();
        let is_carried =
            |used: &&SecretUse| changes.iter().any(|change| is_at_or_below(&change.path, &used.path));
        for used in inputs.secret_uses.iter().filter(is_carried) {
            let key = key_of(&self.key.namespace, &used.name);
            if let Some(Ok(secret)) = self.cx.secrets.read(&key, &used.key).await? {
                self.secrets.insert(used.path.clone(), secret.clone());
                self.remember(inputs, &used.path, &secret);
                call.secrets.insert(used.path.clone(), secret);
            }
        }
        Ok(call)
    }

    /// The fingerprint of what the Secret holds now, as `pending`, with what was applied before.
    fn fingerprint(
        &self,
        fingerprints: &Fingerprints,
        path: &str,
        source: String,
        version: String,
        secret: &Secret,
    ) -> Fingerprint {
        let print = fingerprints.fingerprint(secret);
        let recorded = self.record.secrets.get(path);
        let mut applied = recorded.and_then(|known| known.applied.clone());
        // The operator's key was lost, but the Secret is the one that was applied.
        let is_refingerprinted = recorded.is_some_and(|known| {
            known.key != fingerprints.key_id
                && known.version == version
                && known.source == source
                && known.pending.is_none()
        });
        if is_refingerprinted {
            applied = Some(print.clone());
        }
        let created = recorded.is_some_and(|known| known.created && known.pending.as_ref() == Some(&print));
        Fingerprint {
            pending: (applied.as_ref() != Some(&print)).then_some(print),
            applied,
            version,
            source,
            key: fingerprints.key_id.clone(),
            created,
        }
    }

    /// What an intent records: the create call will carry these.
    pub(super) fn carried_by_create(&self, inputs: &Inputs, role: Role) -> Value {
        let is_resent = self.record.creation(role).is_some_and(|creation| !creation.refused);
        let carried = inputs.fingerprints.iter().map(|(path, print)| {
            let before = self.record.secrets.get(path).and_then(|known| known.pending.as_ref());
            // An earlier transmission of this attempt may have carried another secret: then nobody
            // knows which one counts, and it is set once more when the resource is there.
            let created = !is_resent || before.is_none() || before == print.pending.as_ref();
            (path.clone(), intended(&Fingerprint { created, applied: None, ..print.clone() }))
        });
        carried.collect::<serde_json::Map<_, _>>().into()
    }

    /// What a claim records: the secret of something adopted counts as applied until its Secret changes.
    pub(super) fn claimed_secrets(&self, inputs: &Inputs, ground: Ground) -> Option<Value> {
        if ground != Ground::Adopted || inputs.fingerprints.is_empty() {
            return None;
        }
        Some(json!(applied(&inputs.fingerprints)))
    }

    /// The secrets that AWS does not have yet, as far as we know.
    pub(super) fn secrets_to_send(&self, inputs: &Inputs) -> Vec<String> {
        let to_send = inputs.fingerprints.iter().filter(|(path, print)| {
            let sent = self.memory.sent.get(*path);
            print.pending.is_some() && !print.created && sent != print.pending.as_ref()
        });
        to_send.map(|(path, _)| path.clone()).collect()
    }

    /// Records what is about to be sent.
    pub(super) async fn intend_secrets(
        &mut self,
        inputs: &Inputs,
        paths: &[String],
    ) -> Result<(), ClusterError> {
        let pending: BTreeMap<_, _> =
            paths.iter().filter_map(|path| Some((path, intended(inputs.fingerprints.get(path)?)))).collect();
        self.write_status(json!({"secrets": pending})).await
    }

    /// Records that what was sent is applied, unless that is recorded.
    pub(super) async fn record_applied(&mut self, inputs: &Inputs) -> Result<(), ClusterError> {
        if inputs.fingerprints.values().all(|print| print.pending.is_none()) {
            return Ok(());
        }
        self.write_status(json!({"secrets": applied(&inputs.fingerprints)})).await
    }

    /// They were sent; when AWS shows the resource ready, they count.
    pub(super) fn sent_secrets(&mut self, inputs: &Inputs, paths: &[String]) {
        for path in paths {
            let pending = inputs.fingerprints.get(path).and_then(|print| print.pending.clone());
            self.memory.sent.extend(pending.map(|pending| (path.clone(), pending)));
        }
        self.remember_carried(inputs);
    }

    /// A call has taken these secrets to AWS: until it is in sync, AWS may quote them, whatever their
    /// Secrets hold by then.
    pub(super) fn remember_carried(&mut self, inputs: &Inputs) {
        for path in inputs.fingerprints.keys() {
            if let Ok(secret) = inputs.secrets.get(path) {
                self.remember(inputs, path, secret);
            }
        }
    }

    fn remember(&mut self, inputs: &Inputs, path: &str, secret: &Secret) {
        let print = inputs.fingerprints.get(path);
        let print = print.and_then(|print| print.pending.clone().or_else(|| print.applied.clone()));
        self.memory.carried.insert(print.unwrap_or_default(), secret.clone());
    }

    /// A text of AWS's as it may go outside. AWS can quote any secret of the object: those that did not
    /// have to be read are read for this.
    pub(super) async fn without_secrets(&mut self, text: &str) -> String {
        let sources: Vec<_> = self.record.secrets.values().map(|print| print.source.clone()).collect();
        for source in sources {
            // No name of a Secret has a slash.
            let Some((name, field)) = source.split_once('/') else { continue };
            if self.secrets.get(&source).is_ok() {
                continue;
            }
            let key = key_of(&self.key.namespace, name);
            if let Ok(Some(Ok(secret))) = self.cx.secrets.read(&key, field).await {
                self.secrets.insert(source, secret);
            }
        }
        self.scrubbed(text)
    }

    /// A text without the secrets that were read or sent.
    pub(super) fn scrubbed(&self, text: &str) -> String {
        self.memory.carried.scrub(&self.secrets.scrub(text))
    }
}

/// What a call is about to carry. What the create call carried says nothing of it: in a merge patch, only null
/// takes that away.
fn intended(print: &Fingerprint) -> Value {
    let mut value = json!(print);
    if !print.created {
        value["created"] = Value::Null;
    }
    value
}

/// Everything pending has been applied.
pub(super) fn applied(fingerprints: &BTreeMap<String, Fingerprint>) -> BTreeMap<String, Value> {
    let apply = |print: &Fingerprint| {
        let applied = print.pending.clone().or_else(|| print.applied.clone());
        let mut value = json!(Fingerprint { pending: None, applied, created: false, ..print.clone() });
        // In a merge patch only null takes away.
        value["pending"] = Value::Null;
        value["created"] = Value::Null;
        value
    };
    fingerprints.iter().map(|(path, print)| (path.clone(), apply(print))).collect()
}

/// The changes of an update that carries secrets and nothing else.
pub(super) fn changes(paths: &[String]) -> Changes {
    Changes::of_secrets(paths.iter().cloned())
}
