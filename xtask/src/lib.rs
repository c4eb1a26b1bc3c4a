//! What is generated from the kinds and committed.

mod reference;
pub mod schemas;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use aws::{Options, Sessions};

const HEADER: &str = "# Generated from the kinds: cargo xtask generate\n";

/// The folders that hold nothing but generated files.
pub const FOLDERS: [&str; 2] = ["charts/konfig-konector/crds", "docs/reference"];

/// Every generated file: its path in the repository, and what belongs into it.
///
/// # Errors
/// When a document cannot be written as YAML.
pub fn generated() -> Result<BTreeMap<String, String>> {
    let sessions = Sessions::new(Options { fence: Arc::new(|| Ok(())), metrics: aws::Metrics::default() });
    let kinds = catalog::kinds(&sessions);
    let mut files = BTreeMap::new();
    for kind in &kinds {
        let path = format!("charts/konfig-konector/crds/{}.yaml", kind.meta().plural);
        files.insert(path, yaml(&catalog::crd(kind.as_ref()))?);
    }
    files.insert(
        "charts/konfig-konector/templates/clusterrole.yaml".to_owned(),
        yaml(&catalog::cluster_role(&kinds))?,
    );
    files.insert("charts/konfig-konector/templates/role.yaml".to_owned(), yaml(&catalog::role())?);
    files.extend(reference::pages(&kinds)?);
    Ok(files)
}

fn yaml(document: &serde_json::Value) -> Result<String> {
    Ok(format!("{HEADER}{}", serde_yaml_ng::to_string(document)?))
}
