//! Creating exactly one (R1 to R8): lost answers, reads that lag, tokens, an API server that is
//! in the way, a stale cache, an old CRD, a stop in the middle.

use std::time::Duration;

use ::kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use anyhow::{Context, Result, ensure};
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::proxy::kube::{self, Verb, Write};
use lab::{Operator, World, eventually, manifest};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
/// The settle window and AWS's longest lag, scaled as the operator is.
const SETTLE: Duration = Duration::from_millis(1200);
const LAG: Duration = Duration::from_millis(600);

/// One resource that a kind makes, and how to see all of them past the proxy.
struct Made {
    kind: &'static str,
    role: &'static str,
    create: &'static str,
    /// Whether AWS itself refuses a second: by token, or by a unique name.
    guard: Guard,
    list: (&'static str, &'static str, &'static str, &'static str),
}

#[derive(PartialEq, Clone, Copy, Debug)]
enum Guard {
    Nothing,
    Token,
    Name,
}

const VPC: Made = Made {
    kind: "VPC",
    role: "main",
    create: "CreateVpc",
    guard: Guard::Nothing,
    list: ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
};
const GATEWAY: Made = Made {
    kind: "InternetGateway",
    role: "main",
    create: "CreateInternetGateway",
    guard: Guard::Nothing,
    list: ("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
};
const SUBNET: Made = Made {
    kind: "Subnet",
    role: "main",
    create: "CreateSubnet",
    guard: Guard::Name,
    list: ("ec2", "describe_subnets", "Subnets", "SubnetId"),
};
const GROUP: Made = Made {
    kind: "SecurityGroup",
    role: "main",
    create: "CreateSecurityGroup",
    guard: Guard::Name,
    list: ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
};
const ADDRESS: Made = Made {
    kind: "NatGateway",
    role: "eip",
    create: "AllocateAddress",
    guard: Guard::Nothing,
    list: ("ec2", "describe_addresses", "Addresses", "AllocationId"),
};
const NAT: Made = Made {
    kind: "NatGateway",
    role: "main",
    create: "CreateNatGateway",
    guard: Guard::Token,
    list: ("ec2", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
};
const ROLE: Made = Made {
    kind: "IAMRole",
    role: "main",
    create: "CreateRole",
    guard: Guard::Name,
    list: ("iam", "list_roles", "Roles", "RoleName"),
};
const ALL: [&Made; 7] = [&VPC, &GATEWAY, &SUBNET, &GROUP, &ADDRESS, &NAT, &ROLE];

/// One object of each kind, all of the same name.
fn stack(name: &str) -> String {
    manifest::all(&[
        manifest::vpc(name),
        manifest::internet_gateway(name, name),
        manifest::subnet(name, name, 1),
        manifest::security_group(name, name, &[]),
        manifest::nat_gateway(name, name),
        manifest::role(name),
    ])
}

impl Made {
    fn owner(&self, world: &World, name: &str) -> String {
        format!("lab/{}/{}/{name}", world.namespace, self.kind)
    }

    /// The create calls that have been made for an object, in order.
    fn transmissions(&self, world: &World, name: &str) -> Vec<Call> {
        let owner = self.owner(world, name);
        let is_its =
            |call: &Call| call.operation == self.create && call.params.values().any(|value| *value == owner);
        world.aws.calls().into_iter().filter(is_its).collect()
    }

    /// The intents that were written for an object, in order.
    fn intents(&self, world: &World, name: &str) -> Vec<Value> {
        let pointer = format!("/status/creation/{}", self.role);
        let kind = format!("{}s", self.kind.to_lowercase());
        let is_its = |write: &Write| {
            write.target.resource == kind
                && write.target.name.as_deref() == Some(name)
                && write.status == Some(200)
        };
        let writes = world.kube.writes().into_iter().filter(is_its);
        let creations = writes.filter_map(|write| write.body.pointer(&pointer).cloned());
        creations.filter(|creation| creation["token"].is_string() && creation["id"].is_null()).collect()
    }

    fn fault(&self, world: &World, name: &str, action: Action) -> lab::proxy::Fault {
        let owner = self.owner(world, name);
        world.aws.fault(Match::op(self.create).param("*", &owner).times(1), action)
    }

    async fn object(&self, world: &World, name: &str) -> Result<DynamicObject> {
        world.object(self.kind, name).await
    }

    /// The id that the status records.
    async fn recorded(&self, world: &World, name: &str) -> Result<String> {
        let object = self.object(world, name).await?;
        let id = object.data.pointer(&format!("/status/creation/{}/id", self.role)).and_then(Value::as_str);
        Ok(id.with_context(|| format!("no id in {}", object.data["status"]))?.to_owned())
    }

    /// What AWS holds with the uid of an object.
    async fn held(&self, world: &World, uid: &str) -> Result<Vec<String>> {
        let (service, list, items, id) = self.list;
        let answer = world.boto.call(service, list, json!({})).await?;
        let mut held = Vec::new();
        for item in answer[items].as_array().context("a list")? {
            let name = item[id].as_str().unwrap_or_default().to_owned();
            let tags = match self.kind {
                "IAMRole" => {
                    world.boto.call("iam", "list_role_tags", json!({"RoleName": name})).await?["Tags"].clone()
                }
                _ => item["Tags"].clone(),
            };
            let tags = tags.as_array().cloned().unwrap_or_default();
            let is_its = tags.iter().any(|tag| tag["Key"] == "konfig.io/uid" && tag["Value"] == uid);
            if is_its && item["State"] != "deleted" {
                held.push(name);
            }
        }
        Ok(held)
    }

    /// Ready, and exactly the one that the status records is there.
    async fn ensure_one(&self, world: &World, name: &str) -> Result<()> {
        world.subject(self.kind, name).ready().await.with_context(|| world.aws.table())?;
        let object = self.object(world, name).await?;
        let held = self.held(world, &object.metadata.uid.clone().unwrap_or_default()).await?;
        let recorded = self.recorded(world, name).await?;
        ensure!(held == [recorded], "{} {name}: AWS holds {held:?}, {}", self.kind, object.data["status"]);
        ensure!(object.data["status"]["adopted"] != true, "taken for adopted");
        for reason in ["Adopted", "DeletedInAWS"] {
            let events = world.subject(self.kind, name).events(reason).await?;
            ensure!(events.is_empty(), "{} {name}: {reason} {events:?}", self.kind);
        }
        Ok(())
    }

    /// One transmission an intent, the SDK's own repeats included, and its token in it.
    fn ensure_single(&self, world: &World, name: &str, expected: usize) -> Result<Vec<Call>> {
        let calls = self.transmissions(world, name);
        let intents = self.intents(world, name);
        let context = || format!("{} {name}: {intents:?}\n{}", self.create, Table(&calls));
        ensure!(calls.len() == expected, "expected {expected} transmissions of {}", context());
        ensure!(calls.iter().all(|call| call.attempt == Some(1)), "the SDK repeats {}", context());
        // An intent that took long to write is given up before its call.
        ensure!(intents.len() >= calls.len(), "not an intent for each transmission: {}", context());
        if self.guard == Guard::Token {
            let is_written = |call: &Call| {
                let sent = call.params.get("ClientToken").map(String::as_str);
                intents.iter().any(|intent| sent.is_some() && intent["token"].as_str() == sent)
            };
            ensure!(calls.iter().all(is_written), "not the token of the intent: {}", context());
        }
        Ok(calls)
    }
}

/// The way an answer to a create call goes wrong: by name, whether the call has its effect.
fn mishaps() -> [(&'static str, Action, bool); 6] {
    [
        ("reset-after", Action::ResetAfter, true),
        ("timeout-after", Action::TimeoutAfterEffect(Duration::from_millis(400)), true),
        ("error-after", Action::ServerErrorAfter(500), true),
        ("reset-before", Action::ResetBefore, false),
        ("error-before", Action::ServerError(500), false),
        ("unavailable", Action::ServerError(503), false),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclear_create_call_leads_to_one_resource() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    for (name, action, _) in mishaps() {
        ALL.iter().for_each(|made| drop(made.fault(&world, name, action.clone())));
    }
    ALL.iter().for_each(|made| drop(made.fault(&world, "throttled", Action::Throttle)));
    let names = mishaps().map(|(name, ..)| name);
    let names: Vec<_> = names.into_iter().chain(["throttled"]).collect();
    world.apply(&manifest::all(&names.iter().map(|name| stack(name)).collect::<Vec<_>>())).await?;
    for made in ALL {
        for (name, _, has_effect) in mishaps() {
            made.ensure_one(&world, name).await?;
            if has_effect {
                made.ensure_single(&world, name, 1)?;
                let events = world.subject(made.kind, name).events("Recovered").await?;
                ensure!(!events.is_empty(), "{} {name} was not found again", made.kind);
                continue;
            }
            let calls = made.ensure_single(&world, name, 2)?;
            let waited = calls[1].at.duration_since(calls[0].at);
            // Nothing but time tells that the first call made nothing.
            let must_wait = made.guard == Guard::Nothing;
            ensure!(
                !must_wait || waited >= SETTLE,
                "{} {name} again after {waited:?}: {:?}\n{}",
                made.create,
                made.intents(&world, name),
                Table(&calls),
            );
            let tokens: Vec<_> = made.intents(&world, name).iter().map(|it| it["token"].clone()).collect();
            let is_another = tokens.first() != tokens.last();
            ensure!(is_another == must_wait, "{} {name}: {tokens:?}", made.create);
        }
        // A refusal is definite: the next attempt need not wait, and is another.
        made.ensure_one(&world, "throttled").await?;
        made.ensure_single(&world, "throttled", 2)?;
        let attempts: Vec<_> =
            made.intents(&world, "throttled").iter().filter_map(|it| it["attempt"].as_u64()).collect();
        let rises = attempts.len() > 1 && attempts.iter().copied().eq(1..=attempts.len() as u64);
        ensure!(rises, "{}: {attempts:?}", made.create);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_lag_behind_a_create_make_no_second() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    world.aws.lag(LAG);
    let mark = world.aws.mark();
    ALL.iter().for_each(|made| drop(made.fault(&world, "lost", Action::ResetAfter)));
    world.apply(&manifest::all(&[stack("early"), stack("lost")])).await?;
    // Each is observed again while AWS does not show it yet.
    for made in ALL {
        eventually(SOON, "its id", async || made.recorded(&world, "early").await).await?;
        world.observe(made.kind, "early", made.create).await?;
    }
    for made in ALL {
        made.ensure_one(&world, "early").await?;
        made.ensure_single(&world, "early", 1)?;
        let found = world.subject(made.kind, "early").events("Recovered").await?;
        ensure!(found.is_empty(), "{} was looked for although its id was known: {found:?}", made.kind);
        made.ensure_one(&world, "lost").await?;
        let replays = made.transmissions(&world, "lost");
        let made_once = replays.iter().filter(|call| call.succeeded() && call.note != Some("replayed"));
        ensure!(made_once.count() == 1, "{}", Table(&replays));
        let may_repeat = made.guard != Guard::Nothing;
        ensure!(may_repeat || replays.len() == 1, "{}", Table(&replays));
    }
    let hidden = world.calls_since(mark).iter().filter(|call| call.note == Some("lag")).count();
    ensure!(hidden > 0, "no read lagged:\n{}", world.aws.table());

    // Deleted before AWS shows it.
    world.apply(&manifest::vpc("short")).await?;
    eventually(SOON, "its id", async || VPC.recorded(&world, "short").await).await?;
    let uid = world.subject("VPC", "short").uid().await?;
    world.subject("VPC", "short").delete().await?;
    world.subject("VPC", "short").gone().await?;
    let left = VPC.held(&world, &uid).await?;
    ensure!(left.is_empty(), "left in AWS: {left:?}\n{}", world.aws.table());
    VPC.ensure_single(&world, "short", 1).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_read_is_no_absence() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    world.apply(&manifest::vpc("kept")).await?;
    VPC.ensure_one(&world, "kept").await?;
    tokio::time::sleep(SETTLE).await;
    let uid = world.subject("VPC", "kept").uid().await?;
    let failures = [
        ("unavailable", Action::ServerError(503)),
        ("reset", Action::ResetBefore),
        ("denied", Action::error(403, "UnauthorizedOperation", "You are not authorized.")),
        ("expired", Action::error(400, "RequestExpired", "Request has expired.")),
        ("bare", Action::error(404, "", "")),
        ("other", Action::error(400, "InvalidSubnetID.NotFound", "another thing is missing")),
    ];
    for (name, action) in failures.clone() {
        let failing = world.aws.fault(Match::op("DescribeVpcs"), action);
        world.observe("VPC", "kept", name).await?;
        ensure!(failing.reached(2, SOON).await, "{name}: not read");
        tokio::time::sleep(SETTLE / 2).await;
        failing.release();
        VPC.ensure_one(&world, "kept").await?;
        VPC.ensure_single(&world, "kept", 1)?;
    }
    // Nor does the finalizer go for it.
    let some = failures.into_iter().filter(|(name, _)| ["unavailable", "bare", "other"].contains(name));
    let failing: Vec<_> =
        some.map(|(_, action)| world.aws.fault(Match::op("DescribeVpcs").times(1), action)).collect();
    world.subject("VPC", "kept").delete().await?;
    world.subject("VPC", "kept").gone().await?;
    ensure!(failing.iter().any(|fault| fault.hits() > 0), "no read failed");
    let left = VPC.held(&world, &uid).await?;
    ensure!(left.is_empty(), "left in AWS: {left:?}\n{}", world.aws.table());
    Ok(())
}

/// Slow enough to do something between a lost answer and the end of the settle window.
const SLOW_SETTLE: Duration = Duration::from_secs(12);

async fn slow_world() -> Result<World> {
    let world = World::prepare(Flavor::Moto).await?.time_scale(0.2);
    world.aws.lag(Duration::from_secs(9));
    Ok(world)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_used_again_and_a_mismatch_means_that_it_exists() -> Result<()> {
    let world = slow_world().await?;
    let mut operator = world.operator(&[]).await?;
    let names = ["again", "changed", "refused"];
    let mut manifests = vec![manifest::vpc("net"), manifest::internet_gateway("net", "net")];
    manifests.extend((1..).zip(names).map(|(number, name)| manifest::subnet(name, "net", number)));
    manifests.push(manifest::nat_gateway("again", "again"));
    // Private: an address that lags too would hold up the second call until the gateway is seen.
    let private = |name| json!({"subnetRef": {"name": name}, "connectivityType": "private"});
    manifests.extend(["changed", "refused"].map(|name| manifest::of("NatGateway", name, private(name))));
    NAT.fault(&world, "again", Action::ResetAfter);
    let late = NAT.fault(&world, "changed", Action::TimeoutAfterEffect(Duration::from_secs(8)));
    let mismatch = Action::error(400, "IdempotentParameterMismatch", "other parameters");
    let refused = Match::op("CreateNatGateway").param("*", &NAT.owner(&world, "refused"));
    let refused = world.aws.fault(refused, mismatch);
    world.apply(&manifest::all(&manifests)).await?;

    let calls = eventually(SOON, "a second call", async || {
        let calls = NAT.transmissions(&world, "again");
        ensure!(calls.get(1).is_some_and(Call::succeeded), "{}", Table(&calls));
        Ok(calls)
    })
    .await?;
    ensure!(calls[1].note == Some("replayed"), "{}", Table(&calls));
    ensure!(calls[1].params["ClientToken"] == calls[0].params["ClientToken"], "{}", Table(&calls));

    // The operator dies while it waits for the answer, and the spec is another when it comes back.
    ensure!(late.reached(1, SOON).await, "never sent");
    eventually(SOON, "the effect", async || {
        ensure!(NAT.transmissions(&world, "changed")[0].succeeded(), "not yet");
        Ok(())
    })
    .await?;
    operator.kill()?;
    world.subject("NatGateway", "changed").change(json!({"tags": {"stage": "two"}})).await?;
    let operator = world.operator(&[]).await?;

    // A mismatch behind which nothing is to be found, past the settle window: another token.
    let first = || NAT.transmissions(&world, "refused").into_iter().next().context("no call yet");
    let next = eventually(SOON * 2, "another token", async || {
        let token = first()?.params["ClientToken"].clone();
        let calls = NAT.transmissions(&world, "refused").into_iter();
        calls.into_iter().find(|call| call.params["ClientToken"] != token).context("the same token")
    })
    .await?;
    refused.release();
    ensure!(next.at.duration_since(first()?.at) >= SLOW_SETTLE, "too soon:\n{}", world.aws.table());

    for name in names {
        NAT.ensure_one(&world, name).await.with_context(|| operator.log())?;
    }
    ADDRESS.ensure_one(&world, "again").await?;
    let calls = NAT.transmissions(&world, "changed");
    ensure!(calls.iter().filter(|call| call.succeeded()).count() == 1, "{}", Table(&calls));
    let refusal = calls.get(1).and_then(|call| call.error_code.as_deref());
    ensure!(refusal == Some("IdempotentParameterMismatch"), "{}", Table(&calls));
    let tags = world.boto.tags(&NAT.recorded(&world, "changed").await?).await?;
    ensure!(tags.get("stage").map(String::as_str) == Some("two"), "{tags:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_cache_makes_no_second() -> Result<()> {
    let world = slow_world().await?;
    let mut operators = vec![world.operator(&[]).await?];
    world.apply(&manifest::internet_gateway("late", "late")).await?;
    world.subject("InternetGateway", "late").says("DependencyNotReady", &["late"]).await?;
    // A second operator lists the gateway as it is now, and sees no later change of it.
    let watches = kube::Match::verb(Verb::Watch).resource("internetgateways").times(1);
    let watch = world.kube.fault(watches, kube::Action::Hold);
    let mut stale = world.operator(&[]).await?;
    ensure!(watch.reached(1, SOON).await, "no watch to hold");
    stale.stop()?;
    world.apply(&manifest::vpc("late")).await?;
    eventually(SOON, "its id", async || GATEWAY.recorded(&world, "late").await).await?;
    let writes = world.kube.mark();
    // It wakes for the VPC, with a cache in which nothing was begun, and AWS shows nothing either.
    stale.cont()?;
    let looked = |log: &str| log.contains("DescribeInternetGateways");
    eventually(SOON, "the stale one to look", async || {
        ensure!(looked(&stale.log()), "{}", stale.log());
        Ok(())
    })
    .await?;
    GATEWAY.ensure_one(&world, "late").await?;
    GATEWAY
        .ensure_single(&world, "late", 1)
        .with_context(|| format!("{:?}", world.kube.writes_since(writes)))?;

    // Two that both see everything, and no lease between them.
    watch.release();
    let names: Vec<_> = (0..8).map(|number| format!("both-{number}")).collect();
    operators.push(stale);
    world.apply(&manifest::all(&names.iter().map(|name| manifest::vpc(name)).collect::<Vec<_>>())).await?;
    for name in &names {
        VPC.ensure_one(&world, name).await?;
        VPC.ensure_single(&world, name, 1)?;
    }
    Ok(())
}

/// Holds the create call of a VPC, so that something can be done meanwhile.
async fn held_vpc(world: &World, name: &str) -> Result<lab::proxy::Fault> {
    let held = VPC.fault(world, name, Action::Hold);
    world.apply(&manifest::vpc(name)).await?;
    ensure!(held.reached(1, SOON).await, "{name}: not called");
    Ok(held)
}

fn status_writes(name: &str) -> kube::Match {
    kube::Match::verb(Verb::Patch).resource("vpcs").subresource("status").name(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_is_recorded_whatever_the_api_server_says() -> Result<()> {
    let (world, _operator) = World::moto(&[]).await?;
    for (name, action, times) in [
        ("conflict", kube::Action::Status(409), 2),
        ("failure", kube::Action::Status(500), 3),
        ("lost", kube::Action::ResetAfter, 1),
        ("cut", kube::Action::ResetBefore, 2),
    ] {
        let held = held_vpc(&world, name).await?;
        let refused = world.kube.fault(status_writes(name).times(times), action);
        held.release();
        VPC.ensure_one(&world, name).await.with_context(|| world.kube.table())?;
        VPC.ensure_single(&world, name, 1)?;
        ensure!(refused.hits() == times, "{name}: refused {} writes", refused.hits());
    }

    // The user changes the object meanwhile.
    let held = held_vpc(&world, "changed").await?;
    world.subject("VPC", "changed").change(json!({"tags": {"stage": "two"}})).await?;
    held.release();
    VPC.ensure_one(&world, "changed").await?;
    VPC.ensure_single(&world, "changed", 1)?;
    let tags = world.boto.tags(&VPC.recorded(&world, "changed").await?).await?;
    ensure!(tags.get("stage").map(String::as_str) == Some("two"), "{tags:?}");

    // The API server is away when AWS answers.
    let held = held_vpc(&world, "away").await?;
    world.kube.cut(true);
    held.release();
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(VPC.recorded(&world, "away").await.is_err(), "recorded past the proxy");
    world.kube.cut(false);
    VPC.ensure_one(&world, "away").await?;
    VPC.ensure_single(&world, "away", 1).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_intent_nothing_is_created() -> Result<()> {
    let (world, operator) = World::moto(&[]).await?;
    // The first write to the status is the intent.
    for (name, action) in [
        ("conflict", kube::Action::Status(409)),
        ("failure", kube::Action::Status(500)),
        ("cut", kube::Action::ResetBefore),
        ("lost", kube::Action::ResetAfter),
    ] {
        let refused = world.kube.fault(status_writes(name).times(1), action);
        world.apply(&manifest::vpc(name)).await?;
        VPC.ensure_one(&world, name).await.with_context(|| world.kube.table())?;
        ensure!(refused.hits() == 1, "{name} was not refused");
        let calls = VPC.transmissions(&world, name);
        ensure!(calls.len() == 1, "{name}:\n{}", Table(&calls));
        let written = VPC.intents(&world, name);
        ensure!(!written.is_empty(), "{name}: no intent\n{}", world.kube.table());
    }

    // Refused for good: no call, ever.
    let refused = world.kube.fault(status_writes("never"), kube::Action::Status(403));
    world.apply(&manifest::vpc("never")).await?;
    ensure!(refused.reached(3, SOON).await, "not tried again");
    ensure!(VPC.transmissions(&world, "never").is_empty(), "{}", world.aws.table());
    refused.release();
    VPC.ensure_one(&world, "never").await?;

    // Deleted while the intent is under way.
    let held = world.kube.fault(status_writes("gone").times(1), kube::Action::Hold);
    world.apply(&manifest::vpc("gone")).await?;
    ensure!(held.reached(1, SOON).await, "no intent");
    world.subject("VPC", "gone").delete().await?;
    held.release();
    world.subject("VPC", "gone").gone().await?;
    ensure!(VPC.transmissions(&world, "gone").is_empty(), "{}", world.aws.table());
    drop(operator);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_crd_lets_nothing_be_created() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let crds: Api<DynamicObject> = Api::all_with(world.client.clone(), &crd());
    let new = crds.get("vpcs.aws.konfig.io").await?;
    let mut old = new.clone();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = old.data.pointer_mut(status).and_then(Value::as_object_mut).context("a status schema")?;
    fields.remove("creation").context("no status.creation")?;
    old.metadata.managed_fields = None;
    crds.replace("vpcs.aws.konfig.io", &PostParams::default(), &old).await?;

    let mut operator = world.operator(&[]).await?;
    world.apply(&manifest::vpc("pruned")).await?;
    world.subject("VPC", "pruned").says("Error", &["CRDs are older than the operator"]).await?;
    world.observe("VPC", "pruned", "again").await?;
    tokio::time::sleep(SETTLE * 2).await;
    ensure!(VPC.transmissions(&world, "pruned").is_empty(), "{}", world.aws.table());

    // Upgraded, it goes on.
    let schema = new.data.pointer("/spec/versions").context("versions")?;
    let patch = Patch::Merge(json!({"spec": {"versions": schema}}));
    crds.patch("vpcs.aws.konfig.io", &PatchParams::default(), &patch).await?;
    eventually(SOON, "the upgrade", async || {
        world.observe("VPC", "pruned", &format!("{:?}", std::time::Instant::now())).await?;
        VPC.recorded(&world, "pruned").await
    })
    .await?;
    VPC.ensure_one(&world, "pruned").await?;
    VPC.ensure_single(&world, "pruned", 1).or_else(|error| {
        // What the old CRD dropped were intents too; no call followed them.
        let calls = VPC.transmissions(&world, "pruned");
        if calls.len() == 1 { Ok(calls) } else { Err(error) }
    })?;

    stops_in_the_middle(&world, &mut operator).await
}

/// SIGTERM while AWS is at work, and the API server refuses what it made.
async fn stops_in_the_middle(world: &World, operator: &mut Operator) -> Result<()> {
    let held = held_vpc(world, "stopped").await?;
    let refused = world.kube.fault(status_writes("stopped").times(2), kube::Action::Status(500));
    let later = async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        let early = VPC.recorded(world, "stopped").await.is_ok();
        held.release();
        early
    };
    let (ended, early) = tokio::join!(operator.term(SOON), later);
    ensure!(!early, "recorded before AWS answered");
    let ended = ended?;
    ensure!(ended.success(), "{ended}\n{}", operator.log());
    ensure!(refused.hits() == 2, "refused {} writes", refused.hits());
    let recorded = VPC.recorded(world, "stopped").await.with_context(|| operator.log())?;
    let uid = world.subject("VPC", "stopped").uid().await?;
    ensure!(VPC.held(world, &uid).await? == [recorded], "not the one that was made");
    *operator = world.operator(&[]).await?;
    VPC.ensure_one(world, "stopped").await?;
    VPC.ensure_single(world, "stopped", 1).map(drop)
}

fn crd() -> ::kube::api::ApiResource {
    let gvk = ::kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    ::kube::api::ApiResource::from_gvk(&gvk)
}
