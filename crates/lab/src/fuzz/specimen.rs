//! An object at random: what it is and how it is sent.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::change::Change;
use super::generate::Generator;
use super::known::Known;
use crate::cluster;
use crate::emulator::Flavor;
use crate::lifecycle::{Drive, Lifecycle, all, crds};
use crate::world::World;

/// One object.
#[derive(Debug, Clone)]
pub struct Specimen {
    /// What it follows from.
    pub seed: u64,
    /// Its kind.
    pub kind: String,
    /// Where it lives.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The whole of it, as it is sent.
    pub manifest: Value,
    /// Whether unknown fields are refused or dropped.
    pub strict: bool,
    /// What is written into it once something was said of it.
    pub change: Option<Change>,
}

/// One object of so many is changed.
const CHANGED: usize = 3;

impl Specimen {
    /// Whether it ever asks AWS to protect it from deletion.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        let specs = [Some(&self.manifest["spec"]), self.change.as_ref().map(Change::spec)];
        specs.into_iter().flatten().any(|spec| spec["deletionProtection"] == true)
    }
}

/// The kinds of one emulator, each in a namespace of its own among what its data files refer to.
pub struct Stock {
    kinds: Vec<Source>,
}

struct Source {
    kind: String,
    namespace: String,
    schema: Value,
    known: Known,
}

impl Stock {
    /// Makes what the data files refer to.
    pub async fn new(world: &mut World, flavor: Flavor) -> Result<Self> {
        let home = world.namespace.clone();
        let lives = all()?;
        let mut by_kind: BTreeMap<&str, Vec<&Lifecycle>> = BTreeMap::new();
        for life in lives.iter().filter(|life| Flavor::from(life.emulator) == flavor) {
            by_kind.entry(life.kind()).or_default().push(life);
        }
        let mut kinds = Vec::new();
        for (kind, lives) in by_kind {
            world.namespace = cluster::namespace(&world.client, &kind.to_lowercase()).await?;
            // One of a kind's data files is enough to refer to.
            Drive::new(world, lives[0]).await?.prepare().await.with_context(|| kind.to_owned())?;
            let (namespace, schema) = (world.namespace.clone(), schema(kind)?);
            kinds.push(Source { kind: kind.to_owned(), namespace, schema, known: Known::of(&lives) });
        }
        world.namespace = home;
        Ok(Self { kinds })
    }

    /// The object of that seed.
    #[must_use]
    pub fn specimen(&self, seed: u64, batch: &str) -> Specimen {
        let source = &self.kinds[(seed % self.kinds.len() as u64) as usize];
        let mut generator = Generator::new(seed, &source.known);
        let spec = generator.spec(&source.schema);
        let name = match generator.below(20) {
            // As long as Kubernetes allows.
            0 => format!("{:a<253}", format!("s{seed:x}-")),
            _ => format!("s{seed:x}"),
        };
        let manifest = json!({
            "apiVersion": "aws.konfig.io/v1alpha1",
            "kind": source.kind,
            "metadata": { "name": name, "labels": { "batch": batch } },
            "spec": spec,
        });
        let strict = generator.below(2) == 0;
        let mut later = Generator::of_change(seed, &source.known);
        let change = (later.below(CHANGED) == 0)
            .then(|| Change::random(&mut later, &source.schema, &manifest["spec"]));
        Specimen {
            seed,
            kind: source.kind.clone(),
            namespace: source.namespace.clone(),
            name,
            manifest,
            strict,
            change,
        }
    }

    /// Kinds and namespaces.
    pub fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.kinds.iter().map(|source| (source.kind.as_str(), source.namespace.as_str()))
    }
}

fn schema(kind: &str) -> Result<Value> {
    let crds = crds()?;
    let crd = crds.iter().find(|crd| crd.pointer("/spec/names/kind").is_some_and(|name| name == kind));
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    Ok(crd.and_then(|crd| crd.pointer(spec)).with_context(|| format!("no CRD of {kind}"))?.clone())
}
