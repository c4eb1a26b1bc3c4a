//! Sends objects and changes of them as a user would, strictly or not.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Request;

use super::change::Change;
use super::specimen::Specimen;
use crate::cluster;

/// How often a change is tried while others write the same object.
const ATTEMPTS: usize = 20;

/// What the API server said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// It is an object now.
    Taken,
    /// It was refused.
    Refused,
}

/// Creates an object. Whatever the API server answers but a refusal is an error.
pub async fn create(client: &Client, specimen: &Specimen) -> Result<Answer> {
    let api = cluster::api(client, &specimen.namespace, &specimen.kind);
    let body = serde_json::to_vec(&specimen.manifest)?;
    let request = Request::new(api.resource_url()).create(&PostParams::default(), body)?;
    Ok(match send(client, request, specimen.strict).await? {
        None => Answer::Taken,
        Some(_) => Answer::Refused,
    })
}

/// Changes an object that is there. What it was read as may be old by then: whoever replaces it tries again.
pub async fn change(client: &Client, specimen: &Specimen, change: &Change) -> Result<Answer> {
    for _ in 0..ATTEMPTS {
        let request = request(client, specimen, change).await?;
        match send(client, request, specimen.strict).await? {
            None => return Ok(Answer::Taken),
            Some(404) => bail!("it is gone before it could be changed"),
            Some(409) => tokio::time::sleep(Duration::from_millis(50)).await,
            Some(_) => return Ok(Answer::Refused),
        }
    }
    bail!("it is written all the time, and could not be changed")
}

async fn request(client: &Client, specimen: &Specimen, change: &Change) -> Result<http::Request<Vec<u8>>> {
    let api = cluster::api(client, &specimen.namespace, &specimen.kind);
    let (name, requests) = (&specimen.name, Request::new(api.resource_url()));
    Ok(match change {
        Change::Merge(patch) => requests.patch(name, &PatchParams::default(), &Patch::Merge(patch))?,
        Change::Replace(spec) => {
            let mut object = api.get(name).await?;
            object.data["spec"] = spec.clone();
            requests.replace(name, &PostParams::default(), serde_json::to_vec(&object)?)?
        }
    })
}

/// The status with which the API server refuses, if it does.
async fn send(client: &Client, mut request: http::Request<Vec<u8>>, strict: bool) -> Result<Option<u16>> {
    let validation = if strict { "Strict" } else { "Ignore" };
    *request.uri_mut() =
        format!("{}&fieldValidation={validation}", request.uri()).parse().context("an address")?;
    match client.request::<DynamicObject>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => Ok(Some(status.code)),
        Err(other) => bail!("the API server answers {other:?}"),
    }
}
