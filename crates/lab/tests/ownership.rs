//! Whose something in AWS is, and what becomes of what existed before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use lab::proxy::aws::{Action, Match, Table};
use lab::subject::{TRUST, manifest, manifests};
use lab::wait::throughout;
use lab::{Boto, Operator, World, eventually};
use serde_json::{Value, json};

const OWNER: &str = "konfig.io/owner";
const UID: &str = "konfig.io/uid";
/// Several retries of what is in Error, at the pace of the tests.
const A_WHILE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(20);

fn vpc(name: &str) -> String {
    manifest("VPC", name, &[], json!({"cidrBlock": "10.0.0.0/16"}))
}

fn role(name: &str, role_name: &str) -> String {
    let spec = json!({"roleName": role_name, "assumeRolePolicyDocument": TRUST});
    manifest("IAMRole", name, &[], spec)
}

#[tokio::test(flavor = "multi_thread")]
async fn ownership_stands_in_aws() -> Result<()> {
    let (mut world, operator) = World::moto(&[]).await?;
    let ends = async {
        tags_are_in_the_create_calls(&world).await.context("tags at creation")?;
        tokio::try_join!(
            async { a_missing_uid_is_put_back(&world).await.context("a missing uid") },
            async { anothers_uid_is_a_conflict(&world).await.context("another's uid") },
            async { a_live_claim_is_a_conflict(&world).await.context("a live claim") },
            async { another_clusters_claim_needs_a_word(&world).await.context("adopt-from") },
        )
    };
    ends.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    let operator = dead_claims_are_taken_over(&world, operator).await.context("dead claims")?;
    long_names_are_owners_too(&mut world)
        .await
        .context("long names")
        .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    Ok(())
}

/// R6: both tags are in the create call itself, of each AWS resource of each kind.
async fn tags_are_in_the_create_calls(world: &World) -> Result<()> {
    let reference = json!({"name": "net"});
    let subnet = json!({"vpcRef": reference, "cidrBlock": "10.0.1.0/24", "availabilityZone": "eu-west-1a"});
    let group = json!({"vpcRef": reference, "groupName": "net", "description": "net"});
    let stack = [
        vpc("net"),
        manifest("InternetGateway", "net", &[], json!({"vpcRef": reference})),
        manifest("Subnet", "net", &[], subnet),
        manifest("SecurityGroup", "net", &[], group),
        manifest("NatGateway", "net", &[], json!({"subnetRef": reference})),
        role("net", "net"),
    ];
    world.apply(&manifests(&stack)).await?;
    for (kind, create) in [
        ("VPC", "CreateVpc"),
        ("InternetGateway", "CreateInternetGateway"),
        ("Subnet", "CreateSubnet"),
        ("SecurityGroup", "CreateSecurityGroup"),
        ("NatGateway", "AllocateAddress"),
        ("NatGateway", "CreateNatGateway"),
        ("IAMRole", "CreateRole"),
    ] {
        let subject = world.subject(kind, "net");
        subject.ready().await?;
        let calls = world.aws.calls().into_iter().filter(|call| call.operation == create && call.succeeded());
        let calls = calls.collect::<Vec<_>>();
        ensure!(calls.len() == 1, "{create} once:\n{}", world.aws.table());
        let has = |wanted: &str| calls[0].params.values().any(|value| value == wanted);
        for tag in [OWNER, UID, &subject.owner(), &subject.uid().await?] {
            ensure!(has(tag), "{create} without {tag}: {:?}", calls[0].params);
        }
    }
    ensure!(world.aws.count("CreateTags") + world.aws.count("TagRole") == 0, "{}", world.aws.table());
    Ok(())
}

