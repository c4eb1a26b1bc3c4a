//! The stack that lives through the faults, and what is to be seen of it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::ListParams;
use lab::proxy::aws::{Call, Table};
use lab::{History, Inventory, World, eventually};
use serde_json::{Value, json};

const MANIFESTS: &str = include_str!("stack.yaml");
/// The objects that are not named after their place.
const NAME: &str = "faults";
const ROLE: &str = "konfig-faults";
const BUCKET: &str = "konfig-faults-files";
const KINDS: [&str; 7] =
    ["VPC", "InternetGateway", "Subnet", "SecurityGroup", "NatGateway", "IAMRole", "S3Bucket"];

/// A small network with groups that name each other, a role and a bucket: nine objects, ten resources.
pub struct Stack<'w> {
    world: &'w World,
    before: Inventory,
    histories: Vec<History>,
    mark: u64,
}

impl<'w> Stack<'w> {
    /// Looks at AWS, and applies it.
    pub async fn apply(world: &'w World) -> Result<Self> {
        let before = Inventory::take(&world.boto).await?;
        let mut histories = Vec::new();
        for kind in KINDS {
            histories.push(world.history(kind).await?);
        }
        let mark = world.aws.mark();
        world.apply(MANIFESTS).await?;
        Ok(Self { world, before, histories, mark })
    }

    /// Waits until every object is Ready, and looks whether AWS holds just what they record.
    pub async fn ready(&self, within: Duration) -> Result<()> {
        self.kubectl(&["wait", "--for=condition=Ready", "konfig", "--all"], within).await?;
        self.ensure_exact().await
    }

    /// AWS holds what the objects record, all of it and nothing else; none of it is adopted.
    async fn ensure_exact(&self) -> Result<()> {
        let mut recorded = BTreeSet::new();
        for kind in KINDS {
            for object in self.world.api(kind).list(&ListParams::default()).await? {
                let status = &object.data["status"];
                ensure!(status["adopted"] != true, "takes what it made for adopted: {status}");
                let creations = status["creation"].as_object().context("nothing recorded")?;
                let ids = creations.values().map(|creation| creation["id"].as_str());
                recorded.extend(ids.map(|id| id.unwrap_or("no id").to_owned()));
            }
        }
        let held = Inventory::take(&self.world.boto).await?.new_since(&self.before);
        ensure!(held == recorded, "AWS holds {held:#?}, recorded is {recorded:#?}");
        ensure!(held.len() == 10, "{held:#?}");
        Ok(())
    }

    /// What the spec determines, as AWS has it.
    async fn seen(&self) -> Result<Value> {
        let ask = async |service, operation, params, part: &str| -> Result<Value> {
            let answer = self.world.boto.call(service, operation, params).await?;
            Ok(answer.pointer(part).cloned().unwrap_or_default())
        };
        let vpc = self.id("VPC", NAME, "vpcId").await?;
        let subnet = self.id("Subnet", "public-a", "subnetId").await?;
        let group = self.id("SecurityGroup", "db", "groupId").await?;
        let gateway = self.id("InternetGateway", NAME, "internetGatewayId").await?;
        let hostnames = json!({"VpcId": vpc, "Attribute": "enableDnsHostnames"});
        let bucket = json!({"Bucket": BUCKET});
        Ok(json!([
            ask("ec2", "describe_vpc_attribute", hostnames, "/EnableDnsHostnames").await?,
            ask("ec2", "describe_subnets", json!({"SubnetIds": [subnet]}), "/Subnets/0/MapPublicIpOnLaunch")
                .await?,
            ask(
                "ec2",
                "describe_security_groups",
                json!({"GroupIds": [group]}),
                "/SecurityGroups/0/IpPermissions"
            )
            .await?,
            self.world.boto.tags(&gateway).await?,
            ask("iam", "get_role", json!({"RoleName": ROLE}), "/Role/Description").await?,
            ask("s3", "get_bucket_versioning", bucket.clone(), "/Status").await?,
            ask("s3", "get_bucket_tagging", bucket, "/TagSet").await?.to_string().contains("faults"),
        ]))
    }

    async fn id(&self, kind: &str, name: &str, field: &str) -> Result<String> {
        self.world.status(kind, name, field).await
    }

