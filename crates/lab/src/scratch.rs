//! Temporary folders.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::lifeline::Lifeline;

/// A temporary folder, removed with this value or with the test process.
/// With `KONFIG_LAB_KEEP` set it stays, and its path is printed.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    removal: Option<Lifeline>,
}

impl Scratch {
    /// Makes a folder whose name says what it is for.
    pub fn new(purpose: &str) -> Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(&format!("konfig-lab-{purpose}-"))
            .tempdir()
            .context("make a temporary folder")?
            .keep();
        let removal = if std::env::var_os("KONFIG_LAB_KEEP").is_some() {
            eprintln!("lab: {purpose} in {}", path.display());
            None
        } else {
            // The processes that write there die by lifelines of their own: a moment for them.
            Some(Lifeline::new("sleep 1; rm -rf -- \"$0\"", &path.to_string_lossy())?)
        };
        Ok(Self { path, removal })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.removal.take().is_some() {
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}
