//! References: who waits for whom, what that costs, and what wakes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::history::Version;
use lab::proxy::aws::{Action, Match};
use lab::wait::throughout;
use lab::{History, World, cluster, eventually, manifest};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
const WHILE: Duration = Duration::from_millis(1500);
/// Nothing happens by a timer in a test that starts the operator like this.
const NO_TIMERS: [&str; 2] = ["--drift-interval=1h", "--time-scale=1000"];

async fn until_waiting(history: &History, name: &str, why: &str) -> Result<()> {
    history
        .until(SOON, name, why, |version: &Version| {
            let message = version.condition("Ready", "message").unwrap_or_default();
            version.condition("Ready", "reason") == Some("DependencyNotReady") && message.contains(why)
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_costs_nothing_and_is_woken() -> Result<()> {
    let (world, operator) = World::moto(&NO_TIMERS).await?;
    let histories = Histories::of(&world).await?;
    let outcome = async {
        a_target_appears_and_turns_ready(&world, &histories).await?;
        a_busy_target_flips_nobody(&world, &histories).await?;
        a_target_goes_and_comes_back(&world, &histories).await?;
        a_changed_reference_waits_for_its_target(&world, &histories).await?;
        an_internet_gateway_wakes_nat_gateways(&world).await
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

struct Histories {
    vpcs: History,
    subnets: History,
    groups: History,
    gateways: History,
}

impl Histories {
    async fn of(world: &World) -> Result<Self> {
        Ok(Self {
            vpcs: world.history("VPC").await?,
            subnets: world.history("Subnet").await?,
            groups: world.history("SecurityGroup").await?,
            gateways: world.history("InternetGateway").await?,
        })
    }
}

async fn a_target_appears_and_turns_ready(world: &World, histories: &Histories) -> Result<()> {
    let Histories { vpcs, subnets, groups, gateways } = histories;
    let namespace = &world.namespace;
    let mark = world.aws.mark();
    let waiting = [
        manifest::subnet("one", "main", 1),
        manifest::security_group("web", "main", &[]),
        manifest::internet_gateway("main", "main"),
    ];
    world.apply(&manifest::all(&waiting)).await?;
    let missing = format!("VPC {namespace}/main does not exist");
    until_waiting(subnets, "one", &missing).await?;
    until_waiting(groups, "web", &missing).await?;
    until_waiting(gateways, "main", &missing).await?;
    world.no_calls_since(mark, WHILE, "no call for objects that wait").await?;

    // There, but not Ready: only the VPC itself costs calls.
    let held = world.aws.fault(Match::op("CreateVpc"), Action::Hold);
    world.apply(&manifest::vpc("main")).await?;
    ensure!(held.reached(1, SOON).await, "the VPC was not begun");
    until_waiting(subnets, "one", &format!("VPC {namespace}/main is not Ready (Creating)")).await?;
    until_waiting(groups, "web", &format!("VPC {namespace}/main is not Ready")).await?;
    throughout(WHILE, "only calls for the VPC", async || {
        let calls = world.calls_since(mark);
        ensure!(calls.iter().all(|call| call.operation.contains("Vpc")), "{}", world.aws.table());
        Ok(())
    })
    .await?;

    held.release();
    vpcs.until_ready(SOON, "main").await?;
    subnets.until_ready(SOON, "one").await?;
    groups.until_ready(SOON, "web").await?;
    gateways.until_ready(SOON, "main").await?;
    for operation in ["CreateVpc", "CreateSubnet", "CreateSecurityGroup", "CreateInternetGateway"] {
        ensure!(world.aws.count(operation) == 1, "{operation} once");
    }
    // Who watches sees no wait where there was none: straight from the wait to the work.
    ensure!(subnets.reasons("one") == ["DependencyNotReady", "Creating", "Synced"]);

    // By id, without a VPC object.
    let id = world.status("VPC", "main", "vpcId").await?;
    world.apply(&manifest::of("Subnet", "by-id", manifest::subnet_spec(json!({ "id": id }), 2))).await?;
    subnets.until_ready(SOON, "by-id").await?;
    let made = world.boto.call(
        "ec2",
        "describe_subnets",
        json!({ "Filters": [{ "Name": "vpc-id", "Values": [id] }] }),
    );
    ensure!(made.await?["Subnets"].as_array().map(Vec::len) == Some(2), "two subnets in AWS");
    Ok(())
}

/// A VPC that is throttled at an update does not flip what is in it; what is new waits.
async fn a_busy_target_flips_nobody(world: &World, histories: &Histories) -> Result<()> {
    let Histories { vpcs, subnets, groups, .. } = histories;
    let throttled = world.aws.fault(Match::op("ModifyVpcAttribute"), Action::Throttle);
    let (subnets_before, groups_before) = (subnets.versions("one").len(), groups.versions("web").len());
    world.merge("VPC", "main", json!({ "spec": { "enableDnsHostnames": true } })).await?;
    vpcs.until_reason(SOON, "main", "Throttled").await?;
    let mark = world.aws.mark();
    world.apply(&manifest::subnet("late", "main", 3)).await?;
    until_waiting(subnets, "late", "is not Ready (Throttled)").await?;
    world.no_calls_since(mark, WHILE, "no call while the VPC is throttled").await?;
    ensure!(subnets.versions("one").len() == subnets_before, "{:#?}", subnets.versions("one").pop());
    ensure!(groups.versions("web").len() == groups_before, "{:#?}", groups.versions("web").pop());

    // Not even when it is looked at anew, or changed itself.
    world.observe("Subnet", "one", "busy").await?;
    let changed = world.merge("Subnet", "one", json!({ "spec": { "mapPublicIpOnLaunch": true } })).await?;
    subnets.until_ready_after(SOON, &changed).await?;
    let flipped = subnets.versions("one").into_iter().skip(subnets_before);
    let reasons: Vec<_> =
        flipped.filter_map(|version| version.condition("Ready", "reason").map(str::to_owned)).collect();
    ensure!(reasons.iter().all(|reason| ["Synced", "Updating"].contains(&reason.as_str())), "{reasons:?}");

    throttled.release();
    world.observe("VPC", "main", "recovered").await?;
    vpcs.until_ready(SOON, "main").await?;
    subnets.until_ready(SOON, "late").await?;
    Ok(())
}

/// A target that is gone is missed at once, and its return is seen at once. AWS hears nothing of it.
async fn a_target_goes_and_comes_back(world: &World, histories: &Histories) -> Result<()> {
    let Histories { vpcs, subnets, .. } = histories;
    let (vpc, subnet) =
        (world.status("VPC", "main", "vpcId").await?, world.status("Subnet", "one", "subnetId").await?);
    world.annotate("VPC", "main", "deletion-policy", json!("abandon")).await?;
    world.kubectl().run(&["delete", "vpc/main", "-n", &world.namespace, "--timeout=30s"]).await?;
    until_waiting(subnets, "one", &format!("VPC {}/main does not exist", world.namespace)).await?;
    ensure!(world.status("Subnet", "one", "subnetId").await? == subnet, "its id was forgotten");

    let mark = world.aws.mark();
    let mut back: Value = serde_json::from_str(&manifest::vpc("main"))?;
    back["metadata"]["annotations"] = json!({ "aws.konfig.io/external-id": vpc });
    world.apply(&back.to_string()).await?;
    vpcs.until_ready(SOON, "main").await?;
    subnets.until_ready(SOON, "one").await?;
    ensure!(world.status("Subnet", "one", "subnetId").await? == subnet, "another subnet");
    let changes = world.changes_since(mark);
    ensure!(changes.iter().all(|change| change == "CreateTags"), "{changes:?}");
    Ok(())
}

/// An internet gateway that is to move stays where it is until the other VPC is Ready.
async fn a_changed_reference_waits_for_its_target(world: &World, histories: &Histories) -> Result<()> {
    let Histories { vpcs, gateways, .. } = histories;
    world.aws.slow("CreateVpc", 2);
    world.apply(&manifest::of("VPC", "other", json!({ "cidrBlock": "10.1.0.0/16" }))).await?;
    vpcs.until(SOON, "other", "made, but not ready", |version| {
        version.field("/status/vpcId").is_some() && version.condition("Ready", "reason") == Some("Creating")
    })
    .await?;
    world.aws.slow("CreateVpc", 0);
    let mark = world.aws.mark();
    world.merge("InternetGateway", "main", json!({ "spec": { "vpcRef": { "name": "other" } } })).await?;
    until_waiting(gateways, "main", &format!("VPC {}/other is not Ready (Creating)", world.namespace))
        .await?;
    ensure!(world.changes_since(mark).is_empty(), "{:?}", world.changes_since(mark));

    // AWS finishes; it takes three looks to see.
    for look in ["1", "2", "3"] {
        world.observe("VPC", "other", look).await?;
        eventually(SOON, "the look", async || {
            let looks =
                world.calls_since(mark).iter().filter(|call| call.operation == "DescribeVpcs").count();
            ensure!(looks >= look.parse()?, "{looks}");
            Ok(())
        })
        .await?;
    }
    vpcs.until_ready(SOON, "other").await?;
    gateways.until_ready(SOON, "main").await?;
    ensure!(
        world.changes_since(mark) == ["DetachInternetGateway", "AttachInternetGateway"],
        "{:?}",
        world.changes_since(mark)
    );
    let (id, vpc) = (
        world.status("InternetGateway", "main", "internetGatewayId").await?,
        world.status("VPC", "other", "vpcId").await?,
    );
    let held =
        world.boto.call("ec2", "describe_internet_gateways", json!({ "InternetGatewayIds": [id] })).await?;
    ensure!(held["InternetGateways"][0]["Attachments"][0]["VpcId"] == vpc.as_str(), "{held}");
    Ok(())
}

/// What a NAT gateway waits for stands in no field of it.
async fn an_internet_gateway_wakes_nat_gateways(world: &World) -> Result<()> {
    let (gateways, nats) = (world.history("InternetGateway").await?, world.history("NatGateway").await?);
    let refusal = Action::error(400, "Gateway.NotAttached", "Network vpc-x has no Internet gateway attached");
    let refused = world.aws.fault(Match::op("CreateNatGateway"), refusal);
    world.apply(&manifest::nat_gateway("main", "one")).await?;
    until_waiting(&nats, "main", "CreateNatGateway: Gateway.NotAttached").await?;
    refused.release();
    world.apply(&manifest::internet_gateway("second", "main")).await?;
    gateways.until_ready(SOON, "second").await?;
    nats.until_ready(SOON, "main").await?;
    ensure!(world.aws.count("AllocateAddress") == 1, "one address");
    Ok(())
}

/// The groups that the rules of a group name, as AWS has them.
async fn sources(world: &World, name: &str) -> Result<Vec<String>> {
    let id = world.status("SecurityGroup", name, "groupId").await?;
    let found = world.boto.call("ec2", "describe_security_groups", json!({ "GroupIds": [id] })).await?;
    let pairs = found["SecurityGroups"][0]["IpPermissions"][0]["UserIdGroupPairs"].clone();
    let pairs = pairs.as_array().context("no rules")?;
    let mut sources: Vec<_> =
        pairs.iter().map(|pair| pair["GroupId"].as_str().unwrap_or_default().to_owned()).collect();
    sources.sort();
    Ok(sources)
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_name_each_other_come_and_go_together() -> Result<()> {
    let (world, operator) = World::moto(&NO_TIMERS).await?;
    let groups = world.history("SecurityGroup").await?;
    let outcome = async {
        world.apply(&manifest::vpc("main")).await?;
        for order in [["a", "b"], ["b", "a"]] {
            for name in order {
                // Each names the other, and itself.
                let other = if name == "a" { "b" } else { "a" };
                world.apply(&manifest::security_group(name, "main", &[other, name])).await?;
                if name == order[0] {
                    until_waiting(
                        &groups,
                        name,
                        &format!("SecurityGroup {}/{other} does not exist", world.namespace),
                    )
                    .await?;
                }
            }
            for name in order {
                groups.until_ready(SOON, name).await?;
            }
            let mut ids = Vec::new();
            for name in order {
                ids.push(world.status("SecurityGroup", name, "groupId").await?);
            }
            ids.sort();
            for name in order {
                ensure!(sources(&world, name).await? == ids, "{name}: {:?}", sources(&world, name).await?);
            }
            let names = order.map(|name| format!("securitygroup/{name}"));
            let args = ["delete", "-n", &world.namespace, "--timeout=30s", &names[0], &names[1]];
            world.kubectl().run(&args).await?;
            let left = world.boto.call("ec2", "describe_security_groups", json!({})).await?;
            let left = left["SecurityGroups"].as_array().unwrap().clone();
            ensure!(left.iter().all(|group| group["GroupName"] == "default"), "{left:#?}");
        }
        anyhow::Ok(())
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

#[tokio::test(flavor = "multi_thread")]
async fn other_namespaces_are_referred_to_unless_forbidden() -> Result<()> {
    let (world, mut operator) = World::moto(&NO_TIMERS).await?;
    let subnets = world.history("Subnet").await?;
    let other = cluster::namespace(&world.client, "other").await?;
    let far = json!({ "name": "far", "namespace": other });
    world.apply(&manifest::of("Subnet", "one", manifest::subnet_spec(far.clone(), 1))).await?;
    until_waiting(&subnets, "one", &format!("VPC {other}/far does not exist")).await?;
    let mut vpc: Value = serde_json::from_str(&manifest::vpc("far"))?;
    vpc["metadata"]["namespace"] = json!(other);
    world.control_plane.apply(&vpc.to_string()).await?;
    subnets.until_ready(SOON, "one").await.inspect_err(|_| println!("{}", operator.log()))?;

    ensure!(operator.term(SOON).await?.success());
    let args: Vec<_> = NO_TIMERS.into_iter().chain(["--cross-namespace-refs=deny"]).collect();
    let _strict = world.operator(&args).await?;
    let mark = world.aws.mark();
    world.apply(&manifest::of("Subnet", "two", manifest::subnet_spec(far, 2))).await?;
    let refused = subnets.until_reason(SOON, "two", "Error").await?;
    let message = refused.condition("Ready", "message").unwrap_or_default();
    ensure!(
        message.contains(&format!("VPC {other}/far")) && message.contains("--cross-namespace-refs=deny"),
        "{message}"
    );
    world.no_calls_since(mark, WHILE, "no call for a forbidden reference").await
}
