//! Sends objects as a user would, strictly or not.

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use kube::core::Request;

use super::specimen::Specimen;
use crate::cluster;

/// What the API server said.
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
    let mut request = Request::new(api.resource_url()).create(&PostParams::default(), body)?;
    let validation = if specimen.strict { "Strict" } else { "Ignore" };
    *request.uri_mut() =
        format!("{}&fieldValidation={validation}", request.uri()).parse().context("an address")?;
    match client.request::<DynamicObject>(request).await {
        Ok(_) => Ok(Answer::Taken),
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => Ok(Answer::Refused),
        Err(other) => bail!("the API server answers {other:?}"),
    }
}
