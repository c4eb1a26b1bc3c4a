//! A real PostgreSQL server behind an emulated DB instance: ministack, told to change the master
//! user's password, logs in at the instance's endpoint and changes it there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::paths;
use crate::ports;
use crate::process::{self, Output, Process, Signal, clean};
use crate::scratch::Scratch;
use crate::wait::eventually;

/// A superuser of the lab's: RDS's master user is none.
const OWNER: &str = "lab";
const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// Who may log in at first, and into what: as the instance's spec has them.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    /// `masterUsername`.
    pub user: &'a str,
    /// What `masterUserPasswordRef` leads to.
    pub password: &'a str,
    /// `dbName`.
    pub database: &'a str,
}

/// A running server on a free loopback port. It stops with this value.
#[derive(Debug)]
pub struct Postgres {
    site: Site,
    port: u16,
    user: String,
    database: String,
    /// The password of [`OWNER`].
    key: String,
    process: Process,
}

impl Postgres {
    /// Starts a server with this account and its database, and waits until one can log in.
    pub async fn start(account: Account<'_>) -> Result<Self> {
        let programs = paths::postgres().await?;
        // Another process may take the port between our choosing it and the server listening.
        for _ in 0..2 {
            match Self::try_start(&programs, account).await {
                Ok(server) => return Ok(server),
                Err(error) => eprintln!("lab: starting PostgreSQL again: {error:#}"),
            }
        }
        Self::try_start(&programs, account).await
    }

    async fn try_start(programs: &Path, account: Account<'_>) -> Result<Self> {
        let site = Site::new(programs)?;
        let [port] = ports::free()?;
        let key = rand::random::<u128>().to_string();
        site.initialise(&key).await?;
        let process = site.serve(port)?;
        let (user, database) = (account.user.to_owned(), account.database.to_owned());
        let mut server = Self { site, port, user, database, key, process };
        server.wait_ready().await?;
        let Account { user, password, database } = account;
        let password = literal(password);
        server.own(&format!("CREATE ROLE \"{user}\" LOGIN CREATEROLE CREATEDB PASSWORD {password}")).await?;
        server.own(&format!("CREATE DATABASE \"{database}\" OWNER \"{user}\"")).await?;
        Ok(server)
    }

    /// Where it listens, on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its programs are, psql among them.
    #[must_use]
    pub fn programs(&self) -> &Path {
        &self.site.programs
    }

    /// Logs the master user in; false if the server refuses the password.
    ///
    /// # Errors
    /// When the server cannot be asked, or refuses for another reason.
    pub async fn login(&self, password: &str) -> Result<bool> {
        let output = self.psql(&self.user, password, &self.database, "SELECT 1").await?;
        match output.success {
            true => Ok(true),
            false if output.stderr.contains("password authentication failed") => Ok(false),
            false => bail!("psql: {}", output.stderr),
        }
    }

    /// Gives the master user this password, past the master user.
    pub async fn set_password(&self, password: &str) -> Result<()> {
        self.own(&format!("ALTER ROLE \"{}\" PASSWORD {}", self.user, literal(password))).await
    }

    async fn wait_ready(&mut self) -> Result<()> {
        eventually(READY_WITHIN, "PostgreSQL to answer", async || {
            self.process.ensure_running()?;
            self.own("SELECT 1").await
        })
        .await
    }

    /// Runs a statement as the owner of it all.
    async fn own(&self, statement: &str) -> Result<()> {
        let output = self.psql(OWNER, &self.key, "postgres", statement).await?;
        ensure!(output.success, "psql: {}", output.stderr);
        Ok(())
    }

    async fn psql(&self, user: &str, password: &str, database: &str, statement: &str) -> Result<Output> {
        let mut command = clean(&self.site.programs.join("psql"), self.site.scratch.path());
        command
            .args(["--no-psqlrc", "--no-password", "--host=127.0.0.1", "--port", &self.port.to_string()])
            .args(["--username", user, "--dbname", database, "--set=ON_ERROR_STOP=1", "--file=-"])
            .env("PGPASSWORD", password);
        process::output(command, statement.as_bytes()).await
    }
}

/// A text as SQL writes it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Killed outright it would leave a segment of shared memory behind.
        self.process.signal(Signal::QUIT).ok();
        let start = Instant::now();
        while start.elapsed() < STOPS_WITHIN && matches!(self.process.exited(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where one server has its programs and files, and as whom it runs.
#[derive(Debug)]
struct Site {
    programs: PathBuf,
    scratch: Scratch,
    /// User and group, where ours is root: as which PostgreSQL refuses to run.
    owner: Option<(u32, u32)>,
}

impl Site {
    fn new(programs: &Path) -> Result<Self> {
        let scratch = Scratch::new("postgres")?;
        let owner = if rustix::process::geteuid().is_root() { Some(unprivileged()?) } else { None };
        if let Some((user, group)) = owner {
            chown(scratch.path(), Some(user), Some(group))?;
        }
        Ok(Self { programs: programs.to_owned(), scratch, owner })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = clean(&self.programs.join(program), self.scratch.path());
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command.arg("-D").arg(self.scratch.file("data"));
        command
    }

    /// Makes the data folder.
    async fn initialise(&self, key: &str) -> Result<()> {
        let password = self.scratch.file("password");
        fs::write(&password, key)?;
        fs::set_permissions(&password, fs::Permissions::from_mode(0o600))?;
        if let Some((user, group)) = self.owner {
            chown(&password, Some(user), Some(group))?;
        }
        let mut command = self.command("initdb");
        command.args(["--username", OWNER, "--auth=scram-sha-256", "--pwfile"]).arg(&password).args([
            "--no-locale",
            "--encoding=UTF8",
            "--no-sync",
        ]);
        let output = process::output(command, &[]).await?;
        fs::remove_file(&password)?;
        ensure!(output.success, "initdb: {}", output.stderr);
        Ok(())
    }

    fn serve(&self, port: u16) -> Result<Process> {
        let mut command = self.command("postgres");
        // No socket beside the port; nothing here is to outlive a crash of the machine.
        command.args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"]);
        Process::spawn(command, &self.scratch.file("log"))
    }
}

/// A user, and its group, that a root may run a server as.
fn unprivileged() -> Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| {
        let mut fields = users
            .lines()
            .map(|line| line.split(':'))
            .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
        Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ["postgres", "nobody"]
        .into_iter()
        .find_map(find)
        .context("no user postgres or nobody to run PostgreSQL as")
}
