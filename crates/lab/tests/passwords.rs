//! A database's password: from its Secret into AWS, when it changes and only then. That it stands nowhere
//! else is shown by the test `canary`.
//!
//! ministack takes any password and shows none, so rotation is shown by the recorded calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Call, Match};
use lab::proxy::{Stage, Verdict};
use lab::subject::{manifest, manifests};
use lab::wait::throughout;
use lab::{World, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

/// They hold what URLs, XML and JSON write in another way.
const FIRST: &str = "one+1 %&\"<first";
const SECOND: &str = "two+2 %&\"<second";

async fn put(world: &World, patch: Value) -> Result<()> {
    put_into(&Api::namespaced(world.client.clone(), &world.namespace), patch).await
}

async fn put_into(secrets: &Api<Secret>, patch: Value) -> Result<()> {
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}});
    secret.as_object_mut().unwrap().extend(patch.as_object().unwrap().clone());
    secrets.patch("db", &PatchParams::apply("test").force(), &Patch::Apply(secret)).await?;
    Ok(())
}

async fn put_password(world: &World, password: &str) -> Result<()> {
    put(world, json!({"stringData": {"password": password}})).await
}

/// The calls that carried a password since a mark.
fn rotations(world: &World, mark: u64) -> Vec<Call> {
    let calls = world.aws.calls_since(mark).into_iter();
    calls.filter(|call| call.mutating && call.params.contains_key("MasterUserPassword")).collect()
}

fn stack() -> String {
    let subnet = |name: &str, cidr: &str, zone: &str| {
        manifest(
            "Subnet",
            name,
            &[],
            json!({"vpcRef": {"name": "net"}, "cidrBlock": cidr, "availabilityZone": zone}),
        )
    };
    manifests(&[
        manifest("VPC", "net", &[], json!({"cidrBlock": "10.0.0.0/16"})),
        subnet("a", "10.0.1.0/24", "eu-west-1a"),
        subnet("b", "10.0.2.0/24", "eu-west-1b"),
        manifest(
            "DBSubnetGroup",
            "data",
            &[],
            json!({
                "dbSubnetGroupName": "data", "description": "Data", "subnetRefs": [{"name": "a"}, {"name": "b"}],
            }),
        ),
        manifest(
            "DBInstance",
            "orders",
            &[],
            json!({
                "dbInstanceIdentifier": "orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres",
                "engineVersion": "16.3", "masterUsername": "orders", "allocatedStorage": 20,
                "masterUserPasswordRef": {"name": "db", "key": "password"}, "dbSubnetGroupRef": "data",
                "skipFinalSnapshot": true,
            }),
        ),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_rotated_when_its_secret_changes_and_only_then() -> Result<()> {
    let world = World::prepare(Flavor::Ministack).await?;
    // All timers at an hour: what happens is woken.
    let args = ["--drift-interval=1h", "--time-scale=0.02"];
    let mut operator = world.operator(&args).await?;
    let database = world.subject("DBInstance", "orders");

    // Without its Secret it waits, and heals by itself.
    world.apply(&stack()).await?;
    database.says("DependencyNotReady", &["Secret", "/db", "does not exist"]).await?;
    put(&world, json!({"stringData": {"other": "x"}})).await?;
    database.says("DependencyNotReady", &["has no key password"]).await?;
    ensure!(world.aws.count("CreateDBInstance") == 0, "{}", world.aws.table());
    put_password(&world, FIRST).await?;
    database.ready().await.inspect_err(|_| println!("{}\n{}", world.aws.table(), operator.log()))?;
    ensure!(
        world.aws.count("CreateDBInstance") == 1 && rotations(&world, 0).len() == 1,
        "{}",
        world.aws.table()
    );

    // A change of labels, a forced observe, a restart: nothing is rotated.
    let mark = world.aws.mark();
    put(
        &world,
        json!({"metadata": {"name": "db", "labels": {"team": "data"}}, "stringData": {"password": FIRST}}),
    )
    .await?;
    world.observe("DBInstance", "orders", "one").await?;
    operator.term(SOON).await?;
    let _operator = world.operator(&args).await?;
    world.observe("DBInstance", "orders", "two").await?;
    throughout(Duration::from_secs(3), "nothing is rotated", async || {
        ensure!(rotations(&world, mark).is_empty(), "{}", world.aws.table());
        Ok(())
    })
    .await?;

    // Another value: one call of its own, without ApplyImmediately.
    put_password(&world, SECOND).await?;
    eventually(SOON, "the rotation", async || {
        ensure!(rotations(&world, mark).len() == 1, "{}", world.aws.table());
        Ok(())
    })
    .await?;
    let sent = rotations(&world, mark).remove(0);
    let carried: Vec<_> =
        sent.params.keys().filter(|name| !["Action", "Version"].contains(&name.as_str())).collect();
    ensure!(
        sent.operation == "ModifyDBInstance" && carried == ["DBInstanceIdentifier", "MasterUserPassword"],
        "{carried:?}"
    );
    database.ready().await?;
    let told = database.event("Updated").await?;
    ensure!(told == ["changed in AWS: /masterUserPasswordRef"], "{told:?}");

    database.delete().await?;
    database.gone().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_changes_while_its_database_is_made_gets_there() -> Result<()> {
    let world = World::prepare(Flavor::Ministack).await?;
    put_password(&world, FIRST).await?;
    // The create call is on its way with the first one.
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    world.aws.on_call(move |stage, call| {
        let secrets = secrets.clone();
        async move {
            if (stage, call.operation.as_str()) == (Stage::Before, "CreateDBInstance") {
                let second = json!({"stringData": {"password": SECOND}});
                put_into(&secrets, second).await.expect("the Secret is changed");
            }
            Verdict::Continue
        }
    });
    // The one call that sets the second fails at first.
    let throttled = world.aws.fault(Match::op("ModifyDBInstance").times(1), Action::Throttle);
    let _operator = world.operator(&["--drift-interval=1h"]).await?;
    world.apply(&stack()).await?;
    let last = |calls: Vec<Call>| calls.into_iter().rfind(Call::succeeded);
    eventually(SOON, "the second password", async || {
        let last = last(rotations(&world, 0));
        ensure!(last.is_some_and(|call| call.operation == "ModifyDBInstance"), "{}", world.aws.table());
        Ok(())
    })
    .await?;
    ensure!(throttled.hits() == 1, "{}", world.aws.table());
    world.subject("DBInstance", "orders").ready().await.map(drop)
}
