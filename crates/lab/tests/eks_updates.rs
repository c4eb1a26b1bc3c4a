//! What the proxy adds to an emulator's EKS, as another AWS client sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lab::proxy::aws::AwsProxy;
use lab::{AwsError, Boto, Emulator, eventually};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// One ministack for all tests; a proxy, and so what it knows of clusters, for each.
struct World {
    proxy: AwsProxy,
    boto: Boto,
}

async fn world() -> World {
    static MINISTACK: OnceCell<Emulator> = OnceCell::const_new();
    let ministack = MINISTACK.get_or_init(|| async { Emulator::ministack().await.unwrap() }).await;
    let proxy = AwsProxy::start(&ministack.endpoint());
    let boto = Boto::new(proxy.endpoint());
    World { proxy, boto }
}

type Outcome = Result<Value, AwsError>;

impl World {
    async fn call(&self, operation: &str, params: Value) -> Outcome {
        self.boto.call("eks", operation, params).await
    }

    /// Begins to make a cluster of version 1.31.
    async fn create(&self, name: &str) -> Value {
        let cluster = json!({
            "name": name, "version": "1.31", "roleArn": "arn:aws:iam::000000000000:role/eks",
            "resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-2"], "securityGroupIds": ["sg-1"]},
            "tags": {"team": "platform"},
        });
        self.call("create_cluster", cluster).await.unwrap()["cluster"].clone()
    }

    /// Makes a cluster and waits until the emulator has it ready.
    async fn made(&self, name: &str) {
        self.create(name).await;
        self.until(name, "ACTIVE").await;
    }

    async fn until(&self, name: &str, status: &str) -> Value {
        let seen = async || {
            let cluster = self.describe(name).await.unwrap();
            anyhow::ensure!(cluster["status"] == status, "{cluster}");
            Ok(cluster)
        };
        eventually(Duration::from_secs(10), status, seen).await.unwrap()
    }

    async fn describe(&self, name: &str) -> Outcome {
        Ok(self.call("describe_cluster", json!({"name": name})).await?["cluster"].clone())
    }

    async fn to_version(&self, name: &str, version: &str) -> Outcome {
        Ok(self.call("update_cluster_version", json!({"name": name, "version": version})).await?["update"]
            .clone())
    }

    async fn configure(&self, name: &str, config: Value) -> Outcome {
        let mut params = config;
        params["name"] = name.into();
        Ok(self.call("update_cluster_config", params).await?["update"].clone())
    }

    /// Sends an update, checks its type, and waits until it is done.
    async fn configured(&self, name: &str, config: Value, kind: &str) -> Value {
        let update = self.configure(name, config).await.unwrap();
        assert_eq!((&update["type"], &update["status"]), (&json!(kind), &json!("InProgress")));
        assert_eq!(self.describe(name).await.unwrap()["status"], "UPDATING");
        let cluster = self.describe(name).await.unwrap();
        assert_eq!(cluster["status"], "ACTIVE");
        assert_eq!(self.update(name, &update).await.unwrap()["status"], "Successful");
        cluster
    }

    async fn update(&self, name: &str, update: &Value) -> Outcome {
        let params = json!({"name": name, "updateId": update["id"]});
        Ok(self.call("describe_update", params).await?["update"].clone())
    }
}

fn code(outcome: Outcome) -> String {
    outcome.unwrap_err().code
}

const INVALID: &str = "InvalidParameterException";

#[tokio::test]
async fn versions_go_up_one_at_a_time() {
    let world = world().await;
    world.made("versions").await;
    for (version, words) in [
        ("1.33", "from 1.31 to 1.33"),
        ("1.31", "from 1.31 to 1.31"),
        ("1.30", "to 1.30"),
        ("x", "unsupported"),
    ] {
        let refused = world.to_version("versions", version).await.unwrap_err();
        assert_eq!(refused.code, INVALID, "{version}");
        assert!(refused.message.contains(words), "{refused}");
    }
    world.proxy.slow("UpdateClusterVersion", 2);
    let update = world.to_version("versions", "1.32").await.unwrap();
    assert_eq!((&update["type"], &update["status"]), (&json!("VersionUpdate"), &json!("InProgress")));
    assert_eq!(update["params"], json!([{"type": "Version", "value": "1.32"}]));
    for _ in 0..2 {
        let cluster = world.describe("versions").await.unwrap();
        assert_eq!((&cluster["status"], &cluster["version"]), (&json!("UPDATING"), &json!("1.31")));
    }
    let cluster = world.describe("versions").await.unwrap();
    assert_eq!((&cluster["status"], &cluster["version"]), (&json!("ACTIVE"), &json!("1.32")));
    assert_eq!(world.update("versions", &update).await.unwrap()["status"], "Successful");
    let listed = world.call("list_updates", json!({"name": "versions"})).await.unwrap();
    assert_eq!(listed["updateIds"], json!([update["id"]]));
    let calls: Vec<_> = world.proxy.mutating_calls().into_iter().map(|call| call.operation).collect();
    assert_eq!(calls.first().map(String::as_str), Some("CreateCluster"));
    assert!(calls[1..].iter().all(|operation| operation == "UpdateClusterVersion"), "{calls:?}");
}

