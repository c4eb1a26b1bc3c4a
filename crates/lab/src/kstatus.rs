//! What the Go kstatus library, and so Argo CD, Flux and the like, make of an object.

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::paths;
use crate::process;
use crate::scratch::Scratch;

/// A status as kstatus computes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kstatus {
    /// `InProgress`, `Current`, `Failed` or `Terminating`.
    pub status: String,
    /// Why, as a quoted Go string.
    pub message: String,
}

/// The status of each object, in order. An object must hold its apiVersion and kind.
pub async fn of<T: Serialize>(objects: &[T]) -> Result<Vec<Kstatus>> {
    let mut input = Vec::new();
    for object in objects {
        serde_json::to_writer(&mut input, object)?;
    }
    let scratch = Scratch::new("kstatus")?;
    let command = process::clean(&paths::kstatus().await?, scratch.path());
    let output = process::output(command, &input).await?;
    ensure!(output.success, "{}", output.stderr);
    output.stdout.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Kstatus> {
    let (status, message) = line.split_once('\t').context("a line without a tab")?;
    Ok(Kstatus { status: status.to_owned(), message: message.to_owned() })
}
