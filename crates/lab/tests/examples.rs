//! Every kind has an example, and what it says it needs is enough to make it Ready.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::{World, cluster, paths};

/// Before the names of the examples that must be applied too, in a comment at the top.
const NEEDS: &str = "# Needs: ";
/// Tested on its own.
const QUICKSTART: &str = "quickstart";

#[test]
fn every_kind_has_an_example() -> Result<()> {
    let crds = fs::read_dir(paths::repository(paths::CRDS))?
        .map(|file| kind(&fs::read_to_string(file?.path())?))
        .collect::<Result<BTreeSet<_>>>()?;
    let examples: BTreeSet<_> = names()?.into_iter().collect();
    ensure!(crds == examples, "kinds {crds:?}, examples {examples:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_becomes_ready_with_what_it_needs() -> Result<()> {
    let mut world = World::prepare(Flavor::Moto).await?;
    let operator = world.operator(&[]).await?;
    for name in names()? {
        // A namespace each: nothing that is not named may help.
        world.namespace = cluster::namespace(&world.client, &name).await?;
        let example = read(&name)?;
        for needed in needs(&example) {
            world.apply(&read(needed.trim_end_matches(".yaml"))?).await?;
        }
        world.apply(&example).await?;
        let namespace = &world.namespace;
        let wait = ["wait", "--for=condition=Ready", "--timeout=30s", "konfig", "--all", "-n", namespace];
        let waited = world.kubectl().run(&wait).await;
        waited.with_context(|| format!("{name}.yaml\n{}\n{}", world.aws.table(), operator.log()))?;
        // AWS has each name once; the next example may need what this one needed.
        let delete = ["delete", "konfig", "--all", "--timeout=60s", "-n", namespace];
        let deleted = world.kubectl().run(&delete).await;
        deleted.with_context(|| format!("{name}.yaml\n{}\n{}", world.aws.table(), operator.log()))?;
    }
    Ok(())
}

/// The examples of single kinds, by file name.
fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(paths::repository("examples"))? {
        let path = file?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).context("a file without a name")?;
        if name != QUICKSTART {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn read(name: &str) -> Result<String> {
    let path = Path::new("examples").join(name).with_extension("yaml");
    let path = paths::repository(path.to_str().context("a path that is no text")?);
    fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
}

fn needs(example: &str) -> Vec<&str> {
    example.lines().filter_map(|line| line.strip_prefix(NEEDS)).flat_map(|line| line.split(", ")).collect()
}

/// The lower-case kind that a CRD is of.
fn kind(crd: &str) -> Result<String> {
    let line = crd.lines().find_map(|line| line.trim().strip_prefix("singular: "));
    Ok(line.context("a CRD without a name")?.to_owned())
}
