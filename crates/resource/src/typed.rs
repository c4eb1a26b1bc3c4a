//! The typed form of a kind, and its erasure.

use std::future::Future;

use async_trait::async_trait;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::record::Made;
use crate::{
    Call, Candidate, Changes, Class, Created, Error, Kind, Live, Meta, Observed, Progress, Protection,
    Result, Role,
};

/// A kind as it is written: its spec and status are Rust types. See `docs/adding-a-kind.md`.
///
/// What the verbs mean stands on [`Kind`]; implementations write them as `async fn`.
pub trait Resource: Sized + Send + Sync + 'static {
    /// What the user wants; also the shape in which AWS's side is reported.
    type Spec: Serialize + DeserializeOwned + JsonSchema + Send + Sync;
    /// The kind's own status fields.
    type Status: Serialize + DeserializeOwned + JsonSchema + Send + Sync;

    /// What is fixed about the kind.
    const META: Meta;

    /// What protects the create call of a role; without a spec, whatever that is.
    fn protection(role: Role, spec: Option<&Self::Spec>) -> Protection;

    /// Whether a recorded id is the handle of the request that makes it; see [`Observed::Became`].
    fn is_handle(_id: &str) -> bool {
        false
    }

    /// The AWS resources that this spec needs, in the order in which they are made; without a spec,
    /// all that any spec may need.
    fn roles(_spec: Option<&Self::Spec>) -> Vec<Role> {
        vec![Role::MAIN]
    }

    /// The spec as AWS would write it.
    fn canonical(spec: Self::Spec) -> Result<Self::Spec> {
        Ok(spec)
    }

    /// Whether AWS cannot change what stands at this path of the spec once it is made.
    fn is_fixed(_spec: &Self::Spec, _path: &str) -> bool {
        false
    }

    /// The paths of this spec that are sent and never read back, beside secrets.
    fn write_only(_spec: &Self::Spec) -> Vec<String> {
        Vec::new()
    }

    /// What AWS has of a role already made.
    fn observe(
        &self,
        call: &Call,
        role: Role,
        id: &str,
        spec: Option<&Self::Spec>,
    ) -> impl Future<Output = Result<Observed<Self::Spec, Self::Status>>> + Send;

    /// What AWS may hold of a role by owner tag, or by unique name.
    fn find(
        &self,
        call: &Call,
        role: Role,
        spec: Option<&Self::Spec>,
    ) -> impl Future<Output = Result<Vec<Candidate>>> + Send;

    /// Makes one AWS resource, with one mutating call.
    fn create(
        &self,
        call: &Call,
        role: Role,
        spec: &Self::Spec,
        made: &Made,
    ) -> impl Future<Output = Result<Created<Self::Spec, Self::Status>>> + Send;

    /// Brings what is live to `target` where `changes` says they differ.
    fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Self::Spec, Self::Status>,
        target: &Self::Spec,
        changes: &Changes,
    ) -> impl Future<Output = Result<Progress>> + Send;

    /// Deletes a role, after letting go of what only it holds.
    fn delete(
        &self,
        call: &Call,
        role: Role,
        id: &str,
        live: &Live<Self::Spec, Self::Status>,
    ) -> impl Future<Output = Result<Progress>> + Send;

    /// Takes our tags off something that is released.
    fn untag(
        &self,
        call: &Call,
        role: Role,
        id: &str,
        keys: &[String],
    ) -> impl Future<Output = Result<()>> + Send;
}

/// Erases a typed kind.
pub fn typed<R: Resource>(resource: R) -> std::sync::Arc<dyn Kind> {
    std::sync::Arc::new(Erased {
        resource,
        meta: R::META,
        schema: schema_of::<R::Spec>(),
        status_schema: schema_of::<R::Status>(),
    })
}

/// The schema of a type, in one piece: CRDs know no `$ref`.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().into()
}

struct Erased<R> {
    resource: R,
    meta: Meta,
    schema: Value,
    status_schema: Value,
}

