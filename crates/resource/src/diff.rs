//! What differs between the spec and AWS, driven by the annotations on the schema.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::schema::{
    self, CLEARABLE, DEFAULT, FREE_FORM, IMMUTABLE, LIST, POLICY, SECRET, TAGS, WRITE_ONLY, pointer,
};
use crate::tags::{self, Tags};
use crate::{Class, Error, Result, policy};

/// One difference, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// JSON pointer into the spec, such as `/enableDnsHostnames` or `/tags/team`.
    pub path: String,
    /// What it shall be; null where it is to be cleared.
    pub want: Value,
    /// What AWS has; null where it has nothing.
    pub live: Value,
    /// For sets and keyed lists: the items that AWS lacks.
    pub add: Vec<Value>,
    /// For sets and keyed lists: the items that AWS has too many.
    pub remove: Vec<Value>,
}

/// The differences to be put right by one update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// Changed secrets, by path. Nothing else is in such a change: it goes in a call of its own.
    pub fn of_secrets(paths: impl IntoIterator<Item = String>) -> Self {
        let change =
            |path| Change { path, want: Value::Null, live: Value::Null, add: Vec::new(), remove: Vec::new() };
        Self(paths.into_iter().map(change).collect())
    }

    /// All of them, in the schema's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.0.iter()
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The differing paths.
    pub fn paths(&self) -> Vec<String> {
        self.0.iter().map(|change| change.path.clone()).collect()
    }

    /// Whether this top-level field, or anything below it, differs.
    pub fn touch(&self, field: &str) -> bool {
        let path = pointer("", field);
        let below = format!("{path}/");
        self.0.iter().any(|change| change.path == path || change.path.starts_with(&below))
    }

    /// The items that a list field lacks in AWS.
    pub fn added<T: DeserializeOwned>(&self, field: &str) -> Result<Vec<T>> {
        self.items(field, |change| &change.add)
    }

    /// The items that a list field has too many in AWS.
    pub fn removed<T: DeserializeOwned>(&self, field: &str) -> Result<Vec<T>> {
        self.items(field, |change| &change.remove)
    }

    /// The tags to set.
    pub fn tags_to_set(&self) -> Tags {
        let set = self.tag_changes().filter_map(|(key, change)| Some((key, change.want.as_str()?)));
        set.map(|(key, value)| (key, value.to_owned())).collect()
    }

    /// The tag keys to remove.
    pub fn tags_to_remove(&self) -> Vec<String> {
        self.tag_changes().filter(|(_, change)| change.want.is_null()).map(|(key, _)| key).collect()
    }

    fn tag_changes(&self) -> impl Iterator<Item = (String, &Change)> {
        self.0.iter().filter_map(|change| {
            let key = change.path.strip_prefix("/tags/")?;
            Some((key.replace("~1", "/").replace("~0", "~"), change))
        })
    }

    fn items<T: DeserializeOwned>(
        &self,
        field: &str,
        side: impl Fn(&Change) -> &Vec<Value>,
    ) -> Result<Vec<T>> {
        let path = pointer("", field);
        let change = self.0.iter().find(|change| change.path == path);
        let items = change.map(|change| side(change).clone()).unwrap_or_default();
        serde_json::from_value(Value::Array(items))
            .map_err(|error| Error::new(Class::Invalid, field, error.to_string()))
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// What an update can put right.
    pub changes: Changes,
    /// Differences in immutable fields: reported, never acted on.
    pub forbidden: Vec<Change>,
    /// The spec to reach: the wanted one, with defaults where something managed was removed.
    pub target: Value,
}

impl Difference {
    /// Sets apart the changes that a kind knows to be impossible.
    pub fn forbid(&mut self, is_fixed: impl Fn(&str) -> bool) {
        let changes = std::mem::take(&mut self.changes.0);
        let (fixed, possible): (Vec<_>, _) = changes.into_iter().partition(|change| is_fixed(&change.path));
        self.changes = Changes(possible);
        self.forbidden.extend(fixed);
    }
}

/// Compares what is wanted with what is live.
///
/// * `want`: canonical, references resolved, with *all* tags that are ours.
/// * `managed`: the paths set at the last sync; what is no longer set goes back to its default or
///   is cleared.
/// * `partial`: lists of which a part is held up: they are added to, nothing is removed.
pub fn diff(
    schema: &Value,
    want: &Value,
    live: &Value,
    managed: &BTreeSet<String>,
    partial: &BTreeSet<String>,
) -> Difference {
    let mut walk = Walk { managed, partial, changes: Vec::new(), forbidden: Vec::new() };
    let target = walk.object(schema, "", want, live, false);
    Difference { changes: Changes(walk.changes), forbidden: walk.forbidden, target }
}

