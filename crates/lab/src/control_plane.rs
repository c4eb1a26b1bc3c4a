//! A real Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager as plain
//! processes on loopback, with RBAC on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::kubeconfig::{self, User};
use crate::kubectl::Kubectl;
use crate::paths;
use crate::ports;
use crate::process::{Process, Signal, clean};
use crate::scratch::Scratch;
use crate::wait::{Hopeless, eventually};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running control plane. Its processes end with it.
#[derive(Debug)]
pub struct ControlPlane {
    etcd: Mutex<Process>,
    apiserver: Mutex<Process>,
    _controller_manager: Process,
    site: Site,
    kubeconfigs: AtomicUsize,
}

/// Where one control plane has its programs, ports and files.
#[derive(Debug)]
struct Site {
    programs: PathBuf,
    scratch: Scratch,
    etcd_port: u16,
    peer_port: u16,
    apiserver_port: u16,
}

impl ControlPlane {
    /// The one control plane that the tests of this process share, each in namespaces of its own.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts a control plane and waits until it is ready: some 5 seconds.
    pub async fn start() -> Result<Self> {
        let programs = paths::control_plane().await?;
        // Another process may take a port between our choosing it and a server listening there.
        for _ in 0..2 {
            match Self::try_start(&programs).await {
                Ok(control_plane) => return Ok(control_plane),
                Err(error) => eprintln!("lab: starting the control plane again: {error:#}"),
            }
        }
        Self::try_start(&programs).await
    }

    async fn try_start(programs: &Path) -> Result<Self> {
        let site = Site::prepare(programs)?;
        let etcd = Mutex::new(site.spawn("etcd", site.etcd())?);
        let apiserver = Mutex::new(site.spawn("kube-apiserver", site.apiserver())?);
        site.wait_ready(&[&etcd, &apiserver]).await?;
        // Only now is there the certificate that it trusts.
        let manager = site.spawn("kube-controller-manager", site.controller_manager())?;
        Ok(Self { etcd, apiserver, _controller_manager: manager, site, kubeconfigs: AtomicUsize::new(0) })
    }

    /// Where the API server listens.
    #[must_use]
    pub fn url(&self) -> String {
        self.site.url()
    }

    /// The certificate that the API server's own is verified with.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.site.ca()
    }

    /// A client that may do everything. It belongs to the runtime of the test that asks.
    pub async fn admin_client(&self) -> Result<Client> {
        self.client(User::Admin).await
    }

    /// A client of a user.
    pub async fn client(&self, user: User) -> Result<Client> {
        self.site.client(user).await
    }

    /// Writes a kubeconfig for a user, to the API server or to a proxy before it (`server`).
    pub fn kubeconfig(&self, user: User, server: Option<&str>) -> Result<PathBuf> {
        let number = self.kubeconfigs.fetch_add(1, Ordering::Relaxed);
        let path = self.site.scratch.file(&format!("{}-{number}.kubeconfig", user.name()));
        kubeconfig::write(&path, server.unwrap_or(&self.url()), &self.ca(), user)?;
        Ok(path)
    }

    /// kubectl as a user.
    #[must_use]
    pub fn kubectl(&self, user: User) -> Kubectl {
        Kubectl {
            program: self.site.programs.join("kubectl"),
            kubeconfig: self.site.kubeconfig(user),
            home: self.site.scratch.path().to_owned(),
        }
    }

    /// Applies manifests as the admin, server-side and strictly.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        self.kubectl(User::Admin).apply(yaml).await
    }

    /// Kills the API server.
    pub fn stop_apiserver(&self) -> Result<()> {
        self.apiserver.lock().kill()
    }

    /// Starts the API server that was stopped, at the same address, and waits until it is ready.
    pub async fn start_apiserver(&self) -> Result<()> {
        *self.apiserver.lock() = self.site.spawn("kube-apiserver", self.site.apiserver())?;
        self.site.wait_ready(&[&self.etcd, &self.apiserver]).await
    }

    /// Kills the API server and starts it again.
    pub async fn restart_apiserver(&self) -> Result<()> {
        self.stop_apiserver()?;
        self.start_apiserver().await
    }

    /// Halts etcd: API requests hang until it is resumed.
    pub fn pause_etcd(&self) -> Result<()> {
        self.etcd.lock().signal(Signal::STOP)
    }

    /// Lets etcd go on.
    pub fn resume_etcd(&self) -> Result<()> {
        self.etcd.lock().signal(Signal::CONT)
    }
}