fn read<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T> {
    serde_json::from_value(value.clone()).map_err(|error| Error::new(Class::Invalid, what, error.to_string()))
}

fn write<T: Serialize>(what: &str, value: T) -> Result<Value> {
    serde_json::to_value(value).map_err(|error| Error::new(Class::Invalid, what, error.to_string()))
}

fn erase<Spec: Serialize, Status: Serialize>(live: Live<Spec, Status>) -> Result<Live> {
    let mut spec = write("spec", live.spec)?;
    if let (Some(fields), false) = (spec.as_object_mut(), live.tags.is_empty()) {
        fields.insert("tags".to_owned(), write("tags", &live.tags)?);
    }
    Ok(Live { spec, status: write("status", live.status)?, phase: live.phase, tags: live.tags })
}

fn restore<R: Resource>(live: &Live) -> Result<Live<R::Spec, R::Status>> {
    Ok(Live {
        spec: read("spec", &live.spec)?,
        status: read("status", &live.status)?,
        phase: live.phase.clone(),
        tags: live.tags.clone(),
    })
}

#[async_trait]
impl<R: Resource> Kind for Erased<R> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn schema(&self) -> &Value {
        &self.schema
    }

    fn status_schema(&self) -> &Value {
        &self.status_schema
    }

    fn roles(&self, spec: Option<&Value>) -> Vec<Role> {
        R::roles(spec.and_then(|spec| read("spec", spec).ok()).as_ref())
    }

    fn protection(&self, role: Role, spec: Option<&Value>) -> Protection {
        R::protection(role, spec.and_then(|spec| read("spec", spec).ok()).as_ref())
    }

    fn is_handle(&self, id: &str) -> bool {
        R::is_handle(id)
    }

    fn canonical(&self, spec: Value) -> Result<Value> {
        write("spec", R::canonical(read("spec", &spec)?)?)
    }

    fn is_fixed(&self, spec: &Value, path: &str) -> bool {
        read("spec", spec).is_ok_and(|spec| R::is_fixed(&spec, path))
    }

    fn write_only(&self, spec: &Value) -> Vec<String> {
        read("spec", spec).map(|spec| R::write_only(&spec)).unwrap_or_default()
    }

    async fn observe(&self, call: &Call, role: Role, id: &str, spec: Option<&Value>) -> Result<Observed> {
        let spec = spec.map(|spec| read("spec", spec)).transpose()?;
        match self.resource.observe(call, role, id, spec.as_ref()).await? {
            Observed::Absent => Ok(Observed::Absent),
            Observed::Became(id) => Ok(Observed::Became(id)),
            Observed::Refused(error) => Ok(Observed::Refused(error)),
            Observed::Forgotten => Ok(Observed::Forgotten),
            Observed::Live(live) => Ok(Observed::Live(erase(live)?)),
        }
    }

    async fn find(&self, call: &Call, role: Role, spec: Option<&Value>) -> Result<Vec<Candidate>> {
        let spec = spec.map(|spec| read("spec", spec)).transpose()?;
        self.resource.find(call, role, spec.as_ref()).await
    }

    async fn create(&self, call: &Call, role: Role, spec: &Value, made: &Made) -> Result<Created> {
        let created = self.resource.create(call, role, &read("spec", spec)?, made).await?;
        Ok(Created { id: created.id, live: created.live.map(erase).transpose()? })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live,
        target: &Value,
        changes: &Changes,
    ) -> Result<Progress> {
        let (live, target) = (restore::<R>(live)?, read("spec", target)?);
        self.resource.update(call, id, &live, &target, changes).await
    }

    async fn delete(&self, call: &Call, role: Role, id: &str, live: &Live) -> Result<Progress> {
        self.resource.delete(call, role, id, &restore::<R>(live)?).await
    }

    async fn untag(&self, call: &Call, role: Role, id: &str, keys: &[String]) -> Result<()> {
        self.resource.untag(call, role, id, keys).await
    }
}
