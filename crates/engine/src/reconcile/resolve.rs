//! Step one: what the object wants, with every reference led to what it stands for.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::core::DynamicObject;
use resource::record::{Creation, Fingerprint};
use resource::schema::{self, FREE_FORM, LATER, REF, SECRET, pointer};
use resource::tags::hex;
use resource::{Error, Role, Secrets};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Job;
use crate::context::CrossNamespace;
use crate::graph::Key;
use crate::object::Object;

/// Plain inputs: nothing in here refers to Kubernetes any more.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Canonical, with references in their direct form and all tags that are ours.
    pub spec: Value,
    /// Lists of which a part is held up.
    pub partial: BTreeSet<String>,
    /// Why parts are held up.
    pub held: Vec<String>,
    /// References, by path, whose target has a value but is not Ready.
    pub unready: BTreeMap<String, String>,
    /// Changes with everything that matters.
    pub hash: String,
    /// The Secrets that it refers to.
    pub secret_uses: Vec<SecretUse>,
    /// The secrets that were read.
    pub secrets: Secrets,
    /// What each of them is known by.
    pub fingerprints: BTreeMap<String, Fingerprint>,
}

/// A place in the spec that stands for a value from a Secret.
#[derive(Clone, Debug)]
pub struct SecretUse {
    /// JSON pointer into the spec.
    pub path: String,
    /// The Secret's name.
    pub name: String,
    /// The key in its data.
    pub key: String,
}

impl Inputs {
    /// Whether a recorded hash is of the same spec, whatever the annotations were.
    pub fn same_spec(&self, recorded: &str) -> bool {
        self.hash.split('.').next() == recorded.split('.').next()
    }
}

/// What resolving led to.
pub enum Resolved {
    Ready(Inputs),
    /// Something it refers to is missing; the message names it.
    Waiting(String),
}

/// What one reference led to.
enum Target {
    Value(String),
    /// There, with a value, but not Ready.
    Unready(String, String),
    /// There, without a value yet.
    Pending(String),
    Missing(String),
}

impl Job<'_> {
    pub(super) fn resolve(&self) -> Result<Resolved, Error> {
        let mut spec = self.object.spec().clone();
        if let Some(fields) = spec.as_object_mut() {
            // Leads to the scope, not to AWS.
            fields.remove("providerRef");
        }
        let (mut resolver, spec) = loop {
            let mut resolver = Resolver::new(self);
            let led = resolver.walk(self.kind.schema(), "", spec.clone(), false)?;
            // Wake-ups begin here: what a target showed before that is read once more.
            if !self.cx.graph.set(&self.key, std::mem::take(&mut resolver.targets)) {
                break (resolver, led);
            }
        };
        let mut inputs = resolver.inputs;
        let is_made = self.record.creation(Role::MAIN).is_some_and(|creation| creation.id.is_some());
        if !is_made {
            resolver.missing.extend(std::mem::take(&mut inputs.unready).into_values());
        }
        if !resolver.missing.is_empty() {
            return Ok(Resolved::Waiting(resolver.missing.join("; ")));
        }
        inputs.spec = self.with_tags(self.kind.canonical(spec.unwrap_or_else(|| json!({})))?);
        inputs.hash = self.hash(&inputs);
        Ok(Resolved::Ready(inputs))
    }

    /// The inputs of an object that is being deleted, as far as they can still be understood.
    pub(super) fn last_inputs(&self) -> Inputs {
        match self.resolve() {
            Ok(Resolved::Ready(inputs)) => inputs,
            // The names in it are still good for finding what was made.
            Ok(Resolved::Waiting(_)) | Err(_) => {
                Inputs { spec: self.object.spec().clone(), ..Inputs::default() }
            }
        }
    }

    fn with_tags(&self, mut spec: Value) -> Value {
        if !self.has_tags() {
            return spec;
        }
        let mut tags: Map<String, Value> =
            self.cx.options.default_tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        if let Some(Value::Object(own)) = spec.get("tags") {
            tags.extend(own.clone());
        }
        tags.extend(self.ownership.tags().into_iter().map(|(key, value)| (key, json!(value))));
        spec["tags"] = Value::Object(tags);
        spec
    }

    /// Two parts, the first of the spec alone.
    fn hash(&self, inputs: &Inputs) -> String {
        format!("{}.{}", hash_of(&json!(inputs.spec)), hash_of(&json!(self.object.wishes().fingerprint())))
    }

    fn lead(&self, reference: &Value, key: Key, same_namespace: bool) -> Result<Target, Error> {
        if !same_namespace && self.cx.options.cross_namespace == CrossNamespace::Deny {
            return Err(Error::invalid(
                "reference",
                format!("{key} is in another namespace, which --cross-namespace-refs=deny forbids"),
            ));
        }
        if key == self.key {
            let id = self.record.creation(Role::MAIN).and_then(|creation: &Creation| creation.id.clone());
            return Ok(match id {
                Some(id) => Target::Value(id),
                None => Target::Pending("its own id".to_owned()),
            });
        }
        let Some(target) = self.cx.lookup(&key) else {
            let why = if self.cx.is_watched(&key.kind) {
                "does not exist"
            } else {
                "cannot exist: its CRD is not installed"
            };
            return Ok(Target::Missing(format!("{key} {why}")));
        };
        Ok(self.read(reference, &key, &target))
    }

    fn read(&self, reference: &Value, key: &Key, target: &DynamicObject) -> Target {
        let yields = reference["yields"].as_str().unwrap_or_default();
        let value = target.data.pointer(yields).and_then(Value::as_str).filter(|value| !value.is_empty());
        let is_ready = target.is_ready() && !target.is_deleting();
        match value {
            Some(value) if is_ready => Target::Value(value.to_owned()),
            Some(value) => {
                Target::Unready(value.to_owned(), format!("{key} is not Ready ({})", state(target)))
            }
            None => Target::Pending(format!("{key} is not Ready ({})", state(target))),
        }
    }
}

