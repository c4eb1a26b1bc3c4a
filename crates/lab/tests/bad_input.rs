//! What is wrong and changes: with the spec, with AWS, or with the operator's flags. What is wrong from the
//! start is in `e2e/hostile`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use lab::proxy::aws::{Action, Match};
use lab::subject::{TRUST, manifest, manifests};
use lab::wait::throughout;
use lab::{Subject, World, cluster};
use serde_json::{Value, json};

const A_WHILE: Duration = Duration::from_secs(2);

/// A valid spec of each kind, as short as it can be.
fn base(kind: &str) -> Value {
    match kind {
        "VPC" => json!({"cidrBlock": "10.0.0.0/16"}),
        "Subnet" => {
            json!({"vpcRef": {"name": "net"}, "cidrBlock": "10.0.1.0/24", "availabilityZone": "eu-west-1a"})
        }
        "InternetGateway" => json!({"vpcRef": {"name": "net"}}),
        "NatGateway" => json!({"subnetRef": {"name": "net"}}),
        "SecurityGroup" => json!({"vpcRef": {"name": "net"}, "groupName": "web", "description": "web"}),
        "IAMRole" => json!({"roleName": "app", "assumeRolePolicyDocument": TRUST}),
        other => panic!("no base for {other}"),
    }
}