async fn a_missing_uid_is_put_back(world: &World) -> Result<()> {
    world.apply(&vpc("bare")).await?;
    let subject = world.subject("VPC", "bare");
    subject.ready().await?;
    let (id, uid) = (subject.status("/vpcId").await?, subject.uid().await?);

    world.boto.untag(&id, UID).await?;
    let mark = world.aws.mark();
    subject.annotate("reconcile", json!("missing")).await?;
    let notes = subject.event("DriftCorrected").await?;
    ensure!(notes[0].contains("/tags/konfig.io~1uid"), "{notes:?}");
    ensure!(world.boto.tags(&id).await?.get(UID) == Some(&uid));
    world.ensure_changes(mark, &id, &["CreateTags"])?;

    // Nor does it hinder the deletion.
    world.boto.untag(&id, UID).await?;
    subject.delete().await?;
    subject.gone().await?;
    ensure!(!world.boto.has_vpc(&id).await?, "left in AWS");
    Ok(())
}

async fn anothers_uid_is_a_conflict(world: &World) -> Result<()> {
    world.apply(&vpc("stolen")).await?;
    let subject = world.subject("VPC", "stolen");
    subject.ready().await?;
    let id = subject.status("/vpcId").await?;
    let thief = "prod/shop/VPC/main";
    world.boto.tag(&id, &[(OWNER, thief), (UID, "11111111-2222-4333-8444-555555555555")]).await?;

    let mark = world.aws.mark();
    subject.change(json!({"tags": {"team": "net"}})).await?;
    subject.says("Error", &[thief, &subject.owner()]).await?;
    throughout(A_WHILE, "no call that changes it", async || world.ensure_changes(mark, &id, &[])).await?;
    subject.says("Error", &[thief, &subject.owner()]).await?;
    ensure!(!world.calls_about(mark, &id).is_empty(), "it was not even looked at");

    subject.delete().await?;
    subject.says("Error", &[thief, &subject.owner(), "abandon"]).await?;
    throughout(A_WHILE, "no call that changes it", async || world.ensure_changes(mark, &id, &[])).await?;
    ensure!(world.boto.has_vpc(&id).await?, "deleted under its new owner");

    // What its message advises.
    subject.annotate("deletion-policy", json!("abandon")).await?;
    subject.gone().await?;
    ensure!(world.boto.tags(&id).await?.get(OWNER).map(String::as_str) == Some(thief));
    world.ensure_changes(mark, &id, &[])
}

async fn a_live_claim_is_a_conflict(world: &World) -> Result<()> {
    let (first, second) = (world.subject("IAMRole", "first"), world.subject("IAMRole", "second"));
    world.apply(&role("first", "wanted")).await?;
    first.ready().await?;
    let mark = world.aws.mark();
    world.apply(&role("second", "wanted")).await?;
    second.says("Error", &["wanted", &first.owner(), &second.owner()]).await?;
    second.delete().await?;
    second.gone().await?;
    world.ensure_changes(mark, "wanted", &[])?;
    ensure!(world.boto.has_role("wanted").await?);

    // Deleted and gone, the first one makes way.
    world.apply(&role("second", "wanted")).await?;
    second.says("Error", &[&first.owner()]).await?;
    first.delete().await?;
    first.gone().await?;
    second.ready().await?;
    ensure!(world.boto.role_tags("wanted").await?[UID] == second.uid().await?);
    Ok(())
}

async fn another_clusters_claim_needs_a_word(world: &World) -> Result<()> {
    let claim = [(OWNER, "east/shop/IAMRole/api"), (UID, "22222222-2222-4333-8444-555555555555")];
    world.boto.make_role("moved", TRUST, &claim).await?;
    let subject = world.subject("IAMRole", "moved");
    let mark = world.aws.mark();
    world.apply(&role("moved", "moved")).await?;
    subject.says("Error", &["east/shop/IAMRole/api", &subject.owner(), "adopt-from"]).await?;
    subject.annotate("adopt-from", json!("west/shop/IAMRole/api")).await?;
    throughout(A_WHILE, "the wrong word changes nothing", async || world.ensure_changes(mark, "moved", &[]))
        .await?;

    subject.annotate("adopt-from", json!("east/shop/IAMRole/api")).await?;
    subject.ready().await?;
    world.ensure_changes(mark, "moved", &["TagRole"])?;
    let tags = world.boto.role_tags("moved").await?;
    ensure!(tags[UID] == subject.uid().await? && tags[OWNER] == subject.owner(), "{tags:?}");
    ensure!(subject.status("/adopted").await? == "true");

    subject.delete().await?;
    subject.gone().await?;
    ensure!(world.boto.has_role("moved").await?, "what was adopted is released");
    ensure!(world.boto.role_tags("moved").await?.is_empty());
    Ok(())
}

