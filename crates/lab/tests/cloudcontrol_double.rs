//! The double of Cloud Control, as another AWS client sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::time::Duration;

use lab::cloudcontrol::Operation;
use lab::{AwsError, Boto, CloudControl};
use serde_json::{Value, json};

const GROUP: &str = "AWS::Logs::LogGroup";
const KEY: &str = "AWS::CloudFront::PublicKey";
const DIRECTORY: &str = "AWS::AppStream::DirectoryConfig";

struct World {
    double: CloudControl,
    boto: Boto,
}

type Outcome = Result<Value, AwsError>;

impl World {
    fn new() -> Self {
        let double = CloudControl::start();
        let boto = Boto::new(double.endpoint());
        Self { double, boto }
    }

    async fn call(&self, operation: &str, params: Value) -> Outcome {
        self.boto.call("cloudcontrol", operation, params).await
    }

    async fn create(&self, type_name: &str, desired: Value) -> Outcome {
        let params = json!({"TypeName": type_name, "DesiredState": desired.to_string()});
        Ok(self.call("create_resource", params).await?["ProgressEvent"].clone())
    }

    async fn update(&self, type_name: &str, id: &str, patch: Value) -> Outcome {
        let params = json!({"TypeName": type_name, "Identifier": id, "PatchDocument": patch.to_string()});
        Ok(self.call("update_resource", params).await?["ProgressEvent"].clone())
    }

    async fn poll(&self, event: &Value) -> Value {
        let params = json!({"RequestToken": event["RequestToken"]});
        self.call("get_resource_request_status", params).await.unwrap()["ProgressEvent"].clone()
    }

    /// The last event of a request.
    async fn end(&self, event: &Value) -> Value {
        for _ in 0..20 {
            let event = self.poll(event).await;
            if ["SUCCESS", "FAILED", "CANCEL_COMPLETE"].contains(&event["OperationStatus"].as_str().unwrap())
            {
                return event;
            }
        }
        panic!("{event} does not end");
    }

    async fn made(&self, type_name: &str, desired: Value) -> String {
        let event = self.create(type_name, desired).await.unwrap();
        let end = self.end(&event).await;
        assert_eq!(end["OperationStatus"], "SUCCESS", "{end}");
        end["Identifier"].as_str().unwrap().to_owned()
    }

    async fn get(&self, type_name: &str, id: &str) -> Outcome {
        let params = json!({"TypeName": type_name, "Identifier": id});
        let answer = self.call("get_resource", params).await?;
        Ok(serde_json::from_str(answer["ResourceDescription"]["Properties"].as_str().unwrap()).unwrap())
    }
}

