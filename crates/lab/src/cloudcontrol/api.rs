//! The operations of the API.

use serde_json::{Value, json};

use super::model;
use super::refusal::Refusal;
use super::request::Operation;
use super::store::Store;
use super::types::Type;

type Answer = Result<Value, Refusal>;

/// How many items a page has unless the caller says.
const PAGE: usize = 20;

/// Answers a call.
pub(super) fn answer(store: &mut Store, operation: &str, input: &Value) -> Answer {
    match operation {
        "CreateResource" => create(store, input),
        "UpdateResource" => update(store, input),
        "DeleteResource" => delete(store, input),
        "GetResource" => get(store, input),
        "ListResources" => list(store, input),
        "GetResourceRequestStatus" => progress(store.poll(text(input, "RequestToken")?)?.event()),
        "CancelResourceRequest" => progress(store.cancel(text(input, "RequestToken")?)?.event()),
        "ListResourceRequests" => list_requests(store, input),
        other => Err(Refusal::new("UnknownOperationException", format!("no such operation: {other}"))),
    }
}

fn create(store: &mut Store, input: &Value) -> Answer {
    if let Some(answer) = replayed(store, "CreateResource", input)? {
        return Ok(answer);
    }
    let of = Type::of(text(input, "TypeName")?)?;
    of.must_handle("create")?;
    let properties = model::properties(input["DesiredState"].as_str())?;
    let read_only = model::named_read_only(&of, &properties);
    if !read_only.is_empty() {
        let message =
            format!("Encountered unsupported property: read-only {} cannot be set", read_only.join(", "));
        return Err(Refusal::invalid(message));
    }
    model::must_be_valid(&of, &properties)?;
    let identifier = model::identifier(&of, &properties);
    if let Some(identifier) = &identifier {
        store.must_be_idle(of.name(), identifier)?;
    }
    let request =
        store.begin(Operation::Create, of.name(), identifier, properties, client("CreateResource", input));
    progress(request.event())
}

fn update(store: &mut Store, input: &Value) -> Answer {
    if let Some(answer) = replayed(store, "UpdateResource", input)? {
        return Ok(answer);
    }
    let of = Type::of(text(input, "TypeName")?)?;
    of.must_handle("update")?;
    let identifier = text(input, "Identifier")?;
    store.must_be_idle(of.name(), identifier)?;
    let full = store.resource(of.name(), identifier)?.clone();
    let patch = model::parsed("PatchDocument", input["PatchDocument"].as_str())?;
    let after = patched(&of, &full, patch)?;
    let request = store.begin(
        Operation::Update,
        of.name(),
        Some(identifier.to_owned()),
        after,
        client("UpdateResource", input),
    );
    progress(request.event())
}

/// The patch applies to what a read shows; what it never shows stays, unless the patch sets it.
fn patched(of: &Type, full: &Value, patch: Value) -> Answer {
    let patch: json_patch::Patch = serde_json::from_value(patch)
        .map_err(|error| Refusal::invalid(format!("PatchDocument is no JSON Patch: {error}")))?;
    let shown = model::shown(of, full);
    let mut after = shown.clone();
    json_patch::patch(&mut after, &patch)
        .map_err(|error| Refusal::invalid(format!("Invalid patch update: {error}")))?;
    let read_only = model::changed(of, "readOnlyProperties", &shown, &after);
    if !read_only.is_empty() {
        let message =
            format!("Invalid patch update: readOnlyProperties [{}] cannot be updated", read_only.join(", "));
        return Err(Refusal::invalid(message));
    }
    let fixed = model::changed(of, "createOnlyProperties", &shown, &after);
    if !fixed.is_empty() {
        let message =
            format!("Invalid patch update: createOnlyProperties [{}] cannot be updated", fixed.join(", "));
        return Err(Refusal::new("NotUpdatableException", message));
    }
    model::must_be_valid(of, &merged(full, &shown, &after))?;
    Ok(merged(full, &shown, &after))
}

/// `after`, with what `full` has beyond `shown`.
fn merged(full: &Value, shown: &Value, after: &Value) -> Value {
    match (full, shown, after) {
        (Value::Object(full), Value::Object(shown), Value::Object(after)) => {
            let mut all = after.clone();
            for (field, value) in full {
                match (shown.get(field), after.get(field)) {
                    (None, None) => drop(all.insert(field.clone(), value.clone())),
                    (Some(shown), Some(after)) => {
                        drop(all.insert(field.clone(), merged(value, shown, after)))
                    }
                    _ => {}
                }
            }
            Value::Object(all)
        }
        _ => after.clone(),
    }
}

