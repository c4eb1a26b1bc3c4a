//! Drift: everything is looked at in time, what differs is put back, and nothing costs more than it must.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::history::Version;
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::wait::throughout;
use lab::{History, Operator, World, eventually, manifest};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
const WHILE: Duration = Duration::from_secs(2);
/// As the operator is told where a test speaks of it.
const INTERVAL: Duration = Duration::from_secs(4);

async fn all_ready(world: &World) -> Result<()> {
    let args = ["wait", "--for=condition=Ready", "--timeout=50s", "-n", &world.namespace, "konfig", "--all"];
    world.kubectl().run(&args).await?;
    Ok(())
}

/// The ids that a describe asks for by filter.
fn asked(call: &Call) -> BTreeSet<String> {
    let values = call.params.iter().filter(|(name, _)| name.starts_with("Filter.1.Value."));
    values.map(|(_, value)| value.clone()).collect()
}

fn reason(version: &Version) -> &str {
    version.condition("Ready", "reason").unwrap_or_default()
}

const MANY: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_are_looked_at_together_and_in_time() -> Result<()> {
    let (world, operator) = World::moto(&["--drift-interval=4s"]).await?;
    let subnets = world.history("Subnet").await?;
    let names: Vec<_> = (0..MANY).map(|number| format!("s{number}")).collect();
    let manifests = names.iter().zip(0..).map(|(name, number)| manifest::subnet(name, "main", number));
    world
        .apply(&manifest::all(&[manifest::vpc("main")].into_iter().chain(manifests).collect::<Vec<_>>()))
        .await?;
    all_ready(&world).await.inspect_err(|_| println!("{}", operator.log()))?;
    let mut ids = BTreeMap::new();
    for name in &names {
        ids.insert(world.status("Subnet", name, "subnetId").await?, name.clone());
    }
    let outcome = async {
        in_time(&world, &ids).await?;
        one_that_is_missing_harms_nobody(&world, &subnets, &ids).await?;
        an_error_reaches_all(&world, &subnets, &names).await
    };
    outcome.await.inspect_err(|_| println!("{}", operator.log()))
}

async fn in_time(world: &World, ids: &BTreeMap<String, String>) -> Result<()> {
    let mark = world.aws.mark();
    tokio::time::sleep(INTERVAL * 5 / 2).await;
    let calls = world.calls_since(mark);
    ensure!(calls.iter().all(|call| !call.mutating), "{}", Table(&calls));
    let describes: Vec<_> = calls.iter().filter(|call| call.operation == "DescribeSubnets").collect();
    // One look at each would be at least 60; by tenths of the interval it is 11 a cycle at most.
    ensure!(describes.len() <= 28, "{} describes", describes.len());
    for id in ids.keys() {
        let looks: Vec<_> =
            describes.iter().filter(|call| asked(call).contains(id)).map(|call| call.at).collect();
        ensure!(looks.len() >= 2, "{id} was looked at {} times in two and a half intervals", looks.len());
        for pair in looks.windows(2) {
            let gap = pair[1] - pair[0];
            // 10 % either way; the seconds of lastSyncTime and a busy machine add to that.
            let fits = gap >= INTERVAL.mul_f64(0.9) - Duration::from_secs(1)
                && gap <= INTERVAL.mul_f64(1.1) + Duration::from_secs(2);
            ensure!(fits, "{gap:?} between two looks at {id}");
        }
    }
    Ok(())
}

async fn one_that_is_missing_harms_nobody(
    world: &World,
    subnets: &History,
    ids: &BTreeMap<String, String>,
) -> Result<()> {
    let (id, name) = ids.first_key_value().context("no subnet")?;
    let before: BTreeMap<_, _> = ids.values().map(|name| (name, subnets.versions(name).len())).collect();
    let mark = world.aws.mark();
    world.boto.call("ec2", "delete_subnet", json!({ "SubnetId": id })).await?;
    subnets
        .until(SOON, name, "made again", |version| {
            reason(version) == "Synced" && version.field("/status/subnetId") != Some(&json!(id))
        })
        .await?;
    ensure!(world.changes_since(mark) == ["CreateSubnet"], "{:?}", world.changes_since(mark));
    let events = world.events("Subnet", name).await?;
    let told = events.iter().find(|event| event.reason == "DeletedInAWS");
    ensure!(told.is_some_and(|event| event.warning && event.note.contains(id.as_str())), "{events:#?}");
    for other in ids.values().filter(|other| *other != name) {
        let since = subnets.versions(other).into_iter().skip(before[other]);
        let reasons: BTreeSet<_> = since.map(|version| reason(&version).to_owned()).collect();
        ensure!(reasons.iter().all(|reason| reason == "Synced"), "{other}: {reasons:?}");
    }
    Ok(())
}