impl Site {
    fn prepare(programs: &Path) -> Result<Self> {
        let [etcd_port, peer_port, apiserver_port] = ports::free()?;
        let site = Self {
            programs: programs.to_owned(),
            scratch: Scratch::new("control-plane")?,
            etcd_port,
            peer_port,
            apiserver_port,
        };
        let key = rcgen::KeyPair::generate()?;
        std::fs::write(site.scratch.file("service-account.key"), key.serialize_pem())?;
        std::fs::write(site.scratch.file("service-account.pub"), key.public_key_pem())?;
        std::fs::write(site.scratch.file("tokens.csv"), kubeconfig::tokens())?;
        for user in [User::Admin, User::Operator] {
            kubeconfig::write(&site.kubeconfig(user), &site.url(), &site.ca(), user)?;
        }
        Ok(site)
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.apiserver_port)
    }

    /// Written by the API server at its first start.
    fn ca(&self) -> PathBuf {
        self.scratch.file("apiserver.crt")
    }

    async fn client(&self, user: User) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(user))?;
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // A test wants to see the first answer.
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    async fn wait_ready(&self, processes: &[&Mutex<Process>]) -> Result<()> {
        let mut client = None;
        eventually(READY_WITHIN, "the API server to be ready", async || {
            for process in processes {
                process.lock().ensure_running()?;
            }
            if client.is_none() {
                client = Some(self.client(User::Admin).await?);
            }
            let ready = http::Request::get("/readyz").body(Vec::new())?;
            let answer = client.as_ref().context("no client")?.request_text(ready).await;
            // Somebody else's API server is on our port.
            answer.map_err(|error| match format!("{error:?}") {
                text if text.contains("UnknownIssuer") => Hopeless(text).into(),
                _ => error.into(),
            })
        })
        .await?;
        Ok(())
    }

    fn kubeconfig(&self, user: User) -> PathBuf {
        self.scratch.file(&format!("{}.kubeconfig", user.name()))
    }

    fn spawn(&self, program: &str, args: Vec<String>) -> Result<Process> {
        let mut command: Command = clean(&self.programs.join(program), self.scratch.path());
        command.args(args);
        Process::spawn(command, &self.scratch.file(&format!("{program}.log")))
    }

    fn file(&self, name: &str) -> String {
        self.scratch.file(name).to_string_lossy().into_owned()
    }

    fn etcd(&self) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.etcd_port);
        let peers = format!("http://127.0.0.1:{}", self.peer_port);
        vec![
            "--unsafe-no-fsync".into(),
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ]
    }

    fn apiserver(&self) -> Vec<String> {
        vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            // The `kubernetes` Service cannot have an endpoint on loopback.
            "--endpoint-reconciler-type=none".into(),
            format!("--secure-port={}", self.apiserver_port),
            format!("--cert-dir={}", self.file("")),
            format!("--token-auth-file={}", self.file("tokens.csv")),
            "--authorization-mode=RBAC".into(),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-account-key-file={}", self.file("service-account.pub")),
            format!("--service-account-signing-key-file={}", self.file("service-account.key")),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            // No controller makes service accounts here, so pods and the like may do without.
            "--disable-admission-plugins=ServiceAccount".into(),
            "--profiling=false".into(),
        ]
    }

    /// Only what really deletes: namespaces, and what has owners.
    fn controller_manager(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig(User::Admin).display()),
            "--controllers=namespace-controller,garbage-collector-controller".into(),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
            "--profiling=false".into(),
        ]
    }
}
