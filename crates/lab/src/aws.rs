//! Another AWS client than our own: boto3 looks at what an emulator holds, and changes it as a
//! foreign hand would.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::paths;
use crate::process::clean;
use crate::scratch::Scratch;

/// The region that tests use where it doesn't matter.
pub const REGION: &str = "eu-west-1";

/// The credentials that both emulators accept, as the environment variables of AWS's own.
pub const CREDENTIALS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// An error that AWS answered, or the name of boto3's own exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsError {
    /// The error code.
    pub code: String,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for AwsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for AwsError {}

/// boto3 at one endpoint and region. All of them share one Python process.
#[derive(Debug, Clone)]
pub struct Boto {
    endpoint: String,
    region: String,
    /// Another account than the operator's.
    account: Option<String>,
    /// Services that are elsewhere.
    others: BTreeMap<String, String>,
}

impl Boto {
    /// A client of the services at an endpoint, in [`REGION`].
    #[must_use]
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), region: REGION.to_owned(), account: None, others: BTreeMap::new() }
    }

    /// The same, but one service is at another endpoint.
    #[must_use]
    pub fn with(mut self, service: &str, endpoint: impl Into<String>) -> Self {
        self.others.insert(service.to_owned(), endpoint.into());
        self
    }

    /// The same endpoint in another region.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Self {
        Self { region: region.to_owned(), ..self.clone() }
    }

    /// The same endpoint as another account, on ministack: twelve digits.
    #[must_use]
    pub fn as_account(&self, account: &str) -> Self {
        Self { account: Some(account.to_owned()), ..self.clone() }
    }

    /// Calls an operation by its boto3 name, such as `describe_vpcs`. One attempt, no retries.
    ///
    /// # Panics
    /// When the Python process itself fails.
    pub async fn call(&self, service: &str, operation: &str, params: Value) -> Result<Value, AwsError> {
        let request = json!({
            "service": service,
            "operation": operation,
            "params": params,
            "endpoint": self.others.get(service).unwrap_or(&self.endpoint),
            "region": self.region,
            "account": self.account,
        });
        let helper = Helper::shared().await.expect("start boto3");
        let answer = tokio::task::spawn_blocking(move || helper.lock().call(&request));
        let mut answer = answer.await.expect("a running boto3 process").expect("boto3 to answer");
        match answer.get("error") {
            None => Ok(answer["ok"].take()),
            Some(error) => Err(AwsError {
                code: error["code"].as_str().unwrap_or_default().to_owned(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// The Python process. It ends by itself when its stdin closes.
#[derive(Debug)]
struct Helper {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Child,
    _scratch: Scratch,
}

impl Helper {
    async fn shared() -> Result<Arc<Mutex<Self>>> {
        static SHARED: OnceCell<Arc<Mutex<Helper>>> = OnceCell::const_new();
        let start = async || {
            let python = paths::emulators().await?.join("python");
            anyhow::Ok(Arc::new(Mutex::new(Self::start(&python)?)))
        };
        Ok(Arc::clone(SHARED.get_or_try_init(start).await?))
    }

    fn start(python: &Path) -> Result<Self> {
        let scratch = Scratch::new("boto3")?;
        let mut process = clean(python, scratch.path())
            .args(["-c", include_str!("boto.py")])
            .envs(CREDENTIALS)
            // Its own group: a Ctrl-C is not meant for it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start python")?;
        Ok(Self {
            requests: process.stdin.take().context("python has no stdin")?,
            answers: BufReader::new(process.stdout.take().context("python has no stdout")?),
            _process: process,
            _scratch: scratch,
        })
    }

    fn call(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("boto3 answered {line:?}"))
    }
}
