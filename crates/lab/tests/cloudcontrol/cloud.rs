//! A world, and what happens in it to the objects of the kind.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use lab::history::Version;
use lab::proxy::aws::{Call, Table};
use lab::{History, Operator, World, eventually};
use serde_json::{Value, json};

pub const KIND: &str = "CloudControlResource";
pub const GROUP: &str = "AWS::Logs::LogGroup";
pub const KEY: &str = "AWS::CloudFront::PublicKey";
pub const DIRECTORY: &str = "AWS::AppStream::DirectoryConfig";
pub const SOON: Duration = Duration::from_secs(30);

/// A world, and what happens to the objects of the kind.
pub struct Cloud {
    pub world: World,
    pub history: History,
}

impl Cloud {
    pub async fn new(args: &[&str]) -> Result<(Self, Operator)> {
        let (world, operator) = World::moto(args).await?;
        let history = world.history(KIND).await?;
        Ok((Self { world, history }, operator))
    }

    pub async fn apply(&self, name: &str, spec: Value) -> Result<()> {
        self.world.apply(&object(name, spec).to_string()).await?;
        Ok(())
    }

    pub async fn change(&self, name: &str, desired: Value) -> Result<()> {
        self.world.merge(KIND, name, json!({"spec": {"desiredState": desired}})).await?;
        Ok(())
    }

    pub async fn get(&self, name: &str) -> Result<DynamicObject> {
        Ok(self.world.api(KIND).get(name).await?)
    }

    pub async fn until_ready(&self, name: &str) -> Result<Version> {
        let newest = self.get(name).await?.metadata.generation;
        let is_ready = |version: &Version| {
            version.condition("Ready", "status") == Some("True")
                && version.field("/status/observedGeneration").and_then(Value::as_i64) == newest
        };
        let waited = self.history.until(SOON, name, "Ready", is_ready).await;
        waited.map_err(|error| error.context(self.world.aws.table()))
    }

    pub async fn until_error(&self, name: &str, parts: &[&str]) -> Result<Version> {
        let is_error = |version: &Version| {
            let message = version.condition("Ready", "message").unwrap_or_default();
            version.condition("Ready", "reason") == Some("Error")
                && parts.iter().all(|part| message.contains(part))
        };
        let waited = self.history.until(SOON, name, &format!("Error {parts:?}"), is_error).await;
        waited.map_err(|error| error.context(self.world.aws.table()))
    }

    /// Waits until an Error was seen, even one that has passed since.
    pub async fn until_was_error(&self, name: &str, parts: &[&str]) -> Result<()> {
        eventually(SOON, &format!("an Error with {parts:?}"), async || {
            let versions = self.history.versions(name);
            let was = versions.iter().any(|version| {
                let message = version.condition("Ready", "message").unwrap_or_default();
                version.condition("Ready", "reason") == Some("Error")
                    && parts.iter().all(|part| message.contains(part))
            });
            ensure!(was, "{}", self.world.aws.table());
            Ok(())
        })
        .await
    }

    /// Lets the operator look at AWS, and waits until it has.
    pub async fn observe(&self, name: &str, word: &str) -> Result<()> {
        let mark = self.world.aws.mark();
        self.world.observe(KIND, name, word).await?;
        eventually(SOON, "an observe", async || {
            ensure!(self.world.aws.calls_since(mark).iter().any(|call| call.operation == "GetResource"));
            Ok(())
        })
        .await?;
        self.until_ready(name).await?;
        Ok(())
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        self.world.api(KIND).delete(name, &DeleteParams::default()).await?;
        self.history
            .until_deleted(SOON, name)
            .await
            .map_err(|error| error.context(self.world.aws.table()))?;
        Ok(())
    }

    pub fn mutating_since(&self, mark: u64) -> Vec<Call> {
        self.world.aws.calls_since(mark).into_iter().filter(|call| call.mutating).collect()
    }

    /// The one patch that was sent since.
    pub fn patch_since(&self, mark: u64) -> Result<Value> {
        let calls = self.mutating_since(mark);
        ensure!(calls.len() == 1 && calls[0].operation == "UpdateResource", "{}", Table(&calls));
        Ok(serde_json::from_str(&calls[0].params["PatchDocument"])?)
    }

    pub fn held(&self, type_name: &str, id: &str) -> Result<Value> {
        let resources = self.world.cloud_control.resources(type_name);
        let found = resources.iter().find(|(held, _)| held == id).map(|(_, properties)| properties.clone());
        found.with_context(|| format!("no {id} in {resources:?}"))
    }

    /// Another client changes a resource.
    pub async fn hand(&self, type_name: &str, id: &str, patch: Value) -> Result<Value> {
        let params = json!({"TypeName": type_name, "Identifier": id, "PatchDocument": patch.to_string()});
        let answer = self.world.boto.call("cloudcontrol", "update_resource", params).await?;
        Ok(answer["ProgressEvent"]["RequestToken"].clone())
    }

    pub async fn finish(&self, token: &Value) -> Result<()> {
        eventually(SOON, "the other client's request", async || {
            let params = json!({"RequestToken": token});
            let answer = self.world.boto.call("cloudcontrol", "get_resource_request_status", params).await?;
            ensure!(answer["ProgressEvent"]["OperationStatus"] == "SUCCESS", "{answer}");
            Ok(())
        })
        .await
    }

    pub async fn put_secret(&self, password: &str) -> Result<()> {
        let api: Api<Secret> = Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ad"},
            "stringData": {"password": password},
        });
        api.patch("ad", &PatchParams::apply("test").force(), &Patch::Apply(&secret)).await?;
        Ok(())
    }
}

pub fn object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "aws.konfig.io/v1alpha1", "kind": KIND, "metadata": {"name": name}, "spec": spec})
}

pub fn group(name: &str, mut desired: Value) -> Value {
    desired["LogGroupName"] = json!(name);
    json!({"typeName": GROUP, "desiredState": desired})
}

pub fn public_key(name: &str) -> Value {
    let config = json!({"Name": name, "CallerReference": name, "EncodedKey": "k"});
    json!({"typeName": KEY, "desiredState": {"PublicKeyConfig": config}})
}
