//! References and secrets inside the desired state, and what is written and never read.

use anyhow::{Result, ensure};
use lab::cloudcontrol::Operation;
use lab::eventually;
use lab::history::Version;
use lab::proxy::aws::Table;
use serde_json::json;

use crate::cloud::{Cloud, DIRECTORY, GROUP, KIND, SOON, group};

#[tokio::test(flavor = "multi_thread")]
async fn references_and_secrets_stand_in_the_desired_state() -> Result<()> {
    let (cloud, operator) = Cloud::new(&[]).await?;
    let secret = json!({"$secret": {"name": "ad", "key": "password"}});
    let desired = json!({
        "DirectoryName": "corp",
        "OrganizationalUnitDistinguishedNames": [
            {"$ref": {"kind": KIND, "name": "group", "path": "status.properties.Arn"}}, "OU=b",
        ],
        "ServiceAccountCredentials": {"AccountName": "admin", "AccountPassword": secret},
    });
    cloud.apply("directory", json!({"typeName": DIRECTORY, "desiredState": desired})).await?;
    cloud.history.until_reason(SOON, "directory", "DependencyNotReady").await?;
    cloud.apply("group", group("konfig/ref", json!({}))).await?;
    let waits_for_secret = |version: &Version| {
        version.condition("Ready", "message").is_some_and(|message| message.contains("/ad"))
    };
    cloud.history.until(SOON, "directory", "the Secret is missing", waits_for_secret).await?;
    ensure!(cloud.world.cloud_control.resources(DIRECTORY).is_empty());
    cloud.put_secret("canary-first").await?;
    cloud.until_ready("directory").await.inspect_err(|_| println!("{}", operator.log()))?;
    let held = cloud.held(DIRECTORY, "corp")?;
    ensure!(held["ServiceAccountCredentials"]["AccountPassword"] == "canary-first", "{held}");
    let arn = cloud.held(GROUP, "konfig/ref")?["Arn"].clone();
    ensure!(held["OrganizationalUnitDistinguishedNames"][0] == arn, "{held}");

    // Compared and found the same, not sent again.
    let mark = cloud.world.aws.mark();
    cloud.observe("directory", "one").await?;
    ensure!(cloud.mutating_since(mark).is_empty(), "{}", cloud.world.aws.table());

    // Rotated, alone, when the Secret changes.
    cloud.put_secret("canary-second").await?;
    eventually(SOON, "the new password in AWS", async || {
        let held = cloud.held(DIRECTORY, "corp")?;
        ensure!(held["ServiceAccountCredentials"]["AccountPassword"] == "canary-second", "{held}");
        Ok(())
    })
    .await?;
    cloud.until_ready("directory").await?;
    let path = "/ServiceAccountCredentials/AccountPassword";
    let patch = cloud.patch_since(mark)?;
    ensure!(patch == json!([{"op": "add", "path": path, "value": "canary-second"}]), "{patch}");

    // A failed rotation is tried again, and AWS's quote of it is masked.
    cloud.world.cloud_control.fail_next(
        Operation::Update,
        "InvalidRequest",
        "the password canary-third is too weak",
    );
    cloud.put_secret("canary-third").await?;
    cloud.until_was_error("directory", &["the password *** is too weak"]).await?;
    eventually(SOON, "the third password in AWS", async || {
        let held = cloud.held(DIRECTORY, "corp")?;
        ensure!(held["ServiceAccountCredentials"]["AccountPassword"] == "canary-third", "{held}");
        Ok(())
    })
    .await?;
    cloud.until_ready("directory").await?;

    // What is written only and stands in the spec itself is sent when it changes.
    let mark = cloud.world.aws.mark();
    cloud.apply("secret", json!({
        "typeName": "AWS::SecretsManager::Secret", "desiredState": {"Name": "s", "SecretString": "plain-one"},
    })).await?;
    cloud.until_ready("secret").await?;
    cloud.observe("secret", "one").await?;
    let calls = cloud.mutating_since(mark);
    ensure!(calls.len() == 1 && calls[0].operation == "CreateResource", "{}", Table(&calls));
    let mark = cloud.world.aws.mark();
    cloud.change("secret", json!({"SecretString": "plain-two"})).await?;
    cloud.until_ready("secret").await?;
    let patch = cloud.patch_since(mark)?;
    ensure!(patch == json!([{"op": "add", "path": "/SecretString", "value": "plain-two"}]), "{patch}");
    let mark = cloud.world.aws.mark();
    cloud.observe("secret", "two").await?;
    ensure!(cloud.mutating_since(mark).is_empty(), "{}", cloud.world.aws.table());

    // Nowhere but in AWS's calls.
    let all = ["get", "cloudcontrolresources,events", "-o", "yaml", "-n", &cloud.world.namespace];
    let objects = cloud.world.kubectl().run(&all).await?;
    ensure!(!objects.contains("canary"), "{objects}");
    let versions = cloud.history.versions("directory");
    ensure!(!format!("{versions:?}").contains("canary"), "a version of the object holds the password");
    ensure!(!operator.log().contains("canary"), "the log holds the password");
    ensure!(!operator.metrics().await?.contains("canary"));
    Ok(())
}