/// Of what differs, just what stands in the way of a deletion: it is put right while deleting, too.
pub fn unblocking(schema: &Value, want: &Value, live: &Value) -> Changes {
    let none = BTreeSet::new();
    let all = diff(schema, want, live, &none, &none).changes;
    let marked = |change: &Change| {
        let field = change.path.split('/').nth(1).unwrap_or_default();
        schema::properties(schema)
            .any(|(name, part)| name == field && schema::is(part, schema::UNBLOCKS_DELETION))
    };
    Changes(all.0.into_iter().filter(marked).collect())
}

/// The paths that a spec sets: what is ours to keep, and to put back once it is gone.
pub fn managed_paths(schema: &Value, want: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    collect_managed(schema, "", want, &mut paths);
    paths
}

fn collect_managed(schema: &Value, base: &str, want: &Value, paths: &mut BTreeSet<String>) {
    for (field, part) in schema::properties(schema) {
        let Some(value) = want.get(field) else { continue };
        let path = pointer(base, field);
        if schema::is(part, TAGS) {
            let keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
            paths.extend(keys.filter(|key| !tags::is_reserved(key)).map(|key| pointer(&path, key)));
        } else if schema::is(part, FREE_FORM) {
            collect_leaves(&path, value, paths);
        } else if is_nested(part) {
            collect_managed(part, &path, value, paths);
        } else {
            paths.insert(path);
        }
    }
}

/// Every place in free-form JSON that holds something else than an object.
fn collect_leaves(base: &str, value: &Value, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| collect_leaves(&pointer(base, field), value, paths))
        }
        _ => {
            paths.insert(base.to_owned());
        }
    }
}

/// An object that is compared field by field; references compare as a whole.
fn is_nested(schema: &Value) -> bool {
    schema.get("properties").is_some() && schema.get(schema::REF).is_none() && !schema::is(schema, SECRET)
}

struct Walk<'a> {
    managed: &'a BTreeSet<String>,
    partial: &'a BTreeSet<String>,
    changes: Vec<Change>,
    forbidden: Vec<Change>,
}

impl Walk<'_> {
    fn object(&mut self, schema: &Value, base: &str, want: &Value, live: &Value, immutable: bool) -> Value {
        let mut target = Map::new();
        for (field, part) in schema::properties(schema) {
            let path = pointer(base, field);
            let (want, live) = (want.get(field), live.get(field).unwrap_or(&Value::Null));
            let immutable = immutable || schema::is(part, IMMUTABLE);
            let reached = if schema::is(part, TAGS) {
                self.tags(&path, want, live)
            } else if schema::is(part, WRITE_ONLY) || schema::is(part, SECRET) {
                // Never read back; the engine compares fingerprints of secrets.
                want.cloned()
            } else if schema::is(part, FREE_FORM) {
                self.free_form(&path, want, live);
                want.cloned()
            } else if is_nested(part) {
                self.nested(part, &path, want, live, immutable)
            } else {
                self.field(part, &path, want, live, immutable)
            };
            if let Some(value) = reached {
                target.insert(field.clone(), value);
            }
        }
        Value::Object(target)
    }

    fn nested(
        &mut self,
        schema: &Value,
        path: &str,
        want: Option<&Value>,
        live: &Value,
        immutable: bool,
    ) -> Option<Value> {
        let below = format!("{path}/");
        let was_managed = self.managed.iter().any(|path| path.starts_with(&below));
        if want.is_none() && !was_managed {
            return None;
        }
        let empty = Value::Object(Map::new());
        let target = self.object(schema, path, want.unwrap_or(&empty), live, immutable);
        (want.is_some() || target.as_object().is_some_and(|fields| !fields.is_empty())).then_some(target)
    }

    /// Free-form JSON: what it names is compared; what it named before and no longer does is taken away.
    fn free_form(&mut self, path: &str, want: Option<&Value>, live: &Value) {
        if let Some(want) = want {
            self.free_value(path, want, live);
        }
        let below = format!("{path}/");
        let dropped = self.managed.iter().filter_map(|managed| managed.strip_prefix(&below));
        let dropped: BTreeSet<_> = dropped.filter_map(|rest| topmost_unwanted(want, rest)).collect();
        for place in dropped {
            let path = format!("{path}{place}");
            // What is replaced as a whole leaves nothing of it.
            let is_replaced = self.changes.iter().any(|change| schema::is_at_or_below(&change.path, &path));
            if let Some(has) = live.pointer(&place).filter(|_| !is_replaced) {
                self.put(path, Value::Null, has.clone());
            }
        }
    }

    fn free_value(&mut self, path: &str, want: &Value, live: &Value) {
        match (want, live) {
            // Stands for a secret: the engine compares its fingerprint.
            (Value::Object(fields), _) if fields.len() == 1 && fields.contains_key("$secret") => {}
            (Value::Object(fields), Value::Object(_)) => {
                for (field, want) in fields {
                    self.free_value(&pointer(path, field), want, live.get(field).unwrap_or(&Value::Null));
                }
            }
            _ if equal(&Value::Null, want, live) => {}
            _ => self.put(path.to_owned(), want.clone(), live.clone()),
        }
    }

    fn field(
        &mut self,
        schema: &Value,
        path: &str,
        want: Option<&Value>,
        live: &Value,
        immutable: bool,
    ) -> Option<Value> {
        let want = match want {
            Some(want) => want.clone(),
            None if self.managed.contains(path) => fallback(schema)?,
            None => return None,
        };
        let wanted = (!want.is_null()).then(|| want.clone());
        if let Some(change) = self.compare(schema, path, want, live) {
            if immutable { self.forbidden.push(change) } else { self.changes.push(change) }
        }
        wanted
    }

    fn compare(&self, schema: &Value, path: &str, want: Value, live: &Value) -> Option<Change> {
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        if let Some(list) = schema.get(LIST) {
            let item = schema.get("items").unwrap_or(&Value::Null);
            let (want, live) = (items(&want), items(live));
            add = missing_from(item, want, live);
            if !self.partial.contains(path) {
                remove = missing_from(item, live, want);
            }
            if let Some(key) = list.get("key").and_then(Value::as_str) {
                // A changed item is set anew under its key, not removed and added.
                remove.retain(|old| !add.iter().any(|new| new.get(key) == old.get(key)));
            }
            if add.is_empty() && remove.is_empty() {
                return None;
            }
        } else if equal(schema, &want, live) {
            return None;
        }
        Some(Change { path: path.to_owned(), want, live: live.clone(), add, remove })
    }

    fn tags(&mut self, path: &str, want: Option<&Value>, live: &Value) -> Option<Value> {
        let empty = Map::new();
        let want = want.and_then(Value::as_object).unwrap_or(&empty);
        for (key, value) in want {
            let has = live.get(key).unwrap_or(&Value::Null);
            if has != value {
                self.put(pointer(path, key), value.clone(), has.clone());
            }
        }
        for (key, has) in live.as_object().into_iter().flatten() {
            let path = pointer(path, key);
            if self.managed.contains(&path) && !want.contains_key(key) && !tags::is_reserved(key) {
                self.put(path, Value::Null, has.clone());
            }
        }
        (!want.is_empty()).then(|| Value::Object(want.clone()))
    }

    fn put(&mut self, path: String, want: Value, live: Value) {
        self.changes.push(Change { path, want, live, add: Vec::new(), remove: Vec::new() });
    }
}

