//! CloudControlResource.

use std::sync::Arc;
use std::time::Duration;

use aws::Clients;
use aws_sdk_cloudcontrol::Client;
use resource::record::Made;
use resource::schema::{external_id, free_form, immutable, rule, tags};
use resource::{
    Call, Candidate, Changes, Class, Created, Deletion, Error, Live, Meta, Observed, Phase, Polling,
    Progress, Protection, Reads, Resource, Result, Role, Tags,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::compare::{as_desired, depth, reported, without_nulls, written};
use crate::event::{Progressed, answer, answer_or_absent, not_updatable, read};
use crate::patch;
use crate::schema::TypeSchema;
use crate::tags as type_tags;

/// Any resource that CloudFormation has a type for.
pub(crate) struct CloudControlResource(pub(crate) Clients<Client>);

/// How deep a desired state may be nested: more than any type asks for.
const DEEPEST: usize = 64;
/// How long Cloud Control keeps a client token.
const TOKEN_LIFETIME: Duration = Duration::from_secs(36 * 3600);
/// What is recorded in place of the id while the request that creates it is under way.
const REQUEST: &str = "request:";
/// Where the desired state stands in the spec.
const DESIRED: &str = "/desiredState";
/// The codes that mean: there is no such resource.
const ABSENT: &[&str] = &["ResourceNotFoundException"];

/// Any AWS resource, by its CloudFormation type: what AWS's own documentation says of the type's
/// properties holds for desiredState.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The CloudFormation type: AWS::Logs::LogGroup.
    #[schemars(length(min = 1, max = 196), transform = immutable)]
    #[schemars(transform = rule(
        "self.matches('^[A-Za-z0-9]{2,64}::[A-Za-z0-9]{2,64}::[A-Za-z0-9]{2,64}(::MODULE)?$')",
        "write the type as CloudFormation does, such as AWS::Logs::LogGroup",
    ))]
    pub(crate) type_name: String,
    /// The properties of the type. Only what is named here is compared with AWS and put right; what is
    /// taken out is taken out in AWS. {"$ref": {"kind": …, "name": …, "path": "status.arn"}} stands for a
    /// value of another object, {"$secret": {"name": …, "key": …}} for one from a Secret.
    #[schemars(transform = free_form)]
    pub(crate) desired_state: Map<String, Value>,
    /// The identifier of an existing resource to adopt, its parts joined by |.
    #[schemars(length(min = 1, max = 1024), transform = immutable, transform = external_id)]
    pub(crate) identifier: Option<String>,
    /// Tags of the resource, for types that take tags, beside those in desiredState. Tags that others put
    /// on it stay.
    #[schemars(transform = tags)]
    pub(crate) tags: Option<Tags>,
}

/// What AWS tells of a resource.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The primary identifier, its parts joined by |.
    pub(crate) identifier: Option<String>,
    /// The token of the request under way.
    pub(crate) request_token: Option<String>,
    /// All that AWS reports of it, read-only properties too.
    #[schemars(transform = free_form)]
    pub(crate) properties: Option<Map<String, Value>>,
}

impl Resource for CloudControlResource {
    type Spec = Spec;
    type Status = Status;

    const META: Meta = Meta {
        kind: "CloudControlResource",
        plural: "cloudcontrolresources",
        short_names: &["ccr"],
        about: "Any AWS resource that CloudFormation has a type for.",
        identifier: "identifier",
        deletion: Deletion::Asynchronous,
        reads: Reads::OneByOne,
        polling: Polling(Duration::from_secs(5)),
        precious: false,
        woken_by: &[],
        permissions: &[
            "cloudformation:CreateResource",
            "cloudformation:DeleteResource",
            "cloudformation:GetResource",
            "cloudformation:GetResourceRequestStatus",
            "cloudformation:ListResources",
            "cloudformation:UpdateResource",
        ],
    };

    fn is_handle(id: &str) -> bool {
        id.starts_with(REQUEST)
    }

    fn protection(_: Role, spec: Option<&Spec>) -> Protection {
        let schema = spec.and_then(|spec| Some((spec, TypeSchema::of(&spec.type_name)?)));
        match schema {
            Some((spec, schema)) if is_found(&schema, spec) => Protection::Token,
            _ => Protection::TokenFor(TOKEN_LIFETIME),
        }
    }

