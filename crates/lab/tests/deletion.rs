//! Deletion: nothing stays behind in AWS, nothing goes that must stay, and nobody has to help.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::emulator::Flavor;
use lab::history::Version;
use lab::proxy::aws::{Action, Match};
use lab::proxy::kube::Verb;
use lab::wait::throughout;
use lab::{History, World, eventually, manifest};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
/// Nothing happens by a timer in a test that starts the operator like this.
const NO_TIMERS: [&str; 2] = ["--drift-interval=1h", "--time-scale=1000"];

/// Asks for deletion, and does not wait for it.
async fn delete(world: &World, objects: &[&str]) -> Result<()> {
    let mut args = vec!["delete", "--wait=false", "-n", &world.namespace];
    args.extend(objects);
    world.kubectl().run(&args).await?;
    Ok(())
}

async fn until_blocked(history: &History, name: &str, parts: &[&str]) -> Result<()> {
    history
        .until(SOON, name, "blocked", |version: &Version| {
            let message = version.condition("Ready", "message").unwrap_or_default();
            version.condition("Ready", "reason") == Some("Error")
                && parts.iter().all(|part| message.contains(part))
        })
        .await?;
    Ok(())
}

/// What is left in AWS of the kinds that the quickstart's network has.
async fn left_in_aws(world: &World) -> Result<Vec<Value>> {
    let mut left = Vec::new();
    for (operation, list) in [
        ("describe_vpcs", "Vpcs"),
        ("describe_subnets", "Subnets"),
        ("describe_internet_gateways", "InternetGateways"),
        ("describe_security_groups", "SecurityGroups"),
        ("describe_addresses", "Addresses"),
        ("describe_nat_gateways", "NatGateways"),
    ] {
        let found = world.boto.call("ec2", operation, json!({})).await?;
        let items = found[list].as_array().cloned().unwrap_or_default();
        // Whatever is ours bears our tag; the default VPC's things and those of other VPCs do not.
        let ours =
            |item: &Value| item["State"] != "deleted" && item["Tags"].to_string().contains("konfig.io/owner");
        left.extend(items.into_iter().filter(ours));
    }
    let roles = world.boto.call("iam", "list_roles", json!({})).await?;
    left.extend(roles["Roles"].as_array().cloned().unwrap_or_default());
    Ok(left)
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_names_who_blocks_and_goes_on_by_itself() -> Result<()> {
    let (world, operator) = World::moto(&NO_TIMERS).await?;
    let (vpcs, subnets) = (world.history("VPC").await?, world.history("Subnet").await?);
    let namespace = world.namespace.clone();
    let outcome = async {
        world
            .apply(&manifest::all(&[
                manifest::vpc("main"),
                manifest::subnet("one", "main", 1),
                manifest::security_group("web", "main", &[]),
            ]))
            .await?;
        subnets.until_ready(SOON, "one").await?;
        world.history("SecurityGroup").await?.until_ready(SOON, "web").await?;
        let mark = world.aws.mark();
        delete(&world, &["vpc/main"]).await?;
        let users = format!("Still used by SecurityGroup {namespace}/web, Subnet {namespace}/one");
        until_blocked(&vpcs, "main", &["DeleteVpc: DependencyViolation: ", "(request id ", &users]).await?;
        ensure!(world.kstatus("VPC", "main").await? == "Terminating");
        // The subnet does not mind: it is made, and its VPC has an id.
        ensure!(subnets.versions("one").pop().unwrap().condition("Ready", "status") == Some("True"));

        delete(&world, &["subnet/one"]).await?;
        subnets.until_deleted(SOON, "one").await?;
        let users = format!("Still used by SecurityGroup {namespace}/web; ");
        until_blocked(&vpcs, "main", &[&users]).await?;
        delete(&world, &["securitygroup/web"]).await?;
        vpcs.until_deleted(SOON, "main").await?;
        let changes = world.changes_since(mark);
        ensure!(
            changes == ["DeleteVpc", "DeleteSubnet", "DeleteVpc", "DeleteSecurityGroup", "DeleteVpc"],
            "{changes:?}"
        );
        ensure!(left_in_aws(&world).await?.is_empty(), "{:#?}", left_in_aws(&world).await?);
        without_reference_or_credentials(&world).await
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// Deletion needs nothing but what was recorded.
async fn without_reference_or_credentials(world: &World) -> Result<()> {
    let (vpcs, subnets) = (world.history("VPC").await?, world.history("Subnet").await?);
    world.apply(&manifest::all(&[manifest::vpc("kept"), manifest::subnet("orphan", "kept", 1)])).await?;
    subnets.until_ready(SOON, "orphan").await?;
    world.annotate("VPC", "kept", "deletion-policy", json!("abandon")).await?;
    delete(world, &["vpc/kept"]).await?;
    vpcs.until_deleted(SOON, "kept").await?;
    subnets.until_reason(SOON, "orphan", "DependencyNotReady").await?;
    let mark = world.aws.mark();
    delete(world, &["subnet/orphan"]).await?;
    subnets.until_deleted(SOON, "orphan").await?;
    ensure!(world.changes_since(mark) == ["DeleteSubnet"], "{:?}", world.changes_since(mark));

    // Never created: it goes without a call, and with AWS out of reach.
    world.apply(&manifest::subnet("never", "missing", 2)).await?;
    subnets.until_reason(SOON, "never", "DependencyNotReady").await?;
    let mark = world.aws.mark();
    delete(world, &["subnet/never"]).await?;
    subnets.until_deleted(SOON, "never").await?;
    ensure!(world.aws.calls_since(mark).is_empty(), "{}", world.aws.table());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_created_goes_without_credentials() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    world.aws.fault(Match::op("GetCallerIdentity"), Action::error(403, "InvalidClientTokenId", "unknown"));
    let _operator = world.operator(&[]).await?;
    let vpcs = world.history("VPC").await?;
    world.apply(&manifest::vpc("main")).await?;
    let failed = vpcs.until_reason(SOON, "main", "Error").await?;
    ensure!(failed.condition("Ready", "message").unwrap_or_default().contains("InvalidClientTokenId"));
    ensure!(!failed.object.metadata.finalizers.unwrap_or_default().is_empty());
    delete(&world, &["vpc/main"]).await?;
    vpcs.until_deleted(SOON, "main").await?;
    ensure!(
        world.aws.calls().iter().all(|call| call.operation == "GetCallerIdentity"),
        "{}",
        world.aws.table()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pattern_of_deletion() -> Result<()> {
    let (world, operator) = World::moto(&[]).await?;
    let outcome = async {
        immediate(&world).await?;
        asynchronous(&world).await?;
        blocked_by_a_stranger(&world).await
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// A role lets go of everything first, whoever put it there.
async fn immediate(world: &World) -> Result<()> {
    let roles = world.history("IAMRole").await?;
    world.apply(&manifest::role("app")).await?;
    roles.until_ready(SOON, "app").await?;
    let document = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "s3:*", "Resource": "*" }] });
    let policy = json!({ "PolicyName": "by-hand", "PolicyDocument": document.to_string() });
    let policy = world.boto.call("iam", "create_policy", policy).await?["Policy"]["Arn"].clone();
    world.boto.call("iam", "attach_role_policy", json!({ "RoleName": "app", "PolicyArn": policy })).await?;
    let inline = json!({ "RoleName": "app", "PolicyName": "inline", "PolicyDocument": document.to_string() });
    world.boto.call("iam", "put_role_policy", inline).await?;
    world.boto.call("iam", "create_instance_profile", json!({ "InstanceProfileName": "hosts" })).await?;
    let member = json!({ "InstanceProfileName": "hosts", "RoleName": "app" });
    world.boto.call("iam", "add_role_to_instance_profile", member).await?;
    let mark = world.aws.mark();
    delete(world, &["iamrole/app"]).await?;
    roles.until_deleted(SOON, "app").await?;
    let mut changes = world.changes_since(mark);
    ensure!(changes.pop().as_deref() == Some("DeleteRole"), "{changes:?}");
    changes.sort();
    ensure!(
        changes == ["DeleteRolePolicy", "DetachRolePolicy", "RemoveRoleFromInstanceProfile"],
        "{changes:?}"
    );
    let gone = world.boto.call("iam", "get_role", json!({ "RoleName": "app" })).await.unwrap_err();
    ensure!(gone.code == "NoSuchEntity", "{gone}");
    Ok(())
}

/// A NAT gateway takes its time; only then does its address go, and only then the object.
async fn asynchronous(world: &World) -> Result<()> {
    let nats = world.history("NatGateway").await?;
    world
        .apply(&manifest::all(&[
            manifest::vpc("main"),
            manifest::internet_gateway("main", "main"),
            manifest::subnet("main", "main", 1),
            manifest::nat_gateway("main", "main"),
        ]))
        .await?;
    nats.until_ready(SOON, "main").await?;
    world.aws.slow("DeleteNatGateway", 4);
    let (mark, writes) = (world.aws.mark(), world.kube.mark());
    delete(world, &["natgateway/main"]).await?;
    nats.until_reason(SOON, "main", "Deleting").await?;
    ensure!(world.kstatus("NatGateway", "main").await? == "Terminating");
    nats.until_deleted(SOON, "main").await?;
    ensure!(
        world.changes_since(mark) == ["DeleteNatGateway", "ReleaseAddress"],
        "{:?}",
        world.changes_since(mark)
    );
    let calls = world.calls_since(mark);
    let released = calls.iter().find(|call| call.operation == "ReleaseAddress").unwrap();
    let looks = calls.iter().filter(|call| call.operation == "DescribeNatGateways" && call.at < released.at);
    ensure!(looks.count() >= 4, "{}", world.aws.table());
    let writes = world.kube.writes_since(writes);
    let let_go = writes.iter().find(|write| {
        write.target.verb == Verb::Patch && write.body.pointer("/metadata/finalizers") == Some(&json!([]))
    });
    ensure!(let_go.is_some_and(|write| write.at > released.at), "{}", world.kube.table());
    Ok(())
}

/// What is not ours is never touched; that it goes shows only by asking again.
async fn blocked_by_a_stranger(world: &World) -> Result<()> {
    let vpcs = world.history("VPC").await?;
    let vpc = world.status("VPC", "main", "vpcId").await?;
    let foreign = json!({ "VpcId": vpc, "CidrBlock": "10.0.99.0/24" });
    let foreign = world.boto.call("ec2", "create_subnet", foreign).await?["Subnet"]["SubnetId"].clone();
    delete(world, &["vpc/main", "subnet/main", "igw/main"]).await?;
    until_blocked(&vpcs, "main", &["DeleteVpc: DependencyViolation", "once nothing uses it"]).await?;
    throughout(Duration::from_secs(2), "the VPC stays", async || {
        world.boto.call("ec2", "describe_subnets", json!({ "SubnetIds": [foreign] })).await?;
        ensure!(world.object("VPC", "main").await?.metadata.finalizers.is_some());
        Ok(())
    })
    .await?;
    world.boto.call("ec2", "delete_subnet", json!({ "SubnetId": foreign })).await?;
    vpcs.until_deleted(SOON, "main").await?;
    ensure!(left_in_aws(world).await?.is_empty(), "{:#?}", left_in_aws(world).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_stack_goes_in_any_order() -> Result<()> {
    let (world, operator) = World::moto(&[]).await?;
    world.aws.slow("DeleteNatGateway", 3);
    let mut objects = [
        "vpc/quickstart",
        "igw/quickstart",
        "natgateway/quickstart",
        "subnet/public-a",
        "securitygroup/web",
        "iamrole/quickstart",
        "subnet/private-b",
        "subnet/private-a",
        "securitygroup/db",
    ];
    let outcome = async {
        // What holds others up first; the other way round; and half way between.
        for order in 0..3 {
            world.apply(&manifest::quickstart_network()).await?;
            let ready =
                ["wait", "--for=condition=Ready", "--timeout=40s", "-n", &world.namespace, "konfig", "--all"];
            world.kubectl().run(&ready).await?;
            for object in &objects {
                delete(&world, &[object]).await?;
            }
            eventually(SOON, "everything to go", async || {
                let left =
                    world.kubectl().run(&["get", "konfig", "-o", "name", "-n", &world.namespace]).await?;
                ensure!(left.is_empty(), "{left}");
                Ok(())
            })
            .await?;
            ensure!(left_in_aws(&world).await?.is_empty(), "{:#?}", left_in_aws(&world).await?);
            match order {
                0 => objects.reverse(),
                _ => objects.rotate_left(3),
            }
        }
        anyhow::Ok(())
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// An uninstall by mistake does not take production with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_crd_that_is_deleted_holds_its_objects_until_it_is_allowed() -> Result<()> {
    let (world, operator) = World::moto(&NO_TIMERS).await?;
    let vpcs = world.history("VPC").await?;
    world.apply(&manifest::vpc("main")).await?;
    vpcs.until_ready(SOON, "main").await?;
    let id = world.status("VPC", "main", "vpcId").await?;
    let mark = world.aws.mark();
    let crd = "vpcs.aws.konfig.io";
    world.kubectl().run(&["delete", "crd", crd, "--wait=false"]).await?;
    let held =
        vpcs.until_reason(SOON, "main", "Error").await.inspect_err(|_| println!("{}", operator.log()))?;
    let message = held.condition("Ready", "message").unwrap_or_default();
    ensure!(message.contains("aws.konfig.io/allow-deletion: \"true\""), "{message}");
    ensure!(held.condition("Stalled", "status") == Some("True"), "{held:#?}");
    throughout(Duration::from_secs(2), "the VPC stays", async || {
        ensure!(world.changes_since(mark).is_empty(), "{}", world.aws.table());
        world.boto.call("ec2", "describe_vpcs", json!({ "VpcIds": [id] })).await?;
        Ok(())
    })
    .await?;

    world.kubectl().run(&["annotate", "crd", crd, "aws.konfig.io/allow-deletion=true"]).await?;
    world
        .kubectl()
        .run(&["wait", "--for=delete", &format!("crd/{crd}"), "--timeout=30s"])
        .await
        .inspect_err(|_| println!("{}", operator.log()))?;
    ensure!(world.changes_since(mark) == ["DeleteVpc"], "{}", world.aws.table());
    Ok(())
}
