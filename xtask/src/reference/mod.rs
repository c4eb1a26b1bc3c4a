//! The reference: a page for every kind, and one for what all kinds share.

mod fields;
mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use resource::Kind;
use serde_json::Value;

const FOLDER: &str = "docs/reference";

/// The pages by path.
///
/// # Errors
/// When a kind has no example.
pub fn pages(kinds: &[Arc<dyn Kind>]) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for kind in kinds {
        let name = kind.meta().kind.to_lowercase();
        let example = example(&name)?;
        pages.insert(format!("{FOLDER}/{name}.md"), page::of(kind.as_ref(), &example));
    }
    pages.insert(format!("{FOLDER}/README.md"), page::index(kinds));
    Ok(pages)
}

fn example(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).with_extension("yaml");
    std::fs::read_to_string(&path)
        .with_context(|| format!("every kind needs an example: examples/{name}.yaml"))
}

/// Spec or status of the published CRD.
fn published(kind: &dyn Kind, part: &str) -> Value {
    let crd = catalog::crd(kind);
    let pointer = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}");
    crd.pointer(&pointer).cloned().unwrap_or_default()
}
