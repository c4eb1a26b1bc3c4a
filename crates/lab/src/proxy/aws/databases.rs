//! What the emulators' databases lack: a place in the VPC, and an endpoint with a server behind it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use http::HeaderValue;
use http::header::AUTHORIZATION;

use super::super::core::Cut;
use super::answer::Answer;
use super::asked::{Asked, Protocol};
use super::serve::World;
use super::xml::Element;

/// The port of a server of the lab's; 0 for none.
#[derive(Default)]
pub(super) struct Endpoint(AtomicU16);

impl Endpoint {
    pub fn set(&self, port: u16) {
        self.0.store(port, Ordering::Relaxed);
    }

    /// The form to forward instead. AWS gives an instance its endpoint; ours is where the server is.
    pub fn form(&self, asked: &Asked) -> Option<String> {
        let port = self.0.load(Ordering::Relaxed);
        if port == 0 || asked.operation != "CreateDBInstance" || asked.params.contains_key("Port") {
            return None;
        }
        let mut form = form_urlencoded::Serializer::new(String::new());
        Some(form.extend_pairs(&asked.params).append_pair("Port", &port.to_string()).finish())
    }
}

/// The refusals that AWS gives as long as a database is there: it has a network interface in a subnet
/// of its group, with its security groups. The emulators' has none.
pub(super) async fn refuse(world: &World, asked: &Asked) -> Result<Option<Answer>, Cut> {
    let value = |name: &str| asked.params.get(name).map(String::as_str).unwrap_or_default();
    let refusal = match asked.operation.as_str() {
        "DeleteSubnet" => {
            let subnet = value("SubnetId");
            let is_in = |database: &Element| {
                database.all("SubnetIdentifier").first().is_some_and(|first| first == subnet)
            };
            let message = format!("The subnet '{subnet}' has dependencies and cannot be deleted.");
            find(world, asked, is_in).await?.map(|_| ("DependencyViolation", message))
        }
        "DeleteSecurityGroup" => {
            let group = value("GroupId");
            let has = |database: &Element| database.all("VpcSecurityGroupId").iter().any(|id| id == group);
            let message = format!("resource {group} has a dependent object");
            find(world, asked, has).await?.map(|_| ("DependencyViolation", message))
        }
        "DeleteDBSubnetGroup" => {
            let group = value("DBSubnetGroupName");
            let is_in = |database: &Element| {
                database.all("DBSubnetGroupName").iter().any(|name| name.eq_ignore_ascii_case(group))
            };
            find(world, asked, is_in).await?.map(|database| {
                let message = format!(
                    "Cannot delete the subnet group '{group}' because at least one database instance: {database} is still using it."
                );
                ("InvalidDBSubnetGroupStateFault", message)
            })
        }
        _ => None,
    };
    Ok(refusal.map(|(code, message)| Answer::error(asked, 400, code, &message)))
}

/// The identifier of an instance of which that is true.
async fn find(world: &World, asked: &Asked, is_it: impl Fn(&Element) -> bool) -> Result<Option<String>, Cut> {
    let answer = world.ask(&to_rds(asked), &[("Action", "DescribeDBInstances")]).await?;
    let set = answer.find("DBInstances").map(Element::children).into_iter().flatten();
    let found = set.into_iter().find(|database| is_it(database));
    Ok(found.and_then(|database| database.child_text("DBInstanceIdentifier")))
}

/// The caller, asking RDS: by the scope of a signature the emulators tell the service.
fn to_rds(asked: &Asked) -> Asked {
    let mut parts = asked.parts.clone();
    if let Some(signed) = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok())
        && let Ok(signed) =
            HeaderValue::from_str(&signed.replace(&format!("/{}/aws4", asked.service), "/rds/aws4"))
    {
        parts.headers.insert(AUTHORIZATION, signed);
    }
    Asked {
        seq: asked.seq,
        parts,
        body: Bytes::new(),
        protocol: Protocol::Query,
        service: "rds".to_owned(),
        operation: "DescribeDBInstances".to_owned(),
        region: asked.region.clone(),
        params: BTreeMap::from([("Version".to_owned(), "2014-10-31".to_owned())]),
    }
}
