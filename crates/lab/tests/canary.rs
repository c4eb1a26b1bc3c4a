//! No secret in the open: passwords live through everything that can happen to them, and then all that
//! the operator ever wrote is searched for them, in every form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use lab::canary::{Canary, Everything, Traces};
use lab::cloudcontrol::Operation;
use lab::emulator::Flavor;
use lab::proxy::Fault;
use lab::proxy::aws::{Action, Match};
use lab::subject::{Subject, manifest, manifests};
use lab::{Operator, World, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

/// The one Secret that holds the passwords.
const SECRET: &str = "passwords";

/// A CloudFormation type with a password.
const DIRECTORY: &str = "AWS::AppStream::DirectoryConfig";

/// A kind that takes a secret: its object, and the operations of its life.
struct Keeper {
    kind: &'static str,
    name: &'static str,
    create: (&'static str, &'static str),
    update: (&'static str, &'static str),
    read: &'static str,
    delete: &'static str,
}

const KEEPERS: [Keeper; 3] = [
    Keeper {
        kind: "DBInstance",
        name: "orders",
        create: ("CreateDBInstance", "MasterUserPassword"),
        update: ("ModifyDBInstance", "MasterUserPassword"),
        read: "DescribeDBInstances",
        delete: "DeleteDBInstance",
    },
    Keeper {
        kind: "DBCluster",
        name: "ledger",
        create: ("CreateDBCluster", "MasterUserPassword"),
        update: ("ModifyDBCluster", "MasterUserPassword"),
        read: "DescribeDBClusters",
        delete: "DeleteDBCluster",
    },
    Keeper {
        kind: "CloudControlResource",
        name: "directory",
        create: ("CreateResource", "DesiredState"),
        update: ("UpdateResource", "PatchDocument"),
        read: "GetResource",
        delete: "DeleteResource",
    },
];

impl Keeper {
    fn in_world<'a>(&self, world: &'a World) -> Subject<'a> {
        world.subject(self.kind, self.name)
    }

    fn spec(&self) -> Value {
        let reference = json!({"name": SECRET, "key": "password"});
        match self.kind {
            "DBInstance" => json!({
                "dbInstanceIdentifier": self.name, "dbInstanceClass": "db.t4g.micro", "engine": "postgres",
                "engineVersion": "16.3", "masterUsername": "owner", "allocatedStorage": 20,
                "masterUserPasswordRef": reference, "dbSubnetGroupRef": "data", "skipFinalSnapshot": true,
                "backupRetentionPeriod": 3,
            }),
            "DBCluster" => json!({
                "dbClusterIdentifier": self.name, "engine": "aurora-mysql",
                "engineVersion": "8.0.mysql_aurora.3.04.0", "masterUsername": "owner",
                "masterUserPasswordRef": reference, "dbSubnetGroupRef": "data", "skipFinalSnapshot": true,
                "backupRetentionPeriod": 3,
            }),
            _ => json!({"typeName": DIRECTORY, "desiredState": {
                "DirectoryName": self.name, "OrganizationalUnitDistinguishedNames": ["OU=a"],
                "ServiceAccountCredentials": {"AccountName": "owner", "AccountPassword": {"$secret": reference}},
            }}),
        }
    }

    /// Another client changes what the spec says.
    async fn drift(&self, world: &World) -> Result<()> {
        let (service, operation, params) = match self.kind {
            "DBInstance" => (
                "rds",
                "modify_db_instance",
                json!({
                    "DBInstanceIdentifier": self.name, "BackupRetentionPeriod": 9, "ApplyImmediately": true,
                }),
            ),
            "DBCluster" => (
                "rds",
                "modify_db_cluster",
                json!({
                    "DBClusterIdentifier": self.name, "BackupRetentionPeriod": 9, "ApplyImmediately": true,
                }),
            ),
            _ => {
                let place = "/OrganizationalUnitDistinguishedNames";
                let patch = json!([{"op": "replace", "path": place, "value": ["OU=b"]}]);
                (
                    "cloudcontrol",
                    "update_resource",
                    json!({
                        "TypeName": DIRECTORY, "Identifier": self.name,
                        "PatchDocument": patch.to_string(),
                    }),
                )
            }
        };
        world.boto.call(service, operation, params).await.with_context(|| operation)?;
        if service == "cloudcontrol" {
            // Its requests take their time; each look brings them forward.
            let look = json!({"TypeName": DIRECTORY, "Identifier": self.name});
            world.boto.call(service, "get_resource", look.clone()).await?;
            world.boto.call(service, "get_resource", look).await?;
        }
        Ok(())
    }
}

