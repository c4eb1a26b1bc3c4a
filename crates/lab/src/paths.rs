//! Where things are in the repository, and the tools it builds.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// The generated CustomResourceDefinitions, in the repository.
pub const CRDS: &str = "charts/konfig-konector/crds";
/// The operator's generated rights, in the repository.
pub const RBAC: &str = "charts/konfig-konector/templates/clusterrole.yaml";
/// The operator's generated rights in its own namespace.
pub const ROLE: &str = "charts/konfig-konector/templates/role.yaml";

/// A path in the repository.
#[must_use]
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The folder with etcd, kube-apiserver, kube-controller-manager and kubectl.
pub async fn control_plane() -> Result<PathBuf> {
    if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") {
        return Ok(assets.into());
    }
    prepare("tools/control-plane/build").await
}

/// The bin folder of the emulators' Python environment.
pub async fn emulators() -> Result<PathBuf> {
    prepare("tools/emulators/install").await
}

/// The bin folder of a PostgreSQL server.
pub async fn postgres() -> Result<PathBuf> {
    prepare("tools/postgres/install").await
}

/// The same, where there is one already.
pub async fn postgres_if_there() -> Option<PathBuf> {
    prepare("tools/postgres/find").await.ok()
}

/// The program that reads objects as JSON and prints the status that Go's kstatus sees.
pub async fn kstatus() -> Result<PathBuf> {
    prepare("tools/kstatus/build").await
}

/// helm.
pub async fn helm() -> Result<PathBuf> {
    prepare("tools/helm/build").await
}

/// The operator's binary: `KONFIG_BIN`, else the one that cargo built beside this program, or one
/// folder above this test.
pub fn konfig() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("KONFIG_BIN") {
        return Ok(path.into());
    }
    let program = std::env::current_exe()?;
    let mut folders = program.ancestors().skip(1).take(2);
    let path = folders.find_map(|folder| Some(folder.join("konfig")).filter(|path| path.is_file()));
    path.with_context(|| format!("no konfig beside {}: build it first, or set KONFIG_BIN", program.display()))
}

/// Runs a tool that makes something once and prints where it is.
async fn prepare(tool: &str) -> Result<PathBuf> {
    let output = Command::new(repository(tool))
        .stderr(std::process::Stdio::inherit())
        .output()
        .await
        .with_context(|| format!("run {tool}"))?;
    ensure!(output.status.success(), "{tool}: {}", output.status);
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.lines().last().context("the tool printed no path")?.into())
}
