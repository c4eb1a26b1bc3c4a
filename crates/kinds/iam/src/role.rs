//! IAMRole.

use aws::{Answer, Clients};
use aws_sdk_iam::Client;
use aws_sdk_iam::types;
use resource::record::Made;
use resource::schema::{clearable, default_to, immutable, matches, policy, tags};
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Resource, Result, Tags,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::document;
use crate::tags::{from_iam, to_iam};

/// An IAM role: permissions that others take on.
pub(crate) struct Role(pub(crate) Clients<Client>);

/// The code that means: no role, or no policy or instance profile, of that name.
const ABSENT: &[&str] = &["NoSuchEntity", "NoSuchEntityException"];

/// Permissions that services, users or other accounts take on. Before it is deleted, its managed
/// policies are detached, its inline policies deleted, and it leaves its instance profiles.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The name in AWS, unique within the account whatever its case.
    #[schemars(length(min = 1, max = 64), transform = immutable, transform = matches(
        r"^[a-zA-Z0-9_+=,.@-]+$",
        "must be letters, digits and _+=,.@- without spaces or slashes; a group of roles goes into path",
    ))]
    role_name: String,
    /// Who may take the role on: a policy document in JSON, the trust policy.
    #[schemars(length(min = 1, max = 131072), transform = policy)]
    assume_role_policy_document: String,
    /// What the role is for.
    #[schemars(length(max = 1000), transform = clearable)]
    description: Option<String>,
    /// The longest session, in seconds, from 3600 (one hour) to 43200 (twelve). AWS takes 3600.
    #[schemars(range(min = 3600, max = 43200), transform = default_to(3600))]
    max_session_duration: Option<i32>,
    /// The path that groups roles, with a slash at both ends: /team/. AWS takes /.
    #[schemars(length(min = 1, max = 512), transform = matches(
        r"^/([!-~]+/)?$",
        "must begin and end with a slash, such as /team/ or /team/app/, and hold no spaces",
    ))]
    #[schemars(transform = default_to("/"), transform = immutable)]
    path: Option<String>,
    /// The ARN of a managed policy that bounds what the role can ever be allowed.
    #[schemars(length(max = 2048), transform = clearable, transform = matches(
        r"^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/.+$",
        "must be the ARN of a managed policy, such as arn:aws:iam::123456789012:policy/boundary",
    ))]
    permissions_boundary: Option<String>,
    /// Tags of the role. Tags that others put on it stay.
    #[schemars(transform = tags)]
    tags: Option<Tags>,
}

/// What AWS tells of a role.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The ARN: arn:aws:iam::123456789012:role/….
    arn: Option<String>,
    /// The id: AROA…. Another role of the same name has another one.
    role_id: Option<String>,
}

