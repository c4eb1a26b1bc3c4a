//! Child processes that never outlive the test.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};
use tokio::io::AsyncWriteExt;

use crate::lifeline::Lifeline;
use crate::wait::{Hopeless, eventually};

/// A command that inherits nothing of this process's environment but `PATH`: machines set
/// `AWS_CA_BUNDLE`, proxies, credentials and the like, which no test means to pass on.
#[must_use]
pub fn clean(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TMPDIR", home)
        .current_dir(home);
    command
}

/// How a command ended.
#[derive(Debug)]
pub struct Output {
    /// Whether it exited with 0.
    pub success: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// Runs a short command with some input to its end.
pub async fn output(command: Command, stdin: &[u8]) -> Result<Output> {
    let mut child = tokio::process::Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().context("no stdin")?;
    let write = async move {
        // An early exit closes the pipe; the command's own message says more than that.
        input.write_all(stdin).await.ok();
    };
    let ((), output) = tokio::join!(write, child.wait_with_output());
    let output = output?;
    Ok(Output {
        success: output.status.success(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}

/// A running child in a process group of its own, its output appended to a file. It is killed
/// when this value is dropped, and when this process ends without dropping it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Gone once the child is reaped: its process id may then be another's.
    lifeline: Option<Lifeline>,
}

impl Process {
    /// Starts the command.
    pub fn spawn(mut command: Command, log: &Path) -> Result<Self> {
        let name = Path::new(command.get_program()).file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {name} ({})", command.get_program().display()))?;
        let lifeline = Lifeline::new("kill -s KILL -- \"-$0\"", &child.id().to_string())?;
        Ok(Self { name, child, log: log.to_owned(), lifeline: Some(lifeline) })
    }

    /// Sends a signal to the child and its own children; nothing if it has ended.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.exited()?.is_none() {
            kill_process_group(Pid::from_child(&self.child), signal)
                .with_context(|| format!("signal {}", self.name))?;
        }
        Ok(())
    }

    /// How the child ended, if it has.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.lifeline = None;
        }
        Ok(status)
    }

    /// Fails with the end of its log if the child has ended; no waiting will mend that.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.exited()? {
            None => Ok(()),
            Some(status) => {
                Err(Hopeless(format!("{} ended, {status}:\n{}", self.name, self.log_tail())).into())
            }
        }
    }

    /// Waits for the child to end by itself.
    pub async fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let what = format!("{} to end", self.name);
        eventually(timeout, &what, async || self.exited()?.context("still running")).await
    }

    /// Kills the child, as a crash would, and waits until it is gone.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.child.wait()?;
        self.lifeline = None;
        Ok(())
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that the child has printed.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill().ok();
    }
}
