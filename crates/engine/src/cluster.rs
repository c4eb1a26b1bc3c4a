//! The writes to an object: finalizer and status, each conditional on what was read.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::{Client, ResourceExt};
use resource::Meta;
use resource::api::{FINALIZER, GROUP, OPERATOR};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::lease::Fence;
use crate::object::{Object, api_resource};

/// How many requests are under way at once. Each takes a connection of its own; a thousand objects
/// that change together would open a thousand, and be refused by the API server's own limit.
const AT_ONCE: usize = 16;

/// How long a write is tried again before the reconcile gives up and comes back later.
const PATIENCE: Duration = Duration::from_secs(30);

/// On a CRD: its deletion may take the AWS resources with it.
pub const ALLOW_DELETION: &str = "aws.konfig.io/allow-deletion";

/// Why the API server could not be written or read.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The object is no longer there, or another of the same name has taken its place.
    #[error("the object is gone")]
    Gone,
    /// It is not as it was when the write was decided upon.
    #[error("the object has changed meanwhile")]
    Changed(Box<DynamicObject>),
    /// This process may not write now.
    #[error("this process does not hold the lease")]
    Fenced,
    /// The API server refused or did not answer.
    #[error("the Kubernetes API server: {0}")]
    Api(#[from] kube::Error),
    /// The status schema of the installed CRD dropped what was written.
    #[error(
        "the installed CRDs are older than the operator: status.{0} is not kept. Nothing is created \
         until they are upgraded (kubectl apply --server-side -f charts/konfig-konector/crds/)"
    )]
    Pruned(&'static str),
}

/// The API server, as the engine writes to it.
pub struct Cluster {
    client: Client,
    fence: Fence,
    turns: Semaphore,
}

impl Cluster {
    pub fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence, turns: Semaphore::new(AT_ONCE) }
    }

    fn api(&self, meta: &Meta, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &api_resource(meta))
    }

    /// The object as it is now, not as a cache has it. None once it is gone.
    pub async fn live(
        &self,
        meta: &Meta,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, ClusterError> {
        let _turn = self.turn().await;
        Ok(self.api(meta, namespace).get_opt(name).await?)
    }

    /// The same object, by uid, as it is now.
    pub async fn refresh(&self, meta: &Meta, object: &DynamicObject) -> Result<DynamicObject, ClusterError> {
        let live = self.live(meta, &object.namespace().unwrap_or_default(), &object.name_any()).await?;
        live.filter(|live| live.uid() == object.uid()).ok_or(ClusterError::Gone)
    }

    /// Whether the kind's CRD is being deleted without leave to take the AWS resources with it.
    pub async fn holds(&self, meta: &Meta) -> Result<bool, ClusterError> {
        let _turn = self.turn().await;
        let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.client.clone());
        let crd = crds.get_metadata_opt(&format!("{}.{GROUP}", meta.plural)).await?;
        Ok(crd.is_some_and(|crd| {
            let is_allowed = crd.annotations().get(ALLOW_DELETION).is_some_and(|allowed| allowed == "true");
            crd.metadata.deletion_timestamp.is_some() && !is_allowed
        }))
    }

    pub async fn add_finalizer(
        &self,
        meta: &Meta,
        object: &DynamicObject,
    ) -> Result<DynamicObject, ClusterError> {
        let finalizers = object.finalizers().iter().cloned().chain([FINALIZER.to_owned()]);
        self.set_finalizers(meta, object, finalizers.collect()).await
    }

    pub async fn remove_finalizer(&self, meta: &Meta, object: &DynamicObject) -> Result<(), ClusterError> {
        let others = |object: &DynamicObject| {
            object.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect()
        };
        match self.set_finalizers(meta, object, others(object)).await {
            Ok(_) | Err(ClusterError::Gone) => Ok(()),
            Err(ClusterError::Api(kube::Error::Api(status))) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn set_finalizers(
        &self,
        meta: &Meta,
        object: &DynamicObject,
        finalizers: Vec<String>,
    ) -> Result<DynamicObject, ClusterError> {
        let _turn = self.turn().await;
        self.check()?;
        // The uid keeps the patch from reaching an object of the same name made anew meanwhile.
        let patch = json!({"metadata": {
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
            "finalizers": finalizers,
        }});
        let api = self.api(meta, &object.namespace().unwrap_or_default());
        Ok(api.patch(&object.name_any(), &params(), &Patch::Merge(patch)).await?)
    }

    /// Merges into the status. On a conflict the object is read live and, if `still` holds for it,
    /// the write is tried again, else that is the error; time-outs and server errors are tried again for a while too.
    pub async fn patch_status(
        &self,
        meta: &Meta,
        object: &DynamicObject,
        status: &Value,
        still: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject, ClusterError> {
        let api = self.api(meta, &object.namespace().unwrap_or_default());
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut version = object.resource_version();
        loop {
            let turn = self.turn().await;
            self.check()?;
            let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
            let error = match api.patch_status(&object.name_any(), &params(), &Patch::Merge(patch)).await {
                Ok(written) if written.uid() == object.uid() => return Ok(written),
                Ok(_) => return Err(ClusterError::Gone),
                Err(error) => error,
            };
            drop(turn);
            match &error {
                kube::Error::Api(status) if status.code == 404 => return Err(ClusterError::Gone),
                kube::Error::Api(status) if status.code == 409 => {}
                kube::Error::Api(status) if status.code < 500 && status.code != 429 => {
                    return Err(error.into());
                }
                _ if tokio::time::Instant::now() > deadline => return Err(error.into()),
                _ => tokio::time::sleep(Duration::from_millis(500)).await,
            }
            match self.refresh(meta, object).await {
                Ok(live) if still(&live) => version = live.resource_version(),
                Ok(live) => return Err(ClusterError::Changed(Box::new(live))),
                Err(ClusterError::Api(_)) if tokio::time::Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// None only while the engine is torn down.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    fn check(&self) -> Result<(), ClusterError> {
        if self.fence.is_open() { Ok(()) } else { Err(ClusterError::Fenced) }
    }
}

/// Whether a write to the status was kept: a CRD that doesn't know a field prunes it.
pub fn kept(written: &DynamicObject, path: &str) -> bool {
    written.status().pointer(path).is_some()
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(OPERATOR.to_owned()), ..PatchParams::default() }
}