#[tokio::test]
async fn one_update_runs_at_a_time() {
    let world = world().await;
    world.made("busy").await;
    world.proxy.slow("UpdateClusterVersion", 3);
    let token = json!({"name": "busy", "version": "1.32", "clientRequestToken": "t1"});
    let update = world.call("update_cluster_version", token.clone()).await.unwrap()["update"].clone();
    let again = world.call("update_cluster_version", token).await.unwrap()["update"].clone();
    assert_eq!(again["id"], update["id"]);

    let policy = json!({"upgradePolicy": {"supportType": "STANDARD"}});
    let refused = world.configure("busy", policy.clone()).await.unwrap_err();
    assert_eq!(refused.code, "ResourceInUseException");
    assert!(refused.message.contains(update["id"].as_str().unwrap()), "{refused}");
    assert_eq!(code(world.call("delete_cluster", json!({"name": "busy"})).await), "ResourceInUseException");
    assert_eq!(world.update("busy", &update).await.unwrap()["status"], "InProgress");
    world.until("busy", "ACTIVE").await;
    world.configured("busy", policy, "UpgradePolicyUpdate").await;

    let nobody = json!({"id": "00000000-0000-4000-9000-ffffffffffff"});
    assert_eq!(code(world.update("busy", &nobody).await), "ResourceNotFoundException");
    assert_eq!(code(world.to_version("nobody", "1.32").await), "ResourceNotFoundException");
    assert_eq!(
        code(world.call("list_updates", json!({"name": "nobody"})).await),
        "ResourceNotFoundException"
    );
}