    /// Somebody changes every kind of it in AWS; waits until it is as it was.
    pub async fn drift(&self, within: Duration) -> Result<()> {
        let meant = self.seen().await?;
        let boto = &self.world.boto;
        let off = json!({"Value": false});
        let vpc = self.id("VPC", NAME, "vpcId").await?;
        boto.call("ec2", "modify_vpc_attribute", json!({"VpcId": vpc, "EnableDnsHostnames": off})).await?;
        let subnet = self.id("Subnet", "public-a", "subnetId").await?;
        let private = json!({"SubnetId": subnet, "MapPublicIpOnLaunch": off});
        boto.call("ec2", "modify_subnet_attribute", private).await?;
        let group = self.id("SecurityGroup", "db", "groupId").await?;
        let ssh = json!({"GroupId": group, "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"});
        boto.call("ec2", "authorize_security_group_ingress", ssh).await?;
        let gateway = self.id("InternetGateway", NAME, "internetGatewayId").await?;
        boto.untag(&gateway, "konfig.io/uid").await?;
        let role = json!({"RoleName": ROLE, "Description": "of somebody else"});
        boto.call("iam", "update_role", role).await?;
        let suspended = json!({"Bucket": BUCKET, "VersioningConfiguration": {"Status": "Suspended"}});
        boto.call("s3", "put_bucket_versioning", suspended).await?;
        ensure!(self.seen().await? != meant, "nothing differs");
        self.observe("drift").await?;
        eventually(within, "the drifts to be put back", async || {
            let seen = self.seen().await?;
            ensure!(seen == meant, "is {seen}, should be {meant}");
            Ok(())
        })
        .await?;
        self.kubectl(&["wait", "--for=condition=Ready", "konfig", "--all"], within).await
    }

    /// Asks for one observe of every object now.
    pub async fn observe(&self, word: &str) -> Result<()> {
        let annotation = format!("aws.konfig.io/reconcile={word}");
        let args = ["annotate", "konfig", "--all", "--overwrite", &annotation, "-n", &self.world.namespace];
        self.world.kubectl().run(&args).await.map(drop)
    }

    /// Asks for the deletion of all of it; does not wait.
    pub async fn delete(&self) -> Result<()> {
        let args = ["delete", "konfig", "--all", "--wait=false", "-n", &self.world.namespace];
        self.world.kubectl().run(&args).await.map(drop)
    }

    /// Waits until every object is gone, and looks whether AWS is as it was.
    pub async fn gone(&self, within: Duration) -> Result<()> {
        let limit = format!("--timeout={}s", within.as_secs());
        let args = ["wait", "--for=delete", "konfig", "--all", "-n", &self.world.namespace, &limit];
        let waited = self.world.kubectl().try_run(&args, "").await?;
        let get = ["get", "konfig", "-o", "wide", "-n", &self.world.namespace];
        let left = self.world.kubectl().run(&get).await?;
        ensure!(left.is_empty(), "{}left:\n{left}", waited.stderr);
        let held = Inventory::take(&self.world.boto).await?.new_since(&self.before);
        ensure!(held.is_empty(), "left in AWS: {held:#?}");
        Ok(())
    }

    async fn kubectl(&self, args: &[&str], within: Duration) -> Result<()> {
        let limit = format!("--timeout={}s", within.as_secs());
        let here = ["-n", &self.world.namespace, &limit];
        let waited = self.world.kubectl().run(&[args, &here].concat()).await;
        if let Err(error) = waited {
            let get = ["get", "konfig", "-o", "wide", "-n", &self.world.namespace];
            return Err(error.context(self.world.kubectl().run(&get).await?));
        }
        Ok(())
    }

    /// What stood in the way: reason and message of every version of an object that is not Ready for
    /// another reason than that it has its time.
    pub fn troubles(&self) -> BTreeSet<(String, String)> {
        let versions = self.histories.iter().flat_map(History::all);
        let told = versions.filter_map(|version| {
            let reason = version.condition("Ready", "reason")?;
            Some((reason.to_owned(), version.condition("Ready", "message")?.to_owned()))
        });
        // What is still used is refused by AWS also on its best day.
        let is_trouble = |(reason, message): &(String, String)| {
            matches!(reason.as_str(), "Error" | "Throttled") && !message.contains("DependencyViolation")
        };
        told.filter(is_trouble).collect()
    }

    /// The calls that changed AWS, answered or not, since it was applied: not those that a token made a
    /// repetition of.
    pub fn changes(&self) -> Vec<Call> {
        let calls = self.world.aws.calls_since(self.mark).into_iter();
        calls.filter(|call| call.mutating && call.succeeded() && call.forwarded).collect()
    }

    /// All calls since it was applied.
    pub fn calls(&self) -> Vec<Call> {
        self.world.aws.calls_since(self.mark)
    }

    /// Each of its resources was made once.
    pub fn ensure_made_once(&self) -> Result<()> {
        let changes = self.changes();
        for (operation, times) in [
            ("CreateVpc", 1),
            ("CreateInternetGateway", 1),
            ("CreateSubnet", 2),
            ("CreateSecurityGroup", 2),
            ("AllocateAddress", 1),
            ("CreateNatGateway", 1),
            ("CreateRole", 1),
            ("CreateBucket", 1),
        ] {
            let made = changes.iter().filter(|call| call.operation == operation).count();
            ensure!(made == times, "{operation} {made} times:\n{}", Table(&changes));
        }
        Ok(())
    }
}