fn code(outcome: Outcome) -> String {
    outcome.expect_err("an error").code
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_made_changed_and_deleted_by_requests() {
    let world = World::new();
    world.double.slow(Operation::Create, 2);
    let begun = world.create(GROUP, json!({"LogGroupName": "a", "RetentionInDays": 7})).await.unwrap();
    assert_eq!((&begun["OperationStatus"], &begun["Operation"]), (&json!("PENDING"), &json!("CREATE")));
    assert_eq!(code(world.get(GROUP, "a").await), "ResourceNotFoundException");
    // That look was one of the two.
    assert_eq!(world.poll(&begun).await["OperationStatus"], "IN_PROGRESS");
    let done = world.poll(&begun).await;
    assert_eq!((&done["OperationStatus"], &done["Identifier"]), (&json!("SUCCESS"), &json!("a")));
    let seen = world.get(GROUP, "a").await.unwrap();
    assert_eq!(seen["RetentionInDays"], 7);
    assert!(seen["Arn"].as_str().unwrap().starts_with("arn:aws:logs:"), "{seen}");

    let patch = json!([
        {"op": "test", "path": "/RetentionInDays", "value": 7},
        {"op": "replace", "path": "/RetentionInDays", "value": 14},
        {"op": "add", "path": "/Tags", "value": [{"Key": "a", "Value": "b"}]},
    ]);
    let event = world.update(GROUP, "a", patch).await.unwrap();
    assert_eq!(world.end(&event).await["OperationStatus"], "SUCCESS");
    let seen = world.get(GROUP, "a").await.unwrap();
    assert_eq!((&seen["RetentionInDays"], &seen["Tags"][0]["Value"]), (&json!(14), &json!("b")));
    let event =
        world.update(GROUP, "a", json!([{"op": "remove", "path": "/RetentionInDays"}])).await.unwrap();
    world.end(&event).await;
    assert_eq!(world.get(GROUP, "a").await.unwrap().get("RetentionInDays"), None);

    let params = json!({"TypeName": GROUP, "Identifier": "a"});
    let event = world.call("delete_resource", params.clone()).await.unwrap()["ProgressEvent"].clone();
    assert_eq!(world.end(&event).await["OperationStatus"], "SUCCESS");
    assert_eq!(code(world.get(GROUP, "a").await), "ResourceNotFoundException");
    assert_eq!(code(world.call("delete_resource", params).await), "ResourceNotFoundException");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_tokens_are_kept_for_36_hours() {
    let world = World::new();
    let key = |name: &str| {
        let config = json!({"Name": name, "CallerReference": "r", "EncodedKey": "k"});
        let desired = json!({"PublicKeyConfig": config}).to_string();
        json!({"TypeName": KEY, "DesiredState": desired, "ClientToken": "t"})
    };
    let create = async |name: &str| -> Outcome {
        Ok(world.call("create_resource", key(name)).await?["ProgressEvent"].clone())
    };
    let first = create("a").await.unwrap();
    let again = create("a").await.unwrap();
    assert_eq!(first["RequestToken"], again["RequestToken"]);
    assert_eq!(code(create("b").await), "ClientTokenConflictException");
    let id = world.end(&first).await["Identifier"].clone();
    assert_eq!(create("a").await.unwrap()["Identifier"], id);
    world.double.pass(Duration::from_secs(35 * 3600));
    assert_eq!(create("a").await.unwrap()["Identifier"], id);
    assert_eq!(world.double.resources(KEY).len(), 1);
    world.double.pass(Duration::from_secs(2 * 3600));
    let another = create("a").await.unwrap();
    assert_ne!(another["RequestToken"], first["RequestToken"]);
    assert_ne!(world.end(&another).await["Identifier"], id);
    assert_eq!(world.double.resources(KEY).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_schema_forbids_is_refused() {
    let world = World::new();
    let create = async |type_name: &str, desired: Value| code(world.create(type_name, desired).await);
    assert_eq!(create("AWS::No::SuchType", json!({})).await, "TypeNotFoundException");
    assert_eq!(create("AWS::Greengrass::DeviceDefinition", json!({})).await, "UnsupportedActionException");
    assert_eq!(create(GROUP, json!({"Arn": "a"})).await, "InvalidRequestException");
    for wrong in [
        json!({"RetentionInDays": "seven"}),
        json!({"RetentionInDays": 8}),
        json!({"LogGroupName": "a b"}),
        json!({"NoSuch": 1}),
        json!({"Tags": [{"Key": "a"}]}),
        json!({"Tags": [{"Key": "", "Value": "b"}]}),
    ] {
        assert_eq!(create(GROUP, wrong.clone()).await, "ValidationException", "{wrong}");
    }
    assert_eq!(create(KEY, json!({})).await, "ValidationException");

    world.made(GROUP, json!({"LogGroupName": "a"})).await;
    let patch = |op: &str, path: &str, value: &str| json!([{"op": op, "path": path, "value": value}]);
    let update = async |patch: Value| world.update(GROUP, "a", patch).await.unwrap_err();
    let fixed = update(patch("replace", "/LogGroupName", "b")).await;
    assert_eq!(fixed.code, "NotUpdatableException");
    assert!(fixed.message.contains("/properties/LogGroupName"), "{fixed}");
    assert_eq!(update(patch("replace", "/Arn", "b")).await.code, "InvalidRequestException");
    assert_eq!(update(patch("replace", "/KmsKeyId", "b")).await.code, "InvalidRequestException");
    assert_eq!(update(patch("add", "/KmsKeyId", "b")).await.code, "ValidationException");
    let again = world.create(GROUP, json!({"LogGroupName": "a"})).await.unwrap();
    let end = world.end(&again).await;
    assert_eq!((&end["OperationStatus"], &end["ErrorCode"]), (&json!("FAILED"), &json!("AlreadyExists")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_only_is_kept_and_not_shown() {
    let world = World::new();
    let credentials = |password: &str| json!({"AccountName": "a", "AccountPassword": password});
    let desired = json!({
        "DirectoryName": "d", "OrganizationalUnitDistinguishedNames": ["OU=a"],
        "ServiceAccountCredentials": credentials("first"),
    });
    let id = world.made(DIRECTORY, desired).await;
    let shown = world.get(DIRECTORY, &id).await.unwrap();
    assert_eq!(shown["ServiceAccountCredentials"], json!({"AccountName": "a"}));
    let held = || world.double.resources(DIRECTORY)[0].1["ServiceAccountCredentials"].clone();
    assert_eq!(held(), credentials("first"));

    let names =
        json!([{"op": "replace", "path": "/OrganizationalUnitDistinguishedNames", "value": ["OU=b"]}]);
    let event = world.update(DIRECTORY, &id, names).await.unwrap();
    world.end(&event).await;
    assert_eq!(held(), credentials("first"));
    let path = "/ServiceAccountCredentials/AccountPassword";
    let event =
        world.update(DIRECTORY, &id, json!([{"op": "add", "path": path, "value": "second"}])).await.unwrap();
    world.end(&event).await;
    assert_eq!(held(), credentials("second"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_at_a_time_and_it_can_be_cancelled() {
    let world = World::new();
    world.made(GROUP, json!({"LogGroupName": "a"})).await;
    world.double.slow(Operation::Update, 3);
    let days = |days: u32| json!([{"op": "add", "path": "/RetentionInDays", "value": days}]);
    let first = world.update(GROUP, "a", days(7)).await.unwrap();
    assert_eq!(code(world.update(GROUP, "a", days(14)).await), "ConcurrentOperationException");
    let params = json!({"RequestToken": first["RequestToken"]});
    let cancelled = world.call("cancel_resource_request", params.clone()).await.unwrap();
    assert_eq!(cancelled["ProgressEvent"]["OperationStatus"], "CANCEL_IN_PROGRESS");
    assert_eq!(world.end(&first).await["OperationStatus"], "CANCEL_COMPLETE");
    assert_eq!(code(world.call("cancel_resource_request", params).await), "ConcurrentModificationException");
    assert_eq!(world.get(GROUP, "a").await.unwrap().get("RetentionInDays"), None);

    world.double.fail_next(Operation::Update, "NotStabilized", "it does not settle");
    let failing = world.update(GROUP, "a", days(7)).await.unwrap();
    let end = world.end(&failing).await;
    assert_eq!(
        (&end["ErrorCode"], &end["StatusMessage"]),
        (&json!("NotStabilized"), &json!("it does not settle"))
    );
    assert_eq!(world.get(GROUP, "a").await.unwrap().get("RetentionInDays"), None);
    world.double.strand_next("NotStabilized", "half made");
    let stranded = world.create(GROUP, json!({"LogGroupName": "b"})).await.unwrap();
    assert_eq!(world.end(&stranded).await["OperationStatus"], "FAILED");
    assert!(world.get(GROUP, "b").await.is_ok());

    let unknown = json!({"RequestToken": "none"});
    assert_eq!(
        code(world.call("get_resource_request_status", unknown).await),
        "RequestTokenNotFoundException"
    );
    let filter = json!({"Operations": ["UPDATE"], "OperationStatuses": ["FAILED", "CANCEL_COMPLETE"]});
    let listed =
        world.call("list_resource_requests", json!({"ResourceRequestStatusFilter": filter})).await.unwrap();
    assert_eq!(listed["ResourceRequestStatusSummaries"].as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages() {
    let world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        world.made(GROUP, json!({"LogGroupName": name})).await;
    }
    let mut seen = BTreeSet::new();
    let mut params = json!({"TypeName": GROUP, "MaxResults": 2});
    for expected in [2, 2, 1] {
        let page = world.call("list_resources", params.clone()).await.unwrap();
        let items = page["ResourceDescriptions"].as_array().unwrap();
        assert_eq!(items.len(), expected, "{page}");
        seen.extend(items.iter().map(|item| item["Identifier"].as_str().unwrap().to_owned()));
        params["NextToken"] = page.get("NextToken").cloned().unwrap_or_default();
    }
    assert!(params["NextToken"].is_null());
    assert_eq!(seen.len(), 5);
}
