//! IAM's roles, and STS's word on who is asking.

use std::collections::BTreeMap;

use super::ACCOUNT;
use super::params::{Params, Tags};
use super::refusal::Refusal;
use crate::proxy::aws::asked::Asked;
use crate::proxy::aws::xml::Element;

#[derive(Default)]
pub(super) struct Iam {
    roles: BTreeMap<String, Role>,
}

struct Role {
    fields: BTreeMap<&'static str, String>,
    tags: Tags,
}

/// The parameters of CreateRole that are fields of the role.
const FIELDS: [&str; 5] =
    ["RoleName", "Path", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration"];

impl Iam {
    pub fn answer(&mut self, asked: &Asked) -> Result<Element, Refusal> {
        let params = Params::new(&asked.params);
        let mut result = Element::new(&format!("{}Result", asked.operation));
        let name = params.text("RoleName")?;
        match asked.operation.as_str() {
            "CreateRole" => result.push(self.create(name, &params)?),
            "GetRole" => result.push(self.role(name)?.element()),
            "DeleteRole" => {
                self.role(name)?;
                self.roles.remove(name);
            }
            "UpdateAssumeRolePolicy" => {
                let document = params.text("PolicyDocument")?.to_owned();
                self.role(name)?.fields.insert("AssumeRolePolicyDocument", document);
            }
            "UpdateRole" => {
                let changed = FIELDS.iter().filter(|field| **field != "RoleName");
                let changed: Vec<_> =
                    changed.filter_map(|field| Some((*field, params.get(field)?.to_owned()))).collect();
                self.role(name)?.fields.extend(changed);
            }
            "TagRole" => self.role(name)?.tags.extend(params.tags("Tags.member")),
            "UntagRole" => {
                let keys = params.values("TagKeys.member");
                self.role(name)?.tags.retain(|key, _| !keys.contains(&key.as_str()));
            }
            // Nothing can be attached to a role here.
            "ListInstanceProfilesForRole" => self.nothing_of(name, "InstanceProfiles", &mut result)?,
            "ListAttachedRolePolicies" => self.nothing_of(name, "AttachedPolicies", &mut result)?,
            "ListRolePolicies" => self.nothing_of(name, "PolicyNames", &mut result)?,
            other => return Err(Refusal::unknown(other)),
        }
        Ok(response(asked, result))
    }

    fn create(&mut self, name: &str, params: &Params<'_>) -> Result<Element, Refusal> {
        if self.roles.contains_key(name) {
            let message = format!("Role with name {name} already exists.");
            return Err(Refusal::with(409, "EntityAlreadyExists", message));
        }
        params.text("AssumeRolePolicyDocument")?;
        let given = FIELDS.iter().filter_map(|field| Some((*field, params.get(field)?.to_owned())));
        let mut fields =
            BTreeMap::from([("Path", "/".to_owned()), ("MaxSessionDuration", "3600".to_owned())]);
        fields.extend(given);
        fields.insert("Arn", format!("arn:aws:iam::{ACCOUNT}:role{}{name}", fields["Path"]));
        fields.insert("RoleId", format!("AROA{:017}", self.roles.len() + 1));
        fields.insert("CreateDate", "2026-01-01T00:00:00Z".to_owned());
        let role = Role { fields, tags: params.tags("Tags.member") };
        Ok(self.roles.entry(name.to_owned()).or_insert(role).element())
    }

    fn role(&mut self, name: &str) -> Result<&mut Role, Refusal> {
        let missing = || format!("The role with name {name} cannot be found.");
        self.roles.get_mut(name).ok_or_else(|| Refusal::with(404, "NoSuchEntity", missing()))
    }

    fn nothing_of(&mut self, role: &str, list: &str, result: &mut Element) -> Result<(), Refusal> {
        self.role(role)?;
        result.push(Element::new(list));
        result.set("IsTruncated", "false");
        Ok(())
    }
}

impl Role {
    fn element(&self) -> Element {
        let mut role = Element::new("Role");
        for (field, value) in &self.fields {
            match *field {
                "AssumeRolePolicyDocument" => {
                    // IAM answers documents percent-encoded.
                    let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                    role.set(field, &encoded.replace('+', "%20"));
                }
                _ => role.set(field, value),
            }
        }
        let mut tags = Element::new("Tags");
        for (key, value) in &self.tags {
            let mut member = Element::new("member");
            member.set("Key", key);
            member.set("Value", value);
            tags.push(member);
        }
        role.push(tags);
        role
    }
}

/// GetCallerIdentity.
pub(super) fn caller_identity(asked: &Asked) -> Result<Element, Refusal> {
    if asked.operation != "GetCallerIdentity" {
        return Err(Refusal::unknown(&asked.operation));
    }
    let mut result = Element::new("GetCallerIdentityResult");
    result.set("Arn", &format!("arn:aws:iam::{ACCOUNT}:user/bench"));
    result.set("UserId", "AIDABENCH");
    result.set("Account", ACCOUNT);
    Ok(response(asked, result))
}

fn response(asked: &Asked, result: Element) -> Element {
    let mut root = Element::new(&format!("{}Response", asked.operation));
    root.push(result);
    root
}