async fn an_error_reaches_all(world: &World, subnets: &History, names: &[String]) -> Result<()> {
    let refusal = Action::error(403, "UnauthorizedOperation", "You are not authorized to do this.");
    let denied = world.aws.fault(Match::op("DescribeSubnets"), refusal);
    let mark = world.aws.mark();
    for name in names {
        let failed = subnets.until_reason(SOON, name, "Error").await?;
        let message = failed.condition("Ready", "message").unwrap_or_default();
        ensure!(message.contains("DescribeSubnets: UnauthorizedOperation"), "{message}");
    }
    denied.release();
    for name in names {
        subnets.until_ready(SOON, name).await?;
    }
    // An error was never taken for an absence.
    ensure!(world.changes_since(mark).is_empty(), "{:?}", world.changes_since(mark));
    Ok(())
}

/// Turns the VPC's host names off, as somebody would by hand.
async fn break_it(world: &World, id: &str) -> Result<()> {
    let off = json!({ "VpcId": id, "EnableDnsHostnames": { "Value": false } });
    world.boto.call("ec2", "modify_vpc_attribute", off).await?;
    Ok(())
}

async fn until_put_back(world: &World, id: &str) -> Result<()> {
    eventually(SOON, "it to be put back", async || {
        let ask = json!({ "VpcId": id, "Attribute": "enableDnsHostnames" });
        let found = world.boto.call("ec2", "describe_vpc_attribute", ask).await?;
        ensure!(found["EnableDnsHostnames"]["Value"] == true, "{found}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_is_put_back_but_not_for_ever() -> Result<()> {
    let (world, operator) = World::moto(&["--drift-interval=4s"]).await?;
    let vpcs = world.history("VPC").await?;
    let spec = json!({ "cidrBlock": "10.0.0.0/16", "enableDnsHostnames": true, "tags": { "team": "a" } });
    world.apply(&manifest::of("VPC", "main", spec)).await?;
    vpcs.until_ready(SOON, "main").await?;
    let outcome = async {
        put_back(&world, &operator, &vpcs).await?;
        not_hammered(&world, &vpcs).await
    };
    outcome.await.inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))
}

/// By the timer alone.
async fn put_back(world: &World, operator: &Operator, vpcs: &History) -> Result<()> {
    let id = world.status("VPC", "main", "vpcId").await?;
    let before = vpcs.versions("main").len();
    let mark = world.aws.mark();
    break_it(world, &id).await?;
    let tag = json!([{ "Key": "team", "Value": "b" }, { "Key": "theirs", "Value": "stays" }]);
    world.boto.call("ec2", "create_tags", json!({ "Resources": [id], "Tags": tag })).await?;
    until_put_back(world, &id).await?;
    eventually(SOON, "one event with the paths", async || {
        let events = world.events("VPC", "main").await?;
        let put: Vec<_> = events.iter().filter(|event| event.reason == "DriftCorrected").collect();
        ensure!(put.len() == 1 && put[0].times == 1, "{events:#?}");
        ensure!(
            put[0].note.contains("/enableDnsHostnames") && put[0].note.contains("/tags/team"),
            "{put:#?}"
        );
        Ok(())
    })
    .await?;
    ensure!(operator.metric("konfig_drift_corrections_total", &[("kind", "VPC")]).await? == 2.0);
    let mut changes = world.changes_since(mark);
    changes.sort();
    ensure!(changes == ["CreateTags", "ModifyVpcAttribute"], "{changes:?}");
    let found = world.boto.call("ec2", "describe_vpcs", json!({ "VpcIds": [id] })).await?;
    let tags = found["Vpcs"][0]["Tags"].to_string();
    ensure!(
        tags.contains(r#""Key":"team","Value":"a""#) && tags.contains(r#""Key":"theirs","Value":"stays""#),
        "{tags}"
    );
    // A correction at a check is no update of the user's: Ready stays.
    let since = vpcs.versions("main").into_iter().skip(before);
    let reasons: BTreeSet<_> = since.map(|version| reason(&version).to_owned()).collect();
    ensure!(reasons.iter().all(|reason| reason == "Synced"), "{reasons:?}");
    Ok(())
}

/// Somebody breaks it again each time that it is put right.
async fn not_hammered(world: &World, vpcs: &History) -> Result<()> {
    let id = world.status("VPC", "main", "vpcId").await?;
    let mark = world.aws.mark();
    let mut breaks = 0;
    let last = loop {
        break_it(world, &id).await?;
        breaks += 1;
        ensure!(breaks < 10, "never gives up: {:?}", world.changes_since(mark));
        world.observe("VPC", "main", &breaks.to_string()).await?;
        let word = json!(breaks.to_string());
        let settled = eventually(SOON, "the observe to end", async || {
            let version = vpcs.versions("main").pop().context("never seen")?;
            let annotations = version.object.metadata.annotations.clone().unwrap_or_default();
            ensure!(annotations.get("aws.konfig.io/reconcile").map(String::as_str) == word.as_str());
            if reason(&version) == "Error" {
                return Ok(Some(version));
            }
            let corrected = world.changes_since(mark).len();
            ensure!(corrected >= breaks, "{corrected} corrections of {breaks}");
            ensure!(reason(&version) == "Synced");
            Ok(None)
        })
        .await?;
        match settled {
            Some(version) => break version,
            None => until_put_back(world, &id).await?,
        }
    };
    let message = last.condition("Ready", "message").unwrap_or_default();
    ensure!(message.contains("/enableDnsHostnames") && message.contains("keeps differing"), "{message}");
    ensure!(last.condition("Stalled", "status") == Some("True"), "{last:#?}");
    // With the one before, five times.
    ensure!(world.changes_since(mark).len() == 4, "{:?}", world.changes_since(mark));

    // Looked at as often as anybody likes, it is not put right before its time; then it is.
    let given_up = Instant::now();
    for look in ["a", "b", "c"] {
        world.observe("VPC", "main", look).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    if given_up.elapsed() < INTERVAL / 2 {
        ensure!(world.changes_since(mark).len() == 4, "{:?}", world.changes_since(mark));
    }
    until_put_back(world, &id).await?;
    vpcs.until_ready(SOON, "main").await?;
    ensure!(world.changes_since(mark).len() == 5, "{:?}", world.changes_since(mark));
    let events = world.events("VPC", "main").await?;
    ensure!(events.iter().filter(|event| event.reason == "Error").count() == 1, "{events:#?}");
    Ok(())
}

/// A check that AWS throttles says nothing about the object, until it was due twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_check_is_patient() -> Result<()> {
    let interval = 10;
    let (world, operator) = World::moto(&["--drift-interval=10s"]).await?;
    let vpcs = world.history("VPC").await?;
    world.apply(&manifest::vpc("main")).await?;
    vpcs.until_ready(SOON, "main").await?;
    let throttled = world.aws.fault(Match::op("DescribeVpcs"), Action::Throttle);
    eventually(SOON, "a check that fails", async || {
        let failed = [("kind", "VPC"), ("outcome", "Throttled")];
        ensure!(operator.metric("konfig_reconciles_total", &failed).await? > 0.0);
        Ok(())
    })
    .await
    .inspect_err(|_| println!("{}\n{}", operator.log(), world.aws.table()))?;
    ensure!(vpcs.reasons("main").last().map(String::as_str) == Some("Synced"), "{:?}", vpcs.reasons("main"));
    let last = vpcs.until_reason(SOON, "main", "Throttled").await?;
    let seconds = |text: Option<&str>| -> Result<i64> {
        let time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time =
            serde_json::from_value(json!(text.context("no time")?))?;
        Ok(time.0.as_second())
    };
    let synced = seconds(last.field("/status/lastSyncTime").and_then(Value::as_str))?;
    let turned = seconds(last.condition("Ready", "lastTransitionTime"))?;
    ensure!(turned - synced >= 2 * interval, "Ready turned {} s after the last look", turned - synced);
    throttled.release();
    vpcs.until_ready(SOON, "main").await?;
    Ok(())
}

async fn reconciles(operator: &Operator, kind: &str) -> Result<f64> {
    operator.metric("konfig_reconciles_total", &[("kind", kind)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_timer_costs_a_call() -> Result<()> {
    let (world, mut operator) = World::moto(&["--drift-interval=1h"]).await?;
    world
        .apply(&manifest::all(&[
            manifest::vpc("main"),
            manifest::subnet("main", "main", 1),
            manifest::internet_gateway("main", "main"),
            manifest::security_group("web", "main", &["web"]),
            manifest::nat_gateway("main", "main"),
        ]))
        .await?;
    all_ready(&world).await.inspect_err(|_| println!("{}", operator.log()))?;
    requeues_are_free(&world, &operator).await?;

    // Started anew with nothing due.
    ensure!(operator.term(SOON).await?.success());
    let mark = world.aws.mark();
    let mut operator = world.operator(&["--drift-interval=1h"]).await?;
    eventually(SOON, "all to be passed over", async || {
        let skipped = operator.metric("konfig_reconciles_total", &[("outcome", "Skipped")]).await?;
        ensure!(skipped >= 5.0, "{skipped}");
        Ok(())
    })
    .await?;
    world.no_calls_since(mark, WHILE, "no call after a restart").await?;
    let who = world.aws.calls_since(mark).iter().filter(|call| call.operation == "GetCallerIdentity").count();
    ensure!(who <= 1, "STS was asked {who} times");

    ensure!(operator.term(SOON).await?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_may_have_an_interval_of_its_own() -> Result<()> {
    let (world, _operator) = World::moto(&["--drift-interval=1h"]).await?;
    let roles = world.history("IAMRole").await?;
    let mut often: Value = serde_json::from_str(&manifest::role("often"))?;
    often["metadata"]["annotations"] = json!({ "aws.konfig.io/reconcile-interval": "30s" });
    world.apply(&manifest::all(&[often.to_string(), manifest::role("seldom")])).await?;
    roles.until_ready(SOON, "seldom").await?;
    roles.until_ready(SOON, "often").await?;
    let (mark, start) = (world.aws.mark(), Instant::now());
    eventually(Duration::from_secs(36), "the check", async || {
        ensure!(!world.calls_since(mark).is_empty());
        Ok(())
    })
    .await?;
    let waited = start.elapsed().as_secs_f64();
    ensure!((25.0..=35.0).contains(&waited), "checked after {waited} s");
    let checked = world.calls_since(mark);
    let is_check = |call: &Call| call.operation == "GetRole" && call.params["RoleName"] == "often";
    ensure!(checked.iter().all(is_check), "{}", Table(&checked));

    // What cannot be an interval is said so.
    world.annotate("IAMRole", "often", "reconcile-interval", json!("1s")).await?;
    let failed = roles.until_reason(SOON, "often", "Error").await?;
    let message = failed.condition("Ready", "message").unwrap_or_default();
    ensure!(message.contains("reconcile-interval") && message.contains("between 30s and 24h"), "{message}");
    Ok(())
}

/// Annotations, labels and watches that begin anew: an unchanged Ready object makes no call.
async fn requeues_are_free(world: &World, operator: &Operator) -> Result<()> {
    // What the finalizers and statuses have stirred up has settled.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mark, before) = (world.aws.mark(), reconciles(operator, "VPC").await?);
    let skipped = operator.metric("konfig_reconciles_total", &[("outcome", "Skipped")]).await?;
    let args = ["annotate", "-n", &world.namespace, "konfig", "--all", "example.org/note=anything"];
    world.kubectl().run(&args).await?;
    world.kubectl().run(&["label", "-n", &world.namespace, "konfig", "--all", "stage=prod"]).await?;
    eventually(SOON, "a re-queue of each", async || {
        let now = operator.metric("konfig_reconciles_total", &[("outcome", "Skipped")]).await?;
        ensure!(now >= skipped + 5.0, "{now} after {skipped}");
        Ok(())
    })
    .await?;
    world.kube.cut_for(Duration::from_secs(1));
    world.no_calls_since(mark, WHILE * 2, "no call for re-queues").await?;
    ensure!(reconciles(operator, "VPC").await? > before);

    // One forced observe is one reconcile: what it writes into the status makes no other.
    let of_others = [reconciles(operator, "Subnet").await?, reconciles(operator, "SecurityGroup").await?];
    let before = reconciles(operator, "VPC").await?;
    let synced = world.status("VPC", "main", "lastSyncTime").await?;
    world.observe("VPC", "main", "once").await?;
    eventually(SOON, "a new lastSyncTime", async || {
        ensure!(world.status("VPC", "main", "lastSyncTime").await? > synced);
        Ok(())
    })
    .await?;
    throughout(WHILE, "one reconcile", async || {
        let now = reconciles(operator, "VPC").await?;
        ensure!(now <= before + 1.0, "{now} after {before}");
        Ok(())
    })
    .await?;
    ensure!(reconciles(operator, "VPC").await? == before + 1.0);
    ensure!(
        [reconciles(operator, "Subnet").await?, reconciles(operator, "SecurityGroup").await?] == of_others
    );
    ensure!(world.changes_since(mark).is_empty(), "{:?}", world.changes_since(mark));
    Ok(())
}
