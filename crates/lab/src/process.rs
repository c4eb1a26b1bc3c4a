//! Child processes that never outlive the test.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};
use tokio::io::AsyncWriteExt;

use crate::lifeline::Lifeline;
use crate::panics;
use crate::wait::{Hopeless, eventually};

/// How often a process is looked at while something is done with it: its whole log is read.
const LOOK: Duration = Duration::from_secs(2);

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

    /// Fails if the child has panicked or ended.
    pub fn ensure_sound(&mut self) -> Result<()> {
        if let Some(panic) = panics::first(&self.log()) {
            bail!("{} panicked:\n{panic}", self.name);
        }
        self.ensure_running()
    }

    /// Does something with the child while it is sound. Once it is not, nothing is worth waiting for; and
    /// whatever else went wrong comes of that.
    pub async fn while_sound<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let broken = async {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Err(error) = self.ensure_sound() {
                    return error;
                }
            }
        };
        let done = tokio::select! {
            done = work => done,
            error = broken => Err(error),
        };
        self.ensure_sound().and(done)
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

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Instant;

    use super::*;
    use crate::scratch::Scratch;

    /// A process that runs this script, once it has printed.
    async fn runs(script: &str, scratch: &Scratch) -> Process {
        let mut command = clean(Path::new("/bin/sh"), scratch.path());
        command.args(["-c", script]);
        let process = Process::spawn(command, &scratch.file("log")).unwrap();
        eventually(Duration::from_secs(10), "its first line", async || {
            (!process.log().is_empty()).then_some(()).context("nothing")
        })
        .await
        .unwrap();
        process
    }

    #[tokio::test]
    async fn nothing_is_waited_for_once_a_task_has_panicked_or_the_process_has_died() {
        for (script, why) in [
            // It lives on.
            (
                "echo \"thread 'tokio-rt-worker' panicked at a.rs:1:2:\" >&2; exec sleep 600",
                "panicked at a.rs",
            ),
            ("echo \"thread 'main' panicked at a.rs:1:2:\" >&2; exit 101", "panicked at a.rs"),
            ("echo begun; exit 3", "exit status: 3"),
            ("echo begun; kill -s KILL $$", "signal: 9"),
        ] {
            let scratch = Scratch::new("sound").unwrap();
            let (mut process, start) = (runs(script, &scratch).await, Instant::now());
            let error = process.while_sound(pending::<Result<()>>()).await.unwrap_err();
            assert!(error.to_string().contains(why), "{script}: {error}");
            assert!(start.elapsed() < Duration::from_secs(30), "{script}");
            // What was done meanwhile counts for nothing, whether it went well or not.
            let done: Result<()> = process.while_sound(async { Ok(()) }).await;
            assert!(done.unwrap_err().to_string().contains(why), "{script}");
            let failed: Result<()> = process.while_sound(async { bail!("timed out") }).await;
            assert!(failed.unwrap_err().to_string().contains(why), "{script}");
        }
    }

    #[tokio::test]
    async fn what_is_done_with_a_sound_process_is_done_to_its_end() {
        let scratch = Scratch::new("sound").unwrap();
        let mut process = runs("echo all is well; exec sleep 600", &scratch).await;
        let work = async {
            tokio::time::sleep(LOOK * 2).await;
            Ok("done")
        };
        assert_eq!(process.while_sound(work).await.unwrap(), "done");
        let failed: Result<()> = process.while_sound(async { bail!("timed out") }).await;
        assert_eq!(failed.unwrap_err().to_string(), "timed out");
    }
}
