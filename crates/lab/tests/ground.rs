//! The lab itself: what every other test stands on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, ListParams};
use lab::process::{self, Process, Signal};
use lab::scratch::Scratch;
use lab::{Boto, ControlPlane, Emulator, History, User, cluster, eventually, kstatus};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(30);

fn config_map(namespace: &str, name: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace },
    })
    .to_string()
}

#[tokio::test]
async fn a_namespace_is_really_deleted() -> Result<()> {
    let control_plane = ControlPlane::shared().await?;
    let client = control_plane.admin_client().await?;
    let name = cluster::namespace(&client, "ground").await?;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let history = History::of(Api::namespaced_with(client.clone(), &name, &resource)).await?;
    control_plane.apply(&config_map(&name, "inside")).await?;

    let namespaces = Api::<Namespace>::all(client);
    namespaces.delete(&name, &DeleteParams::default()).await?;

    eventually(SOON, "the namespace to go", async || match namespaces.get_opt(&name).await? {
        None => Ok(()),
        Some(left) => bail!("still there: {:?}", left.status),
    })
    .await?;
    history.until_deleted(SOON, "inside").await?;
    Ok(())
}

#[tokio::test]
async fn manifests_are_applied_strictly() -> Result<()> {
    let control_plane = ControlPlane::shared().await?;
    let wrong = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "dat": {}}"#;
    let error = control_plane.apply(wrong).await.unwrap_err().to_string();
    ensure!(error.contains("dat"), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_operator_has_no_right_of_its_own() -> Result<()> {
    let control_plane = ControlPlane::shared().await?;
    let client = control_plane.client(User::Operator).await?;
    let listed = Api::<ConfigMap>::default_namespaced(client).list(&ListParams::default()).await;
    let Err(kube::Error::Api(error)) = listed else {
        bail!("not refused: {listed:?}");
    };
    ensure!(error.code == 403, "{error:?}");
    Ok(())
}

#[tokio::test]
async fn the_api_server_restarts_with_what_it_held() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.admin_client().await?;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let history = History::of(Api::default_namespaced_with(client.clone(), &resource)).await?;
    control_plane.apply(&config_map("default", "before")).await?;

    control_plane.restart_apiserver().await?;
    control_plane.apply(&config_map("default", "after")).await?;
    history.until(SOON, "after", "seen", |_| true).await?;
    Api::<ConfigMap>::default_namespaced(client.clone()).get("before").await?;

    control_plane.pause_etcd()?;
    // A write: reads may come from the API server's cache.
    let meanwhile = config_map("default", "meanwhile");
    let paused = tokio::time::timeout(Duration::from_secs(2), control_plane.apply(&meanwhile)).await;
    ensure!(paused.is_err(), "written without etcd");
    control_plane.resume_etcd()?;
    control_plane.apply(&meanwhile).await.map(drop)
}

/// Set in the child that [`nothing_outlives_a_killed_test`] kills.
const VICTIM: &str = "KONFIG_LAB_VICTIM";

#[tokio::test]
async fn victim() -> Result<()> {
    if std::env::var_os(VICTIM).is_some() {
        let emulator = Emulator::moto().await?;
        println!("endpoint {}", emulator.endpoint());
        std::future::pending::<()>().await;
    }
    Ok(())
}

#[tokio::test]
async fn nothing_outlives_a_killed_test() -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", "victim", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let endpoint = loop {
        let line = lines.next_line().await?.context("the child said nothing")?;
        if let Some((_, endpoint)) = line.split_once("endpoint http://") {
            break endpoint.to_owned();
        }
    };
    TcpStream::connect(&endpoint).await?;

    child.kill().await?;
    eventually(SOON, "the emulator to end", async || {
        ensure!(TcpStream::connect(&endpoint).await.is_err(), "{endpoint} still answers");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn signals_stop_resume_and_end_a_process() -> Result<()> {
    let scratch = Scratch::new("signals")?;
    let mut command = process::clean(Path::new("/bin/sh"), scratch.path());
    command.args(["-c", "trap 'exit 7' TERM; while :; do echo tick; sleep 0.05; done"]);
    let mut ticker = Process::spawn(command, &scratch.file("log"))?;
    eventually(SOON, "a tick", async || ticker.log().lines().next().map(drop).context("none")).await?;

    ticker.signal(Signal::STOP)?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let stopped = ticker.log();
    tokio::time::sleep(Duration::from_millis(200)).await;
    ensure!(ticker.log() == stopped, "it went on while stopped");
    ticker.signal(Signal::CONT)?;
    eventually(SOON, "more ticks", async || {
        ensure!(ticker.log() != stopped, "still stopped");
        Ok(())
    })
    .await?;

    ticker.signal(Signal::TERM)?;
    ensure!(ticker.wait(SOON).await?.code() == Some(7), "not by its own hand");
    ticker.kill()?;
    Ok(())
}

#[tokio::test]
async fn kstatus_reads_an_object_without_status_as_current() -> Result<()> {
    let object = |status| {
        json!({
            "apiVersion": "example.org/v1",
            "kind": "Example",
            "metadata": { "name": "a", "generation": 1 },
            "status": status,
        })
    };
    let seen = kstatus::of(&[object(json!({})), object(json!({ "observedGeneration": -1 }))]).await?;
    let seen: Vec<_> = seen.iter().map(|kstatus| kstatus.status.as_str()).collect();
    ensure!(seen == ["Current", "InProgress"], "{seen:?}");
    Ok(())
}

async fn holds_a_vpc_until_reset(emulator: Emulator) -> Result<()> {
    let boto = Boto::new(emulator.endpoint());
    let made = boto.call("ec2", "create_vpc", json!({ "CidrBlock": "10.9.0.0/16" })).await?;
    let find = json!({ "VpcIds": [made["Vpc"]["VpcId"]] });
    let found = boto.call("ec2", "describe_vpcs", find.clone()).await?;
    ensure!(found["Vpcs"][0]["CidrBlock"] == "10.9.0.0/16", "{found}");

    emulator.reset().await?;
    let missing = boto.call("ec2", "describe_vpcs", find).await.unwrap_err();
    ensure!(missing.code == "InvalidVpcID.NotFound", "{missing}");
    Ok(())
}

#[tokio::test]
async fn moto_holds_a_vpc() -> Result<()> {
    holds_a_vpc_until_reset(Emulator::moto().await?).await
}

#[tokio::test]
async fn ministack_holds_a_vpc() -> Result<()> {
    holds_a_vpc_until_reset(Emulator::ministack().await?).await
}