    fn canonical(spec: Spec) -> Result<Spec> {
        let schema = schema_of(&spec.type_name)?;
        let made_by_aws: Vec<_> =
            spec.desired_state.keys().filter(|name| schema.is_read_only(&format!("/{name}"))).collect();
        if let Some(name) = made_by_aws.first() {
            let message = format!("desiredState.{name} of a {} is made by AWS: leave it out", spec.type_name);
            return Err(Error::invalid("desiredState", message));
        }
        let desired = Value::Object(spec.desired_state);
        // What is deeper than can be read is cut off where it is read: it must not go to AWS.
        if depth(&desired) > DEEPEST {
            let message = format!("is nested more than {DEEPEST} levels deep; no type asks for that");
            return Err(Error::invalid("spec.desiredState", message));
        }
        let Value::Object(mut desired) = without_nulls(desired) else {
            return Err(Error::invalid("desiredState", "must be a JSON object"));
        };
        let mut tags = type_tags::take(&schema, &mut desired)?;
        tags.extend(spec.tags.unwrap_or_default());
        Ok(Spec { desired_state: desired, tags: (!tags.is_empty()).then_some(tags), ..spec })
    }

    fn is_fixed(spec: &Spec, path: &str) -> bool {
        let place = path.strip_prefix(DESIRED);
        let schema = schema_of(&spec.type_name);
        place.is_some_and(|place| schema.is_ok_and(|schema| schema.is_fixed(place)))
    }

    fn write_only(spec: &Spec) -> Vec<String> {
        let Ok(schema) = schema_of(&spec.type_name) else { return Vec::new() };
        let places = written(&schema, &spec.desired_state);
        places.into_iter().map(|place| format!("{DESIRED}{place}")).collect()
    }

    async fn observe(
        &self,
        call: &Call,
        _: Role,
        id: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        if let Some(token) = id.strip_prefix(REQUEST) {
            return self.follow_creation(call, token, spec).await;
        }
        if let Some(token) = &call.request
            && let Some(observed) = self.follow_request(call, id, token, spec).await?
        {
            return Ok(observed);
        }
        let type_name = type_name(call, spec)?;
        let Some(properties) = self.get(call, &type_name, id).await? else { return Ok(Observed::Absent) };
        Ok(live(call, &*schema_of(&type_name)?, &type_name, id, properties, spec).into())
    }

    async fn find(&self, call: &Call, _: Role, spec: Option<&Spec>) -> Result<Vec<Candidate>> {
        let Some(spec) = spec else { return Ok(Vec::new()) };
        let schema = schema_of(&spec.type_name)?;
        let Some(id) = schema.identifier(&spec.desired_state) else {
            // Until a create call may have reached AWS, there is nothing to look for.
            let may_exist = call.attempted_since.is_some() && is_found_by_tags(&schema);
            return if may_exist { self.list(call, &schema, &spec.type_name).await } else { Ok(Vec::new()) };
        };
        let properties = self.get(call, &spec.type_name, &id).await?;
        let candidate = |properties| Candidate {
            tags: type_tags::read(&schema, &properties),
            id: id.clone(),
            by_name: true,
        };
        Ok(properties.map(candidate).into_iter().collect())
    }

    async fn create(&self, call: &Call, _: Role, spec: &Spec, _: &Made) -> Result<Created<Spec, Status>> {
        let schema = schema_of(&spec.type_name)?;
        let mut desired = patch::with_secrets(call, DESIRED, &Value::Object(spec.desired_state.clone()))?;
        if let Some(name) = schema.tag_property() {
            desired[name] = type_tags::write(&schema, &call.tags);
        }
        let create = self.0.get(&call.scope).await?.create_resource().type_name(&spec.type_name);
        let create = create.desired_state(desired.to_string()).set_client_token(call.token());
        let answer = answer(create.send().await).map_err(|error| match error.class {
            // Another request has this token, and what it made cannot be found: no other is sent.
            Class::TokenMismatch if !is_found(&schema, spec) => asked_otherwise(error),
            _ => error,
        })?;
        let event = answer.progress_event();
        let id = match read("CreateResource", event) {
            Progressed::Done(id) => id,
            Progressed::Running(token) => format!("{REQUEST}{token}"),
            // Observed like one that fails later.
            Progressed::Failed(failure) => match event.and_then(|event| event.request_token()) {
                Some(token) => format!("{REQUEST}{token}"),
                None => return Err(failure.error),
            },
        };
        Ok(Created { id, live: None })
    }

