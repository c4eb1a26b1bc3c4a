//! What foreign hands mostly do in AWS: tags, and small resources of their own.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::aws::Boto;

/// Tags in AWS.
pub type Tags = BTreeMap<String, String>;

impl Boto {
    /// The tags of something in EC2.
    pub async fn tags(&self, id: &str) -> Result<Tags> {
        let filter = json!({"Filters": [{"Name": "resource-id", "Values": [id]}]});
        read(&self.call("ec2", "describe_tags", filter).await?["Tags"])
    }

    /// The tags of a role.
    pub async fn role_tags(&self, name: &str) -> Result<Tags> {
        read(&self.call("iam", "list_role_tags", json!({"RoleName": name})).await?["Tags"])
    }

    /// Puts tags on something in EC2.
    pub async fn tag(&self, id: &str, tags: &[(&str, &str)]) -> Result<()> {
        self.call("ec2", "create_tags", json!({"Resources": [id], "Tags": list(tags)})).await?;
        Ok(())
    }

    /// Takes a tag off something in EC2.
    pub async fn untag(&self, id: &str, key: &str) -> Result<()> {
        self.call("ec2", "delete_tags", json!({"Resources": [id], "Tags": [{"Key": key}]})).await?;
        Ok(())
    }

    /// Makes something in EC2 and gives its id, which stands at this pointer in the answer.
    pub async fn make(&self, operation: &str, params: Value, id: &str) -> Result<String> {
        let answer = self.call("ec2", operation, params).await?;
        let id = answer.pointer(id).and_then(Value::as_str);
        Ok(id.with_context(|| format!("{operation}: {answer}"))?.to_owned())
    }

    /// Makes a VPC with these tags.
    pub async fn make_vpc(&self, cidr: &str, tags: &[(&str, &str)]) -> Result<String> {
        let tags = json!([{"ResourceType": "vpc", "Tags": list(tags)}]);
        self.make("create_vpc", json!({"CidrBlock": cidr, "TagSpecifications": tags}), "/Vpc/VpcId").await
    }

    /// Makes a role with these tags.
    pub async fn make_role(&self, name: &str, document: &str, tags: &[(&str, &str)]) -> Result<()> {
        let params = json!({"RoleName": name, "AssumeRolePolicyDocument": document, "Tags": list(tags)});
        self.call("iam", "create_role", params).await?;
        Ok(())
    }

    /// Whether a VPC is there.
    pub async fn has_vpc(&self, id: &str) -> Result<bool> {
        let filter = json!({"Filters": [{"Name": "vpc-id", "Values": [id]}]});
        Ok(self.call("ec2", "describe_vpcs", filter).await?["Vpcs"] != json!([]))
    }

    /// Whether a role is there.
    pub async fn has_role(&self, name: &str) -> Result<bool> {
        match self.call("iam", "get_role", json!({"RoleName": name})).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == "NoSuchEntity" => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn list(tags: &[(&str, &str)]) -> Value {
    tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

fn read(tags: &Value) -> Result<Tags> {
    let pairs = tags.as_array().context("a list of tags")?.iter();
    let text = |tag: &Value, field: &str| tag[field].as_str().unwrap_or_default().to_owned();
    Ok(pairs.map(|tag| (text(tag, "Key"), text(tag, "Value"))).collect())
}
