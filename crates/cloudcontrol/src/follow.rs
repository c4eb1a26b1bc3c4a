//! Requests under way: how they go, what they led to, and what is left where they failed.

use aws_sdk_cloudcontrol::types::Operation;
use resource::schema::pointer;
use resource::tags::UID_TAG;
use resource::{Call, Class, Error, Live, Observed, Phase, Result};

use crate::compare::as_desired;
use crate::event::{Progressed, answer_or_absent, not_updatable, read};
use crate::resource_kind::{CloudControlResource, Spec, Status, live, schema_of, type_name};
use crate::tags as type_tags;

/// The code that means: there is no such request, or it is too long ago.
const FORGOTTEN: &[&str] = &["RequestTokenNotFoundException"];

impl CloudControlResource {
    /// How a request goes, and whether it is a deletion; None where AWS no longer knows it.
    async fn status(&self, call: &Call, token: &str) -> Result<Option<(Progressed, bool)>> {
        let client = self.0.get(&call.scope).await?;
        let status = client.get_resource_request_status().request_token(token);
        let Some(answer) = answer_or_absent(status.send().await, FORGOTTEN)? else { return Ok(None) };
        let event = answer.progress_event();
        let is_deletion = event.and_then(|event| event.operation()) == Some(&Operation::Delete);
        let operation = event.and_then(|event| event.operation()).map_or("Request", Operation::as_str);
        Ok(Some((read(operation, event), is_deletion)))
    }

    /// The request that creates it.
    pub(crate) async fn follow_creation(
        &self,
        call: &Call,
        token: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let Some((progressed, _)) = self.status(call, token).await? else { return Ok(Observed::Forgotten) };
        Ok(match progressed {
            Progressed::Running(_) => {
                under_way(call, None, token, spec, Phase::Busy("AWS is creating it".to_owned()))?
            }
            Progressed::Done(id) => Observed::Became(id),
            Progressed::Failed(failure) => match self.left_behind(call, failure.identifier, spec).await? {
                Some(id) => Observed::Became(id),
                None => Observed::Refused(failure.error),
            },
        })
    }

    /// What a failed creation has left, where it is known to be ours: it is put right, not made again.
    async fn left_behind(
        &self,
        call: &Call,
        id: Option<String>,
        spec: Option<&Spec>,
    ) -> Result<Option<String>> {
        let Some(id) = id else { return Ok(None) };
        let type_name = type_name(call, spec)?;
        let Some(properties) = self.get(call, &type_name, &id).await? else { return Ok(None) };
        let tags = type_tags::read(&*schema_of(&type_name)?, &properties);
        Ok((tags.get(UID_TAG) == Some(&call.ownership.uid)).then_some(id))
    }

    /// While it is updated, others still need what it shows.
    async fn updating(
        &self,
        call: &Call,
        id: &str,
        token: &str,
        spec: Option<&Spec>,
    ) -> Result<Observed<Spec, Status>> {
        let type_name = type_name(call, spec)?;
        let Some(properties) = self.get(call, &type_name, id).await? else { return Ok(Observed::Absent) };
        let mut live = live(call, &*schema_of(&type_name)?, &type_name, id, properties, spec);
        live.status.request_token = Some(token.to_owned());
        live.phase = Phase::Busy("AWS is updating it".to_owned());
        Ok(live.into())
    }

    /// An update or a deletion; None once it has succeeded, or is forgotten: the resource itself tells
    /// what came of it.
    pub(crate) async fn follow_request(
        &self,
        call: &Call,
        id: &str,
        token: &str,
        spec: Option<&Spec>,
    ) -> Result<Option<Observed<Spec, Status>>> {
        let Some((progressed, is_deletion)) = self.status(call, token).await? else { return Ok(None) };
        Ok(match progressed {
            Progressed::Running(_) if is_deletion => {
                Some(under_way(call, Some(id), token, spec, Phase::Deleting)?)
            }
            Progressed::Running(_) => Some(self.updating(call, id, token, spec).await?),
            // Gone already is what a deletion wants.
            Progressed::Failed(failure) if is_deletion && failure.error.class == Class::NotFound => None,
            Progressed::Failed(failure) => {
                Some(Observed::Refused(self.with_conditions(call, id, spec, failure.error).await?))
            }
            Progressed::Done(_) => None,
        })
    }

    /// A failed update; where AWS says that it cannot be made, with what of it may be why.
    async fn with_conditions(
        &self,
        call: &Call,
        id: &str,
        spec: Option<&Spec>,
        error: Error,
    ) -> Result<Error> {
        let Some(spec) = spec.filter(|_| error.code == "NotUpdatable") else { return Ok(error) };
        let schema = schema_of(&spec.type_name)?;
        let Some(properties) = self.get(call, &spec.type_name, id).await? else { return Ok(error) };
        let (desired, shown) = (&spec.desired_state, as_desired(&schema, &spec.desired_state, &properties));
        let differing = desired.iter().filter(|(field, value)| shown.get(*field) != Some(value));
        let differing: Vec<_> = differing.map(|(field, _)| pointer("", field)).collect();
        Ok(not_updatable(error, schema.conditional(differing.iter().map(String::as_str))))
    }
}

/// While a request is under way, nothing else is known.
fn under_way(
    call: &Call,
    id: Option<&str>,
    token: &str,
    spec: Option<&Spec>,
    phase: Phase,
) -> Result<Observed<Spec, Status>> {
    let type_name = type_name(call, spec)?;
    let desired_state = spec.map(|spec| spec.desired_state.clone()).unwrap_or_default();
    let identifier = spec.and_then(|spec| spec.identifier.clone());
    Ok(Observed::Live(Live {
        spec: Spec { type_name, desired_state, identifier, tags: None },
        status: Status {
            identifier: id.map(str::to_owned),
            request_token: Some(token.to_owned()),
            properties: None,
        },
        phase,
        tags: call.tags.clone(),
    }))
}
