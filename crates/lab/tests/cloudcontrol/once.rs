//! Whatever happens to a create call, one resource is made.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use lab::cloudcontrol::Operation;
use lab::eventually;
use lab::history::Version;
use lab::proxy::aws::{Action, Match, Table};
use lab::proxy::{Stage, Verdict};
use lab::wait::throughout;
use serde_json::{Value, json};

use crate::cloud::{Cloud, GROUP, KEY, KIND, SOON, public_key};

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_resource_is_made() -> Result<()> {
    let (cloud, mut operator) = Cloud::new(&[]).await?;

    // The answer is lost: the client token leads to what the first call made.
    cloud.world.aws.fault(Match::op("CreateResource").times(1), Action::ResetAfter);
    cloud.apply("lost", public_key("lost")).await?;
    cloud.until_ready("lost").await?;
    ensure!(
        cloud.world.cloud_control.resources(KEY).len() == 1,
        "{:?}",
        cloud.world.cloud_control.resources(KEY)
    );
    ensure!(cloud.world.aws.count("CreateResource") == 2, "{}", cloud.world.aws.table());

    // A request that AWS fails at is told in AWS's words, and another is sent with another token.
    for code in ["NotStabilized", "InvalidRequest"] {
        let name = code.to_lowercase();
        cloud.world.cloud_control.fail_next(Operation::Create, code, "it does not settle");
        let mark = cloud.world.aws.mark();
        cloud.apply(&name, public_key(&name)).await?;
        cloud.until_was_error(&name, &[&format!("{code}: it does not settle")]).await?;
        cloud.until_ready(&name).await?;
        let calls = cloud.mutating_since(mark);
        ensure!(calls.len() == 2, "{}", Table(&calls));
        ensure!(calls[0].params["ClientToken"] != calls[1].params["ClientToken"], "{}", Table(&calls));
    }
    ensure!(cloud.world.cloud_control.resources(KEY).len() == 3);

    // What a failed creation leaves behind, and is ours by its tags, is not made again.
    cloud.world.cloud_control.strand_next("NotStabilized", "half made");
    cloud.apply("stranded", json!({"typeName": GROUP, "desiredState": {"RetentionInDays": 7}})).await?;
    cloud.until_ready("stranded").await?;
    ensure!(
        cloud.world.cloud_control.resources(GROUP).len() == 1,
        "{:?}",
        cloud.world.cloud_control.resources(GROUP)
    );
    let mark = cloud.world.aws.mark();
    cloud.delete("stranded").await?;
    ensure!(cloud.mutating_since(mark).len() == 1);

    // Throttled calls are sent again.
    cloud.world.aws.fault(Match::op("CreateResource").times(2), Action::Throttle);
    cloud.world.aws.fault(Match::op("GetResourceRequestStatus").times(2), Action::Throttle);
    cloud.apply("throttled", public_key("throttled")).await?;
    cloud.until_ready("throttled").await?;
    ensure!(cloud.world.cloud_control.resources(KEY).len() == 4);

    // Killed between the answer and the end of the request: the next operator follows the same one.
    cloud.world.cloud_control.slow(Operation::Create, 20);
    cloud.apply("killed", public_key("killed")).await?;
    let has_token = |version: &Version| version.field("/status/requestToken").is_some();
    let version = cloud.history.until(SOON, "killed", "a request token", has_token).await?;
    operator.kill()?;
    let token = version.field("/status/requestToken").and_then(Value::as_str).context("a token")?.to_owned();
    let mark = cloud.world.aws.mark();
    let mut operator = cloud.world.operator(&[]).await?;
    cloud.until_ready("killed").await?;
    let since = cloud.world.aws.calls_since(mark);
    ensure!(since.iter().all(|call| call.operation != "CreateResource"), "{}", Table(&since));
    ensure!(since.iter().any(|call| call.params.get("RequestToken") == Some(&token)), "{}", Table(&since));
    ensure!(cloud.world.cloud_control.resources(KEY).len() == 5);

    // Killed before the answer is recorded: the same token again.
    cloud.world.cloud_control.slow(Operation::Create, 1);
    let id = operator.id();
    let before = cloud.world.aws.mark();
    cloud.world.aws.on_call(move |stage, call| async move {
        if stage == Stage::After && call.operation == "CreateResource" {
            let killed = std::process::Command::new("kill").args(["-KILL", &id.to_string()]).status();
            assert!(killed.unwrap().success());
            return Verdict::Drop;
        }
        Verdict::Continue
    });
    cloud.apply("crashed", public_key("crashed")).await?;
    eventually(SOON, "the operator dead", async || {
        ensure!(operator.exited()?.is_some());
        Ok(())
    })
    .await?;
    cloud.world.aws.clear_hook();
    let operator = cloud.world.operator(&[]).await?;
    cloud.until_ready("crashed").await?;
    let creates: Vec<_> =
        cloud.mutating_since(before).into_iter().filter(|call| call.operation == "CreateResource").collect();
    ensure!(creates.len() == 2, "{}", Table(&creates));
    ensure!(creates[0].params["ClientToken"] == creates[1].params["ClientToken"]);
    ensure!(cloud.world.cloud_control.resources(KEY).len() == 6);

    // AWS has forgotten the token, and nothing else leads to what the lost call may have made.
    drop(operator);
    cloud.apply("late", public_key("late")).await?;
    let scope = cloud.get("crashed").await?.data["status"]["creation"]["main"].clone();
    let long_ago = "2020-01-01T00:00:00Z";
    let creation = json!({
        "token": "0123456789abcdef0123456789abcdef", "attempt": 1, "startedAt": long_ago, "since": long_ago,
        "accountId": scope["accountId"], "region": scope["region"],
    });
    let status = json!({"status": {"creation": {"main": creation}}});
    let api = cloud.world.api(KIND);
    api.patch_status("late", &PatchParams::default(), &Patch::Merge(status)).await?;
    let mark = cloud.world.aws.mark();
    let _operator = cloud.world.operator(&[]).await?;
    cloud.until_error("late", &["AWS has forgotten its token"]).await?;
    throughout(Duration::from_secs(3), "no second create", async || {
        let since = cloud.mutating_since(mark);
        ensure!(since.is_empty(), "{}", Table(&since));
        Ok(())
    })
    .await
}
