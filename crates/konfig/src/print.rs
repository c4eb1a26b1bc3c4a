//! What Kubernetes must be told of the kinds, as YAML.

use std::sync::Arc;

use anyhow::Result;
use aws::{Options, Sessions};
use serde_json::Value;

/// Prints every CustomResourceDefinition.
pub fn crds() -> Result<()> {
    for kind in catalog::kinds(&offline()) {
        print(&catalog::crd(kind.as_ref()))?;
    }
    Ok(())
}

/// Prints the operator's ClusterRole.
pub fn rbac() -> Result<()> {
    print(&catalog::cluster_role(&catalog::kinds(&offline())))
}

/// Sessions that are never used: kinds are described without AWS.
fn offline() -> Arc<Sessions> {
    Sessions::new(Options { fence: Arc::new(|| Ok(())), metrics: aws::Metrics::default() })
}

fn print(document: &Value) -> Result<()> {
    print!("---\n{}", serde_yaml_ng::to_string(document)?);
    Ok(())
}
