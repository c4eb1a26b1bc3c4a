//! The data files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::data::Lifecycle;
use crate::paths;

/// Where the data files are, in the repository.
const FOLDER: &str = "e2e/lifecycle";

/// All data files, by name.
pub fn all() -> Result<Vec<Lifecycle>> {
    yaml_files(FOLDER)?.iter().map(|path| read(path)).collect()
}

/// The CustomResourceDefinitions of the chart.
pub fn crds() -> Result<Vec<Value>> {
    yaml_files(paths::CRDS)?.iter().map(|path| parse(path)).collect()
}

fn read(path: &Path) -> Result<Lifecycle> {
    let mut lifecycle: Lifecycle = parse(path)?;
    lifecycle.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(lifecycle)
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_yaml_ng::from_str(&text).with_context(|| format!("parse {}", path.display()))
}

fn yaml_files(folder: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(paths::repository(folder)).with_context(|| format!("list {folder}"))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut paths: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect();
    paths.sort();
    Ok(paths)
}