    async fn update(
        &self,
        call: &Call,
        id: &str,
        live: &Live<Spec, Status>,
        target: &Spec,
        changes: &Changes,
    ) -> Result<Progress> {
        let schema = schema_of(&target.type_name)?;
        let wanted = serde_json::json!({"desiredState": target.desired_state});
        let mut document = patch::document(&schema, &target.type_name, call, &wanted, changes)?;
        if changes.touch("tags") {
            document.extend(retag(&schema, live, changes)?);
        }
        let update = self.0.get(&call.scope).await?.update_resource().type_name(&target.type_name);
        let update = update.identifier(id).patch_document(Value::Array(document).to_string());
        let answer = answer(update.send().await).map_err(|error| {
            let sent = changes.iter().filter_map(|change| change.path.strip_prefix(DESIRED));
            not_updatable(error, schema.conditional(sent))
        })?;
        progress("UpdateResource", read("UpdateResource", answer.progress_event()))
    }

    async fn delete(&self, call: &Call, _: Role, id: &str, live: &Live<Spec, Status>) -> Result<Progress> {
        if id.starts_with(REQUEST) {
            return Err(Error::new(
                Class::Busy,
                "DeleteResource",
                "the request that creates it has not ended yet",
            ));
        }
        let type_name = &live.spec.type_name;
        if !schema_of(type_name)?.handles("delete") {
            let message = format!(
                "AWS cannot delete a {type_name}: set aws.konfig.io/deletion-policy: abandon to let it go"
            );
            return Err(Error::invalid("DeleteResource", message));
        }
        let delete = self.0.get(&call.scope).await?.delete_resource().type_name(type_name).identifier(id);
        match answer_or_absent(delete.send().await, ABSENT)? {
            Some(answer) => progress("DeleteResource", read("DeleteResource", answer.progress_event())),
            None => Ok(Progress::Done),
        }
    }

    async fn untag(&self, call: &Call, _: Role, id: &str, keys: &[String]) -> Result<()> {
        let type_name = type_name(call, None)?;
        let schema = schema_of(&type_name)?;
        let (Some(name), true) = (schema.tag_property(), schema.tags_can_change()) else { return Ok(()) };
        let Some(properties) = self.get(call, &type_name, id).await? else { return Ok(()) };
        let mut left = type_tags::read(&schema, &properties);
        left.retain(|key, _| !keys.contains(key));
        let patch = serde_json::json!([{"op": "replace", "path": format!("/{name}"), "value": type_tags::write(&schema, &left)}]);
        let update = self.0.get(&call.scope).await?.update_resource().type_name(type_name).identifier(id);
        answer_or_absent(update.patch_document(patch.to_string()).send().await, ABSENT)?;
        Ok(())
    }
}

impl CloudControlResource {
    pub(crate) async fn get(
        &self,
        call: &Call,
        type_name: &str,
        id: &str,
    ) -> Result<Option<Map<String, Value>>> {
        let get = self.0.get(&call.scope).await?.get_resource().type_name(type_name).identifier(id);
        let Some(answer) = answer_or_absent(get.send().await, ABSENT)? else { return Ok(None) };
        let text = answer.resource_description().and_then(|resource| resource.properties()).unwrap_or("{}");
        let unreadable = |error: serde_json::Error| {
            Error::new(Class::Transient, "GetResource", format!("the properties are no JSON: {error}"))
        };
        serde_json::from_str(text).map(Some).map_err(unreadable)
    }

    /// All of a type, with their tags. A list may not show them: each is read.
    async fn list(&self, call: &Call, schema: &TypeSchema, type_name: &str) -> Result<Vec<Candidate>> {
        let list = self.0.get(&call.scope).await?.list_resources().type_name(type_name);
        let mut pages = list.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(listed) = pages.next().await {
            let Some(id) = answer(listed)?.identifier().map(str::to_owned) else { continue };
            if let Some(properties) = self.get(call, type_name, &id).await? {
                found.push(Candidate { tags: type_tags::read(schema, &properties), id, by_name: false });
            }
        }
        Ok(found)
    }
}