/// A claim of our own cluster whose object is gone counts as made by us.
async fn dead_claims_are_taken_over(world: &World, mut operator: Operator) -> Result<Operator> {
    world.apply(&manifests(&[vpc("again"), role("before", "inherited")])).await?;
    let (again, before) = (world.subject("VPC", "again"), world.subject("IAMRole", "before"));
    again.ready().await?;
    before.ready().await?;
    let (id, uid) = (again.status("/vpcId").await?, again.uid().await?);

    operator.kill()?;
    again.remove_by_force().await?;
    before.remove_by_force().await?;
    let mark = world.aws.mark();
    world.apply(&manifests(&[vpc("again"), role("after", "inherited")])).await?;
    let operator = world.operator(&[]).await?;
    let after = world.subject("IAMRole", "after");
    let taken = async {
        again.ready().await?;
        after.ready().await?;
        ensure!(again.uid().await? != uid && again.status("/vpcId").await? == id, "another VPC");
        ensure!(world.boto.tags(&id).await?[UID] == again.uid().await?);
        let tags = world.boto.role_tags("inherited").await?;
        ensure!(tags[UID] == after.uid().await? && tags[OWNER] == after.owner(), "{tags:?}");
        again.event("TakenOver").await?;
        after.event("TakenOver").await?;
        world.ensure_changes(mark, &id, &["CreateTags"])?;
        world.ensure_changes(mark, "inherited", &["TagRole"])?;
        ensure!(
            !world
                .aws
                .calls_since(mark)
                .iter()
                .any(|call| call.operation.starts_with("Create") && call.operation != "CreateTags"),
            "something was made:\n{}",
            Table(&world.aws.calls_since(mark))
        );

        again.delete().await?;
        after.delete().await?;
        again.gone().await?;
        after.gone().await?;
        ensure!(!world.boto.has_vpc(&id).await?, "the VPC is left");
        ensure!(!world.boto.has_role("inherited").await?, "the role is left");
        Ok(())
    };
    taken.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    Ok(operator)
}

