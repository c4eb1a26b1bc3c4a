//! Kubernetes Secrets: watched by metadata, read when needed, compared by keyed fingerprints.

use std::collections::HashMap;

use futures::TryStreamExt;
use hmac::{Hmac, KeyInit, Mac};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret as KubeSecret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use resource::tags::hex;
use resource::{Error, Result, Secret};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::cluster::ClusterError;
use crate::graph::{Graph, Key};

/// The Secret that holds the operator's fingerprint key, in the operator's namespace.
pub const KEY_SECRET: &str = "konfig-konector-fingerprint-key";
const KEY_FIELD: &str = "key";

type Meta = PartialObjectMeta<KubeSecret>;

/// The key of a Secret in the graph of references.
pub fn key_of(namespace: &str, name: &str) -> Key {
    Key { kind: "Secret".to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// The Secrets that objects refer to.
pub struct Secrets {
    client: Client,
    /// The operator's own namespace.
    home: String,
    /// The version of each Secret that was asked for; None where it doesn't exist. Kept up by the
    /// watch, which ignores all others.
    versions: Mutex<HashMap<Key, Option<String>>>,
    fingerprints: OnceCell<Fingerprints>,
}

/// Makes fingerprints that tell nothing without the operator's key.
#[derive(Clone)]
pub struct Fingerprints {
    key: Vec<u8>,
    /// Names the key without showing it.
    pub key_id: String,
}

impl Fingerprints {
    fn of(key: Vec<u8>) -> Self {
        let key_id = hex(&Sha256::digest(&key)[..4]);
        Self { key, key_id }
    }

    /// The fingerprint of a secret.
    pub fn fingerprint(&self, secret: &Secret) -> String {
        // HMAC takes a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(secret.expose().as_bytes());
        hex(&mac.finalize().into_bytes()[..16])
    }
}

impl Secrets {
    pub fn new(client: Client, home: String) -> Self {
        Self { client, home, versions: Mutex::default(), fingerprints: OnceCell::new() }
    }

    fn api(&self, namespace: &str) -> Api<KubeSecret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The version of a Secret; None if it doesn't exist. Asks the API server only the first time.
    pub async fn version(&self, key: &Key) -> std::result::Result<Option<String>, ClusterError> {
        if let Some(version) = self.versions.lock().get(key) {
            return Ok(version.clone());
        }
        let version = self.api(&key.namespace).get_metadata_opt(&key.name).await?.as_ref().map(version_of);
        self.versions.lock().insert(key.clone(), version.clone());
        Ok(version)
    }

    /// The text under a key of a Secret. None: the Secret or the key is missing.
    pub async fn read(
        &self,
        key: &Key,
        field: &str,
    ) -> std::result::Result<Option<Result<Secret>>, ClusterError> {
        let secret = self.api(&key.namespace).get_opt(&key.name).await?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        Ok(data.get(field).map(|ByteString(bytes)| text(key, field, bytes)))
    }

    /// The operator's fingerprints. Their key is made once, and never replaced.
    pub async fn fingerprints(&self) -> std::result::Result<&Fingerprints, ClusterError> {
        self.fingerprints.get_or_try_init(|| self.load_key()).await
    }

    async fn load_key(&self) -> std::result::Result<Fingerprints, ClusterError> {
        let api = self.api(&self.home);
        if let Some(secret) = api.get_opt(KEY_SECRET).await? {
            return Ok(Fingerprints::of(key_in(secret)));
        }
        let key: [u8; 32] = rand::random();
        let secret = KubeSecret {
            metadata: ObjectMeta { name: Some(KEY_SECRET.to_owned()), ..ObjectMeta::default() },
            data: Some([(KEY_FIELD.to_owned(), ByteString(key.to_vec()))].into()),
            ..KubeSecret::default()
        };
        match api.create(&PostParams::default(), &secret).await {
            Ok(made) => Ok(Fingerprints::of(key_in(made))),
            // Another process was faster: its key counts.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Ok(Fingerprints::of(key_in(api.get(KEY_SECRET).await?)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Follows every Secret's metadata until told to stop, and wakes those who refer to one that
    /// changed.
    pub async fn follow(&self, graph: &Graph, stop: CancellationToken) {
        let api: Api<Meta> = Api::all(self.client.clone());
        let mut events = std::pin::pin!(watcher(api, Config::default()).default_backoff());
        let mut listed = HashMap::new();
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.try_next() => event,
            };
            match event {
                Ok(Some(Event::Init)) => listed.clear(),
                Ok(Some(Event::InitApply(secret))) => {
                    listed.insert(key(&secret), version_of(&secret));
                }
                Ok(Some(Event::InitDone)) => self.take_list(graph, std::mem::take(&mut listed)),
                Ok(Some(Event::Apply(secret))) => self.show(graph, key(&secret), Some(version_of(&secret))),
                Ok(Some(Event::Delete(secret))) => self.show(graph, key(&secret), None),
                Ok(None) => return,
                Err(error) => tracing::warn!(%error, "cannot watch Secrets; trying on"),
            }
        }
    }

    fn take_list(&self, graph: &Graph, mut listed: HashMap<Key, String>) {
        let known: Vec<Key> = self.versions.lock().keys().cloned().collect();
        for key in known {
            let version = listed.remove(&key);
            self.show(graph, key, version);
        }
    }

    fn show(&self, graph: &Graph, key: Key, version: Option<String>) {
        {
            let mut versions = self.versions.lock();
            let Some(known) = versions.get_mut(&key) else { return };
            if *known == version {
                return;
            }
            *known = version;
        }
        graph.wake_referrers(&key);
    }
}

fn key<K: ResourceExt>(secret: &K) -> Key {
    key_of(&secret.namespace().unwrap_or_default(), &secret.name_any())
}

/// Another Secret of the same name is another version.
fn version_of<K: ResourceExt>(secret: &K) -> String {
    format!("{}/{}", secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default())
}

fn key_in(secret: KubeSecret) -> Vec<u8> {
    secret.data.unwrap_or_default().remove(KEY_FIELD).unwrap_or_default().0
}

fn text(key: &Key, field: &str, bytes: &[u8]) -> Result<Secret> {
    let wrong = |what: &str| Error::invalid("Secret", format!("{key}, key {field}: {what}"));
    match std::str::from_utf8(bytes) {
        Ok("") => Err(wrong("the value is empty")),
        Ok(text) => Ok(Secret::new(text)),
        Err(_) => Err(wrong("the value is not UTF-8 text; AWS takes text only")),
    }
}
