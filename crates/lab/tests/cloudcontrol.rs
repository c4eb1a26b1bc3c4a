//! CloudControlResource: any CloudFormation type, by requests that take their time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use lab::cloudcontrol::Operation;
use lab::history::Version;
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::proxy::{Stage, Verdict};
use lab::wait::throughout;
use lab::{History, Operator, World, eventually};
use serde_json::{Value, json};

const KIND: &str = "CloudControlResource";
const GROUP: &str = "AWS::Logs::LogGroup";
const KEY: &str = "AWS::CloudFront::PublicKey";
const DIRECTORY: &str = "AWS::AppStream::DirectoryConfig";
const SOON: Duration = Duration::from_secs(30);

/// A world, and what happens to the objects of the kind.
struct Cloud {
    world: World,
    history: History,
}

impl Cloud {
    async fn new(args: &[&str]) -> Result<(Self, Operator)> {
        let (world, operator) = World::moto(args).await?;
        let history = world.history(KIND).await?;
        Ok((Self { world, history }, operator))
    }

    async fn apply(&self, name: &str, spec: Value) -> Result<()> {
        self.world.apply(&object(name, spec).to_string()).await?;
        Ok(())
    }

    async fn change(&self, name: &str, desired: Value) -> Result<()> {
        self.world.merge(KIND, name, json!({"spec": {"desiredState": desired}})).await?;
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<DynamicObject> {
        Ok(self.world.api(KIND).get(name).await?)
    }

    async fn until_ready(&self, name: &str) -> Result<Version> {
        let newest = self.get(name).await?.metadata.generation;
        let is_ready = |version: &Version| {
            version.condition("Ready", "status") == Some("True")
                && version.field("/status/observedGeneration").and_then(Value::as_i64) == newest
        };
        let waited = self.history.until(SOON, name, "Ready", is_ready).await;
        waited.map_err(|error| error.context(self.world.aws.table()))
    }

    async fn until_error(&self, name: &str, parts: &[&str]) -> Result<Version> {
        let is_error = |version: &Version| {
            let message = version.condition("Ready", "message").unwrap_or_default();
            version.condition("Ready", "reason") == Some("Error")
                && parts.iter().all(|part| message.contains(part))
        };
        let waited = self.history.until(SOON, name, &format!("Error {parts:?}"), is_error).await;
        waited.map_err(|error| error.context(self.world.aws.table()))
    }

    /// Waits until an Error was seen, even one that has passed since.
    async fn until_was_error(&self, name: &str, parts: &[&str]) -> Result<()> {
        eventually(SOON, &format!("an Error with {parts:?}"), async || {
            let versions = self.history.versions(name);
            let was = versions.iter().any(|version| {
                let message = version.condition("Ready", "message").unwrap_or_default();
                version.condition("Ready", "reason") == Some("Error")
                    && parts.iter().all(|part| message.contains(part))
            });
            ensure!(was, "{}", self.world.aws.table());
            Ok(())
        })
        .await
    }

    /// Lets the operator look at AWS, and waits until it has.
    async fn observe(&self, name: &str, word: &str) -> Result<()> {
        let mark = self.world.aws.mark();
        self.world.observe(KIND, name, word).await?;
        eventually(SOON, "an observe", async || {
            ensure!(self.world.aws.calls_since(mark).iter().any(|call| call.operation == "GetResource"));
            Ok(())
        })
        .await?;
        self.until_ready(name).await?;
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.world.api(KIND).delete(name, &DeleteParams::default()).await?;
        self.history
            .until_deleted(SOON, name)
            .await
            .map_err(|error| error.context(self.world.aws.table()))?;
        Ok(())
    }

    fn mutating_since(&self, mark: u64) -> Vec<Call> {
        self.world.aws.calls_since(mark).into_iter().filter(|call| call.mutating).collect()
    }

    /// The one patch that was sent since.
    fn patch_since(&self, mark: u64) -> Result<Value> {
        let calls = self.mutating_since(mark);
        ensure!(calls.len() == 1 && calls[0].operation == "UpdateResource", "{}", Table(&calls));
        Ok(serde_json::from_str(&calls[0].params["PatchDocument"])?)
    }

    fn held(&self, type_name: &str, id: &str) -> Result<Value> {
        let resources = self.world.cloud_control.resources(type_name);
        let found = resources.iter().find(|(held, _)| held == id).map(|(_, properties)| properties.clone());
        found.with_context(|| format!("no {id} in {resources:?}"))
    }

    /// Another client changes a resource.
    async fn hand(&self, type_name: &str, id: &str, patch: Value) -> Result<Value> {
        let params = json!({"TypeName": type_name, "Identifier": id, "PatchDocument": patch.to_string()});
        let answer = self.world.boto.call("cloudcontrol", "update_resource", params).await?;
        Ok(answer["ProgressEvent"]["RequestToken"].clone())
    }

    async fn finish(&self, token: &Value) -> Result<()> {
        eventually(SOON, "the other client's request", async || {
            let params = json!({"RequestToken": token});
            let answer = self.world.boto.call("cloudcontrol", "get_resource_request_status", params).await?;
            ensure!(answer["ProgressEvent"]["OperationStatus"] == "SUCCESS", "{answer}");
            Ok(())
        })
        .await
    }

    async fn put_secret(&self, password: &str) -> Result<()> {
        let api: Api<Secret> = Api::namespaced(self.world.client.clone(), &self.world.namespace);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ad"},
            "stringData": {"password": password},
        });
        api.patch("ad", &PatchParams::apply("test").force(), &Patch::Apply(&secret)).await?;
        Ok(())
    }
}

fn object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "aws.konfig.io/v1alpha1", "kind": KIND, "metadata": {"name": name}, "spec": spec})
}

fn group(name: &str, mut desired: Value) -> Value {
    desired["LogGroupName"] = json!(name);
    json!({"typeName": GROUP, "desiredState": desired})
}

fn public_key(name: &str) -> Value {
    let config = json!({"Name": name, "CallerReference": name, "EncodedKey": "k"});
    json!({"typeName": KEY, "desiredState": {"PublicKeyConfig": config}})
}

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
