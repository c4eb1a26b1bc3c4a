//! Everything that the demo runs, started step by step.

use std::time::Duration;

use anyhow::{Result, bail};
use kube::Client;
use lab::emulator::Flavor;
use lab::kubectl::Kubectl;
use lab::proxy::aws::AwsProxy;
use lab::scratch::Scratch;
use lab::{Boto, ControlPlane, Emulator, Operator, OperatorConfig, User, cluster, paths};

use crate::database::Database;
use crate::terminal::Terminal;

/// Where the quickstart is applied.
pub const NAMESPACE: &str = "demo";
/// How soon a change made in AWS is seen.
pub const DRIFT_INTERVAL: &str = "30s";
/// AWS takes minutes for a NAT gateway, the emulator none: so often the operator asks until it is
/// there, and until it is gone (more often: what waits for that brings it to ask, too).
const NAT_GATEWAY_POLLS: [(&str, usize); 2] = [("CreateNatGateway", 2), ("DeleteNatGateway", 5)];
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What runs.
pub struct Stage {
    pub control_plane: ControlPlane,
    pub emulator: Emulator,
    /// Between operator and emulator: counts the calls and mends the emulator's lies.
    pub aws: AwsProxy,
    /// The one of the quickstart.
    pub database: Database,
    /// A client past the proxy.
    pub boto: Boto,
    pub client: Client,
    /// For what the user is given.
    pub scratch: Scratch,
    operator: Operator,
}

impl Stage {
    /// Starts control plane, emulator and operator.
    pub async fn set(terminal: &mut Terminal) -> Result<Self> {
        let control_plane = terminal
            .step("Kubernetes control plane", async {
                let control_plane = ControlPlane::start().await?;
                let url = control_plane.url();
                Ok((control_plane, url))
            })
            .await?;
        let (emulator, aws) = terminal
            .step("AWS emulator, ministack", async {
                let emulator = Emulator::start(Flavor::Ministack).await?;
                let aws = AwsProxy::start(&emulator.endpoint());
                let url = emulator.endpoint();
                Ok(((emulator, aws), url))
            })
            .await?;
        let database = terminal.step("PostgreSQL, behind RDS", Database::serve(&aws)).await?;
        let client = terminal.step("CRDs and RBAC", install(&control_plane)).await?;
        NAT_GATEWAY_POLLS.into_iter().for_each(|(operation, polls)| aws.slow(operation, polls));
        let operator = terminal.step("Operator", operate(&control_plane, &aws)).await?;
        let boto = Boto::new(emulator.endpoint());
        let scratch = Scratch::new("demo")?;
        Ok(Self { control_plane, emulator, aws, database, boto, client, scratch, operator })
    }

    /// kubectl as the admin, in the demo's namespace.
    pub fn kubectl(&self) -> Kubectl {
        self.control_plane.kubectl(User::Admin)
    }

    /// Fails if the operator has ended.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.operator.exited()? {
            None => Ok(()),
            Some(status) => bail!("the operator ended: {status}"),
        }
    }

    /// The last lines that the operator logged.
    pub fn log_tail(&self, lines: usize) -> String {
        let log = self.operator.log();
        let all: Vec<_> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

async fn install(control_plane: &ControlPlane) -> Result<(Client, String)> {
    cluster::install_crds(control_plane).await?;
    cluster::install_rbac(control_plane).await?;
    let kubectl = control_plane.kubectl(User::Admin);
    kubectl.run(&["create", "namespace", NAMESPACE]).await?;
    // So that no command needs -n.
    kubectl.run(&["config", "set-context", "--current", "--namespace", NAMESPACE]).await?;
    let crds = std::fs::read_dir(paths::repository(paths::CRDS))?.count();
    Ok((control_plane.admin_client().await?, format!("{crds} kinds")))
}

/// As in production, but that it checks and polls more often.
async fn operate(control_plane: &ControlPlane, aws: &AwsProxy) -> Result<(Operator, String)> {
    let kubeconfig = control_plane.kubeconfig(User::Operator, None)?;
    let config = OperatorConfig::new(kubeconfig, aws.endpoint())
        .arg("--time-scale=0.2")
        .arg(format!("--drift-interval={DRIFT_INTERVAL}"))
        .arg("--cluster-name=demo");
    let mut operator = Operator::spawn(config)?;
    operator.wait_ready(READY_WITHIN).await?;
    Ok((operator, format!("checks AWS every {DRIFT_INTERVAL}, polls 5x faster")))
}
