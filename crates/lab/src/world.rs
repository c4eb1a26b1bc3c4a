//! All of it together: a control plane with the CRDs, an emulator, a proxy before each, and the
//! operator between them with the rights that its chart grants.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::aws::Boto;
use crate::cloudcontrol::CloudControl;
use crate::cluster;
use crate::control_plane::ControlPlane;
use crate::emulator::{Emulator, Flavor};
use crate::history::History;
use crate::kubeconfig::User;
use crate::kubectl::Kubectl;
use crate::operator::{Operator, OperatorConfig};
use crate::proxy::aws::AwsProxy;
use crate::proxy::kube::KubeProxy;

/// How much faster than in production the operator polls and settles.
const TIME_SCALE: &str = "--time-scale=0.02";
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Everything a test of the operator needs, for that test alone.
pub struct World {
    /// The control plane, with CRDs and rights installed.
    pub control_plane: ControlPlane,
    /// What stands for AWS.
    pub emulator: Emulator,
    /// The part of AWS that no emulator has.
    pub cloud_control: CloudControl,
    /// Between operator and emulator.
    pub aws: AwsProxy,
    /// Between operator and API server.
    pub kube: KubeProxy,
    /// Another AWS client, past the proxy: the foreign hand, and the witness.
    pub boto: Boto,
    /// May do everything in the cluster.
    pub client: Client,
    /// The namespace of the test.
    pub namespace: String,
    /// How operators are started here.
    pub config: OperatorConfig,
}

impl World {
    /// A world without an operator yet.
    pub async fn prepare(flavor: Flavor) -> Result<Self> {
        Self::prepare_with(flavor, &[]).await
    }

    /// The same, in which a service of AWS is somewhere else than in the emulator.
    pub async fn prepare_with(flavor: Flavor, elsewhere: &[(&str, String)]) -> Result<Self> {
        let (control_plane, emulator) = tokio::try_join!(ControlPlane::start(), Emulator::start(flavor))?;
        cluster::install_crds(&control_plane).await?;
        cluster::install_rbac(&control_plane).await?;
        let ca = std::fs::read(control_plane.ca()).context("read the API server's certificate")?;
        let kube = KubeProxy::start(&control_plane.url(), &ca);
        let cloud_control = CloudControl::start();
        let mut others = elsewhere.to_vec();
        others.push(("cloudcontrolapi", cloud_control.endpoint()));
        let aws = AwsProxy::start_with(&emulator.endpoint(), &others);
        let client = control_plane.admin_client().await?;
        let kubeconfig = control_plane.kubeconfig(User::Operator, Some(&kube.endpoint()))?;
        let config = OperatorConfig::new(kubeconfig, aws.endpoint())
            .arg(TIME_SCALE)
            .arg("--cluster-name=lab")
            .env("RUST_LOG", "info,engine=debug,aws=debug");
        let side_door = aws.side_door();
        // What the proxy adds to EKS and RDS is seen, and changed, through it alone.
        let boto = Boto::new(emulator.endpoint())
            .with("eks", &side_door)
            .with("rds", &side_door)
            .with("cloudcontrol", cloud_control.endpoint());
        Ok(Self {
            namespace: cluster::namespace(&client, "test").await?,
            boto: elsewhere.iter().fold(boto, |boto, (service, at)| boto.with(service, at)),
            control_plane,
            emulator,
            cloud_control,
            aws,
            kube,
            client,
            config,
        })
    }

    /// With the operator's polling, settling and backoff at this share of their real length.
    #[must_use]
    pub fn time_scale(mut self, scale: f64) -> Self {
        self.config.args.retain(|arg| !arg.starts_with("--time-scale"));
        self.config = self.config.arg(format!("--time-scale={scale}"));
        self
    }

    /// A world on moto, and its operator with these further arguments.
    pub async fn moto(args: &[&str]) -> Result<(Self, Operator)> {
        let world = Self::prepare(Flavor::Moto).await?;
        let operator = world.operator(args).await?;
        Ok((world, operator))
    }

    /// Starts an operator and waits until it is ready.
    pub async fn operator(&self, args: &[&str]) -> Result<Operator> {
        let mut operator = self.spawn(args)?;
        operator.wait_ready(READY_WITHIN).await?;
        Ok(operator)
    }

    /// Starts an operator without waiting for it.
    pub fn spawn(&self, args: &[&str]) -> Result<Operator> {
        let config = args.iter().fold(self.config.clone(), |config, arg| config.arg(*arg));
        Operator::spawn(config)
    }

    /// kubectl as the admin.
    #[must_use]
    pub fn kubectl(&self) -> Kubectl {
        self.control_plane.kubectl(User::Admin)
    }

    /// The objects of a kind in the test's namespace.
    #[must_use]
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        cluster::api(&self.client, &self.namespace, kind)
    }

    /// What happens to the objects of a kind from now on.
    pub async fn history(&self, kind: &str) -> Result<History> {
        History::of(self.api(kind)).await
    }

    /// Applies manifests into the test's namespace, strictly, as a user would.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        let output = self.try_apply(yaml).await?;
        output.map_err(|refused| anyhow::anyhow!("refused: {refused}"))
    }

    /// Applies manifests; the inner error is the API server's refusal.
    pub async fn try_apply(&self, yaml: &str) -> Result<Result<String, String>> {
        let args = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--validate=strict",
            "-n",
            &self.namespace,
            "-f",
            "-",
        ];
        let output = self.kubectl().try_run(&args, yaml).await?;
        Ok(if output.success { Ok(output.stdout) } else { Err(output.stderr) })
    }

    /// Merges into an object, such as `{"spec": {"tags": null}}`.
    pub async fn merge(&self, kind: &str, name: &str, patch: Value) -> Result<DynamicObject> {
        Ok(self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Sets an annotation of ours, by its name without the prefix; null takes it away.
    pub async fn annotate(
        &self,
        kind: &str,
        name: &str,
        annotation: &str,
        value: Value,
    ) -> Result<DynamicObject> {
        let key = format!("aws.konfig.io/{annotation}");
        self.merge(kind, name, json!({"metadata": {"annotations": {key: value}}})).await
    }

    /// Asks for one observe now.
    pub async fn observe(&self, kind: &str, name: &str, word: &str) -> Result<DynamicObject> {
        self.annotate(kind, name, "reconcile", json!(word)).await
    }
}
