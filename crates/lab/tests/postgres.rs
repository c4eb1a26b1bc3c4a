//! A rotated password, shown by logging in: a PostgreSQL server stands at the endpoint of the DB
//! instance, and ministack does there what it is told by ModifyDBInstance.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::emulator::Flavor;
use lab::postgres::{Account, Postgres};
use lab::{World, eventually, manifest};
use serde_json::json;

const SOON: Duration = Duration::from_secs(60);

/// What URLs, XML, SQL and JSON write in another way. (RDS takes no / @ " and no spaces.)
const FIRST: &str = "first+%&<'\\pass";
const SECOND: &str = "second+%&<'\\pass";
const THIRD: &str = "third+%&<'\\pass";

const ACCOUNT: Account<'static> = Account { user: "orders", password: FIRST, database: "shop" };

fn secret(password: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "orders" },
        "stringData": { "password": password },
    })
    .to_string()
}

/// The instance whose endpoint is at that port, and what it stands in.
fn stack(port: u16) -> String {
    let subnet = |name: &str, number: u8, zone: &str| {
        let mut spec = manifest::subnet_spec(json!({ "name": "net" }), number);
        spec["availabilityZone"] = json!(zone);
        manifest::of("Subnet", name, spec)
    };
    let subnets = json!([{ "name": "a" }, { "name": "b" }]);
    let group = json!({ "dbSubnetGroupName": "data", "description": "Data", "subnetRefs": subnets });
    let instance = json!({
        "dbInstanceIdentifier": "orders",
        "dbInstanceClass": "db.t4g.micro",
        "engine": "postgres",
        "engineVersion": "16",
        "masterUsername": ACCOUNT.user,
        "masterUserPasswordRef": { "name": "orders", "key": "password" },
        "dbName": ACCOUNT.database,
        "port": port,
        "allocatedStorage": 20,
        "dbSubnetGroupRef": "data",
        "skipFinalSnapshot": true,
    });
    manifest::all(&[
        manifest::vpc("net"),
        subnet("a", 1, "eu-west-1a"),
        subnet("b", 2, "eu-west-1b"),
        manifest::of("DBSubnetGroup", "data", group),
        manifest::of("DBInstance", "orders", instance),
    ])
}

/// Waits until the new password logs in, and sees that the old one no longer does.
async fn rotated(world: &World, server: &Postgres, old: &str, new: &str) -> Result<()> {
    eventually(SOON, "the new password to log in", async || {
        ensure!(server.login(new).await?, "refused:\n{}", world.aws.table());
        Ok(())
    })
    .await?;
    ensure!(!server.login(old).await?, "the old password still logs in");
    world.subject("DBInstance", "orders").ready().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_secret_changes_who_can_log_in() -> Result<()> {
    let (world, server) = tokio::try_join!(World::prepare(Flavor::Ministack), Postgres::start(ACCOUNT))?;
    ensure!(server.login(FIRST).await? && !server.login(SECOND).await?, "the server takes any password");

    // All timers at an hour: what happens is woken by the Secret.
    let args = ["--drift-interval=1h"];
    let mut operator = world.operator(&args).await?;
    world.apply(&manifest::all(&[secret(FIRST), stack(server.port())])).await?;
    let database = world.subject("DBInstance", "orders");
    database.ready().await.inspect_err(|_| println!("{}\n{}", world.aws.table(), operator.log()))?;
    let endpoint = (database.status("/endpoint").await?, database.status("/port").await?);
    ensure!(endpoint == ("localhost".to_owned(), server.port().to_string()), "{endpoint:?}");

    world.apply(&secret(SECOND)).await?;
    rotated(&world, &server, FIRST, SECOND).await.inspect_err(|_| println!("{}", operator.log()))?;

    // A Secret that changes while no operator runs is rotated by the next one.
    ensure!(operator.term(SOON).await?.success());
    world.apply(&secret(THIRD)).await?;
    ensure!(server.login(SECOND).await?, "it was rotated by nobody");
    let operator = world.operator(&args).await?;
    rotated(&world, &server, SECOND, THIRD).await.inspect_err(|_| println!("{}", operator.log()))?;

    let rotations = world.changes_since(0).into_iter().filter(|operation| operation == "ModifyDBInstance");
    ensure!(rotations.count() == 2, "two rotations, two calls:\n{}", world.aws.table());
    database.delete().await?;
    database.gone().await
}
