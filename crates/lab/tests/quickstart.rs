//! The quickstart, from `kubectl apply` to the emulator and back.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::proxy::aws::Call;
use lab::{World, eventually};
use serde_json::json;

const QUICKSTART: &str = include_str!("../../../examples/quickstart.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_becomes_ready_and_goes_again_with_its_namespace() -> Result<()> {
    let (world, operator) = World::moto(&[]).await?;
    world.apply(QUICKSTART).await?;
    let wait = ["wait", "--for=condition=Ready", "--timeout=60s", "-n", &world.namespace, "konfig", "--all"];
    let waited = world.kubectl().run(&wait).await;
    let table = world.kubectl().run(&["get", "konfig", "-o", "wide", "-n", &world.namespace]).await?;
    println!("{table}\n{}", world.aws.table());
    if waited.is_err() {
        println!("{}", operator.log());
    }
    waited?;
    for operation in
        ["CreateVpc", "CreateInternetGateway", "AllocateAddress", "CreateNatGateway", "CreateRole"]
    {
        ensure!(world.aws.count(operation) == 1, "{operation} once:\n{}", world.aws.table());
    }

    let mark = world.aws.mark();
    world
        .kubectl()
        .run(&["delete", "namespace", &world.namespace, "--timeout=120s"])
        .await
        .inspect_err(|_| println!("{}", operator.log()))?;
    let left = world
        .boto
        .call("ec2", "describe_vpcs", json!({"Filters": [{"Name": "is-default", "Values": ["false"]}]}))
        .await?;
    ensure!(left["Vpcs"] == json!([]), "{left}\n{}", world.aws.table());
    let left = world.boto.call("ec2", "describe_addresses", json!({})).await?;
    ensure!(left["Addresses"] == json!([]), "{left}");
    eventually(Duration::from_secs(5), "no call after the end", async || Ok(())).await?;
    let deletes: Vec<Call> = world.aws.calls_since(mark);
    println!("{}", lab::proxy::aws::Table(&deletes));
    Ok(())
}
