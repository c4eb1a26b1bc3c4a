//! The AWS emulators, as processes of their own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::http;
use crate::paths;
use crate::ports;
use crate::process::{Process, clean};
use crate::scratch::Scratch;
use crate::wait::eventually;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Which emulator. Each is right where the other lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// moto.
    Moto,
    /// ministack.
    Ministack,
}

/// A running emulator, with an empty world of its own. It ends with this value.
#[derive(Debug)]
pub struct Emulator {
    flavor: Flavor,
    address: String,
    _process: Process,
    _scratch: Scratch,
}

impl Emulator {
    /// Starts moto.
    pub async fn moto() -> Result<Self> {
        Self::start(Flavor::Moto).await
    }

    /// Starts ministack.
    pub async fn ministack() -> Result<Self> {
        Self::start(Flavor::Ministack).await
    }

    /// Starts an emulator and waits until it answers.
    pub async fn start(flavor: Flavor) -> Result<Self> {
        let bin = paths::emulators().await?;
        // Another process may take the port between our choosing it and the emulator listening.
        for _ in 0..2 {
            match Self::try_start(flavor, &bin).await {
                Ok(emulator) => return Ok(emulator),
                Err(error) => eprintln!("lab: starting {flavor:?} again: {error:#}"),
            }
        }
        Self::try_start(flavor, &bin).await
    }

    async fn try_start(flavor: Flavor, bin: &Path) -> Result<Self> {
        let [port] = ports::free()?;
        let scratch = Scratch::new(flavor.program())?;
        let command = flavor.command(bin, port, scratch.path());
        let mut process = Process::spawn(command, &scratch.file("log"))?;
        let address = format!("127.0.0.1:{port}");
        eventually(READY_WITHIN, "the emulator to answer", async || {
            process.ensure_running()?;
            http::request("GET", &address, flavor.ready_path()).await
        })
        .await?;
        Ok(Self { flavor, address, _process: process, _scratch: scratch })
    }

    /// Which emulator this is.
    #[must_use]
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// The endpoint for every AWS service.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Forgets everything.
    pub async fn reset(&self) -> Result<()> {
        http::request("POST", &self.address, self.flavor.reset_path()).await?;
        Ok(())
    }
}

impl Flavor {
    fn program(self) -> &'static str {
        match self {
            Self::Moto => "moto_server",
            Self::Ministack => "ministack",
        }
    }

    fn ready_path(self) -> &'static str {
        match self {
            Self::Moto => "/moto-api/",
            Self::Ministack => "/_ministack/ready",
        }
    }

    fn reset_path(self) -> &'static str {
        match self {
            Self::Moto => "/moto-api/reset",
            Self::Ministack => "/_ministack/reset",
        }
    }

    fn command(self, bin: &Path, port: u16, home: &Path) -> Command {
        let mut command = clean(&bin.join(self.program()), home);
        match self {
            Self::Moto => {
                command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
            }
            Self::Ministack => {
                // Without these it listens on all interfaces, and on an MQTT and an SFTP port.
                command
                    .env("BIND_HOST", "127.0.0.1")
                    .env("GATEWAY_PORT", port.to_string())
                    .env("IOT_MTLS_ENABLED", "0")
                    .env("SFTP_ENABLED", "0")
                    // With a container engine it would start one for each database and cluster.
                    .env("DOCKER_HOST", "unix:///nonexistent");
            }
        }
        command
    }
}
