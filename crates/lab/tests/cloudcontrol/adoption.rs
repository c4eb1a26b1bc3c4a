//! What existed before, and what is refused.

use anyhow::{Result, ensure};
use lab::eventually;
use serde_json::{Value, json};

use crate::cloud::{Cloud, GROUP, SOON, group, object};

#[tokio::test(flavor = "multi_thread")]
async fn adoption_and_refusals() -> Result<()> {
    let (cloud, operator) = Cloud::new(&["--adopt=never"]).await?;
    let params = |desired: Value| json!({"TypeName": GROUP, "DesiredState": desired.to_string()});
    for name in ["konfig/old", "konfig/other"] {
        let desired = params(json!({"LogGroupName": name, "RetentionInDays": 7}));
        let answer = cloud.world.boto.call("cloudcontrol", "create_resource", desired).await?;
        cloud.finish(&answer["ProgressEvent"]["RequestToken"]).await?;
    }

    // By its identifier; then it is brought to the spec, and released with the object.
    let mut spec = group("konfig/old", json!({"RetentionInDays": 14}));
    spec["identifier"] = json!("konfig/old");
    cloud.apply("old", spec).await?;
    let ready = cloud.until_ready("old").await.inspect_err(|_| println!("{}", operator.log()))?;
    ensure!(ready.field("/status/adopted") == Some(&json!(true)), "{ready:#?}");
    ensure!(cloud.held(GROUP, "konfig/old")?["RetentionInDays"] == 14);
    ensure!(cloud.world.aws.count("CreateResource") == 0, "{}", cloud.world.aws.table());
    cloud.delete("old").await?;
    eventually(SOON, "our tags gone", async || {
        let params = json!({"TypeName": GROUP, "Identifier": "konfig/old"});
        let left = cloud.world.boto.call("cloudcontrol", "get_resource", params).await?;
        ensure!(!left.to_string().contains("konfig.io/"), "{left}");
        Ok(())
    })
    .await?;

    // Not without being told so.
    let mark = cloud.world.aws.mark();
    cloud.apply("other", group("konfig/other", json!({}))).await?;
    cloud.until_error("other", &["exists in AWS and was not made by this object"]).await?;
    let mut spec = group("konfig/none", json!({}));
    spec["identifier"] = json!("konfig/none");
    cloud.apply("none", spec).await?;
    cloud.until_error("none", &["konfig/none", "does not exist"]).await?;

    let spec = |type_name: &str, desired: Value| json!({"typeName": type_name, "desiredState": desired});
    cloud.apply("unhandled", spec("AWS::Greengrass::DeviceDefinition", json!({}))).await?;
    cloud.until_error("unhandled", &["AWS has no handlers for it"]).await?;
    cloud.apply("unknown", spec("AWS::No::SuchType", json!({}))).await?;
    cloud.until_error("unknown", &["is no type that CloudFormation has"]).await?;
    cloud.apply("readonly", spec(GROUP, json!({"Arn": "arn:aws:logs:a"}))).await?;
    cloud.until_error("readonly", &["Arn", "is made by AWS"]).await?;
    ensure!(cloud.mutating_since(mark).is_empty(), "{}", cloud.world.aws.table());
    cloud.apply("invalid", group("konfig/invalid", json!({"RetentionInDays": 8}))).await?;
    cloud.until_error("invalid", &["Model validation failed", "RetentionInDays"]).await?;
    for refused in [
        spec("no type", json!({})),
        json!({"typeName": GROUP}),
        json!({"typeName": GROUP, "desiredState": {}, "surprise": 1}),
    ] {
        let outcome = cloud.world.try_apply(&object("refused", refused.clone()).to_string()).await?;
        ensure!(outcome.is_err(), "{refused} was accepted");
    }
    for name in ["other", "none", "unhandled", "unknown", "readonly", "invalid"] {
        cloud.delete(name).await?;
    }
    ensure!(cloud.world.cloud_control.resources(GROUP).len() == 2);
    Ok(())
}