/// A short hash of JSON.
pub(super) fn hash_of(value: &Value) -> String {
    hex(&Sha256::digest(value.to_string())[..12])
}

/// Whether Kubernetes allows the name: a DNS subdomain.
fn is_name(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_inner = |c: char| is_end(c) || c == '-' || c == '.';
    name.starts_with(is_end) && name.ends_with(is_end) && name.chars().all(is_inner) && name.len() <= 253
}

/// The one field of an object that has just one.
fn only(fields: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut all = fields.iter();
    let first = all.next().map(|(field, value)| (field.as_str(), value));
    first.filter(|_| all.next().is_none())
}

/// What a person wants to read of a target that holds others up.
fn state(target: &DynamicObject) -> String {
    if target.is_deleting() {
        return "being deleted".to_owned();
    }
    target.ready_reason().unwrap_or("not yet reconciled").to_owned()
}

struct Resolver<'a> {
    job: &'a Job<'a>,
    inputs: Inputs,
    missing: Vec<String>,
    targets: BTreeSet<Key>,
}

impl<'a> Resolver<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        Self { job, inputs: Inputs::default(), missing: Vec::new(), targets: BTreeSet::new() }
    }

    /// The value with its references led home. None: it is held up and left out.
    fn walk(
        &mut self,
        schema: &Value,
        path: &str,
        value: Value,
        later: bool,
    ) -> Result<Option<Value>, Error> {
        let later = later || schema::is(schema, LATER);
        if let Some(reference) = schema.get(REF) {
            return self.reference(reference, path, value, later);
        }
        if schema::is(schema, SECRET) {
            self.secret(path, &value)?;
            return Ok(Some(value));
        }
        if schema::is(schema, FREE_FORM) {
            return self.free_form(path, value).map(Some);
        }
        match value {
            Value::Object(fields) => self.fields(schema, path, fields, later),
            Value::Array(items) => self.items(schema, path, items, later).map(Some),
            plain => Ok(Some(plain)),
        }
    }

    fn secret(&mut self, path: &str, value: &Value) -> Result<(), Error> {
        if let (Some(name), Some(key)) = (value["name"].as_str(), value["key"].as_str()) {
            // The name becomes a part of a URL.
            if !is_name(name) {
                let what = format!("{name:?} cannot be a Secret's name; write one such as db-password");
                return Err(Error::invalid(&format!("spec{path}"), what));
            }
            let namespace = &self.job.key.namespace;
            self.targets.insert(crate::secrets::key_of(namespace, name));
            let used = SecretUse { path: path.to_owned(), name: name.to_owned(), key: key.to_owned() };
            self.inputs.secret_uses.push(used);
        }
        Ok(())
    }

    /// JSON of any shape, in which `{"$ref": …}` and `{"$secret": …}` stand for values.
    fn free_form(&mut self, path: &str, value: Value) -> Result<Value, Error> {
        match value {
            Value::Object(fields) => match only(&fields) {
                Some(("$secret", secret)) => {
                    self.secret(path, secret)?;
                    Ok(Value::Object(fields))
                }
                Some(("$ref", reference)) => self.free_reference(path, &reference.clone()),
                _ => {
                    let led = fields.into_iter().map(|(field, value)| {
                        let value = self.free_form(&pointer(path, &field), value)?;
                        Ok((field, value))
                    });
                    led.collect::<Result<Map<_, _>, _>>().map(Value::Object)
                }
            },
            Value::Array(items) => {
                let led = items.into_iter().enumerate();
                led.map(|(index, item)| self.free_form(&format!("{path}/{index}"), item)).collect()
            }
            plain => Ok(plain),
        }
    }

    /// `{kind, name, namespace?, path}`: a value from another object's spec or status.
    fn free_reference(&mut self, path: &str, reference: &Value) -> Result<Value, Error> {
        let part = |field: &str| {
            let missing = || format!("{path}: $ref needs kind, name and path (such as status.arn)");
            reference[field].as_str().ok_or_else(|| Error::invalid("reference", missing()))
        };
        let yields = format!("/{}", part("path")?.trim_start_matches('.').replace('.', "/"));
        self.job.cx.yield_too(part("kind")?, &yields);
        let form = json!({"kind": part("kind")?, "yields": yields});
        let mut named = json!({"name": part("name")?});
        if let Some(namespace) = reference["namespace"].as_str() {
            named["namespace"] = json!(namespace);
        }
        let value = self.reference(&form, path, named, false)?;
        Ok(value.unwrap_or_default())
    }

    fn fields(
        &mut self,
        schema: &Value,
        path: &str,
        fields: Map<String, Value>,
        later: bool,
    ) -> Result<Option<Value>, Error> {
        let mut led = Map::new();
        for (field, value) in fields {
            let part = schema.pointer(&format!("/properties{}", pointer("", &field))).unwrap_or(&Value::Null);
            match self.walk(part, &pointer(path, &field), value, later)? {
                Some(value) => led.insert(field, value),
                // An item of a list is held up as a whole.
                None => return Ok(None),
            };
        }
        Ok(Some(Value::Object(led)))
    }

    fn items(&mut self, schema: &Value, path: &str, items: Vec<Value>, later: bool) -> Result<Value, Error> {
        let part = schema.get("items").unwrap_or(&Value::Null);
        let mut led = Vec::with_capacity(items.len());
        for item in items {
            match self.walk(part, path, item, later)? {
                Some(item) => led.push(item),
                None => {
                    self.inputs.partial.insert(path.to_owned());
                }
            }
        }
        Ok(Value::Array(led))
    }

    fn reference(
        &mut self,
        reference: &Value,
        path: &str,
        value: Value,
        later: bool,
    ) -> Result<Option<Value>, Error> {
        let kind = reference["kind"].as_str().unwrap_or_default();
        let bare = value.as_str().map(str::to_owned);
        let name = bare.clone().or_else(|| value["name"].as_str().map(str::to_owned));
        let Some(name) = name else {
            // Given in its direct form.
            return Ok(Some(value));
        };
        let own = self.job.object.namespace().unwrap_or_default();
        let namespace = value.get("namespace").and_then(Value::as_str).unwrap_or(&own).to_owned();
        let same_namespace = namespace == own;
        let key = Key { kind: kind.to_owned(), namespace, name };
        let itself = key == self.job.key;
        if !itself {
            self.targets.insert(key.clone());
        }
        let direct = |id: String| match (&bare, reference["direct"].as_str()) {
            (None, Some(direct)) => json!({direct: id}),
            _ => json!(id),
        };
        Ok(match self.job.lead(reference, key, same_namespace)? {
            Target::Value(id) => Some(direct(id)),
            Target::Unready(id, _) if later => Some(direct(id)),
            Target::Unready(id, why) => {
                self.inputs.unready.insert(path.to_owned(), why);
                Some(direct(id))
            }
            Target::Pending(why) if later => {
                if !itself {
                    self.inputs.held.push(why);
                }
                None
            }
            // No object of that name: it is AWS's own. One that comes later wakes this one.
            Target::Missing(_) if schema::is(reference, "orDirect") => Some(value),
            Target::Pending(why) | Target::Missing(why) => {
                self.missing.push(why);
                // Not led anywhere: nothing is done with it.
                Some(direct(String::new()))
            }
        })
    }
}
