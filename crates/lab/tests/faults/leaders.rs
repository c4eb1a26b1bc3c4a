//! Two operators and one lease: the leader freezes, in the middle of its calls, and thaws; it ends.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use lab::emulator::Flavor;
use lab::proxy::aws::{Action, AwsProxy, Match};
use lab::proxy::kube::{self as kube_proxy, KubeProxy};
use lab::proxy::{Stage, Verdict};
use lab::wait::throughout;
use lab::{Inventory, Operator, User, World, eventually, manifest};
use serde_json::json;
use tokio::sync::watch;

const SOON: Duration = Duration::from_secs(30);

async fn holder(world: &World) -> Result<String> {
    let lease = Api::<Lease>::namespaced(world.client.clone(), "default").get("konfig-konector").await?;
    lease.spec.and_then(|spec| spec.holder_identity).context("nobody holds the lease")
}

/// An operator with proxies of its own: its calls can be told from another's.
struct Candidate {
    aws: AwsProxy,
    kube: KubeProxy,
    operator: Operator,
}

impl Candidate {
    fn start(world: &World) -> Result<Self> {
        let aws = AwsProxy::start(&world.emulator.endpoint());
        let kube = KubeProxy::start(&world.control_plane.url(), &std::fs::read(world.control_plane.ca())?);
        let mut config = world.config.clone().arg("--leader-elect").arg("--drift-interval=2s");
        config.kubeconfig = world.control_plane.kubeconfig(User::Operator, Some(&kube.endpoint()))?;
        config.aws_endpoint = aws.endpoint();
        Ok(Self { operator: Operator::spawn(config)?, aws, kube })
    }
}

/// The leader's write of this object's intent is done, and it does not learn of that yet.
fn hold_intent(leader: &Candidate, name: &str) -> (watch::Receiver<bool>, watch::Sender<bool>) {
    let (name, written, thaw) = (name.to_owned(), watch::Sender::new(false), watch::Sender::new(false));
    let (is_written, thaws) = (written.subscribe(), thaw.clone());
    leader.kube.on_write(move |stage, write| {
        let is_intent = write.body.pointer("/status/creation/main/token").is_some();
        let is_its = is_intent && write.target.name.as_ref() == Some(&name);
        let held = (stage == Stage::After && is_its).then(|| (written.clone(), thaws.subscribe()));
        async move {
            if let Some((written, mut thaws)) = held {
                written.send_replace(true);
                let _ = thaws.wait_for(|thaw| *thaw).await;
            }
            Verdict::Continue
        }
    });
    (is_written, thaw)
}

