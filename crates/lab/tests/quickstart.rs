//! The quickstart, from `kubectl apply` to the emulator and back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::emulator::Flavor;
use lab::manifest::QUICKSTART;
use lab::proxy::aws::{Action, Match};
use lab::{Inventory, World, eventually};

const SOON: Duration = Duration::from_secs(60);

/// The calls that make something, and how many resources of that sort the quickstart has.
const MADE: [(&str, usize); 11] = [
    ("CreateVpc", 1),
    ("CreateInternetGateway", 1),
    ("CreateSubnet", 3),
    ("CreateSecurityGroup", 2),
    ("AllocateAddress", 1),
    ("CreateNatGateway", 1),
    ("CreateRole", 1),
    ("CreateBucket", 1),
    ("CreateDBSubnetGroup", 1),
    ("CreateDBInstance", 1),
    // The password went with the creation.
    ("ModifyDBInstance", 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_becomes_ready_and_goes_again_with_its_namespace() -> Result<()> {
    let world = World::prepare(Flavor::Ministack).await?;
    let operator = world.operator(&[]).await?;
    let before = Inventory::take(&world.boto).await?;
    let outcome = async {
        world.apply(QUICKSTART).await?;
        let namespace = world.namespace.as_str();
        let wait = ["wait", "--for=condition=Ready", "--timeout=120s", "-n", namespace, "konfig", "--all"];
        world.kubectl().run(&wait).await?;
        for (operation, times) in MADE {
            let count = world.aws.count(operation);
            ensure!(count == times, "{operation} {count} times, not {times}");
        }
        each_is_there(&world, &before).await?;

        goes_with_its_namespace(&world).await?;
        let left = Inventory::take(&world.boto).await?.new_since(&before);
        ensure!(left.is_empty(), "left in AWS: {left:?}");
        anyhow::Ok(())
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// What the database stands on waits for it. The Secret goes whenever it goes.
async fn goes_with_its_namespace(world: &World) -> Result<()> {
    let held = world.aws.fault(Match::op("DeleteDBInstance"), Action::Hold);
    world.kubectl().run(&["delete", "namespace", &world.namespace, "--wait=false"]).await?;
    eventually(SOON, "what it stands on to be refused", async || {
        for operation in ["DeleteSubnet", "DeleteSecurityGroup", "DeleteDBSubnetGroup"] {
            let mut refused = world.aws.calls().into_iter().filter(|call| call.note == Some("refused"));
            ensure!(refused.any(|call| call.operation == operation), "{operation} was not refused");
        }
        Ok(())
    })
    .await?;
    held.release();
    let namespace = format!("namespace/{}", world.namespace);
    world.kubectl().run(&["wait", "--for=delete", &namespace, "--timeout=120s"]).await.map(drop)
}

/// AWS itself has as many of each as the quickstart has.
async fn each_is_there(world: &World, before: &Inventory) -> Result<()> {
    let made = Inventory::take(&world.boto).await?.beyond(before);
    let counts: Vec<_> = made.iter().map(|(what, ids)| (*what, ids.len())).collect();
    let expected = [
        ("VPCs", 1),
        ("subnets", 3),
        ("internet gateways", 1),
        ("NAT gateways", 1),
        ("Elastic IPs", 1),
        ("security groups", 2),
        ("roles", 1),
        ("buckets", 1),
        ("DB subnet groups", 1),
        ("DB instances", 1),
        ("DB snapshots", 0),
    ];
    ensure!(counts == expected, "{made:?}");
    Ok(())
}
