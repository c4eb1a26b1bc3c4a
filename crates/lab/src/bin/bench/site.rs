//! Everything that a measurement runs: control plane, stub, operator.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::DynamicObject;
use kube::{Api, api::PostParams};
use lab::process::{Process, clean};
use lab::scratch::Scratch;
use lab::stub::Recorded;
use lab::{ControlPlane, Operator, OperatorConfig, User, cluster, eventually};
use serde_json::{Value, json};

/// The argument by which this program is the stub.
pub const STUB: &str = "stub";
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A stub in a process of its own.
pub struct Aws {
    /// Where it listens.
    pub endpoint: String,
    client: Http,
    _process: Process,
    _scratch: Scratch,
}

type Http = hyper_util::client::legacy::Client<
    hyper_util::client::legacy::connect::HttpConnector,
    http_body_util::Full<bytes::Bytes>,
>;

impl Aws {
    /// Starts one, empty.
    pub async fn start() -> Result<Self> {
        let scratch = Scratch::new("stub")?;
        let program = std::env::current_exe()?;
        let mut command: Command = clean(&program, scratch.path());
        command.arg(STUB);
        let mut process = Process::spawn(command, &scratch.file("log"))?;
        let endpoint = eventually(READY_WITHIN, "the stub to say where it is", async || {
            process.ensure_running()?;
            let log = process.log();
            let line = log.lines().next().filter(|_| log.ends_with('\n'));
            line.map(str::to_owned).context("nothing said")
        })
        .await?;
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
            .build(hyper_util::client::legacy::connect::HttpConnector::new());
        Ok(Self { endpoint, client, _process: process, _scratch: scratch })
    }

    /// Calls by operation so far.
    pub async fn calls(&self) -> Result<BTreeMap<String, u64>> {
        Ok(serde_json::from_str(&self.ask("calls").await?)?)
    }

    /// From now on each call takes that long, and is kept.
    pub async fn slow(&self, latency: Duration) -> Result<()> {
        self.ask("record").await?;
        self.ask(&format!("latency/{}", latency.as_millis())).await?;
        Ok(())
    }

    /// The calls that were kept.
    pub async fn recorded(&self) -> Result<Vec<Recorded>> {
        Ok(serde_json::from_str(&self.ask("requests").await?)?)
    }

    /// Sends a call again and gives the status of the answer.
    pub async fn send(&self, call: &Recorded) -> Result<u16> {
        let uri = format!("{}{}", self.endpoint, call.uri);
        let mut request = http::Request::builder().method(call.method.as_str()).uri(uri);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        let body = http_body_util::Full::new(bytes::Bytes::from(call.body.clone()));
        let answer = self.client.request(request.body(body)?).await?;
        let status = answer.status().as_u16();
        http_body_util::BodyExt::collect(answer.into_body()).await?;
        Ok(status)
    }

    async fn ask(&self, word: &str) -> Result<String> {
        let uri = format!("{}/_stub/{word}", self.endpoint).parse()?;
        let answer = self.client.get(uri).await?;
        let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
        Ok(String::from_utf8(body.to_vec())?)
    }
}

/// A control plane with the CRDs and an AWS, without an operator yet.
pub struct Site {
    pub control_plane: ControlPlane,
    pub aws: Aws,
    /// May do everything in the cluster.
    pub client: Client,
    /// Of the measured objects.
    pub namespace: String,
}

impl Site {
    pub async fn prepare() -> Result<Self> {
        let (control_plane, aws) = tokio::try_join!(ControlPlane::start(), Aws::start())?;
        cluster::install_crds(&control_plane).await?;
        cluster::install_rbac(&control_plane).await?;
        let client = control_plane.admin_client().await?;
        let namespace = cluster::namespace(&client, "bench").await?;
        Ok(Self { control_plane, aws, client, namespace })
    }

    /// An operator as in production, but for its drift interval.
    pub async fn operator(&self, drift_interval: Duration) -> Result<Operator> {
        let mut operator = self.spawn(drift_interval)?;
        operator.wait_ready(READY_WITHIN).await?;
        Ok(operator)
    }

    /// The same, without waiting for it.
    pub fn spawn(&self, drift_interval: Duration) -> Result<Operator> {
        let kubeconfig = self.control_plane.kubeconfig(User::Operator, None)?;
        let config = OperatorConfig::new(kubeconfig, self.aws.endpoint.clone())
            .arg(format!("--drift-interval={}s", drift_interval.as_secs()))
            .arg("--cluster-name=bench");
        // What the environment tunes is measured, too: allocators, the log.
        let tuned = std::env::vars()
            .filter_map(|(name, value)| Some((name.strip_prefix("BENCH_OPERATOR_")?.to_owned(), value)));
        let config = tuned.fold(config, |config, (name, value)| config.env(name, value));
        Operator::spawn(config)
    }

    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        cluster::api(&self.client, &self.namespace, kind)
    }

    pub async fn create(&self, object: &Value) -> Result<()> {
        let kind = object["kind"].as_str().context("an object without a kind")?;
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        self.api(kind).create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// A change that means nothing to the operator, but that it gets to see.
    pub async fn touch(&self, object: &Value) -> Result<()> {
        let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str());
        let (kind, name) = (kind.context("kind")?, name.context("name")?);
        let patch = json!({"metadata": {"annotations": {"example.com/touched": "true"}}});
        let patch = kube::api::Patch::Merge(patch);
        self.api(kind).patch_metadata(name, &kube::api::PatchParams::default(), &patch).await?;
        Ok(())
    }
}