/// Who was asleep past its lease wakes up as somebody who may not change anything any more.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_a_leader_that_freezes_in_the_middle() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let aws_before = Inventory::take(&world.boto).await?;
    let mut first = Candidate::start(&world)?;
    first.operator.wait_ready(SOON).await?;
    eventually(SOON, "a leader", async || holder(&world).await).await?;
    let mut second = Candidate::start(&world)?;
    second.operator.wait_ready(SOON).await?;
    let vpcs = world.history("VPC").await?;
    let spec = json!({ "cidrBlock": "10.0.0.0/16", "enableDnsHostnames": true });
    world.apply(&manifest::of("VPC", "main", spec)).await?;
    vpcs.until_ready(SOON, "main").await?;
    ensure!(second.aws.calls().is_empty(), "who stands by made calls: {}", second.aws.table());
    ensure!(
        second.kube.writes().iter().all(|write| write.target.resource == "leases"),
        "{}",
        second.kube.table()
    );

    // One has its intent and no call yet, of the other AWS has just answered the call.
    let (mut intended, thaw) = hold_intent(&first, "intended");
    let owner = format!("lab/{}/VPC/answered", world.namespace);
    let answered = first.aws.fault(Match::op("CreateVpc").param("*", &owner), Action::HoldAnswer);
    world.apply(&manifest::all(&["intended", "answered"].map(manifest::vpc))).await?;
    tokio::time::timeout(SOON, intended.wait_for(|written| *written)).await.context("no intent")??;
    eventually(SOON, "AWS to make it", async || {
        ensure!(first.aws.calls().iter().any(|call| call.note == Some("answer held")));
        Ok(())
    })
    .await?;
    let leader = holder(&world).await?;
    first.operator.stop()?;
    let asleep = Instant::now();
    eventually(Duration::from_secs(60), "the other to lead and look at AWS", async || {
        ensure!(holder(&world).await? != leader);
        ensure!(second.aws.count("DescribeVpcs") > 0);
        Ok(())
    })
    .await?;
    ensure!(asleep.elapsed() >= Duration::from_secs(15), "it did not wait for the lease to run out");
    for name in ["intended", "answered"] {
        vpcs.until_ready(SOON, name).await?;
    }
    let creates = |candidate: &Candidate| candidate.aws.count("CreateVpc");
    ensure!((creates(&first), creates(&second)) == (2, 1), "{}{}", first.aws.table(), second.aws.table());

    // The new leader is gone, something is out of order, and what the lease says comes late to the
    // one that wakes up: only its own clock can keep it from acting.
    second.operator.kill()?;
    let id = world.status("VPC", "main", "vpcId").await?;
    let off = json!({ "VpcId": id, "EnableDnsHostnames": { "Value": false } });
    world.boto.call("ec2", "modify_vpc_attribute", off).await?;
    first.kube.fault(
        kube_proxy::Match::any().resource("leases"),
        kube_proxy::Action::Delay(Duration::from_secs(3)),
    );
    let (calls, writes) = (first.aws.mark(), first.kube.mark());
    thaw.send_replace(true);
    answered.release();
    first.operator.cont()?;
    let ended = eventually(SOON, "the one that slept to end", async || {
        first.operator.exited()?.context("still running")
    })
    .await?;
    ensure!(!ended.success(), "{ended}");
    ensure!(!first.operator.log().contains("panicked"), "{}", first.operator.log());
    let calls = first.aws.calls_since(calls);
    ensure!(calls.iter().any(|call| call.operation.starts_with("Describe")), "it did not even look");
    ensure!(calls.iter().all(|call| !call.mutating), "{}", first.aws.table());
    let writes = first.kube.writes_since(writes);
    ensure!(writes.is_empty(), "{}", kube_proxy::Table(&writes));

    // One resource each, and a third process ends what is left.
    let mut third = Candidate::start(&world)?;
    let made = Inventory::take(&world.boto).await?.new_since(&aws_before);
    ensure!(made.len() == 3, "{made:?}");
    world.kubectl().run(&["delete", "vpc", "--all", "-n", &world.namespace, "--timeout=90s"]).await?;
    let left = Inventory::take(&world.boto).await?.new_since(&aws_before);
    ensure!(left.is_empty(), "{left:?}");
    crate::life::ended_well(&mut third.operator).await
}

/// A leader that ends gives the lease up: its successor need not wait for it to run out.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_a_leader_that_ends_and_is_succeeded_at_once() -> Result<()> {
    let world = World::prepare(Flavor::Moto).await?;
    let mut first = Candidate::start(&world)?;
    first.operator.wait_ready(SOON).await?;
    let leader = eventually(SOON, "a leader", async || holder(&world).await).await?;
    let mut second = Candidate::start(&world)?;
    second.operator.wait_ready(SOON).await?;
    throughout(Duration::from_secs(6), "one leader", async || {
        ensure!(holder(&world).await? == leader);
        Ok(())
    })
    .await?;
    ensure!(first.operator.term(SOON).await?.code() == Some(0), "{}", first.operator.log());
    let ended = Instant::now();
    world.apply(&manifest::vpc("main")).await?;
    let vpcs = world.history("VPC").await?;
    vpcs.until_ready(Duration::from_secs(12), "main")
        .await
        .inspect_err(|_| println!("{}", second.operator.log()))?;
    ensure!(ended.elapsed() < Duration::from_secs(12), "{:?}", ended.elapsed());
    ensure!(second.aws.count("CreateVpc") == 1 && first.aws.count("CreateVpc") == 0);
    // Who stands by ends well too.
    let mut third = Candidate::start(&world)?;
    third.operator.wait_ready(SOON).await?;
    ensure!(third.operator.term(SOON).await?.code() == Some(0));
    ensure!(second.operator.term(SOON).await?.code() == Some(0));
    Ok(())
}
