//! The operator under test, as a process of its own.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;

use crate::aws::{CREDENTIALS, REGION};
use crate::http;
use crate::panics;
use crate::paths;
use crate::ports;
use crate::process::{Process, Signal, clean};
use crate::scratch::Scratch;
use crate::wait::eventually;

/// What the operator is started with, beside the ports of its own.
#[derive(Debug, Clone)]
pub struct OperatorConfig {
    /// Its kubeconfig: normally the user `operator`, through a proxy.
    pub kubeconfig: PathBuf,
    /// `AWS_ENDPOINT_URL`.
    pub aws_endpoint: String,
    /// `AWS_REGION`.
    pub region: String,
    /// Further arguments of `konfig operator`.
    pub args: Vec<String>,
    /// Further environment variables, stronger than the lab's own.
    pub env: Vec<(String, String)>,
}

impl OperatorConfig {
    /// An operator between a control plane and an AWS endpoint.
    #[must_use]
    pub fn new(kubeconfig: PathBuf, aws_endpoint: impl Into<String>) -> Self {
        Self {
            kubeconfig,
            aws_endpoint: aws_endpoint.into(),
            region: REGION.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// With one more argument, such as `--time-scale=0.01`; it takes the place of an earlier one
    /// of that name.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        let arg = arg.into();
        let name = |arg: &str| arg.split('=').next().map(str::to_owned);
        self.args.retain(|earlier| name(earlier) != name(&arg));
        self.args.push(arg);
        self
    }

    /// With one more environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// A running operator. It is killed with this value; a test of one that has panicked fails, whatever it looks at.
#[derive(Debug)]
pub struct Operator {
    process: Process,
    metrics: String,
    health: String,
    _scratch: Scratch,
}

impl Operator {
    /// Starts the operator; it need not be ready yet.
    pub fn spawn(config: OperatorConfig) -> Result<Self> {
        let [metrics, health] = ports::free()?.map(|port| format!("127.0.0.1:{port}"));
        let scratch = Scratch::new("operator")?;
        let mut command = clean(&paths::konfig()?, scratch.path());
        command
            .args(["operator", "--metrics-addr", &metrics, "--health-addr", &health])
            .args(config.args)
            .env("KUBECONFIG", config.kubeconfig)
            .env("AWS_ENDPOINT_URL", config.aws_endpoint)
            .env("AWS_REGION", config.region)
            .envs(CREDENTIALS)
            .envs(config.env);
        let process = Process::spawn(command, &scratch.file("log"))?;
        Ok(Self { process, metrics, health, _scratch: scratch })
    }

    /// Waits until `/readyz` says so.
    pub async fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        eventually(timeout, "the operator to be ready", async || {
            self.process.ensure_running()?;
            http::request("GET", &self.health, "/readyz").await
        })
        .await?;
        Ok(())
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Asks it to end, and waits for that.
    pub async fn term(&mut self, timeout: Duration) -> Result<ExitStatus> {
        self.process.signal(Signal::TERM)?;
        self.process.wait(timeout).await
    }

    /// Freezes it.
    pub fn stop(&mut self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Thaws it.
    pub fn cont(&mut self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.process.exited()
    }

    /// Fails if it has panicked or ended.
    pub fn ensure_sound(&mut self) -> Result<()> {
        self.process.ensure_sound()
    }

    /// Does something while it neither panics nor ends; once it does, fails with that.
    pub async fn while_sound<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.process.while_sound(work).await
    }

    /// All that it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The text of `/metrics`.
    pub async fn metrics(&self) -> Result<String> {
        http::request("GET", &self.metrics, "/metrics").await
    }

    /// What a path of the health address answers, such as `/healthz`; an error unless it is 2xx.
    pub async fn health(&self, path: &str) -> Result<String> {
        http::request("GET", &self.health, path).await
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let panic = panics::first(&self.log());
        if let Some(panic) = panic.filter(|_| !std::thread::panicking()) {
            panic!("the operator panicked:\n{panic}");
        }
    }
}