#[tokio::test]
async fn configurations_change_one_type_at_a_time() {
    let world = world().await;
    world.made("config").await;
    let vpc = |config: Value| json!({"resourcesVpcConfig": config});
    let cluster = world.describe("config").await.unwrap();
    assert_eq!(cluster["upgradePolicy"], json!({"supportType": "EXTENDED"}));
    assert_eq!(cluster["accessConfig"], json!({"authenticationMode": "CONFIG_MAP"}));

    let both = json!({"resourcesVpcConfig": {"endpointPrivateAccess": true}, "upgradePolicy": {"supportType": "STANDARD"}});
    for refused in [
        json!({}),
        both,
        vpc(json!({"endpointPrivateAccess": true, "subnetIds": ["subnet-1", "subnet-3"]})),
        vpc(json!({"endpointPublicAccess": false})),
        vpc(json!({"endpointPublicAccess": true, "endpointPrivateAccess": false})),
        vpc(json!({"subnetIds": ["subnet-1"]})),
        vpc(json!({"subnetIds": ["subnet-1", "subnet-2"]})),
        json!({"logging": {"clusterLogging": [{"types": ["api"], "enabled": false}]}}),
        json!({"accessConfig": {"authenticationMode": "API"}}),
        json!({"upgradePolicy": {"supportType": "EXTENDED"}}),
    ] {
        assert_eq!(code(world.configure("config", refused.clone()).await), INVALID, "{refused}");
    }

    let closed = vpc(json!({"endpointPublicAccess": false, "endpointPrivateAccess": true}));
    let cluster = world.configured("config", closed, "EndpointAccessUpdate").await;
    assert_eq!(cluster["resourcesVpcConfig"]["endpointPrivateAccess"], true);
    assert_eq!(cluster["resourcesVpcConfig"]["publicAccessCidrs"], json!([]));
    let open = vpc(json!({"endpointPublicAccess": true, "publicAccessCidrs": ["198.51.100.0/24"]}));
    let cluster = world.configured("config", open, "EndpointAccessUpdate").await;
    assert_eq!(cluster["resourcesVpcConfig"]["publicAccessCidrs"], json!(["198.51.100.0/24"]));

    let network = vpc(json!({"subnetIds": ["subnet-1", "subnet-3"], "securityGroupIds": []}));
    let cluster = world.configured("config", network, "VpcConfigUpdate").await;
    assert_eq!(cluster["resourcesVpcConfig"]["subnetIds"], json!(["subnet-1", "subnet-3"]));
    assert_eq!(cluster["resourcesVpcConfig"]["securityGroupIds"], json!([]));

    let logs = |types: Value, enabled: bool| json!({"logging": {"clusterLogging": [{"types": types, "enabled": enabled}]}});
    world.configured("config", logs(json!(["api", "audit"]), true), "LoggingUpdate").await;
    let cluster = world.configured("config", logs(json!(["api"]), false), "LoggingUpdate").await;
    assert_eq!(cluster["logging"]["clusterLogging"][0], json!({"types": ["audit"], "enabled": true}));

    for mode in ["API_AND_CONFIG_MAP", "API"] {
        let access = json!({"accessConfig": {"authenticationMode": mode}});
        let cluster = world.configured("config", access, "AccessConfigUpdate").await;
        assert_eq!(cluster["accessConfig"]["authenticationMode"], mode);
    }
    let back = json!({"accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}});
    assert_eq!(code(world.configure("config", back).await), INVALID);

    let key = json!({"clusterName": "config", "encryptionConfig": [
        {"resources": ["secrets"], "provider": {"keyArn": "arn:aws:kms:eu-west-1:000000000000:key/k"}}]});
    world.call("associate_encryption_config", key.clone()).await.unwrap();
    let cluster = world.until("config", "ACTIVE").await;
    assert_eq!(cluster["encryptionConfig"], key["encryptionConfig"]);
    assert_eq!(code(world.call("associate_encryption_config", key).await), INVALID);
}

#[tokio::test]
async fn creations_and_deletions_take_time() {
    let world = world().await;
    world.proxy.slow("CreateCluster", 2);
    let cluster = world.create("slow").await;
    assert_eq!((&cluster["status"], cluster.get("endpoint")), (&json!("CREATING"), None));
    assert_eq!(code(world.to_version("slow", "1.32").await), "ResourceInUseException");
    for _ in 0..2 {
        assert_eq!(world.describe("slow").await.unwrap()["status"], "CREATING");
    }
    let cluster = world.until("slow", "ACTIVE").await;
    assert!(cluster["endpoint"].as_str().is_some_and(|endpoint| !endpoint.is_empty()), "{cluster}");

    let tags = json!({"resourceArn": cluster["arn"], "tags": {"stage": "test"}});
    world.call("tag_resource", tags).await.unwrap();
    world.call("untag_resource", json!({"resourceArn": cluster["arn"], "tagKeys": ["team"]})).await.unwrap();
    assert_eq!(world.describe("slow").await.unwrap()["tags"], json!({"stage": "test"}));

    let group = json!({"clusterName": "slow", "nodegroupName": "blue", "subnets": ["subnet-1"],
        "nodeRole": "arn:aws:iam::000000000000:role/node"});
    world.call("create_nodegroup", group).await.unwrap();
    let delete = || world.call("delete_cluster", json!({"name": "slow"}));
    let refused = delete().await.unwrap_err();
    assert_eq!(refused.code, "ResourceInUseException");
    assert!(refused.message.contains("nodegroups attached"), "{refused}");
    let profiles = world.call("list_fargate_profiles", json!({"clusterName": "slow"})).await.unwrap();
    assert_eq!(profiles["fargateProfileNames"], json!([]));
    let group = json!({"clusterName": "slow", "nodegroupName": "blue"});
    world.call("delete_nodegroup", group).await.unwrap();

    world.proxy.slow("DeleteCluster", 2);
    assert_eq!(delete().await.unwrap()["cluster"]["status"], "DELETING");
    for _ in 0..2 {
        assert_eq!(world.describe("slow").await.unwrap()["status"], "DELETING");
    }
    assert_eq!(code(world.describe("slow").await), "ResourceNotFoundException");
    assert_eq!(world.create("slow").await["version"], "1.31");
}

#[tokio::test]
async fn updates_and_clusters_fail_on_demand() {
    let world = world().await;
    world.made("fails").await;
    world.proxy.fail_update("UpdateClusterVersion", "InsufficientFreeAddresses", "no addresses left");
    let update = world.to_version("fails", "1.32").await.unwrap();
    world.describe("fails").await.unwrap();
    let cluster = world.until("fails", "ACTIVE").await;
    assert_eq!(cluster["version"], "1.31");
    let failed = world.update("fails", &update).await.unwrap();
    assert_eq!(failed["status"], "Failed");
    assert_eq!(failed["errors"][0]["errorCode"], "InsufficientFreeAddresses");
    assert_eq!(failed["errors"][0]["errorMessage"], "no addresses left");
    // Only that one.
    world.to_version("fails", "1.32").await.unwrap();
    world.describe("fails").await.unwrap();
    assert_eq!(world.describe("fails").await.unwrap()["version"], "1.32");

    world.proxy.break_cluster("fails", "Ec2SubnetNotFound", "a subnet is gone");
    let cluster = world.describe("fails").await.unwrap();
    assert_eq!(cluster["status"], "FAILED");
    assert_eq!(cluster["health"]["issues"][0]["code"], "Ec2SubnetNotFound");
    world.call("delete_cluster", json!({"name": "fails"})).await.unwrap();
    world.made("fails").await;
}

#[tokio::test]
async fn the_side_door_shows_the_same_world_unseen() {
    let world = world().await;
    world.made("shown").await;
    let mark = world.proxy.mark();
    let hand = Boto::new(world.proxy.side_door());
    let update = json!({"name": "shown", "version": "1.32"});
    hand.call("eks", "update_cluster_version", update).await.unwrap();
    hand.call("eks", "describe_cluster", json!({"name": "shown"})).await.unwrap();
    assert!(world.proxy.calls_since(mark).is_empty(), "{}", world.proxy.table());
    assert_eq!(world.describe("shown").await.unwrap()["version"], "1.32");
}