/// The longest names that Kubernetes allows: the owner ends in a hash.
async fn long_names_are_owners_too(world: &mut World) -> Result<()> {
    let (namespace, name) = ("n".repeat(63), "v".repeat(253));
    let object = serde_json::from_value::<Namespace>(json!({"metadata": {"name": namespace}}))?;
    Api::all(world.client.clone()).create(&PostParams::default(), &object).await?;
    world.namespace = namespace;
    world.apply(&manifests(&[vpc(&name), role(&name, "long")])).await?;
    let (net, long) = (world.subject("VPC", &name), world.subject("IAMRole", &name));
    net.ready().await?;
    long.ready().await?;
    let id = net.status("/vpcId").await?;
    for (tags, uid) in [
        (world.boto.tags(&id).await?, net.uid().await?),
        (world.boto.role_tags("long").await?, long.uid().await?),
    ] {
        let owner = &tags[OWNER];
        ensure!(tags[UID] == uid && owner.len() <= 256, "{tags:?}");
        ensure!(owner.starts_with(&format!("lab/{}/", world.namespace)), "{owner}");
        // What IAM takes in a tag's value.
        ensure!(owner.chars().all(|c| c.is_ascii_alphanumeric() || "_.:/=+-@".contains(c)), "{owner}");
    }

    // Its own claim is recognised, and another's of the same beginning is not taken for it.
    let mark = world.aws.mark();
    net.annotate("reconcile", json!("long")).await?;
    eventually(SOON, "a look", async || {
        ensure!(!world.calls_about(mark, &id).is_empty());
        Ok(())
    })
    .await?;
    let other = "v".repeat(252) + "w";
    world.apply(&role(&other, "long")).await?;
    world.subject("IAMRole", &other).says("Error", &["long in AWS belongs to"]).await?;
    net.delete().await?;
    long.delete().await?;
    net.gone().await?;
    world.ensure_changes(mark, &id, &["DeleteVpc"])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_existed_before_is_adopted_and_released() -> Result<()> {
    let (world, mut operator) = World::moto(&[]).await?;
    let ends = async {
        tokio::try_join!(
            async { adopted_by_name(&world).await.context("by name") },
            async { adopted_by_id(&world).await.context("by id") },
            async { abandoned(&world).await.context("abandoned") },
            async { several_candidates(&world).await.context("several candidates") },
        )
    };
    ends.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    operator.kill()?;
    let operator = world.operator(&["--adopt=never"]).await?;
    never_adopted_unasked(&world)
        .await
        .context("never")
        .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

async fn adopted_by_name(world: &World) -> Result<()> {
    let boto = &world.boto;
    let net = boto.make_vpc("10.1.0.0/16", &[]).await?;
    let params = json!({"VpcId": net, "CidrBlock": "10.1.1.0/24", "AvailabilityZone": "eu-west-1a"});
    let subnet = boto.make("create_subnet", params, "/Subnet/SubnetId").await?;
    let params = json!({"VpcId": net, "GroupName": "old", "Description": "old"});
    let group = boto.make("create_security_group", params, "/GroupId").await?;
    let ingress =
        json!({"GroupId": group, "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"});
    boto.call("ec2", "authorize_security_group_ingress", ingress).await?;
    boto.make_role("old-role", TRUST, &[("team", "infra")]).await?;
    let described = json!({"RoleName": "old-role", "Description": "by hand", "MaxSessionDuration": 7200});
    boto.call("iam", "update_role", described).await?;

    let mark = world.aws.mark();
    let reference = json!({"id": net});
    let in_zone = json!({"vpcRef": reference, "cidrBlock": "10.1.1.0/24", "availabilityZone": "eu-west-1a"});
    let named = json!({"vpcRef": reference, "groupName": "old", "description": "old"});
    let objects = [
        manifest("Subnet", "old", &[], in_zone),
        manifest("SecurityGroup", "old", &[], named),
        role("old", "old-role"),
    ];
    world.apply(&manifests(&objects)).await?;
    for (kind, id, tag) in [
        ("Subnet", &*subnet, "CreateTags"),
        ("SecurityGroup", &group, "CreateTags"),
        ("IAMRole", "old-role", "TagRole"),
    ] {
        let subject = world.subject(kind, "old");
        subject.ready().await?;
        ensure!(subject.status("/adopted").await? == "true", "{kind}");
        let notes = subject.event("Adopted").await?;
        ensure!(notes[0].contains(id), "{notes:?}");
        // Neither its description, its session, its rules nor anything else is touched.
        world.ensure_changes(mark, id, &[tag])?;
    }

    let mark = world.aws.mark();
    for (kind, id, untag) in [
        ("Subnet", &*subnet, "DeleteTags"),
        ("SecurityGroup", &group, "DeleteTags"),
        ("IAMRole", "old-role", "UntagRole"),
    ] {
        let subject = world.subject(kind, "old");
        subject.delete().await?;
        subject.gone().await?;
        subject.event("Released").await?;
        world.ensure_changes(mark, id, &[untag])?;
    }
    ensure!(boto.tags(&subnet).await?.is_empty() && boto.tags(&group).await?.is_empty());
    let left = boto.role_tags("old-role").await?;
    ensure!(left == [("team".to_owned(), "infra".to_owned())].into(), "{left:?}");
    let groups = boto.call("ec2", "describe_security_groups", json!({"GroupIds": [group]})).await?;
    ensure!(groups.to_string().contains("10.0.0.0/8"), "{groups}");
    Ok(())
}

async fn adopted_by_id(world: &World) -> Result<()> {
    let boto = &world.boto;
    let net = boto.make_vpc("10.2.0.0/16", &[("team", "infra")]).await?;
    let gateway =
        boto.make("create_internet_gateway", json!({}), "/InternetGateway/InternetGatewayId").await?;
    boto.call("ec2", "attach_internet_gateway", json!({"InternetGatewayId": gateway, "VpcId": net})).await?;
    let params = json!({"VpcId": net, "CidrBlock": "10.2.1.0/24", "AvailabilityZone": "eu-west-1a"});
    let subnet = boto.make("create_subnet", params, "/Subnet/SubnetId").await?;
    let address = boto.make("allocate_address", json!({"Domain": "vpc"}), "/AllocationId").await?;
    let params = json!({"SubnetId": subnet, "AllocationId": address});
    let nat = boto.make("create_nat_gateway", params, "/NatGateway/NatGatewayId").await?;

    let mark = world.aws.mark();
    let objects = [
        manifest("VPC", "theirs", &[("external-id", &net)], json!({"cidrBlock": "10.2.0.0/16"})),
        manifest("InternetGateway", "theirs", &[("external-id", &gateway)], json!({"vpcRef": {"id": net}})),
        manifest("NatGateway", "theirs", &[("external-id", &nat)], json!({"subnetRef": {"id": subnet}})),
    ];
    world.apply(&manifests(&objects)).await?;
    for (kind, id) in [("VPC", &net), ("InternetGateway", &gateway), ("NatGateway", &nat)] {
        let subject = world.subject(kind, "theirs");
        subject.ready().await?;
        ensure!(subject.status("/adopted").await? == "true", "{kind}");
        subject.event("Adopted").await?;
        world.ensure_changes(mark, id, &["CreateTags"])?;
        ensure!(boto.tags(id).await?[UID] == subject.uid().await?, "{kind}");
        // Nothing is made for what has all it needs, an Elastic IP least of all.
        world.ensure_changes(mark, &format!("{}/{kind}/theirs", world.namespace), &["CreateTags"])?;
    }
    ensure!(world.subject("NatGateway", "theirs").status("/elasticIpAllocationId").await? == address);

    let mark = world.aws.mark();
    let going = world.subject("NatGateway", "theirs");
    going.annotate("deletion-policy", json!("delete")).await?;
    going.delete().await?;
    going.gone().await?;
    // The address was theirs and stays.
    world.ensure_changes(mark, &nat, &["DeleteNatGateway"])?;
    ensure!(boto.call("ec2", "describe_addresses", json!({"AllocationIds": [address]})).await.is_ok());
    for kind in ["InternetGateway", "VPC"] {
        world.subject(kind, "theirs").delete().await?;
        world.subject(kind, "theirs").gone().await?;
    }
    world.ensure_changes(mark, &gateway, &["DeleteTags"])?;
    world.ensure_changes(mark, &net, &["DeleteTags"])?;
    ensure!(boto.tags(&net).await? == [("team".to_owned(), "infra".to_owned())].into());

    ids_that_lead_nowhere(world, &net).await
}

async fn ids_that_lead_nowhere(world: &World, net: &str) -> Result<()> {
    let missing = "vpc-0123456789abcdef0";
    let annotations = [("external-id", missing)];
    world.apply(&manifest("VPC", "lost", &annotations, json!({"cidrBlock": "10.3.0.0/16"}))).await?;
    let subject = world.subject("VPC", "lost");
    subject.says("Error", &[missing, "external-id", "does not exist"]).await?;
    let owner = subject.owner();
    throughout(A_WHILE, "nothing is made", async || world.ensure_changes(0, &owner, &[])).await?;
    // One that does exist, and then differs where AWS can change nothing.
    subject.annotate("external-id", json!(net)).await?;
    subject.says("Error", &["cidrBlock", "10.2.0.0/16", "10.3.0.0/16"]).await?;
    subject.delete().await?;
    subject.gone().await?;
    ensure!(world.boto.has_vpc(net).await?);
    Ok(())
}

async fn abandoned(world: &World) -> Result<()> {
    let boto = &world.boto;
    let net = boto.make_vpc("10.4.0.0/16", &[]).await?;
    let gateway =
        boto.make("create_internet_gateway", json!({}), "/InternetGateway/InternetGatewayId").await?;
    boto.call("ec2", "attach_internet_gateway", json!({"InternetGatewayId": gateway, "VpcId": net})).await?;
    let spec = json!({"vpcRef": {"id": net}, "cidrBlock": "10.4.1.0/24", "availabilityZone": "eu-west-1a"});
    world.apply(&manifest("Subnet", "left", &[], spec)).await?;
    let spec = json!({"subnetRef": {"name": "left"}, "tags": {"team": "net"}});
    world.apply(&manifest("NatGateway", "left", &[], spec)).await?;
    let (nat, subnet) = (world.subject("NatGateway", "left"), world.subject("Subnet", "left"));
    nat.ready().await?;
    let ids = [
        nat.status("/natGatewayId").await?,
        nat.status("/elasticIpAllocationId").await?,
        subnet.status("/subnetId").await?,
    ];
    let mark = world.aws.mark();
    for subject in [&nat, &subnet] {
        subject.annotate("deletion-policy", json!("abandon")).await?;
        subject.delete().await?;
        subject.gone().await?;
    }
    for id in &ids {
        world.ensure_changes(mark, id, &["DeleteTags"])?;
        let tags = boto.tags(id).await?;
        ensure!(!tags.contains_key(OWNER) && !tags.contains_key(UID), "{id}: {tags:?}");
    }
    ensure!(boto.tags(&ids[0]).await?["team"] == "net");
    let found = boto.call("ec2", "describe_nat_gateways", json!({"NatGatewayIds": [ids[0]]})).await?;
    ensure!(found["NatGateways"][0]["State"] == "available", "{found}");
    Ok(())
}

async fn several_candidates(world: &World) -> Result<()> {
    let annotations = [("paused", "true")];
    world.apply(&manifest("VPC", "twins", &annotations, json!({"cidrBlock": "10.5.0.0/16"}))).await?;
    let subject = world.subject("VPC", "twins");
    let (owner, uid) = (subject.owner(), subject.uid().await?);
    let claim = [(OWNER, owner.as_str()), (UID, uid.as_str())];
    let [one, two] = [&world.boto, &world.boto].map(|boto: &Boto| boto.make_vpc("10.5.0.0/16", &claim));
    let (one, two) = (one.await?, two.await?);

    subject.annotate("paused", Value::Null).await?;
    subject.says("Error", &[&one, &two]).await?;
    throughout(A_WHILE, "nothing is made or deleted", async || world.ensure_changes(0, &uid, &[])).await?;
    // What its message advises.
    world.boto.untag(&one, UID).await?;
    world.boto.untag(&one, OWNER).await?;
    subject.ready().await?;
    ensure!(subject.status("/vpcId").await? == two);
    subject.delete().await?;
    subject.gone().await?;
    ensure!(world.boto.has_vpc(&one).await? && !world.boto.has_vpc(&two).await?);
    Ok(())
}

async fn never_adopted_unasked(world: &World) -> Result<()> {
    world.boto.make_role("theirs", TRUST, &[]).await?;
    let mark = world.aws.mark();
    world.apply(&role("theirs", "theirs")).await?;
    let subject = world.subject("IAMRole", "theirs");
    subject.says("Error", &["theirs exists in AWS", "aws.konfig.io/external-id: theirs"]).await?;
    throughout(A_WHILE, "it is not touched", async || world.ensure_changes(mark, "theirs", &[])).await?;

    // What its message advises.
    subject.annotate("external-id", json!("theirs")).await?;
    subject.ready().await?;
    world.ensure_changes(mark, "theirs", &["TagRole"])?;
    subject.delete().await?;
    subject.gone().await?;
    ensure!(world.boto.has_role("theirs").await?);

    // The answer to our own create that got lost is no adoption.
    let lost =
        world.aws.fault(Match::op("CreateRole").param("RoleName", "ours").times(1), Action::ResetAfter);
    world.apply(&role("ours", "ours")).await?;
    let ours = world.subject("IAMRole", "ours");
    ours.ready().await?;
    ensure!(lost.hits() == 1 && ours.status("/adopted").await? != "true");
    ours.delete().await?;
    ours.gone().await?;
    ensure!(!world.boto.has_role("ours").await?);
    Ok(())
}
