//! Claims: ours, another's, those of objects that are gone, and those of the longest names.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use lab::proxy::aws::Table;
use lab::subject::{TRUST, manifest, manifests};
use lab::wait::throughout;
use lab::{Operator, World, eventually};
use serde_json::json;

use super::{A_WHILE, OWNER, SOON, UID, role, vpc};

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