impl Resource for Role {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "IAMRole",
        plural: "iamroles",
        short_names: &["irole"],
        about: "An IAM role: permissions that services, users or other accounts take on.",
        identifier: "arn",
        deletion: Deletion::Immediate,
        reads: Reads::OneByOne,
        polling: Polling(std::time::Duration::from_secs(5)),
        precious: false,
        woken_by: &[],
        permissions: &[
            "iam:CreateRole",
            "iam:DeleteRole",
            "iam:DeleteRolePermissionsBoundary",
            "iam:DeleteRolePolicy",
            "iam:DetachRolePolicy",
            "iam:GetRole",
            "iam:ListAttachedRolePolicies",
            "iam:ListInstanceProfilesForRole",
            "iam:ListRolePolicies",
            "iam:PutRolePermissionsBoundary",
            "iam:RemoveRoleFromInstanceProfile",
            "iam:TagRole",
            "iam:UntagRole",
            "iam:UpdateAssumeRolePolicy",
            "iam:UpdateRole",
        ],
    };

    fn protection(_: resource::Role, _: Option<&Spec>) -> Protection {
        Protection::UniqueName
    }

    fn canonical(spec: Spec) -> Result<Spec> {
        document::check("assumeRolePolicyDocument", &spec.assume_role_policy_document)?;
        Ok(spec)
    }

    async fn observe(
        &self,
        call: &Call,
        _: resource::Role,
        id: &str,
        _: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        Ok(self.read(call, id).await?.map_or(Observed::Absent, |role| live(&role).into()))
    }

    async fn find(&self, call: &Call, _: resource::Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        let Some(spec) = spec else { return Ok(Vec::new()) };
        let role = self.read(call, &spec.role_name).await?;
        let candidate =
            |role: types::Role| Candidate { tags: from_iam(role.tags()), id: role.role_name, by_name: true };
        Ok(role.map(candidate).into_iter().collect())
    }

    async fn create(
        &self,
        call: &Call,
        _: resource::Role,
        spec: &Spec,
        _: &Made,
    ) -> Result<Created<Spec, Status>> {
        let client = self.0.get(&call.scope).await?;
        let create = client
            .create_role()
            .role_name(&spec.role_name)
            .assume_role_policy_document(&spec.assume_role_policy_document)
            .set_description(spec.description.clone())
            .set_max_session_duration(spec.max_session_duration)
            .set_path(spec.path.clone())
            .set_permissions_boundary(spec.permissions_boundary.clone())
            .set_tags(Some(to_iam(&call.tags)?));
        let role = create.send().await.answer().map_err(unknown_principal)?.role;
        let live = Live {
            // All of it went into the one call; the answer repeats only parts.
            spec: Spec {
                max_session_duration: spec.max_session_duration.or(Some(3600)),
                path: spec.path.clone().or_else(|| Some("/".to_owned())),
                tags: None,
                ..spec.clone()
            },
            status: role.as_ref().map(status).unwrap_or_default(),
            phase: Phase::Ready,
            tags: call.tags.clone(),
        };
        Ok(Created { id: spec.role_name.clone(), live: Some(live) })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let client = self.0.get(&call.scope).await?;
        let parts = [
            update_trust(&client, id, target, changes).await,
            update_settings(&client, id, &live.spec, target, changes).await,
            update_boundary(&client, id, target, changes).await,
            update_tags(&client, id, changes).await,
        ];
        // Each part was tried, whatever became of the others.
        parts.into_iter().collect::<Result<()>>()?;
        Ok(Progress::Done)
    }

    /// AWS deletes only a role that nothing hangs on.
    async fn delete(
        &self,
        call: &Call,
        _: resource::Role,
        id: &str,
        _: &Live<Spec, Status>,
    ) -> Result<Progress> {
        let client = self.0.get(&call.scope).await?;
        leave_instance_profiles(&client, id).await?;
        detach_policies(&client, id).await?;
        delete_inline_policies(&client, id).await?;
        client.delete_role().role_name(id).send().await.answer_or_absent(ABSENT)?;
        Ok(Progress::Done)
    }

    async fn untag(&self, call: &Call, _: resource::Role, id: &str, keys: &[String]) -> Result<()> {
        untag(&self.0.get(&call.scope).await?, id, keys).await
    }
}

impl Role {
    async fn read(&self, call: &Call, name: &str) -> Result<Option<types::Role>> {
        let answer = self.0.get(&call.scope).await?.get_role().role_name(name).send().await;
        Ok(answer.answer_or_absent(ABSENT)?.and_then(|answer| answer.role))
    }
}

async fn update_trust(client: &Client, id: &str, target: &Spec, changes: &Changes) -> Result<()> {
    if changes.touch("assumeRolePolicyDocument") {
        let update = client.update_assume_role_policy().role_name(id);
        let answer = update.policy_document(&target.assume_role_policy_document).send().await;
        answer.answer().map_err(unknown_principal)?;
    }
    Ok(())
}

/// One call sets both, so each goes with the other as it is.
async fn update_settings(
    client: &Client,
    id: &str,
    live: &Spec,
    target: &Spec,
    changes: &Changes,
) -> Result<()> {
    let (description, duration) = (changes.touch("description"), changes.touch("maxSessionDuration"));
    if description || duration {
        let wanted = target.description.clone().unwrap_or_default();
        let update = client
            .update_role()
            .role_name(id)
            .set_description(if description { Some(wanted) } else { live.description.clone() })
            .set_max_session_duration(if duration {
                target.max_session_duration
            } else {
                live.max_session_duration
            });
        update.send().await.answer()?;
    }
    Ok(())
}

async fn update_boundary(client: &Client, id: &str, target: &Spec, changes: &Changes) -> Result<()> {
    if !changes.touch("permissionsBoundary") {
        return Ok(());
    }
    if let Some(arn) = &target.permissions_boundary {
        client
            .put_role_permissions_boundary()
            .role_name(id)
            .permissions_boundary(arn)
            .send()
            .await
            .answer()?;
    } else {
        client.delete_role_permissions_boundary().role_name(id).send().await.answer()?;
    }
    Ok(())
}

async fn update_tags(client: &Client, id: &str, changes: &Changes) -> Result<()> {
    let set = to_iam(&changes.tags_to_set())?;
    if !set.is_empty() {
        client.tag_role().role_name(id).set_tags(Some(set)).send().await.answer()?;
    }
    untag(client, id, &changes.tags_to_remove()).await
}

