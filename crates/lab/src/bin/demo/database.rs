//! The quickstart's database: the server behind the emulated one, and its password changed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::manifest::QUICKSTART;
use lab::postgres::{Account, Postgres};
use lab::proxy::aws::{AwsProxy, Call};
use lab::{eventually, paths};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::terminal::Terminal;

/// What the password is changed to: URLs, XML and SQL write it in another way.
const NEW: &str = "new+%&<password";
const SOON: Duration = Duration::from_secs(30);

/// The database as the quickstart has it.
pub struct Database {
    /// The Secret that holds its password, and under which key.
    pub secret: String,
    key: String,
    password: String,
    user: String,
    name: String,
    /// The server that is at its endpoint, where this machine has PostgreSQL.
    server: Option<Postgres>,
}

impl Database {
    /// Starts the server, if there is one, and leads the instance's endpoint to it.
    pub async fn serve(aws: &AwsProxy) -> Result<(Self, String)> {
        let mut database = Self::read(QUICKSTART)?;
        if paths::postgres_if_there().await.is_none() {
            return Ok((database, "none here: only the calls are shown".to_owned()));
        }
        let account =
            Account { user: &database.user, password: &database.password, database: &database.name };
        let server = Postgres::start(account).await?;
        aws.database_port(server.port());
        let address = format!("localhost:{}", server.port());
        database.server = Some(server);
        Ok((database, address))
    }

    fn read(manifests: &str) -> Result<Self> {
        let documents = serde_yaml_ng::Deserializer::from_str(manifests);
        let objects = documents.map(Value::deserialize).collect::<Result<Vec<_>, _>>()?;
        let get = |kind: &str, pointer: &str| {
            let object = objects.iter().find(|object| object["kind"] == kind);
            let text = object.and_then(|object| object.pointer(pointer)?.as_str());
            text.map(str::to_owned).with_context(|| format!("the quickstart's {kind} has no {pointer}"))
        };
        let key = get("DBInstance", "/spec/masterUserPasswordRef/key")?;
        Ok(Self {
            secret: get("DBInstance", "/spec/masterUserPasswordRef/name")?,
            password: get("Secret", &format!("/stringData/{key}"))?,
            user: get("DBInstance", "/spec/masterUsername")?,
            name: get("DBInstance", "/spec/dbName")?,
            key,
            server: None,
        })
    }

    /// The arguments of kubectl that put another password into the Secret.
    fn change(&self) -> [String; 6] {
        let patch = json!({"stringData": {&self.key: NEW}}).to_string();
        ["patch", "secret", &self.secret, "--type=merge", "--patch", &patch].map(str::to_owned)
    }

    /// The same for a shell.
    pub fn change_command(&self) -> String {
        let [verb, kind, name, merge, flag, patch] = self.change();
        format!("kubectl {verb} {kind} {name} {merge} {flag} '{patch}'")
    }

    /// For a shell: logs in with the changed password, if there is a server.
    pub fn login_command(&self) -> Option<String> {
        let port = self.server.as_ref()?.port();
        Some(format!("PGPASSWORD='{NEW}' psql -h localhost -p {port} -U {} -c '\\conninfo'", self.user))
    }

    /// Where the server's programs are, if there is one.
    pub fn programs(&self) -> Option<&Path> {
        self.server.as_ref().map(Postgres::programs)
    }

    /// AWS has made it anew, with a new server; ours takes the password as the quickstart has it.
    pub async fn renew(&self) -> Result<()> {
        match &self.server {
            Some(server) => server.set_password(&self.password).await,
            None => Ok(()),
        }
    }
}

/// The calls since a mark by which AWS was given a password.
pub fn passwords_sent(aws: &AwsProxy, mark: u64) -> Vec<Call> {
    let carries = |call: &Call| call.mutating && call.params.contains_key("MasterUserPassword");
    aws.calls_since(mark).into_iter().filter(|call| carries(call) && call.succeeded()).collect()
}

/// What such a call said, but for the password.
pub fn told(call: &Call) -> String {
    let instance = call.params.get("DBInstanceIdentifier").map(String::as_str).unwrap_or_default();
    format!("{instance}: MasterUserPassword=****")
}

/// Changes the Secret and proves, past the operator, that the database's password is another one.
pub async fn rotate(stage: &Stage, terminal: &Terminal) -> Result<()> {
    let database = &stage.database;
    terminal.title("Another password in the Secret");
    terminal.command(&database.change_command());
    let (mark, start) = (stage.aws.mark(), Instant::now());
    let change = database.change();
    stage.kubectl().run(&change.each_ref().map(String::as_str)).await?;
    let sent = eventually(SOON, "AWS to be given the new password", async || {
        passwords_sent(&stage.aws, mark).pop().context("no call has carried it")
    })
    .await?;
    let seconds = start.elapsed().as_secs_f64();
    terminal.line(&format!("  AWS was told {seconds:.1} s later: {} {}", sent.operation, told(&sent)));
    let Some(server) = &database.server else {
        terminal.line("  (With PostgreSQL on this machine, the new password would now log in.)");
        return Ok(());
    };
    ensure!(server.login(NEW).await?, "the new password does not log in");
    ensure!(!server.login(&database.password).await?, "the old password still logs in");
    let port = server.port();
    terminal.line(&format!("  PostgreSQL at localhost:{port} lets the new one in and refuses the old one."));
    Ok(())
}