/// What the API server says to a manifest, as `kubectl apply --validate=strict` would send it.
async fn apply(
    client: &Client,
    namespace: &str,
    kind: &str,
    name: &str,
    spec: &Value,
    dry: bool,
) -> Result<DynamicObject, String> {
    let text = manifest(kind, name, &[], spec.clone());
    let object: Value = serde_json::from_str(&text).unwrap();
    let params = PatchParams { dry_run: dry, ..PatchParams::apply("test").validation_strict().force() };
    let answer = cluster::api(client, namespace, kind).patch(name, &params, &Patch::Apply(object)).await;
    answer.map_err(|error| match error {
        kube::Error::Api(status) => status.message,
        other => panic!("no answer: {other}"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_aws_cannot_change_is_refused() -> Result<()> {
    let client = cluster::shared().await?.admin_client().await?;
    let namespace = cluster::namespace(&client, "fixed").await?;
    let mut wrong = Vec::new();
    for (kind, optional, changes) in [
        (
            "VPC",
            json!({"instanceTenancy": "dedicated"}),
            json!({"cidrBlock": "10.1.0.0/16", "instanceTenancy": "default"}),
        ),
        (
            "Subnet",
            json!({}),
            json!({"vpcRef": {"name": "other"}, "cidrBlock": "10.0.2.0/24", "availabilityZone": "eu-west-1b"}),
        ),
        (
            "NatGateway",
            json!({"connectivityType": "private"}),
            json!({"subnetRef": {"name": "other"}, "connectivityType": "public"}),
        ),
        (
            "SecurityGroup",
            json!({}),
            json!({"vpcRef": {"name": "other"}, "groupName": "db", "description": "db"}),
        ),
        ("IAMRole", json!({"path": "/team/"}), json!({"roleName": "other", "path": "/other/"})),
    ] {
        let mut full = base(kind);
        json_patch::merge(&mut full, &optional);
        for (name, spec) in [("bare", &base(kind)), ("full", &full)] {
            apply(&client, &namespace, kind, name, spec, false).await.map_err(anyhow::Error::msg)?;
        }
        let mut cases = Vec::new();
        for (field, value) in changes.as_object().unwrap() {
            cases.push((field.as_str(), "full", json!({field: value})));
        }
        for (field, value) in optional.as_object().unwrap() {
            cases.push((field, "full", json!({field: null})));
            cases.push((field, "bare", json!({field: value})));
        }
        if kind == "Subnet" || kind == "SecurityGroup" {
            cases.push(("vpcRef", "full", json!({"vpcRef": {"name": null, "id": "vpc-1"}})));
        }
        for (field, name, change) in cases {
            let mut spec = if name == "full" { full.clone() } else { base(kind) };
            json_patch::merge(&mut spec, &change);
            let answer = apply(&client, &namespace, kind, name, &spec, true).await;
            let expected = format!("{field} cannot be changed in AWS: delete this object and create it anew");
            if !answer.as_ref().is_err_and(|message| message.contains(&expected)) {
                wrong.push(format!("{kind} {name} {change}: {:?}", answer.map(drop)));
            }
        }
        // Everything else can.
        full["tags"] = json!({"team": "net"});
        let changed = apply(&client, &namespace, kind, "full", &full, true).await;
        ensure!(changed.is_ok(), "{kind}: {changed:?}");
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gets_past_admission_is_a_clear_condition() -> Result<()> {
    let (world, mut operator) = World::moto(&[]).await?;
    let ends = async {
        world.apply(&manifest("VPC", "net", &[], base("VPC"))).await?;
        world.subject("VPC", "net").ready().await?;
        tokio::try_join!(
            async { documents(&world).await.context("policy documents") },
            async { references(&world).await.context("references") },
            async { rules(&world).await.context("rules") },
            async { policies(&world).await.context("deletion policies") },
            async { status_by_hand(&world).await.context("status by hand") },
            async { nobody_else_is_harmed(&world).await.context("the healthy ones") },
        )
    };
    ends.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    operator.kill()?;
    let operator = world.operator(&["--cross-namespace-refs=deny"]).await?;
    other_namespaces_denied(&world)
        .await
        .context("other namespaces")
        .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// Made and changed in the middle of all that is wrong.
async fn nobody_else_is_harmed(world: &World) -> Result<()> {
    for round in 0..3 {
        let name = format!("healthy-{round}");
        let role_name = format!("healthy-role-{round}");
        let spec = json!({"roleName": role_name, "assumeRolePolicyDocument": TRUST});
        world
            .apply(&manifests(&[
                manifest("VPC", &name, &[], base("VPC")),
                manifest("IAMRole", &name, &[], spec),
            ]))
            .await?;
        let (net, role) = (world.subject("VPC", &name), world.subject("IAMRole", &name));
        net.ready().await?;
        role.ready().await?;
        net.change(json!({"tags": {"round": round.to_string()}})).await?;
        role.change(json!({"description": "healthy"})).await?;
        net.ready().await?;
        role.ready().await?;
        let id = net.status("/vpcId").await?;
        ensure!(world.boto.tags(&id).await?["round"] == round.to_string());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

async fn documents(world: &World) -> Result<()> {
    let role = |name: &str, document: &str| {
        manifest("IAMRole", name, &[], json!({"roleName": name, "assumeRolePolicyDocument": document}))
    };
    let refused = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Perhaps"}]}"#;
    world.aws.fault(
        Match::op("CreateRole").param("RoleName", "refused"),
        Action::error(400, "MalformedPolicyDocument", "Syntax errors in policy."),
    );
    let huge = json!({"Version": "2012-10-17", "Statement": [{
        "Sid": "Huge", "Effect": "Allow", "Principal": {"AWS": vec!["arn:aws:iam::123456789012:root"; 3200]},
        "Action": "sts:AssumeRole",
    }]})
    .to_string();
    ensure!(huge.len() > 100_000);
    world.aws.fault(
        Match::op("CreateRole").param("RoleName", "huge"),
        Action::error(409, "LimitExceeded", "Cannot exceed quota for ACLSizePerRole: 2048"),
    );
    let all = [role("no-json", r#"{"Version": }"#), role("refused", refused), role("huge", &huge)];
    world.apply(&manifests(&all)).await?;
    for (name, parts) in [
        ("no-json", vec!["spec.assumeRolePolicyDocument", "not JSON", "line 1 column 13"]),
        ("refused", vec!["CreateRole", "MalformedPolicyDocument", "request id"]),
        ("huge", vec!["CreateRole", "LimitExceeded", "ACLSizePerRole", "request id"]),
    ] {
        let subject = world.subject("IAMRole", name);
        let message = subject.says("Error", &parts).await?;
        ensure!(message.len() <= 1024, "{} bytes", message.len());
        ensure!(!world.boto.has_role(name).await?, "{name}");
    }
    ensure!(world.calls_about(0, "no-json").is_empty(), "AWS was called");
    // Put right, it goes on at once; spoiled afterwards, the role stays as it is.
    let mended = world.subject("IAMRole", "no-json");
    mended.change(json!({"assumeRolePolicyDocument": TRUST})).await?;
    mended.ready().await?;
    let mark = world.aws.mark();
    mended.change(json!({"assumeRolePolicyDocument": "{"})).await?;
    mended.says("Error", &["not JSON"]).await?;
    world.ensure_changes(mark, "no-json", &[])?;
    // What cannot be read any more can still be deleted.
    for name in ["no-json", "refused", "huge"] {
        world.subject("IAMRole", name).delete().await?;
        world.subject("IAMRole", name).gone().await?;
    }
    ensure!(!world.boto.has_role("no-json").await?);
    Ok(())
}

/// Another namespace: allowed here, denied later.
async fn references(world: &World) -> Result<()> {
    let elsewhere = cluster::namespace(&world.client, "elsewhere").await?;
    apply(&world.client, &elsewhere, "VPC", "theirs", &base("VPC"), false)
        .await
        .map_err(anyhow::Error::msg)?;
    let mut spec = base("Subnet");
    spec["vpcRef"] = json!({"name": "theirs", "namespace": elsewhere});
    world.apply(&manifest("Subnet", "abroad", &[], spec)).await?;
    world.subject("Subnet", "abroad").ready().await?;
    Ok(())
}

async fn rules(world: &World) -> Result<()> {
    let group = |name: &str, rules: Value| {
        let mut spec = base("SecurityGroup");
        json_patch::merge(&mut spec, &json!({"groupName": name, "ingressRules": rules}));
        manifest("SecurityGroup", name, &[], spec)
    };
    let port =
        |port: usize| json!({"protocol": "tcp", "fromPort": port, "toPort": port, "cidrIpv4": "10.0.0.0/8"});
    let itself = json!([{"protocol": "-1", "sourceGroupRef": "itself"}]);
    let all = [
        group("itself", itself),
        group("sixty", (1..=60).map(port).collect()),
        group("crowded", (1..=255).map(port).collect()),
    ];
    world.apply(&manifests(&all)).await?;
    for name in ["itself", "sixty"] {
        world.subject("SecurityGroup", name).ready().await?;
    }
    let permissions = async |name: &str| -> Result<Value> {
        let id = world.subject("SecurityGroup", name).status("/groupId").await?;
        let groups = world.boto.call("ec2", "describe_security_groups", json!({"GroupIds": [id]})).await?;
        Ok(groups["SecurityGroups"][0]["IpPermissions"].clone())
    };
    let own = world.subject("SecurityGroup", "itself").status("/groupId").await?;
    ensure!(permissions("itself").await?[0]["UserIdGroupPairs"][0]["GroupId"] == own.as_str());
    ensure!(permissions("sixty").await?.as_array().map(Vec::len) == Some(60));
    // AWS's quota, unless it is raised, is 60.
    let quota = ["AuthorizeSecurityGroupIngress", "RulesPerSecurityGroupLimitExceeded", "request id"];
    world.subject("SecurityGroup", "crowded").says("Error", &quota).await?;
    Ok(())
}

/// A policy that is misspelt must not cost what it was to keep.
async fn policies(world: &World) -> Result<()> {
    world.apply(&manifest("VPC", "kept", &[], base("VPC"))).await?;
    let subject = world.subject("VPC", "kept");
    subject.ready().await?;
    let (id, mark) = (subject.status("/vpcId").await?, world.aws.mark());
    subject.annotate("deletion-policy", json!("abandn")).await?;
    subject
        .says("Error", &["aws.konfig.io/deletion-policy", "\"abandn\"", "neither abandon", "nor delete"])
        .await?;
    subject.delete().await?;
    throughout(A_WHILE, "it is not deleted", async || world.ensure_changes(mark, &id, &[])).await?;
    subject.annotate("deletion-policy", json!("abandon")).await?;
    subject.gone().await?;
    ensure!(world.boto.has_vpc(&id).await?);
    Ok(())
}

/// What cannot be understood of a creation is never taken for none.
async fn status_by_hand(world: &World) -> Result<()> {
    world.apply(&manifest("VPC", "garbled", &[("paused", "true")], base("VPC"))).await?;
    world.apply(&manifest("VPC", "spoiled", &[], base("VPC"))).await?;
    let (garbled, spoiled) = (world.subject("VPC", "garbled"), world.subject("VPC", "spoiled"));
    let uid = garbled.uid().await?;
    set_status(world, "garbled", json!({"creation": {"main": {"id": "vpc-1", "attempt": -3}}})).await?;
    garbled.annotate("paused", Value::Null).await?;
    garbled
        .says("Error", &["status.creation cannot be understood", "nothing is done in AWS", "restore it"])
        .await?;
    throughout(A_WHILE, "nothing is made", async || world.ensure_changes(0, &uid, &[])).await?;
    // What its message advises, of what was never created.
    set_status(world, "garbled", json!({"creation": null})).await?;
    garbled.ready().await?;

    spoiled.ready().await?;
    let id = spoiled.status("/vpcId").await?;
    let before = spoiled.get().await?.data["status"]["creation"].clone();
    let mark = world.aws.mark();
    set_status(world, "spoiled", json!({"creation": {"main": {"startedAt": null}}})).await?;
    spoiled.change(json!({"tags": {"a": "b"}})).await?;
    spoiled.says("Error", &["status.creation cannot be understood"]).await?;
    spoiled.delete().await?;
    throughout(A_WHILE, "nothing is done", async || world.ensure_changes(mark, &id, &[])).await?;
    set_status(world, "spoiled", json!({"creation": before})).await?;
    spoiled.gone().await?;
    ensure!(!world.boto.has_vpc(&id).await?);

    // Taken away altogether, what was made is found again by its tags.
    let id = garbled.status("/vpcId").await?;
    let mark = world.aws.mark();
    let creation = json!({"status": {"creation": null}});
    set_status(world, "garbled", creation["status"].clone()).await?;
    garbled.change(json!({"tags": {"found": "again"}})).await?;
    garbled.ready().await?;
    ensure!(garbled.status("/creation/main/id").await? == id);
    world.ensure_changes(mark, &uid, &[])?;
    world.ensure_changes(mark, &id, &["CreateTags"])
}

async fn set_status(world: &World, name: &str, status: Value) -> Result<()> {
    let patch = json!({"status": status}).to_string();
    let args =
        ["patch", "vpc", name, "-n", &world.namespace, "--subresource=status", "--type=merge", "-p", &patch];
    world.kubectl().run(&args).await.map(drop)
}

async fn other_namespaces_denied(world: &World) -> Result<()> {
    let abroad: Subject = world.subject("Subnet", "abroad");
    let id = abroad.status("/subnetId").await?;
    let mark = world.aws.mark();
    abroad.change(json!({"tags": {"a": "b"}})).await?;
    abroad.says("Error", &["/theirs", "another namespace", "--cross-namespace-refs=deny"]).await?;
    world.ensure_changes(mark, &id, &[])?;
    // One at home is as before; and the deletion needs no reference.
    world.apply(&manifest("VPC", "home", &[], base("VPC"))).await?;
    world.subject("VPC", "home").ready().await?;
    abroad.delete().await?;
    abroad.gone().await?;
    world.ensure_changes(mark, &id, &["DeleteSubnet"])
}
