//! What the kinds make, and what of it was asked for, recorded and made.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::proxy::kube::Write;
use lab::{World, manifest};
use serde_json::{Value, json};

/// One resource that a kind makes, and how to see all of them past the proxy.
pub struct Made {
    pub kind: &'static str,
    pub role: &'static str,
    pub create: &'static str,
    /// Whether AWS itself refuses a second: by token, or by a unique name.
    pub guard: Guard,
    pub list: (&'static str, &'static str, &'static str, &'static str),
}

#[derive(PartialEq, Clone, Copy, Debug)]
pub enum Guard {
    Nothing,
    Token,
    Name,
}

pub const VPC: Made = Made {
    kind: "VPC",
    role: "main",
    create: "CreateVpc",
    guard: Guard::Nothing,
    list: ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
};
pub const GATEWAY: Made = Made {
    kind: "InternetGateway",
    role: "main",
    create: "CreateInternetGateway",
    guard: Guard::Nothing,
    list: ("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
};
pub const SUBNET: Made = Made {
    kind: "Subnet",
    role: "main",
    create: "CreateSubnet",
    guard: Guard::Name,
    list: ("ec2", "describe_subnets", "Subnets", "SubnetId"),
};
pub const GROUP: Made = Made {
    kind: "SecurityGroup",
    role: "main",
    create: "CreateSecurityGroup",
    guard: Guard::Name,
    list: ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
};
pub const ADDRESS: Made = Made {
    kind: "NatGateway",
    role: "eip",
    create: "AllocateAddress",
    guard: Guard::Nothing,
    list: ("ec2", "describe_addresses", "Addresses", "AllocationId"),
};
pub const NAT: Made = Made {
    kind: "NatGateway",
    role: "main",
    create: "CreateNatGateway",
    guard: Guard::Token,
    list: ("ec2", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
};
pub const ROLE: Made = Made {
    kind: "IAMRole",
    role: "main",
    create: "CreateRole",
    guard: Guard::Name,
    list: ("iam", "list_roles", "Roles", "RoleName"),
};
pub const ALL: [&Made; 7] = [&VPC, &GATEWAY, &SUBNET, &GROUP, &ADDRESS, &NAT, &ROLE];

/// One object of each kind, all of the same name.
pub fn stack(name: &str) -> String {
    manifest::all(&[
        manifest::vpc(name),
        manifest::internet_gateway(name, name),
        manifest::subnet(name, name, 1),
        manifest::security_group(name, name, &[]),
        manifest::nat_gateway(name, name),
        manifest::role(name),
    ])
}

impl Made {
    pub fn owner(&self, world: &World, name: &str) -> String {
        format!("lab/{}/{}/{name}", world.namespace, self.kind)
    }

    /// The create calls that have been made for an object, in order.
    pub fn transmissions(&self, world: &World, name: &str) -> Vec<Call> {
        let owner = self.owner(world, name);
        let is_its =
            |call: &Call| call.operation == self.create && call.params.values().any(|value| *value == owner);
        world.aws.calls().into_iter().filter(is_its).collect()
    }

    /// The intents that were written for an object, in order.
    pub fn intents(&self, world: &World, name: &str) -> Vec<Value> {
        let pointer = format!("/status/creation/{}", self.role);
        let kind = format!("{}s", self.kind.to_lowercase());
        let is_its = |write: &Write| {
            write.target.resource == kind
                && write.target.name.as_deref() == Some(name)
                && write.status == Some(200)
        };
        let writes = world.kube.writes().into_iter().filter(is_its);
        let creations = writes.filter_map(|write| write.body.pointer(&pointer).cloned());
        creations.filter(|creation| creation["token"].is_string() && creation["id"].is_null()).collect()
    }

    pub fn fault(&self, world: &World, name: &str, action: Action) -> lab::proxy::Fault {
        let owner = self.owner(world, name);
        world.aws.fault(Match::op(self.create).param("*", &owner).times(1), action)
    }

    pub async fn object(&self, world: &World, name: &str) -> Result<DynamicObject> {
        world.object(self.kind, name).await
    }

    /// The id that the status records.
    pub async fn recorded(&self, world: &World, name: &str) -> Result<String> {
        let object = self.object(world, name).await?;
        let id = object.data.pointer(&format!("/status/creation/{}/id", self.role)).and_then(Value::as_str);
        Ok(id.with_context(|| format!("no id in {}", object.data["status"]))?.to_owned())
    }

    /// What AWS holds with the uid of an object.
    pub async fn held(&self, world: &World, uid: &str) -> Result<Vec<String>> {
        let (service, list, items, id) = self.list;
        let answer = world.boto.call(service, list, json!({})).await?;
        let mut held = Vec::new();
        for item in answer[items].as_array().context("a list")? {
            let name = item[id].as_str().unwrap_or_default().to_owned();
            let tags = match self.kind {
                "IAMRole" => {
                    world.boto.call("iam", "list_role_tags", json!({"RoleName": name})).await?["Tags"].clone()
                }
                _ => item["Tags"].clone(),
            };
            let tags = tags.as_array().cloned().unwrap_or_default();
            let is_its = tags.iter().any(|tag| tag["Key"] == "konfig.io/uid" && tag["Value"] == uid);
            if is_its && item["State"] != "deleted" {
                held.push(name);
            }
        }
        Ok(held)
    }

    /// Ready, and exactly the one that the status records is there.
    pub async fn ensure_one(&self, world: &World, name: &str) -> Result<()> {
        world.subject(self.kind, name).ready().await.with_context(|| world.aws.table())?;
        let object = self.object(world, name).await?;
        let held = self.held(world, &object.metadata.uid.clone().unwrap_or_default()).await?;
        let recorded = self.recorded(world, name).await?;
        ensure!(held == [recorded], "{} {name}: AWS holds {held:?}, {}", self.kind, object.data["status"]);
        ensure!(object.data["status"]["adopted"] != true, "taken for adopted");
        for reason in ["Adopted", "DeletedInAWS"] {
            let events = world.subject(self.kind, name).events(reason).await?;
            ensure!(events.is_empty(), "{} {name}: {reason} {events:?}", self.kind);
        }
        Ok(())
    }

    /// One transmission an intent, the SDK's own repeats included, and its token in it.
    pub fn ensure_single(&self, world: &World, name: &str, expected: usize) -> Result<Vec<Call>> {
        let calls = self.transmissions(world, name);
        let intents = self.intents(world, name);
        let context = || format!("{} {name}: {intents:?}\n{}", self.create, Table(&calls));
        ensure!(calls.len() == expected, "expected {expected} transmissions of {}", context());
        ensure!(calls.iter().all(|call| call.attempt == Some(1)), "the SDK repeats {}", context());
        // An intent that took long to write is given up before its call.
        ensure!(intents.len() >= calls.len(), "not an intent for each transmission: {}", context());
        if self.guard == Guard::Token {
            let is_written = |call: &Call| {
                let sent = call.params.get("ClientToken").map(String::as_str);
                intents.iter().any(|intent| sent.is_some() && intent["token"].as_str() == sent)
            };
            ensure!(calls.iter().all(is_written), "not the token of the intent: {}", context());
        }
        Ok(calls)
    }
}