/// The place on the way down a path, given without its first slash, from which on nothing is wanted.
/// An object that is taken out goes as a whole, not field by field.
fn topmost_unwanted(want: Option<&Value>, rest: &str) -> Option<String> {
    let ends = rest.match_indices('/').map(|(end, _)| end).chain([rest.len()]);
    let mut places = ends.map(|end| format!("/{}", &rest[..end]));
    places.find(|place| want.and_then(|want| want.pointer(place)).is_none())
}

/// What a removed field goes back to. None: it becomes unmanaged.
fn fallback(schema: &Value) -> Option<Value> {
    if let Some(default) = schema.get(DEFAULT) {
        return Some(default.clone());
    }
    if !schema::is(schema, CLEARABLE) {
        return None;
    }
    let is_list = schema.get("items").is_some();
    Some(if is_list { Value::Array(Vec::new()) } else { Value::Null })
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn missing_from(schema: &Value, these: &[Value], those: &[Value]) -> Vec<Value> {
    let mut missing: Vec<Value> = Vec::new();
    for this in these {
        let known = those.iter().chain(&missing).any(|that| equal(schema, this, that));
        if !known {
            missing.push(this.clone());
        }
    }
    missing
}

/// Whether two values mean the same to AWS.
pub fn equal(schema: &Value, want: &Value, live: &Value) -> bool {
    if schema::is(schema, POLICY) {
        return policy::equal(text(want), text(live));
    }
    match (want, live) {
        (Value::Array(want), Value::Array(live)) => lists_equal(schema, want, live),
        (Value::Array(list), Value::Null) | (Value::Null, Value::Array(list)) => list.is_empty(),
        (Value::Object(want), Value::Object(live)) => {
            let part = |field: &str| schema.pointer(&format!("/properties{}", pointer("", field)));
            let fields: BTreeSet<_> = want.keys().chain(live.keys()).collect();
            let side =
                |object: &Map<String, Value>, field: &str| object.get(field).cloned().unwrap_or_default();
            fields.into_iter().all(|field| {
                equal(part(field).unwrap_or(&Value::Null), &side(want, field), &side(live, field))
            })
        }
        (Value::Number(want), Value::Number(live)) => want.as_f64() == live.as_f64(),
        (Value::String(text), Value::Null) | (Value::Null, Value::String(text)) => text.is_empty(),
        _ => want == live,
    }
}

fn lists_equal(schema: &Value, want: &[Value], live: &[Value]) -> bool {
    let item = schema.get("items").unwrap_or(&Value::Null);
    if schema.get(LIST).is_some() {
        return missing_from(item, want, live).is_empty() && missing_from(item, live, want).is_empty();
    }
    want.len() == live.len() && want.iter().zip(live).all(|(want, live)| equal(item, want, live))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
