//! The objects that the demo applied, as the API server has them.

use std::slice;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use lab::cluster;
use serde_json::Value;

/// The objects of every installed kind in one namespace.
pub struct Stack(Vec<Kind>);

struct Kind {
    name: String,
    objects: Api<DynamicObject>,
    /// JSON pointer to what identifies an object in AWS.
    identifier: String,
}

/// One object, as far as the demo shows it.
pub struct Object {
    pub kind: String,
    pub name: String,
    pub identifier: String,
    pub ready: bool,
    pub reason: String,
    pub message: String,
    spec: Value,
}

impl Stack {
    /// Asks which kinds are installed.
    pub async fn installed(client: &Client, namespace: &str) -> Result<Self> {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crds = crds.list(&ListParams::default()).await?.items;
        let kind = |crd: CustomResourceDefinition| Kind {
            objects: cluster::api(client, namespace, &crd.spec.names.kind),
            identifier: identifier(&crd).unwrap_or_default(),
            name: crd.spec.names.kind,
        };
        Ok(Self(crds.into_iter().map(kind).collect()))
    }

    /// All objects as they are now.
    pub async fn objects(&self) -> Result<Vec<Object>> {
        let mut objects = Vec::new();
        for kind in &self.0 {
            let list = kind.objects.list(&ListParams::default()).await;
            let list = list.with_context(|| format!("list objects of kind {}", kind.name))?;
            objects.extend(list.items.iter().map(|object| kind.read(object)));
        }
        Ok(objects)
    }
}

/// Where the printer column IDENTIFIER looks, as a JSON pointer.
fn identifier(crd: &CustomResourceDefinition) -> Option<String> {
    let mut columns = crd.spec.versions.first()?.additional_printer_columns.iter().flatten();
    let column = columns.find(|column| column.name == "IDENTIFIER")?;
    Some(column.json_path.replace('.', "/"))
}

impl Kind {
    fn read(&self, object: &DynamicObject) -> Object {
        let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
        let text = |field: &str| {
            let value = ready.and_then(|condition| condition.get(field)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let generation = object.metadata.generation;
        let is_current = ready.is_some_and(|ready| ready["observedGeneration"].as_i64() == generation);
        let identifier = object.data.pointer(&self.identifier).and_then(Value::as_str);
        Object {
            kind: self.name.clone(),
            name: object.metadata.name.clone().unwrap_or_default(),
            identifier: identifier.unwrap_or_default().to_owned(),
            ready: text("status") == "True" && is_current && object.metadata.deletion_timestamp.is_none(),
            reason: text("reason"),
            message: text("message"),
            spec: object.data["spec"].clone(),
        }
    }
}

impl Object {
    /// As kubectl takes it: `VPC/quickstart`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// Whether this one's spec refers to the other as what it is part of: `subnetRef: {name}`, or
    /// `subnetRefs` with it among others.
    pub fn stands_on(&self, other: &Object) -> bool {
        let kind = other.kind.to_lowercase();
        let fields = self.spec.as_object().into_iter().flatten();
        fields.into_iter().any(|(field, value)| {
            let target = field.trim_end_matches('s').strip_suffix("Ref").map(str::to_lowercase);
            let references = value.as_array().map_or(slice::from_ref(value), Vec::as_slice);
            let names = |reference: &Value| *reference.get("name").unwrap_or(reference) == *other.name;
            target.is_some_and(|target| kind.ends_with(&target)) && references.iter().any(names)
        })
    }
}