fn delete(store: &mut Store, input: &Value) -> Answer {
    if let Some(answer) = replayed(store, "DeleteResource", input)? {
        return Ok(answer);
    }
    let of = Type::of(text(input, "TypeName")?)?;
    of.must_handle("delete")?;
    let identifier = text(input, "Identifier")?;
    store.must_be_idle(of.name(), identifier)?;
    store.resource(of.name(), identifier)?;
    let request = store.begin(
        Operation::Delete,
        of.name(),
        Some(identifier.to_owned()),
        Value::Null,
        client("DeleteResource", input),
    );
    progress(request.event())
}

fn get(store: &mut Store, input: &Value) -> Answer {
    let of = Type::of(text(input, "TypeName")?)?;
    of.must_handle("read")?;
    let identifier = text(input, "Identifier")?;
    let properties = model::shown(&of, store.resource(of.name(), identifier)?);
    Ok(json!({"TypeName": of.name(), "ResourceDescription": described(identifier, &properties)}))
}

fn list(store: &mut Store, input: &Value) -> Answer {
    let of = Type::of(text(input, "TypeName")?)?;
    of.must_handle("list")?;
    // A list shows no more than what identifies.
    let names: Vec<_> = of.places("primaryIdentifier").iter().map(|place| place[0].to_owned()).collect();
    let described = store.resources(of.name()).into_iter().map(|(identifier, properties)| {
        let fields = properties.as_object().into_iter().flatten().filter(|(field, _)| names.contains(field));
        described(&identifier, &fields.map(|(field, value)| (field.clone(), value.clone())).collect())
    });
    let (page, next) = page(described.collect(), input)?;
    let mut answer = json!({"TypeName": of.name(), "ResourceDescriptions": page});
    if let Some(next) = next {
        answer["NextToken"] = json!(next);
    }
    Ok(answer)
}

fn list_requests(store: &Store, input: &Value) -> Answer {
    let filter = &input["ResourceRequestStatusFilter"];
    let passes = |list: &Value, word: &str| list.as_array().is_none_or(|list| list.contains(&json!(word)));
    let events = store.requests().iter().filter(|request| {
        passes(&filter["Operations"], request.operation.word())
            && passes(&filter["OperationStatuses"], request.status.word())
    });
    let (page, next) = page(events.map(super::request::Request::event).collect(), input)?;
    let mut answer = json!({"ResourceRequestStatusSummaries": page});
    if let Some(next) = next {
        answer["NextToken"] = json!(next);
    }
    Ok(answer)
}

fn page(items: Vec<Value>, input: &Value) -> Result<(Vec<Value>, Option<String>), Refusal> {
    let start = match input["NextToken"].as_str() {
        None => 0,
        Some(token) => token.parse().map_err(|_| Refusal::invalid("Invalid NextToken"))?,
    };
    let size = input["MaxResults"].as_u64().map_or(PAGE, |size| size as usize);
    let next = (start + size < items.len()).then(|| (start + size).to_string());
    Ok((items.into_iter().skip(start).take(size).collect(), next))
}

fn described(identifier: &str, properties: &Value) -> Value {
    json!({"Identifier": identifier, "Properties": properties.to_string()})
}

fn progress(event: Value) -> Answer {
    Ok(json!({"ProgressEvent": event}))
}

fn replayed(store: &mut Store, operation: &str, input: &Value) -> Result<Option<Value>, Refusal> {
    let Some((token, parameters)) = client(operation, input) else { return Ok(None) };
    let request = store.replay(&token, &parameters)?;
    Ok(request.map(|request| json!({"ProgressEvent": request.event()})))
}

/// The client token, and what it stands for.
fn client(operation: &str, input: &Value) -> Option<(String, Value)> {
    let token = input["ClientToken"].as_str()?.to_owned();
    Some((token, json!([operation, input])))
}

fn text<'a>(input: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    input[field].as_str().ok_or_else(|| Refusal::invalid(format!("{field} is required")))
}
