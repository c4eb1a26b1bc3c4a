//! Chores of this repository. `cargo xtask generate` writes what is generated from the kinds;
//! `cargo xtask schemas` packs the schemas of CloudFormation's types anew.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("generate") => generate(),
        Some("schemas") => {
            let count = xtask::schemas::pack(root()?)?;
            println!("{count} types");
            Ok(())
        }
        _ => bail!("usage: cargo xtask generate | schemas"),
    }
}

/// Writes every generated file of the repository.
fn generate() -> Result<()> {
    let root = root()?;
    // What a kind that is no more left behind.
    for folder in xtask::FOLDERS.map(|folder| root.join(folder)) {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
    }
    for (path, text) in xtask::generated()? {
        let path: PathBuf = root.join(path);
        fs::create_dir_all(path.parent().context("a file in a folder")?)?;
        fs::write(&path, text)?;
        println!("{}", path.strip_prefix(root)?.display());
    }
    Ok(())
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask stands in the repository")
}
