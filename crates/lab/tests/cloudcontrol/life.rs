//! One resource from its creation to its deletion.

use anyhow::{Context, Result, ensure};
use lab::cloudcontrol::Operation;
use lab::eventually;
use serde_json::{Value, json};

use crate::cloud::{Cloud, GROUP, SOON, group};

#[tokio::test(flavor = "multi_thread")]
async fn a_log_group_lives_as_its_spec_says() -> Result<()> {
    let (cloud, operator) = Cloud::new(&[]).await?;
    cloud.world.cloud_control.slow(Operation::Create, 3);
    let desired = json!({
        "RetentionInDays": 7,
        "DataProtectionPolicy": {"Name": "p", "Version": "2021-06-01"},
        "Tags": [{"Key": "team", "Value": "platform"}],
    });
    cloud.apply("group", group("konfig/a", desired)).await?;
    let ready = cloud.until_ready("group").await.inspect_err(|_| println!("{}", operator.log()))?;
    ensure!(ready.field("/status/identifier") == Some(&json!("konfig/a")), "{ready:#?}");
    let arn = ready.field("/status/properties/Arn").and_then(Value::as_str).context("an ARN")?;
    ensure!(arn.contains("konfig/a"), "{arn}");
    ensure!(ready.field("/status/requestToken").is_none(), "{ready:#?}");
    let tokens: Vec<_> = cloud.history.versions("group");
    ensure!(
        tokens.iter().any(|version| version.field("/status/requestToken").is_some()),
        "no token was shown"
    );
    ensure!(cloud.history.reasons("group") == ["Creating", "Synced"], "{:?}", cloud.history.reasons("group"));
    ensure!(cloud.world.aws.count("CreateResource") == 1, "{}", cloud.world.aws.table());
    let tags = cloud.held(GROUP, "konfig/a")?["Tags"].clone();
    let has = |key: &str| tags.as_array().into_iter().flatten().any(|tag| tag["Key"] == key);
    ensure!(has("team") && has("konfig.io/owner") && has("konfig.io/uid"), "{tags}");

    // Nothing to do.
    let mark = cloud.world.aws.mark();
    let version = cloud.get("group").await?.metadata.resource_version;
    for word in ["one", "two"] {
        cloud.observe("group", word).await?;
    }
    ensure!(cloud.mutating_since(mark).is_empty(), "{}", cloud.world.aws.table());
    ensure!(version.is_some());

    // A change goes out as the least patch.
    let mark = cloud.world.aws.mark();
    cloud.change("group", json!({"RetentionInDays": 14})).await?;
    cloud.until_ready("group").await?;
    let expected = json!([{"op": "replace", "path": "/RetentionInDays", "value": 14}]);
    ensure!(cloud.patch_since(mark)? == expected, "{}", cloud.world.aws.table());
    ensure!(cloud.held(GROUP, "konfig/a")?["RetentionInDays"] == 14);

    // Drift is put back; what the spec does not name is left alone.
    let mark = cloud.world.aws.mark();
    let patch = json!([
        {"op": "replace", "path": "/RetentionInDays", "value": 30},
        {"op": "add", "path": "/DeletionProtectionEnabled", "value": false},
        {"op": "add", "path": "/Tags/-", "value": {"Key": "foreign", "Value": "stays"}},
    ]);
    let token = cloud.hand(GROUP, "konfig/a", patch).await?;
    cloud.finish(&token).await?;
    cloud.observe("group", "drift").await?;
    eventually(SOON, "the drift put back", async || {
        ensure!(cloud.held(GROUP, "konfig/a")?["RetentionInDays"] == 14);
        Ok(())
    })
    .await?;
    cloud.until_ready("group").await?;
    ensure!(cloud.patch_since(mark)? == expected, "{}", cloud.world.aws.table());
    let held = cloud.held(GROUP, "konfig/a")?;
    ensure!(
        held["DeletionProtectionEnabled"] == false && held["Tags"].to_string().contains("foreign"),
        "{held}"
    );

    // Taken out of the spec, taken out in AWS; tags one by one.
    let mark = cloud.world.aws.mark();
    cloud.change("group", json!({"DataProtectionPolicy": null})).await?;
    cloud.until_ready("group").await?;
    ensure!(cloud.patch_since(mark)? == json!([{"op": "remove", "path": "/DataProtectionPolicy"}]));
    cloud.change("group", json!({"Tags": [{"Key": "cost", "Value": "1"}]})).await?;
    cloud.until_ready("group").await?;
    let tags = cloud.held(GROUP, "konfig/a")?["Tags"].to_string();
    ensure!(tags.contains("cost") && tags.contains("foreign") && tags.contains("konfig.io/uid"), "{tags}");
    ensure!(!tags.contains("team"), "{tags}");

    // What cannot be changed is named, and AWS is not asked.
    let mark = cloud.world.aws.mark();
    cloud.change("group", json!({"LogGroupName": "konfig/b"})).await?;
    cloud.until_error("group", &["/desiredState/LogGroupName", "cannot change this after creation"]).await?;
    ensure!(cloud.mutating_since(mark).is_empty(), "{}", cloud.world.aws.table());
    cloud.change("group", json!({"LogGroupName": "konfig/a"})).await?;
    cloud.until_ready("group").await?;

    // An update that AWS fails at is told in AWS's words, and tried again.
    cloud.world.cloud_control.fail_next(Operation::Update, "NotStabilized", "the retention does not settle");
    cloud.change("group", json!({"RetentionInDays": 30})).await?;
    cloud.until_was_error("group", &["NotStabilized: the retention does not settle"]).await?;
    cloud.until_ready("group").await?;

    // Somebody else's request is waited out.
    cloud.world.cloud_control.slow(Operation::Update, 12);
    let token = cloud.hand(GROUP, "konfig/a", json!([{"op": "add", "path": "/KmsKeyId", "value": ""}])).await;
    ensure!(token.is_err(), "an invalid patch");
    let patch = json!([{"op": "replace", "path": "/DeletionProtectionEnabled", "value": true}]);
    let token = cloud.hand(GROUP, "konfig/a", patch).await?;
    cloud.world.cloud_control.slow(Operation::Update, 1);
    let seen = cloud.history.versions("group").len();
    cloud.change("group", json!({"RetentionInDays": 60})).await?;
    cloud.until_ready("group").await?;
    cloud.finish(&token).await?;
    let refused = cloud.world.aws.calls().iter().any(|call| {
        call.error_code.as_deref().is_some_and(|code| code.ends_with("ConcurrentOperationException"))
    });
    ensure!(refused, "{}", cloud.world.aws.table());
    let since = cloud.history.versions("group").split_off(seen);
    ensure!(since.iter().all(|version| version.condition("Ready", "reason") != Some("Error")), "{since:#?}");

    // The deletion takes its time, too.
    cloud.world.cloud_control.slow(Operation::Delete, 3);
    cloud.delete("group").await?;
    ensure!(cloud.world.cloud_control.resources(GROUP).is_empty());
    ensure!(cloud.world.aws.count("DeleteResource") == 1, "{}", cloud.world.aws.table());
    Ok(())
}