/// What the objects need in AWS.
fn ground() -> String {
    let subnet = |name: &str, cidr: &str, zone: &str| {
        let spec = json!({"vpcRef": {"name": "net"}, "cidrBlock": cidr, "availabilityZone": zone});
        manifest("Subnet", name, &[], spec)
    };
    let group = json!({
        "dbSubnetGroupName": "data", "description": "Data", "subnetRefs": [{"name": "a"}, {"name": "b"}],
    });
    manifests(&[
        manifest("VPC", "net", &[], json!({"cidrBlock": "10.0.0.0/16"})),
        subnet("a", "10.0.1.0/24", "eu-west-1a"),
        subnet("b", "10.0.2.0/24", "eu-west-1b"),
        manifest("DBSubnetGroup", "data", &[], group),
    ])
}

async fn put(world: &World, canary: &Canary) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
        "stringData": {"password": canary.text()},
    });
    secrets.patch(SECRET, &PatchParams::apply("test").force(), &Patch::Apply(secret)).await?;
    Ok(())
}

/// AWS refuses each keeper's call of this operation, and quotes the secret in every form.
fn refuse(world: &World, operation: impl Fn(&Keeper) -> &'static str, canary: &Canary) -> Vec<Fault> {
    let refusal = |keeper: &Keeper| {
        let code = if keeper.kind == "CloudControlResource" {
            "InvalidRequestException"
        } else {
            "InvalidParameterValue"
        };
        world.aws.fault(Match::op(operation(keeper)), Action::error(400, code, &canary.quoted()))
    };
    KEEPERS.iter().map(refusal).collect()
}

/// Waits until each keeper tells of the refusal, with nothing in it, and lets the calls through.
async fn told(world: &World, faults: Vec<Fault>) -> Result<()> {
    for keeper in &KEEPERS {
        keeper.in_world(world).says("Error", &["AWS quotes: raw ***; "]).await?;
    }
    faults.iter().for_each(Fault::release);
    Ok(())
}

async fn ready(world: &World, why: &str) -> Result<()> {
    for keeper in &KEEPERS {
        // Waiting for the next attempt is not what is tested here.
        keeper.in_world(world).annotate("reconcile", json!(why)).await?;
        keeper.in_world(world).ready().await.with_context(|| why.to_owned())?;
    }
    Ok(())
}

/// Waits until a call has carried the secret for each keeper.
async fn carried(
    world: &World,
    carrier: impl Fn(&Keeper) -> (&'static str, &'static str),
    canary: &Canary,
) -> Result<()> {
    eventually(SOON, &format!("{} in AWS", canary.text()), async || {
        let calls = world.aws.plain_calls();
        for (operation, param) in KEEPERS.iter().map(&carrier) {
            let carries = |value: &String| canary.find_in(value).is_some();
            let mut sent = calls.iter().filter(|call| call.operation == operation);
            ensure!(sent.any(|call| call.params.get(param).is_some_and(carries)), "not by {operation}");
        }
        Ok(())
    })
    .await
}

/// The request that Cloud Control accepts next fails late, and quotes its secret.
fn fail_late(world: &World, canary: &Canary) {
    world.cloud_control.slow(Operation::Create, 20);
    world.cloud_control.fail_next(Operation::Create, "InvalidRequest", &format!("late: {}", canary.quoted()));
}

/// When it fails, the Secret holds another one: what is quoted stands nowhere else any more.
async fn failed_late(world: &World, second: &Canary) -> Result<()> {
    let directory = &KEEPERS[2];
    eventually(SOON, "the request", async || directory.in_world(world).status("/requestToken").await).await?;
    put(world, second).await?;
    eventually(SOON, "the event of the failure", async || {
        let notes = directory.in_world(world).events("Error").await?;
        ensure!(notes.iter().any(|note| note.contains("late: ")), "{notes:?}");
        Ok(())
    })
    .await?;
    world.cloud_control.slow(Operation::Create, 1);
    Ok(())
}

/// The lives of all keepers in two processes that write their log in this format, and what these tell.
async fn lives(world: &World, format: &str, secrets: &[Canary; 3]) -> Result<Traces> {
    let args = ["--drift-interval=1h", &format!("--log-format={format}")];
    let mut traces = Traces::default();
    let mut operator = world.operator(&args).await?;
    operator.while_sound(first_life(world, format, secrets)).await?;
    finish(&mut traces, &mut operator, &format!("the first {format} operator")).await?;
    let mut operator = world.operator(&args).await?;
    operator.while_sound(second_life(world, format, &secrets[2])).await?;
    finish(&mut traces, &mut operator, &format!("the second {format} operator")).await?;
    Ok(traces)
}

