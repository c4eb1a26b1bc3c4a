//! What a file of `e2e/hostile` holds; its README shows how one is written.

use std::path::PathBuf;

use anyhow::{Context, Result};
use lab::lifecycle::Emulation;
use lab::paths;
use serde::Deserialize;
use serde_json::Value;

use crate::expand::expand;

/// Where the files are, in the repository.
const FOLDER: &str = "e2e/hostile";
/// The rows that are added to every kind.
const COMMON: &str = "common";

/// Bad specs of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hostile {
    /// The kind.
    #[serde(skip)]
    pub kind: String,
    /// The emulator that is right about this kind.
    pub emulator: Emulation,
    /// What is applied first: whole objects.
    #[serde(default)]
    pub prerequisites: Vec<Value>,
    /// A valid spec.
    pub base: Value,
    /// What the API server refuses.
    #[serde(default)]
    pub refused: Vec<Refused>,
    /// What it takes.
    #[serde(default)]
    pub taken: Vec<Taken>,
}

/// A spec that is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// A merge patch for the base.
    pub spec: Value,
    /// A part of the message.
    pub says: String,
}

/// A spec that is taken and then judged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The object's name.
    pub name: String,
    /// A merge patch for the base.
    #[serde(default)]
    pub spec: Value,
    /// The reason of Ready.
    pub reason: String,
    /// Parts of its message.
    #[serde(default)]
    pub says: Vec<String>,
    /// The mutating calls that are made in vain.
    #[serde(default)]
    pub calls: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    refused: Vec<Refused>,
    taken: Vec<Taken>,
}

impl Hostile {
    /// A spec of this kind with a merge patch.
    pub fn spec(&self, patch: &Value) -> Value {
        let mut spec = self.base.clone();
        if !patch.is_null() {
            json_patch::merge(&mut spec, patch);
        }
        spec
    }

    /// The prerequisites that become Ready, by kind and name: not Secrets.
    pub fn required(&self) -> impl Iterator<Item = (&str, &str)> {
        let ours = self.prerequisites.iter().filter(|object| object["kind"] != "Secret");
        ours.filter_map(|object| Some((object["kind"].as_str()?, object["metadata"]["name"].as_str()?)))
    }
}

/// The files of all kinds, each with the common rows.
pub fn all() -> Result<Vec<Hostile>> {
    let kinds = kinds()?;
    let mut all = Vec::new();
    for path in files()? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name == COMMON {
            continue;
        }
        let kind = kinds.iter().find(|kind| kind.to_lowercase() == name);
        let mut hostile: Hostile = read(&path)?;
        hostile.kind = kind.with_context(|| format!("{name} is no kind"))?.clone();
        let common: Common = read(&paths::repository(FOLDER).join(format!("{COMMON}.yaml")))?;
        hostile.refused.extend(common.refused);
        hostile.taken.extend(common.taken);
        all.push(hostile);
    }
    Ok(all)
}

/// The kinds of the chart.
pub fn kinds() -> Result<Vec<String>> {
    let kind = |crd: &Value| crd.pointer("/spec/names/kind").and_then(Value::as_str).map(str::to_owned);
    lab::lifecycle::crds()?.iter().map(|crd| kind(crd).context("a CRD without a kind")).collect()
}

fn files() -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(paths::repository(FOLDER)).context(FOLDER)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    paths.sort();
    Ok(paths)
}

fn read<T: serde::de::DeserializeOwned>(path: &std::path::Path) -> Result<T> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let mut value: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).with_context(name)?;
    value.apply_merge().with_context(name)?;
    let value = expand(serde_json::to_value(value).with_context(name)?);
    serde_json::from_value(value).with_context(name)
}
