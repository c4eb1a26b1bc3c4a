//! An Aurora cluster and its members: they wait for it, and it for them to go, both without a timer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::proxy::aws::Table;
use lab::subject::{Subject, condition, manifest, manifests};
use lab::wait::throughout;
use lab::{World, eventually};
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);
const QUIET: Duration = Duration::from_secs(2);
/// Nothing happens by a timer, not even the look at what AWS is still at: see [`looking`].
const NO_TIMERS: [&str; 2] = ["--drift-interval=1h", "--time-scale=1000"];

const SECRET: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: first-password}
"#;

fn orders() -> String {
    let spec = json!({
        "dbClusterIdentifier": "Shop", "engine": "aurora-mysql", "engineVersion": "8.0.mysql_aurora.3.04.0",
        "masterUsername": "owner", "masterUserPasswordRef": {"name": "password", "key": "password"},
        "dbSubnetGroupRef": "data", "skipFinalSnapshot": true,
    });
    manifest("DBCluster", "orders", &[], spec)
}

fn member(name: &str, identifier: &str, cluster: &str) -> String {
    let spec = json!({
        "dbInstanceIdentifier": identifier, "dbInstanceClass": "db.r6g.large", "engine": "aurora-mysql",
        "dbClusterIdentifier": cluster,
    });
    manifest("DBInstance", name, &[], spec)
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_their_cluster_wait_for_each_other() -> Result<()> {
    let (world, operator) = World::moto(&NO_TIMERS).await?;
    let outcome = async {
        subnet_group(&world).await?;
        world.apply(SECRET).await?;
        members_are_made_once_the_cluster_is_there(&world).await.context("made")?;
        the_cluster_goes_once_its_members_are_gone(&world).await.context("unmade")?;
        nothing_is_left(&world).await
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// One names the cluster's object, the other the cluster in AWS.
async fn members_are_made_once_the_cluster_is_there(world: &World) -> Result<()> {
    let (cluster, writer, reader) = subjects(world);
    world
        .apply(&manifests(&[member("writer", "Shop-1", "orders"), member("reader", "shop-2", "Shop")]))
        .await?;
    for member in [&writer, &reader] {
        let parts = ["CreateDBInstance: DBClusterNotFoundFault: ", "could not be found"];
        member.says("DependencyNotReady", &parts).await?;
    }
    let mark = world.aws.mark();
    world.apply(&orders()).await?;
    let waits = format!("DBCluster {}/orders is not Ready", world.namespace);
    writer.says("DependencyNotReady", &[&waits]).await?;
    looking(world, "DBCluster", "orders", async || is_ready(&cluster).await).await?;
    for (member, name) in [(&writer, "writer"), (&reader, "reader")] {
        // Woken, without anybody's word.
        eventually(SOON, &format!("{name} in AWS"), async || member.status("/dbInstanceArn").await).await?;
        looking(world, "DBInstance", name, async || is_ready(member).await).await?;
    }
    for identifier in ["shop-1", "shop-2"] {
        let calls = world.changes_of(mark, identifier);
        ensure!(calls.len() == 1 && calls[0].operation == "CreateDBInstance", "{}", Table(&calls));
        ensure!(calls[0].params["DBClusterIdentifier"] == "shop", "{:?}", calls[0].params);
        for of_the_cluster in ["MasterUserPassword", "MasterUsername", "AllocatedStorage", "StorageType"] {
            ensure!(!calls[0].params.contains_key(of_the_cluster), "{:?}", calls[0].params);
        }
    }
    world.observe("DBCluster", "orders", "members").await?;
    eventually(SOON, "its members in its status", async || {
        let members = cluster.get().await?.data["status"]["members"].clone();
        ensure!(members == json!(["shop-1", "shop-2"]), "{members}");
        is_ready(&cluster).await
    })
    .await
}

async fn the_cluster_goes_once_its_members_are_gone(world: &World) -> Result<()> {
    let (cluster, writer, reader) = subjects(world);
    let refusal = "DeleteDBCluster: InvalidDBClusterStateFault: Cluster cannot be deleted, it still contains DB \
                   instances in non-deleting state.";
    let mark = world.aws.mark();
    cluster.delete().await?;
    let users = format!("Still used by DBInstance {}/writer", world.namespace);
    let parts = [refusal, "its members: shop-1, shop-2", "(request id ", users.as_str()];
    cluster.says("Error", &parts).await?;
    let stalled = condition(&cluster.get().await?, "Stalled");
    ensure!(stalled["status"] != "True", "{stalled}");
    throughout(QUIET, "the members stay, and AWS is not asked again", async || {
        is_ready(&writer).await?;
        is_ready(&reader).await?;
        ensure!(world.changes_since(mark) == ["DeleteDBCluster"], "{}", world.aws.table());
        Ok(())
    })
    .await?;

    unmake(world, &writer, "writer").await?;
    let message = cluster.says("Error", &[refusal, "its members: shop-2)"]).await?;
    ensure!(!message.contains("writer"), "{message}");
    unmake(world, &reader, "reader").await?;
    // It was woken: nobody asked it to look.
    let expected =
        ["DeleteDBCluster", "DeleteDBInstance", "DeleteDBCluster", "DeleteDBInstance", "DeleteDBCluster"];
    eventually(SOON, "the cluster to be deleted", async || {
        let changes = world.changes_since(mark);
        ensure!(changes == expected, "{changes:?}");
        Ok(())
    })
    .await?;
    looking(world, "DBCluster", "orders", async || is_gone(world, "DBCluster", "orders").await).await?;
    // A member has no data of its own to keep.
    for call in world.aws.calls_since(mark).iter().filter(|call| call.operation == "DeleteDBInstance") {
        ensure!(call.params["SkipFinalSnapshot"] == "true", "{:?}", call.params);
        ensure!(!call.params.contains_key("FinalDBSnapshotIdentifier"), "{:?}", call.params);
    }
    ensure!(world.changes_since(mark) == expected, "{}", world.aws.table());
    Ok(())
}

/// Deletes a member, and sees it go.
async fn unmake(world: &World, member: &Subject<'_>, name: &str) -> Result<()> {
    member.delete().await?;
    looking(world, "DBInstance", name, async || is_gone(world, "DBInstance", name).await).await
}

async fn nothing_is_left(world: &World) -> Result<()> {
    // moto keeps the automated snapshots of a cluster that is gone; a final one is a manual one.
    let manual = json!({"SnapshotType": "manual"});
    for (operation, params, list) in [
        ("describe_db_clusters", json!({}), "DBClusters"),
        ("describe_db_instances", json!({}), "DBInstances"),
        ("describe_db_cluster_snapshots", manual.clone(), "DBClusterSnapshots"),
        ("describe_db_snapshots", manual, "DBSnapshots"),
    ] {
        let left = world.boto.call("rds", operation, params).await?;
        ensure!(left[list] == json!([]), "{left}");
    }
    Ok(())
}

/// A DB subnet group in the subnets that every account has.
async fn subnet_group(world: &World) -> Result<()> {
    let found = world.boto.call("ec2", "describe_subnets", json!({})).await?;
    let subnets = found["Subnets"].as_array().context("no subnets")?;
    let subnets: Vec<_> = subnets.iter().map(|subnet| subnet["SubnetId"].clone()).collect();
    let group = json!({
        "DBSubnetGroupName": "data", "DBSubnetGroupDescription": "Data", "SubnetIds": subnets,
    });
    world.boto.call("rds", "create_db_subnet_group", group).await.map(drop)?;
    Ok(())
}

fn subjects(world: &World) -> (Subject<'_>, Subject<'_>, Subject<'_>) {
    let member = |name| world.subject("DBInstance", name);
    (world.subject("DBCluster", "orders"), member("writer"), member("reader"))
}

/// Has an object look at AWS, where it would wait for its timer, until that is so.
async fn looking(world: &World, kind: &str, name: &str, is_so: impl AsyncFn() -> Result<()>) -> Result<()> {
    let word = AtomicU32::new(0);
    eventually(SOON, &format!("{kind} {name}"), async || {
        let Err(not_yet) = is_so().await else { return Ok(()) };
        let word = format!("look-{}", word.fetch_add(1, Ordering::Relaxed));
        // It may have gone just now.
        world.observe(kind, name, &word).await.ok();
        Err(not_yet)
    })
    .await
}

async fn is_ready(subject: &Subject<'_>) -> Result<()> {
    let ready = condition(&subject.get().await?, "Ready");
    ensure!(ready["status"] == "True", "{ready}");
    Ok(())
}

async fn is_gone(world: &World, kind: &str, name: &str) -> Result<()> {
    match world.api(kind).get_opt(name).await? {
        None => Ok(()),
        Some(left) => bail!("still there: {}", left.data["status"]["conditions"]),
    }
}