/// Removes tags; of a role that is gone, they are too.
async fn untag(client: &Client, id: &str, keys: &[String]) -> Result<()> {
    if !keys.is_empty() {
        let untag = client.untag_role().role_name(id).set_tag_keys(Some(keys.to_vec()));
        untag.send().await.answer_or_absent(ABSENT)?;
    }
    Ok(())
}

async fn leave_instance_profiles(client: &Client, id: &str) -> Result<()> {
    let pages = client.list_instance_profiles_for_role().role_name(id).into_paginator();
    let profiles = pages.items().send().try_collect().await.answer_or_absent(ABSENT)?;
    for profile in profiles.unwrap_or_default() {
        let remove = client.remove_role_from_instance_profile().role_name(id);
        let answer = remove.instance_profile_name(profile.instance_profile_name()).send().await;
        answer.answer_or_absent(ABSENT)?;
    }
    Ok(())
}

async fn detach_policies(client: &Client, id: &str) -> Result<()> {
    let pages = client.list_attached_role_policies().role_name(id).into_paginator();
    let policies = pages.items().send().try_collect().await.answer_or_absent(ABSENT)?;
    for policy in policies.unwrap_or_default() {
        let detach = client.detach_role_policy().role_name(id).set_policy_arn(policy.policy_arn);
        detach.send().await.answer_or_absent(ABSENT)?;
    }
    Ok(())
}

async fn delete_inline_policies(client: &Client, id: &str) -> Result<()> {
    let pages = client.list_role_policies().role_name(id).into_paginator();
    let policies = pages.items().send().try_collect().await.answer_or_absent(ABSENT)?;
    for policy in policies.unwrap_or_default() {
        let delete = client.delete_role_policy().role_name(id).policy_name(policy);
        delete.send().await.answer_or_absent(ABSENT)?;
    }
    Ok(())
}

/// A principal made a moment ago is not known everywhere in IAM yet.
fn unknown_principal(error: Error) -> Error {
    let is_unknown = error.code.starts_with("MalformedPolicyDocument")
        && error.message.to_lowercase().contains("invalid principal");
    if is_unknown { error.class(Class::NotPropagated) } else { error }
}

fn live(role: &types::Role) -> Live<Spec, Status> {
    let boundary = role.permissions_boundary();
    Live {
        spec: Spec {
            role_name: role.role_name.clone(),
            assume_role_policy_document: role
                .assume_role_policy_document()
                .map(document::decode)
                .unwrap_or_default(),
            description: role.description.clone().filter(|text| !text.is_empty()),
            max_session_duration: role.max_session_duration,
            path: Some(role.path.clone()),
            permissions_boundary: boundary.and_then(|boundary| boundary.permissions_boundary_arn.clone()),
            tags: None,
        },
        status: status(role),
        phase: Phase::Ready,
        tags: from_iam(role.tags()),
    }
}

fn status(role: &types::Role) -> Status {
    Status { arn: Some(role.arn.clone()), role_id: Some(role.role_id.clone()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aws_sdk_iam::primitives::DateTime;

    #[test]
    fn a_role_reads_as_a_spec() {
        let boundary = types::AttachedPermissionsBoundary::builder()
            .permissions_boundary_arn("arn:aws:iam::123456789012:policy/bound")
            .build();
        let role = types::Role::builder()
            .role_name("app")
            .role_id("AROAEXAMPLE")
            .arn("arn:aws:iam::123456789012:role/team/app")
            .path("/team/")
            .create_date(DateTime::from_secs(0))
            .assume_role_policy_document("%7B%22Statement%22%3A%5B%5D%7D")
            .max_session_duration(7200)
            .description("")
            .permissions_boundary(boundary)
            .build()
            .unwrap();
        let live = live(&role);
        assert_eq!(
            serde_json::json!(live.spec),
            serde_json::json!({
                "roleName": "app", "assumeRolePolicyDocument": r#"{"Statement":[]}"#, "maxSessionDuration": 7200,
                "path": "/team/", "permissionsBoundary": "arn:aws:iam::123456789012:policy/bound",
            })
        );
        assert_eq!(live.status.role_id.as_deref(), Some("AROAEXAMPLE"));
    }

    #[test]
    fn only_an_unknown_principal_heals_by_itself() {
        let class = |code: &str, message: &str| {
            unknown_principal(Error { code: code.to_owned(), ..Error::invalid("CreateRole", message) }).class
        };
        let unknown = "Invalid principal in policy: \"AWS\":\"arn:aws:iam::123456789012:role/new\"";
        assert_eq!(class("MalformedPolicyDocument", unknown), Class::NotPropagated);
        assert_eq!(class("MalformedPolicyDocument", "Syntax errors in policy."), Class::Invalid);
        assert_eq!(class("InvalidInput", unknown), Class::Invalid);
    }
}