pub(crate) fn schema_of(type_name: &str) -> Result<Arc<TypeSchema>> {
    let refuse = |why: &str| Err(Error::invalid("typeName", format!("{type_name} {why}")));
    match TypeSchema::of(type_name) {
        None => refuse("is no type that CloudFormation has (or it is newer than this operator)"),
        Some(schema) if !schema.has_handlers() => {
            refuse("cannot be managed by Cloud Control: AWS has no handlers for it")
        }
        Some(schema) => Ok(schema),
    }
}

/// The type, from the spec at hand or as it was last understood: it never changes.
pub(crate) fn type_name(call: &Call, spec: Option<&Spec>) -> Result<String> {
    let last = || call.spec["typeName"].as_str().map(str::to_owned);
    let missing = || Error::invalid("typeName", "the spec names no type");
    spec.map(|spec| spec.type_name.clone()).or_else(last).ok_or_else(missing)
}

/// Whether what a lost create call has made can be found among all of its type.
fn is_found_by_tags(schema: &TypeSchema) -> bool {
    schema.tag_property().is_some() && schema.handles("list")
}

/// Whether what a lost create call has made can be found again without its token.
fn is_found(schema: &TypeSchema, spec: &Spec) -> bool {
    schema.identifier(&spec.desired_state).is_some() || is_found_by_tags(schema)
}

/// An earlier call with this token, whose answer was lost, asked for something else.
fn asked_otherwise(error: Error) -> Error {
    let message = format!(
        "{} An earlier create call of this object, whose answer was lost, asked for another desired state, and only \
         the same call again leads to what it made: set desiredState back to what it was",
        error.message
    );
    Error { class: Class::Exists, message, ..error }
}

fn progress(operation: &str, progressed: Progressed) -> Result<Progress> {
    match progressed {
        Progressed::Running(token) if token.is_empty() => {
            Err(Error::new(Class::Transient, operation, "the answer names no request"))
        }
        Progressed::Running(token) => Ok(Progress::Pending(token)),
        Progressed::Done(_) => Ok(Progress::Done),
        Progressed::Failed(failure) => Err(failure.error),
    }
}

/// AWS replaces the whole of them, so those of others are sent back.
fn retag(schema: &TypeSchema, live: &Live<Spec, Status>, changes: &Changes) -> Result<Option<Value>> {
    let Some(name) = schema.tag_property() else { return Ok(None) };
    if !schema.tags_can_change() {
        return Err(Error::invalid(
            "UpdateResource",
            "AWS cannot change the tags of this type after creation",
        ));
    }
    let mut wanted = live.tags.clone();
    wanted.retain(|key, _| !key.starts_with("aws:"));
    changes.tags_to_remove().iter().for_each(|key| {
        wanted.remove(key);
    });
    wanted.extend(changes.tags_to_set());
    let op = if live.tags.is_empty() { "add" } else { "replace" };
    Ok(Some(
        serde_json::json!({"op": op, "path": format!("/{name}"), "value": type_tags::write(schema, &wanted)}),
    ))
}

pub(crate) fn live(
    call: &Call,
    schema: &TypeSchema,
    type_name: &str,
    id: &str,
    properties: Map<String, Value>,
    spec: Option<&Spec>,
) -> Live<Spec, Status> {
    let nothing = Map::new();
    let wanted = spec.map_or(&nothing, |spec| &spec.desired_state);
    let properties = reported(wanted, properties);
    let mut shown = as_desired(schema, wanted, &properties);
    if let Some(name) = schema.tag_property() {
        shown.remove(name);
    }
    let mut held = type_tags::read(schema, &properties);
    // Nothing is to be put right about tags that the type cannot bear, or not change.
    if schema.tag_property().is_none() || !schema.tags_can_change() {
        held.extend(call.tags.clone());
    }
    Live {
        spec: Spec {
            type_name: type_name.to_owned(),
            desired_state: shown,
            identifier: spec.and_then(|spec| spec.identifier.clone()),
            tags: None,
        },
        status: Status { identifier: Some(id.to_owned()), request_token: None, properties: Some(properties) },
        phase: Phase::Ready,
        tags: held,
    }
}
