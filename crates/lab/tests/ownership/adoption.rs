//! What existed before: adopted, and released again.

use anyhow::{Context, Result, ensure};
use lab::proxy::aws::{Action, Match};
use lab::subject::{TRUST, manifest, manifests};
use lab::wait::throughout;
use lab::{Boto, World};
use serde_json::{Value, json};

use super::{A_WHILE, OWNER, UID, role};

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
