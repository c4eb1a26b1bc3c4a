//! What is refused, and with which words; and that it harms nobody else.
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

/// A security group with this one rule.
fn rule(rule: Value) -> (&'static str, Value) {
    ("SecurityGroup", json!({"ingressRules": [rule]}))
}

fn tags(key: &str, value: &str) -> Value {
    json!({"tags": {key: value}})
}

/// By kind: what is changed of the base, and what the refusal says.
fn refusals() -> Vec<((&'static str, Value), &'static str)> {
    let first_address = "must be an IPv4 range written from its first address, such as 10.0.0.0/16";
    let size = "AWS allows sizes from /16 (65536 addresses) to /28 (16 addresses)";
    let one_vpc = "give exactly one of name (of a VPC object) and id (of an existing VPC in AWS)";
    let one_subnet = "give exactly one of name (of a Subnet object) and id";
    let reserved = "tag keys that start with aws: or konfig.io/ are reserved; choose another";
    let source = "give at least one of cidrIpv4, cidrIpv6, prefixListId, sourceGroupRef and sourceGroupId";
    let ports = "tcp and udp need fromPort and toPort, the lower first; for all ports write 0 and 65535";
    let protocol = "must be tcp, udp, icmp, icmpv6, -1 (all protocols) or a number from 0 to 255";
    let group_text = "may hold letters, digits, spaces and ._-:/()#,@[]+=&;{}!$* only";
    let anywhere = |protocol: &str, from: i32, to: i32| {
        rule(json!({"protocol": protocol, "fromPort": from, "toPort": to, "cidrIpv4": "0.0.0.0/0"}))
    };
    let from = |source: &str, value: &str| rule(json!({"protocol": "-1", source: value}));
    vec![
        (("VPC", json!({"cidrBlock": "10.0.0.5/16"})), first_address),
        (("VPC", json!({"cidrBlock": "10.0.0.0/8"})), size),
        (("VPC", json!({"cidrBlock": "10.0.0.0/29"})), size),
        (("VPC", json!({"cidrBlock": "ten"})), first_address),
        (("VPC", json!({"cidrBlock": "10.0.0.0"})), first_address),
        (("VPC", json!({"cidrBlock": "10.0.0.0/33"})), first_address),
        (("VPC", json!({"cidrBlock": "010.0.0.0/16"})), first_address),
        (("VPC", json!({"cidrBlock": "2001:db8::/56"})), first_address),
        (("VPC", json!({"cidrBlock": null})), "spec.cidrBlock: Required value"),
        (("VPC", json!({"cidrBlock": ["10.0.0.0/16"]})), "expected string"),
        (
            ("VPC", json!({"instanceTenancy": "shared"})),
            r#"supported values: "default", "dedicated", "host""#,
        ),
        (("VPC", json!({"enableDnsSupport": "yes"})), "expected boolean"),
        (
            ("VPC", json!({"enableDnsSupport": false, "enableDnsHostnames": true})),
            "enableDnsHostnames needs enableDnsSupport: set that to true or leave it out",
        ),
        (("VPC", json!({"secondaryIPv4CIDRs": ["10.1.0.1/16"]})), first_address),
        (("VPC", json!({"secondaryIPv4CIDRs": ["10.0.0.0/8"]})), size),
        (("VPC", json!({"secondaryIPv4CIDRs": "10.1.0.0/16"})), "expected list"),
        (("VPC", tags("aws:team", "x")), reserved),
        (("VPC", tags("konfig.io/owner", "x")), reserved),
        (
            ("VPC", tags(&"k".repeat(129), "x")),
            "AWS allows 128 characters for a tag key and 256 for its value",
        ),
        (("VPC", tags("k", &"v".repeat(257))), "256"),
        (
            (
                "VPC",
                json!({"tags": (0..49).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>()}),
            ),
            "at most 48",
        ),
        (("VPC", json!({"providerRef": {}})), "spec.providerRef.name: Required value"),
        (("VPC", json!({"cidr": "10.0.0.0/16"})), ".spec.cidr: field not declared in schema"),
        (("Subnet", json!({"vpcRef": {"id": "vpc-1"}})), one_vpc),
        (("Subnet", json!({"vpcRef": {"name": null}})), one_vpc),
        (
            ("Subnet", json!({"vpcRef": {"name": null, "id": "vpc-1", "namespace": "x"}})),
            "namespace only goes with name",
        ),
        (("Subnet", json!({"vpcRef": "net"})), "expected map"),
        (("Subnet", json!({"vpcRef": null})), "spec.vpcRef: Required value"),
        (("Subnet", json!({"cidrBlock": "10.0.1.7/24"})), first_address),
        (("Subnet", json!({"cidrBlock": "10.0.0.0/12"})), size),
        (
            ("Subnet", json!({"availabilityZone": "Ireland"})),
            "must be the name of a zone of the operator's region, such as eu-central-1a",
        ),
        (("Subnet", json!({"availabilityZone": null})), "spec.availabilityZone: Required value"),
        (("Subnet", tags("konfig.io/uid", "x")), reserved),
        (("InternetGateway", json!({"vpcRef": {"id": "vpc-1"}})), one_vpc),
        (("InternetGateway", json!({"vpcRef": {"name": null}})), one_vpc),
        (("InternetGateway", tags("aws:x", "x")), reserved),
        (("NatGateway", json!({"subnetRef": {"id": "subnet-1"}})), one_subnet),
        (("NatGateway", json!({"subnetRef": {"name": null}})), one_subnet),
        (("NatGateway", json!({"connectivityType": "internal"})), r#"supported values: "public", "private""#),
        (("NatGateway", tags("aws:x", "x")), reserved),
        (
            ("SecurityGroup", json!({"groupName": "sg-web"})),
            "names that begin with sg-, for itself; choose another",
        ),
        (("SecurityGroup", json!({"groupName": "default"})), "AWS keeps the name default"),
        (("SecurityGroup", json!({"groupName": "naïve"})), group_text),
        (("SecurityGroup", json!({"groupName": "g".repeat(256)})), "255"),
        (("SecurityGroup", json!({"description": "what's in"})), group_text),
        (("SecurityGroup", json!({"description": ""})), "at least 1 chars"),
        (("SecurityGroup", json!({"vpcRef": {"id": "vpc-1"}})), one_vpc),
        (("SecurityGroup", tags("aws:x", "x")), reserved),
        (rule(json!({"protocol": "http", "fromPort": 80, "toPort": 80, "cidrIpv4": "0.0.0.0/0"})), protocol),
        (rule(json!({"protocol": "256", "cidrIpv4": "0.0.0.0/0"})), protocol),
        (
            rule(json!({"protocol": 6, "fromPort": 80, "toPort": 80, "cidrIpv4": "0.0.0.0/0"})),
            "expected string",
        ),
        (rule(json!({"cidrIpv4": "0.0.0.0/0"})), "protocol: Required value"),
        (rule(json!({"protocol": "tcp", "cidrIpv4": "0.0.0.0/0"})), ports),
        (rule(json!({"protocol": "udp", "fromPort": 53, "cidrIpv4": "0.0.0.0/0"})), ports),
        (anywhere("tcp", 443, 80), ports),
        (anywhere("tcp", -1, -1), ports),
        (anywhere("tcp", 1, 65536), "less than or equal to 65535"),
        (anywhere("icmp", 256, 0), "fromPort is the ICMP type and toPort the code: 0 to 255, or -1 for all"),
        (
            anywhere("-1", 80, 80),
            "this protocol lets all ports through: leave out fromPort and toPort, or choose tcp or udp",
        ),
        (anywhere("50", 1, 2), "this protocol lets all ports through"),
        (rule(json!({"protocol": "-1"})), source),
        (
            from("cidrIpv4", "10.0.0.1"),
            "must be an IPv4 range such as 10.0.0.0/8; a single address ends in /32",
        ),
        (from("cidrIpv4", "::/0"), "must be an IPv4 range such as 10.0.0.0/8"),
        (
            from("cidrIpv6", "0.0.0.0/0"),
            "must be an IPv6 range such as 2001:db8::/32; a single address ends in /128",
        ),
        (from("prefixListId", "s3"), "must be the id of a prefix list, such as pl-0123456789abcdef0"),
        (from("sourceGroupId", "web"), "for the name of a SecurityGroup object there is sourceGroupRef"),
        (rule(json!({"protocol": "-1", "cidrIpv4": "0.0.0.0/0", "description": "it's"})), group_text),
        (
            rule(json!({"protocol": "-1", "cidrIPv4": "0.0.0.0/0"})),
            ".spec.ingressRules[0].cidrIPv4: field not declared",
        ),
        (
            ("IAMRole", json!({"roleName": "my role"})),
            "must be letters, digits and _+=,.@- without spaces or slashes",
        ),
        (("IAMRole", json!({"roleName": "team/app"})), "a group of roles goes into path"),
        (("IAMRole", json!({"roleName": "r".repeat(65)})), "64"),
        (("IAMRole", json!({"maxSessionDuration": 3599})), "greater than or equal to 3600"),
        (("IAMRole", json!({"maxSessionDuration": 43201})), "less than or equal to 43200"),
        (("IAMRole", json!({"maxSessionDuration": "1h"})), "expected numeric"),
        (("IAMRole", json!({"path": "team"})), "must begin and end with a slash, such as /team/"),
        (("IAMRole", json!({"path": "/team"})), "must begin and end with a slash, such as /team/"),
        (
            ("IAMRole", json!({"permissionsBoundary": "boundary"})),
            "must be the ARN of a managed policy, such as arn:aws:iam::",
        ),
        (("IAMRole", json!({"description": "d".repeat(1001)})), "1000"),
        (("IAMRole", json!({"assumeRolePolicyDocument": {"Statement": []}})), "expected string"),
        (
            ("IAMRole", json!({"assumeRolePolicyDocument": null})),
            "spec.assumeRolePolicyDocument: Required value",
        ),
        (("IAMRole", tags("aws:x", "x")), reserved),
    ]
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
async fn admission_says_what_to_write_instead() -> Result<()> {
    let client = cluster::shared().await?.admin_client().await?;
    let namespace = cluster::namespace(&client, "bad").await?;
    for kind in ["VPC", "Subnet", "InternetGateway", "NatGateway", "SecurityGroup", "IAMRole"] {
        let fine = apply(&client, &namespace, kind, "fine", &base(kind), true).await;
        ensure!(fine.is_ok(), "the base of {kind}: {fine:?}");
    }
    let mut wrong = Vec::new();
    for ((kind, change), expected) in refusals() {
        let mut spec = base(kind);
        merge(&mut spec, &change);
        match apply(&client, &namespace, kind, "bad", &spec, true).await {
            Ok(_) => wrong.push(format!("{kind} {change} was taken")),
            Err(message) if !message.contains(expected) => {
                wrong.push(format!("{kind} {change}\n  says      {message}\n  should be {expected}"));
            }
            // A raw expression tells nobody what to write.
            Err(message) if message.contains("should match '") => {
                wrong.push(format!("{kind} {change}: {message}"))
            }
            Err(_) => {}
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
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
        merge(&mut full, &optional);
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
            merge(&mut spec, &change);
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

/// A JSON merge patch.
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let fields = value.as_object_mut().unwrap();
    for (field, change) in patch {
        if change.is_null() {
            fields.remove(field);
        } else {
            merge(fields.entry(field).or_insert(Value::Null), change);
        }
    }
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
    let all = [
        role("no-json", r#"{"Version": }"#),
        role("no-statement", r#"{"Version": "2012-10-17"}"#),
        role("no-object", "[]"),
        role("refused", refused),
        role("huge", &huge),
    ];
    world.apply(&manifests(&all)).await?;
    let example = r#"write a policy document such as {"Version": "2012-10-17", "Statement": [...]}"#;
    for (name, parts) in [
        ("no-json", vec!["spec.assumeRolePolicyDocument", "not JSON", "line 1 column 13", example]),
        ("no-statement", vec!["spec.assumeRolePolicyDocument", "no Statement", example]),
        ("no-object", vec!["spec.assumeRolePolicyDocument", "not a JSON object", example]),
        ("refused", vec!["CreateRole", "MalformedPolicyDocument", "request id"]),
        ("huge", vec!["CreateRole", "LimitExceeded", "ACLSizePerRole", "request id"]),
    ] {
        let subject = world.subject("IAMRole", name);
        let message = subject.says("Error", &parts).await?;
        ensure!(message.len() <= 1024, "{} bytes", message.len());
        ensure!(!world.boto.has_role(name).await?, "{name}");
    }
    for name in ["no-json", "no-statement", "no-object"] {
        ensure!(world.calls_about(0, name).is_empty(), "{name}: AWS was called");
    }
    // Put right, it goes on at once; spoiled afterwards, the role stays as it is.
    let mended = world.subject("IAMRole", "no-json");
    mended.change(json!({"assumeRolePolicyDocument": TRUST})).await?;
    mended.ready().await?;
    let mark = world.aws.mark();
    mended.change(json!({"assumeRolePolicyDocument": "{"})).await?;
    mended.says("Error", &["not JSON"]).await?;
    world.ensure_changes(mark, "no-json", &[])?;
    // What cannot be read any more can still be deleted.
    for name in ["no-json", "no-statement", "refused", "huge"] {
        world.subject("IAMRole", name).delete().await?;
        world.subject("IAMRole", name).gone().await?;
    }
    ensure!(!world.boto.has_role("no-json").await?);
    Ok(())
}

async fn references(world: &World) -> Result<()> {
    let elsewhere = cluster::namespace(&world.client, "elsewhere").await?;
    apply(&world.client, &elsewhere, "VPC", "theirs", &base("VPC"), false)
        .await
        .map_err(anyhow::Error::msg)?;
    let subnet = |name: &str, change: Value| {
        let mut spec = base("Subnet");
        merge(&mut spec, &change);
        manifest("Subnet", name, &[], spec)
    };
    let all = [
        subnet("nowhere", json!({"vpcRef": {"name": "nothing"}})),
        subnet("outside", json!({"cidrBlock": "192.168.0.0/24"})),
        subnet("abroad", json!({"vpcRef": {"name": "theirs", "namespace": elsewhere}})),
        subnet("no-vpc", json!({"vpcRef": {"name": null, "id": "vpc-0123456789abcdef0"}})),
    ];
    world.apply(&manifests(&all)).await?;
    let nowhere = world.subject("Subnet", "nowhere");
    let nothing = format!("VPC {}/nothing does not exist", world.namespace);
    nowhere.says("DependencyNotReady", &[&nothing]).await?;
    world
        .subject("Subnet", "outside")
        .says("Error", &["CreateSubnet", "InvalidSubnet", "192.168.0.0/24"])
        .await?;
    world.subject("Subnet", "no-vpc").says("DependencyNotReady", &["vpc-0123456789abcdef0"]).await?;
    world.subject("Subnet", "abroad").ready().await?;
    let uid = nowhere.uid().await?;
    throughout(A_WHILE, "no call for what waits", async || {
        ensure!(world.calls_about(0, &uid).is_empty());
        Ok(())
    })
    .await
}

async fn rules(world: &World) -> Result<()> {
    let group = |name: &str, rules: Value| {
        let mut spec = base("SecurityGroup");
        merge(&mut spec, &json!({"groupName": name, "ingressRules": rules}));
        manifest("SecurityGroup", name, &[], spec)
    };
    let of = |name: &str| json!([{"protocol": "-1", "sourceGroupRef": name}]);
    let port =
        |port: usize| json!({"protocol": "tcp", "fromPort": port, "toPort": port, "cidrIpv4": "10.0.0.0/8"});
    let twice = json!([
        {"protocol": "tcp", "fromPort": 1, "toPort": 1, "cidrIpv4": "10.0.0.0/8", "description": "one"},
        {"protocol": "6", "fromPort": 1, "toPort": 1, "cidrIpv4": "10.1.2.3/8", "description": "two"},
    ]);
    let all = [
        group("itself", of("itself")),
        group("left", of("right")),
        group("right", of("left")),
        group("sixty", (1..=60).map(port).collect()),
        group("crowded", (1..=255).map(port).collect()),
        group("twice", twice),
        group("dangling", of("nobody")),
    ];
    world.apply(&manifests(&all)).await?;
    for name in ["itself", "left", "right", "sixty"] {
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
    world
        .subject("SecurityGroup", "twice")
        .says("Error", &["spec.ingressRules[1]", "listed twice; keep one description"])
        .await?;
    // AWS's quota, unless it is raised, is 60.
    let quota = ["AuthorizeSecurityGroupIngress", "RulesPerSecurityGroupLimitExceeded", "request id"];
    world.subject("SecurityGroup", "crowded").says("Error", &quota).await?;
    let nobody = format!("SecurityGroup {}/nobody does not exist", world.namespace);
    world.subject("SecurityGroup", "dangling").says("DependencyNotReady", &[&nobody]).await?;
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
