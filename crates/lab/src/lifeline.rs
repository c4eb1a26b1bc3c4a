//! Clean-up that happens even when this process is killed.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A shell that runs its script when this process ends, however it ends: it waits at the far
/// end of a pipe, which the kernel closes for us. Dropping the lifeline calls the script off.
#[derive(Debug)]
pub(crate) struct Lifeline {
    shell: Child,
}

impl Lifeline {
    /// Has `script` run at this process's end, with `argument` as its `$0`.
    pub(crate) fn new(script: &str, argument: &str) -> Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", &format!("read _; {script}"), argument])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: a Ctrl-C that ends this process must not end the shell first.
            .process_group(0)
            .spawn()
            .context("start a lifeline shell")?;
        Ok(Self { shell })
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        // Killed before its pipe closes, so that the script does not run.
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}
