//! EKS clusters: slow to make, one update at a time, never down, and held by their node groups.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use lab::emulator::Flavor;
use lab::history::Version;
use lab::proxy::aws::{Call, Table};
use lab::wait::throughout;
use lab::{History, Operator, World};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
const NAME: &str = "prod";

const CLUSTER: &str = r#"
apiVersion: aws.konfig.io/v1alpha1
kind: EKSCluster
metadata: {name: prod}
spec:
  clusterName: prod
  version: "1.31"
  roleArn: arn:aws:iam::000000000000:role/eks
  resourcesVpcConfig: {subnetRefs: [{id: subnet-1}, {id: subnet-2}]}
"#;

/// A world with a cluster that is Ready.
struct Lived {
    world: World,
    history: History,
    _operator: Operator,
}

impl Lived {
    async fn new() -> Result<Self> {
        let world = World::prepare(Flavor::Ministack).await?;
        let operator = world.operator(&[]).await?;
        let history = world.history("EKSCluster").await?;
        world.aws.slow("CreateCluster", 3);
        world.apply(CLUSTER).await?;
        let lived = Self { world, history, _operator: operator };
        lived.until_ready().await?;
        Ok(lived)
    }

    async fn change(&self, spec: Value) -> Result<()> {
        self.world.merge("EKSCluster", NAME, json!({"spec": spec})).await?;
        Ok(())
    }

    async fn until_ready(&self) -> Result<()> {
        let newest = self.world.api("EKSCluster").get(NAME).await?.metadata.generation;
        let is_ready = |version: &Version| {
            version.condition("Ready", "status") == Some("True")
                && version.field("/status/observedGeneration").and_then(Value::as_i64) == newest
        };
        let waited = self.history.until(SOON, NAME, "Ready", is_ready).await;
        waited.map(drop).map_err(|error| error.context(self.world.aws.table()))
    }

    /// Waits until it is in Error, and the message holds all of this.
    async fn until_error(&self, parts: &[&str]) -> Result<()> {
        let is_error = |version: &Version| {
            let message = version.condition("Ready", "message").unwrap_or_default();
            version.condition("Ready", "reason") == Some("Error")
                && parts.iter().all(|part| message.contains(part))
        };
        let waited = self.history.until(SOON, NAME, &format!("Error {parts:?}"), is_error).await;
        waited.map(drop).map_err(|error| error.context(self.world.aws.table()))
    }

    fn mutating_since(&self, mark: u64) -> Vec<Call> {
        self.world.aws.calls_since(mark).into_iter().filter(|call| call.mutating).collect()
    }

    async fn in_aws(&self) -> Result<Value> {
        Ok(self.world.boto.call("eks", "describe_cluster", json!({"name": NAME})).await?["cluster"].clone())
    }
}

fn operations(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.operation.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_go_one_at_a_time_and_versions_never_down() -> Result<()> {
    let lived = Lived::new().await?;
    let creating = lived.history.reasons(NAME);
    ensure!(creating.contains(&"Creating".to_owned()), "{creating:?}");
    let polled = lived.world.aws.count("DescribeCluster");
    ensure!((4..8).contains(&polled), "{}", lived.world.aws.table());

    let mark = lived.world.aws.mark();
    lived
        .change(json!({
            "version": "1.33",
            "logging": {"enabledTypes": ["api", "audit"]},
            "resourcesVpcConfig": {"endpointPrivateAccess": true},
            "tags": {"team": "platform"},
        }))
        .await?;
    lived.until_ready().await?;
    let calls = lived.mutating_since(mark);
    let expected = [
        "TagResource",
        "UpdateClusterConfig",
        "UpdateClusterConfig",
        "UpdateClusterVersion",
        "UpdateClusterVersion",
    ];
    ensure!(operations(&calls) == expected, "{}", Table(&calls));
    ensure!(calls.iter().all(Call::succeeded), "{}", Table(&calls));
    let versions: Vec<_> = calls.iter().filter_map(|call| call.params.get("version")).collect();
    ensure!(versions == ["1.32", "1.33"], "{versions:?}");
    let cluster = lived.in_aws().await?;
    ensure!(cluster["version"] == "1.33" && cluster["tags"]["team"] == "platform", "{cluster:#}");
    let reasons = lived.history.reasons(NAME);
    ensure!(
        reasons.contains(&"Updating".to_owned()) && !reasons.contains(&"Error".to_owned()),
        "{reasons:?}"
    );

    let mark = lived.world.aws.mark();
    lived.change(json!({"version": "1.32", "logging": {"enabledTypes": ["api"]}})).await?;
    lived.until_error(&["1.33", "1.32", "never downgraded"]).await?;
    // What can be changed is.
    let calls = lived.mutating_since(mark);
    ensure!(operations(&calls) == ["UpdateClusterConfig"], "{}", Table(&calls));
    lived.change(json!({"version": "1.33"})).await?;
    lived.until_ready().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_aws_fails_at_is_an_error_with_its_words() -> Result<()> {
    let lived = Lived::new().await?;
    let (code, words) = ("InsufficientFreeAddresses", "One or more of the subnets has no addresses left");
    lived.world.aws.fail_update("UpdateClusterVersion", code, words);
    let mark = lived.world.aws.mark();
    lived.change(json!({"version": "1.32"})).await?;
    lived.until_error(&["VersionUpdate", "Failed", code, words]).await?;
    throughout(Duration::from_secs(3), "no second update", async || {
        let calls = lived.mutating_since(mark);
        ensure!(operations(&calls) == ["UpdateClusterVersion"], "{}", Table(&calls));
        Ok(())
    })
    .await?;
    // It holds up nothing else.
    lived.change(json!({"upgradePolicy": {"supportType": "STANDARD"}})).await?;
    lab::eventually(SOON, "the other update", async || {
        let cluster = lived.in_aws().await?;
        ensure!(cluster["upgradePolicy"]["supportType"] == "STANDARD", "{cluster:#}");
        Ok(())
    })
    .await?;
    lived.change(json!({"version": "1.31"})).await?;
    lived.until_ready().await?;

    lived.world.aws.break_cluster(NAME, "Ec2SubnetNotFound", "A subnet of the cluster is gone");
    let mark = lived.world.aws.mark();
    lived.world.observe("EKSCluster", NAME, "broken").await?;
    lived.until_error(&["FAILED", "Ec2SubnetNotFound", "A subnet of the cluster is gone"]).await?;
    let calls = lived.mutating_since(mark);
    ensure!(calls.is_empty(), "{}", Table(&calls));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_held_by_their_node_groups() -> Result<()> {
    let lived = Lived::new().await?;
    let group = json!({"clusterName": NAME, "nodegroupName": "blue", "subnets": ["subnet-1"],
        "nodeRole": "arn:aws:iam::000000000000:role/node"});
    lived.world.boto.call("eks", "create_nodegroup", group).await?;
    lived.world.aws.slow("DeleteCluster", 2);
    lived.world.api("EKSCluster").delete(NAME, &DeleteParams::default()).await?;
    lived.until_error(&["DeleteCluster", "ResourceInUseException", "node groups blue"]).await?;
    ensure!(lived.in_aws().await?["status"] == "ACTIVE", "it was deleted all the same");
    let group = json!({"clusterName": NAME, "nodegroupName": "blue"});
    lived.world.boto.call("eks", "delete_nodegroup", group).await?;
    lived.history.until_deleted(Duration::from_secs(60), NAME).await?;
    let gone = lived.in_aws().await;
    ensure!(
        gone.is_err_and(|error| error.to_string().contains("ResourceNotFoundException")),
        "it is still there"
    );
    Ok(())
}
