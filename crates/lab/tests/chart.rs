//! The chart: what helm renders is accepted by an API server, and its arguments by the operator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::process::{self, Output, clean};
use lab::scratch::Scratch;
use lab::{World, eventually, paths};
use serde_json::Value;

const CHART: &str = "charts/konfig-konector";

#[tokio::test(flavor = "multi_thread")]
async fn what_helm_renders_is_accepted_and_runs() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let manifests = helm(
        &["template", "konfig", "--namespace", &world.namespace, "--include-crds"],
        &[
            "clusterName=chart",
            "aws.region=eu-west-1",
            "defaultTags.team=web",
            "defaultTags.stage=prod",
            r"serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::123456789012:role/konfig",
            "nodeSelector.disk=ssd",
            "env[0].name=A",
            "env[0].value=b",
        ],
    )
    .await?;
    ensure!(manifests.success, "{}", manifests.stderr);

    // An API server knows every field of these, and what it may hold.
    let flags = ["--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-o", "json"];
    let apply = [&["apply", "-f", "-"][..], &flags].concat();
    let applied = world.kubectl().try_run(&apply, &manifests.stdout).await?;
    ensure!(applied.success, "{}", applied.stderr);
    let applied: Value = serde_json::from_str(&applied.stdout)?;
    let objects = applied["items"].as_array().context("no list of objects")?;
    let of = |kind: &str| {
        objects.iter().find(|object| object["kind"] == kind).with_context(|| format!("no {kind}"))
    };
    let pod = &of("Deployment")?["spec"]["template"]["spec"];
    ensure!(pod["terminationGracePeriodSeconds"] == 120, "{pod}");
    ensure!(of("ClusterRoleBinding")?["subjects"][0]["name"] == of("ServiceAccount")?["metadata"]["name"]);
    ensure!(of("ClusterRoleBinding")?["roleRef"]["name"] == of("ClusterRole")?["metadata"]["name"]);
    for crd in objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let annotations = &crd["metadata"]["annotations"];
        ensure!(annotations["helm.sh/resource-policy"] == "keep", "would go with an uninstall: {crd}");
    }

    let args = pod["containers"][0]["args"].as_array().context("no arguments")?;
    let args = args.iter().filter_map(Value::as_str).collect::<Vec<_>>();
    ensure!(args[0] == "operator", "{args:?}");
    ensure!(args.contains(&"--default-tags=stage=prod,team=web"), "{args:?}");
    // The lab chooses the ports, and has the operator's name of the cluster.
    let ours = |arg: &&&str| !arg.contains("-addr=") && !arg.contains("--cluster-name=");
    let args = args[1..].iter().filter(ours).copied().collect::<Vec<_>>();
    let operator = world.operator(&args).await?;
    eventually(Duration::from_secs(10), "the Lease of the operator", async || {
        world.kubectl().run(&["get", "lease", "konfig-konector", "-n", "default"]).await
    })
    .await
    .with_context(|| operator.log())?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_cannot_work_are_refused() -> Result<()> {
    for (value, why) in [
        ("leaderElect=false", "more than one replica needs leaderElect"),
        ("adopt=always", "adopt"),
        ("dirftInterval=1m", "dirftInterval"),
        ("workers=0", "workers"),
    ] {
        let output = helm(&["template", "konfig"], &[value]).await?;
        ensure!(!output.success && output.stderr.contains(why), "{value}: {output:?}");
    }
    let output = helm(&["template", "konfig"], &["leaderElect=false", "replicas=1"]).await?;
    ensure!(output.success, "{output:?}");
    Ok(())
}

async fn helm(args: &[&str], values: &[&str]) -> Result<Output> {
    let home = Scratch::new("helm")?;
    let mut command = clean(&paths::helm().await?, home.path());
    command.args(args).arg(paths::repository(CHART));
    for value in values {
        command.args(["--set", value]);
    }
    process::output(command, b"").await
}
