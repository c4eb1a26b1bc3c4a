//! Databases between the user's wish and AWS's maintenance windows, snapshots and protection.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Match, Table};
use lab::subject::{Subject, manifest};
use lab::wait::throughout;
use lab::{World, eventually};
use serde_json::{Value, json};

const QUIET: Duration = Duration::from_secs(2);

const SECRET: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: first-password}
"#;

fn instance(name: &str, more: Value) -> String {
    let mut spec = json!({
        "dbInstanceIdentifier": name, "dbInstanceClass": "db.t4g.micro", "engine": "postgres", "engineVersion": "16",
        "masterUsername": "admin", "masterUserPasswordRef": {"name": "password", "key": "password"},
        "allocatedStorage": 20, "dbSubnetGroupRef": "default", "skipFinalSnapshot": true,
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    manifest("DBInstance", name, &[], spec)
}

async fn apply<'a>(world: &'a World, name: &'a str, more: Value) -> Result<Subject<'a>> {
    world.apply(&instance(name, more)).await?;
    let subject = world.subject("DBInstance", name);
    subject.ready().await?;
    Ok(subject)
}

async fn rds(world: &World, operation: &str, params: Value) -> Result<Value> {
    world.boto.call("rds", operation, params).await.with_context(|| operation.to_owned())
}

async fn in_aws(world: &World, name: &str) -> Result<Value> {
    let answer = rds(world, "describe_db_instances", json!({"DBInstanceIdentifier": name})).await?;
    Ok(answer["DBInstances"][0].clone())
}

/// Has it observed now, and waits until that is done.
async fn observe(world: &World, name: &str, word: &str) -> Result<()> {
    let subject = world.subject("DBInstance", name);
    let before = subject.status("/sync/inputs").await?;
    world.observe("DBInstance", name, word).await?;
    eventually(Duration::from_secs(30), "an observe", async || {
        ensure!(subject.status("/sync/inputs").await? != before);
        subject.ready().await.map(drop)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_wait_keep_and_are_kept() -> Result<()> {
    let world = World::prepare(Flavor::Ministack).await?;
    world.apply(SECRET).await?;
    let _operator = world.operator(&[]).await?;
    what_waits_for_the_window_is_shown_and_not_sent_again(&world).await.context("pending modifications")?;
    storage_that_aws_grew_is_left_alone(&world).await.context("storage autoscaling")?;
    a_final_snapshot_has_a_name_of_its_own(&world).await.context("final snapshots")?;
    what_is_protected_stays_until_it_is_not(&world).await.context("deletion protection")
}

async fn what_waits_for_the_window_is_shown_and_not_sent_again(world: &World) -> Result<()> {
    let name = "pending";
    let database = apply(world, name, json!({})).await?;
    let mark = world.aws.mark();
    database.change(json!({"dbInstanceClass": "db.t4g.small", "multiAZ": true})).await?;
    database.ready().await?;
    let held = in_aws(world, name).await?;
    ensure!(held["DBInstanceClass"] == "db.t4g.micro", "{held}");
    ensure!(
        held["PendingModifiedValues"] == json!({"DBInstanceClass": "db.t4g.small", "MultiAZ": true}),
        "{held}"
    );
    for word in ["one", "two"] {
        observe(world, name, word).await?;
    }
    let shown = database.ready().await?.data["status"]["pendingModifications"].clone();
    ensure!(shown == json!(["/dbInstanceClass", "/multiAZ"]), "{shown}");
    world.ensure_changes(mark, name, &["ModifyDBInstance"])?;
    // Once it is to wait no longer, one call says so, and nothing is asked again.
    let mark = world.aws.mark();
    database.change(json!({"applyImmediately": true})).await?;
    database.ready().await?;
    observe(world, name, "flushed").await?;
    let ready = database.ready().await?;
    let calls = world.changes_of(mark, name);
    ensure!(calls.len() == 1 && calls[0].params["ApplyImmediately"] == "true", "{}", Table(&calls));
    ensure!(!calls[0].params.contains_key("DBInstanceClass"), "{}", Table(&calls));
    let held = in_aws(world, name).await?;
    ensure!(held["DBInstanceClass"] == "db.t4g.small" && held["MultiAZ"] == true, "{held}");
    ensure!(ready.data["status"].get("pendingModifications").is_none(), "{:#}", ready.data["status"]);
    Ok(())
}

async fn storage_that_aws_grew_is_left_alone(world: &World) -> Result<()> {
    let name = "growing";
    let database = apply(world, name, json!({"maxAllocatedStorage": 100})).await?;
    let grow =
        |size: u32| json!({"DBInstanceIdentifier": name, "ApplyImmediately": true, "AllocatedStorage": size});
    rds(world, "modify_db_instance", grow(44)).await?;
    let mark = world.aws.mark();
    observe(world, name, "grown").await?;
    database.ready().await?;
    world.ensure_changes(mark, name, &[])?;
    ensure!(database.status("/allocatedStorage").await? == "44");
    // What the user wants beyond that is asked for; less than AWS has is refused without a call.
    database.change(json!({"allocatedStorage": 60, "applyImmediately": true})).await?;
    database.ready().await?;
    ensure!(in_aws(world, name).await?["AllocatedStorage"] == 60);
    let mark = world.aws.mark();
    database.change(json!({"allocatedStorage": 30, "maxAllocatedStorage": 50})).await?;
    database.says("Error", &["60", "cannot shrink", "set allocatedStorage to 60"]).await?;
    throughout(QUIET, "no storage is asked for", async || {
        let calls = world.changes_of(mark, name);
        ensure!(calls.iter().all(|call| !call.params.contains_key("AllocatedStorage")), "{}", Table(&calls));
        Ok(())
    })
    .await
}

async fn a_final_snapshot_has_a_name_of_its_own(world: &World) -> Result<()> {
    let name = "kept";
    let database = apply(world, name, json!({"skipFinalSnapshot": false})).await?;
    let uid: String = database.uid().await?.replace('-', "").chars().take(8).collect();
    let snapshot = format!("{name}-final-{uid}");
    // A first try left one and then failed: its name is taken.
    let taken = json!({"DBInstanceIdentifier": name, "DBSnapshotIdentifier": snapshot});
    rds(world, "create_db_snapshot", taken).await?;
    // ministack overwrites it.
    let clash = format!(
        "Cannot create the snapshot because a snapshot with the identifier {snapshot} already exists."
    );
    let refusal = Action::error(400, "DBSnapshotAlreadyExists", &clash);
    world
        .aws
        .fault(Match::op("DeleteDBInstance").param("FinalDBSnapshotIdentifier", &snapshot).times(1), refusal);
    let mark = world.aws.mark();
    database.delete().await?;
    database.gone().await?;
    let tries = world.changes_of(mark, name);
    let names: Vec<_> = tries.iter().map(|call| call.params["FinalDBSnapshotIdentifier"].as_str()).collect();
    ensure!(names.len() == 2 && names[0] == snapshot, "{}", Table(&tries));
    ensure!(names[1].starts_with(&format!("{snapshot}-")), "{names:?}");
    let left = rds(world, "describe_db_snapshots", json!({"DBSnapshotIdentifier": names[1]})).await?;
    ensure!(left["DBSnapshots"].as_array().is_some_and(|left| left.len() == 1), "{left}");
    Ok(())
}

async fn what_is_protected_stays_until_it_is_not(world: &World) -> Result<()> {
    let name = "protected";
    let database = apply(world, name, json!({"deletionProtection": true})).await?;
    database.delete().await?;
    database
        .says("Error", &["DeleteDBInstance", "InvalidParameterCombination", "DeletionProtection"])
        .await?;
    ensure!(in_aws(world, name).await?["DBInstanceStatus"] == "available");
    let mark = world.aws.mark();
    database.change(json!({"deletionProtection": false})).await?;
    database.gone().await?;
    let calls = world.changes_of(mark, name);
    ensure!(calls.iter().any(|call| call.operation == "ModifyDBInstance"), "{}", Table(&calls));
    Ok(())
}
