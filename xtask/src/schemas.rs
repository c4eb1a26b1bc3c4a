//! Packs the schemas of CloudFormation's types, as the `cfn-lint` wheel carries them, into one file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};
use zip::ZipArchive;

/// Where the schemas stand in the wheel.
const FOLDER: &str = "cfnlint/data/schemas/resources/";
/// What people read and nothing here does.
const PROSE: [&str; 7] =
    ["description", "markdownDescription", "examples", "sourceUrl", "documentationUrl", "title", "$comment"];

/// Downloads the wheel, whose hash is pinned, and packs its schemas: one line of JSON for each type.
///
/// # Errors
/// When the wheel cannot be had or read.
pub fn pack(root: &Path) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    let requirements = root.join("tools/cfn-schemas/requirements.txt");
    let status = Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "-r"])
        .arg(requirements)
        .arg("-d")
        .arg(folder.path())
        .status()?;
    ensure!(status.success(), "pip could not download the wheel");
    let wheel = fs::read_dir(folder.path())?.next().context("no wheel was downloaded")??;
    let schemas = read(&wheel.path())?;
    let out = File::create(root.join("crates/cloudcontrol/schemas.jsonl.gz"))?;
    let mut out = GzEncoder::new(out, Compression::best());
    for schema in schemas.values() {
        writeln!(out, "{schema}")?;
    }
    out.finish()?;
    Ok(schemas.len())
}

fn read(wheel: &Path) -> Result<BTreeMap<String, Value>> {
    let mut archive = ZipArchive::new(File::open(wheel)?)?;
    let mut schemas = BTreeMap::new();
    for index in 0..archive.len() {
        let file = archive.by_index(index)?;
        let is_schema = file.name().is_ok_and(|name| name.starts_with(FOLDER) && name.ends_with(".json"));
        if !is_schema {
            continue;
        }
        let schema: Value = serde_json::from_reader(file)?;
        let name = schema["typeName"].as_str().context("a schema without a type name")?.to_owned();
        schemas.insert(name, bare(schema));
    }
    Ok(schemas)
}

/// Without the prose. A property may be called `description`, too: then its schema is no text.
fn bare(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(key, value)| !PROSE.contains(&key.as_str()) || value.is_object())
            .map(|(key, value)| (key, bare(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(bare).collect(),
        plain => plain,
    }
}
