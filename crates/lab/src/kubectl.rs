//! The real kubectl, as a user would run it.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::process::{self, Output, clean};

/// kubectl with one kubeconfig.
#[derive(Debug, Clone)]
pub struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) home: PathBuf,
}

impl Kubectl {
    /// Where the program is, for people.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The kubeconfig that it uses.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs a command, whatever comes of it.
    pub async fn try_run(&self, args: &[&str], stdin: &str) -> Result<Output> {
        let mut command = clean(&self.program, &self.home);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        process::output(command, stdin.as_bytes()).await
    }

    /// Runs a command that must succeed; returns what it printed.
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        self.run_with(args, "").await
    }

    /// Applies manifests server-side and strictly: unknown fields are errors.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        self.run_with(&["apply", "--server-side", "--validate=strict", "-f", "-"], yaml).await
    }

    async fn run_with(&self, args: &[&str], stdin: &str) -> Result<String> {
        let output = self.try_run(args, stdin).await?;
        ensure!(output.success, "kubectl {}: {}", args.join(" "), output.stderr);
        Ok(output.stdout)
    }
}