async fn first_life(world: &World, format: &str, [first, second, third]: &[Canary; 3]) -> Result<()> {
    // A creation that is refused, one that fails later, and one that works.
    let faults = refuse(world, |keeper| keeper.create.0, first);
    fail_late(world, first);
    put(world, first).await?;
    world.apply(&ground()).await?;
    let objects: Vec<_> =
        KEEPERS.iter().map(|keeper| manifest(keeper.kind, keeper.name, &[], keeper.spec())).collect();
    world.apply(&manifests(&objects)).await?;
    told(world, faults).await.inspect_err(|_| println!("{}", world.aws.table()))?;
    failed_late(world, second).await?;
    ready(world, &format!("{format} created")).await?;

    // A rotation that is refused, and then works.
    let faults = refuse(world, |keeper| keeper.update.0, third);
    put(world, third).await?;
    told(world, faults).await?;
    carried(world, |keeper| keeper.update, third).await?;
    ready(world, &format!("{format} rotated")).await?;

    // A drift: what puts it right needs no secret, but may be answered with it.
    for keeper in &KEEPERS {
        keeper.drift(world).await?;
    }
    let faults = refuse(world, |keeper| keeper.update.0, third);
    for keeper in &KEEPERS {
        keeper.in_world(world).annotate("reconcile", json!("drift")).await?;
    }
    told(world, faults).await?;
    ready(world, &format!("{format} put right")).await
}

async fn second_life(world: &World, format: &str, secret: &Canary) -> Result<()> {
    // This process has not read the secret yet, when a read fails with it.
    let faults = refuse(world, |keeper| keeper.read, secret);
    for keeper in &KEEPERS {
        keeper.in_world(world).annotate("reconcile", json!("restarted")).await?;
    }
    told(world, faults).await?;
    ready(world, &format!("{format} restarted")).await?;

    // A deletion that fails at first.
    let faults = refuse(world, |keeper| keeper.delete, secret);
    for keeper in &KEEPERS {
        keeper.in_world(world).delete().await?;
    }
    told(world, faults).await?;
    for keeper in &KEEPERS {
        keeper.in_world(world).gone().await?;
    }
    Ok(())
}

/// Takes what a process has told, to its last word.
async fn finish(traces: &mut Traces, operator: &mut Operator, name: &str) -> Result<()> {
    let metrics = operator.metrics().await?;
    ensure!(operator.term(SOON).await?.success(), "{}", operator.log());
    let log = operator.log();
    let mentions_all = KEEPERS.iter().all(|keeper| log.contains(keeper.name));
    ensure!(log.contains("TRACE") && mentions_all, "the log of {name} is not all there is");
    ensure!(!log.contains("panicked"), "{log}");
    traces.lines(&format!("log of {name}"), &log);
    traces.lines(&format!("metrics of {name}"), &metrics);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_stands_in_the_open_whatever_happens() -> Result<()> {
    let mut world = World::prepare(Flavor::Ministack).await?;
    world.config = world
        .config
        .clone()
        .env("RUST_LOG", "trace,aws_smithy_runtime=trace,h2=trace,hyper=trace,kube=trace");
    world.aws.keep_plain_calls();
    world.kube.keep_heads();
    let everything = Everything::of(&world.client).await?;
    let secrets = ["Alpha", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot"].map(Canary::new);
    let (text, json) = secrets.split_first_chunk().context("three for each")?;
    let mut told = lives(&world, "text", text).await?;
    told.append(lives(&world, "json", json.first_chunk().context("three for each")?).await?);

    let carriers: Vec<_> = KEEPERS.iter().flat_map(|keeper| [keeper.create, keeper.update]).collect();
    let mut traces = Traces::of(&world, &everything, SECRET, &carriers);
    traces.append(told);
    let leaks = traces.leaks(&secrets);
    ensure!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));

    // Nothing was left out of the search, and the passwords were used.
    for place in [
        "object DBInstance",
        "object DBCluster",
        "object CloudControlResource",
        "object Event",
        "object Secret",
        "object Lease",
        "object ConfigMap",
        "request GET",
        "request PATCH",
        "write Patch",
        "write Create",
        "call CreateDBInstance",
        "recorded call CreateResource",
    ] {
        println!("{:>6} {place}", traces.count(place));
        ensure!(traces.count(place) > 0, "nothing of {place}");
    }
    for place in [
        "log of the first text",
        "log of the second text",
        "log of the first json",
        "log of the second json",
        "metrics of the first text",
    ] {
        println!("{:>6} lines of the {place} operator", traces.count(place));
        ensure!(traces.count(place) > 50, "next to nothing in the {place} operator");
    }
    for keeper in &KEEPERS {
        for round in [text, json] {
            ensure!(traces.has_carried(keeper.create, &round[0]), "{} was created with another", keeper.kind);
            ensure!(traces.has_carried(keeper.update, &round[2]), "{} was given another", keeper.kind);
        }
    }
    Ok(())
}
