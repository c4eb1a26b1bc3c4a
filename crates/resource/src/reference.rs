//! References to other objects, as field types.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::schema::REF;

/// A kind that can be referred to. The list stands in [`crate::targets`].
pub trait Target: Send + Sync + 'static {
    /// The Kubernetes kind.
    const KIND: &'static str;
    /// JSON pointer into the target object: what the reference yields.
    const YIELDS: &'static str;
    /// The field of the direct form: `id`, `arn`, ….
    const DIRECT: &'static str;
}

/// `{name, namespace?}` of an object, or the direct form such as `{id: vpc-…}`.
///
/// The engine resolves every reference to the direct form before a kind sees it.
pub struct Ref<T> {
    name: Option<String>,
    namespace: Option<String>,
    direct: Option<String>,
    target: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// The direct form: how a kind writes what AWS shows.
    pub fn to(id: impl Into<String>) -> Self {
        Self { name: None, namespace: None, direct: Some(id.into()), target: PhantomData }
    }

    /// What AWS calls the target; empty where it refers to nothing.
    pub fn id(&self) -> &str {
        self.direct.as_deref().unwrap_or_default()
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            direct: self.direct.clone(),
            target: PhantomData,
        }
    }
}

impl<T: Target> std::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({:?} or {:?})", T::KIND, self.name, self.direct)
    }
}

impl<T: Target> Serialize for Ref<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = [("name", &self.name), ("namespace", &self.namespace), (T::DIRECT, &self.direct)];
        let fields =
            parts.into_iter().filter_map(|(field, value)| Some((field.to_owned(), json!(value.as_ref()?))));
        fields.collect::<Map<_, _>>().serialize(serializer)
    }
}

impl<'de, T: Target> Deserialize<'de> for Ref<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            name: text("name"),
            namespace: text("namespace"),
            direct: text(T::DIRECT),
            target: PhantomData,
        })
    }
}

impl<T: Target> JsonSchema for Ref<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Ref", T::KIND).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (kind, direct) = (T::KIND, T::DIRECT);
        json_schema!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": format!("Name of the {kind} object.")},
                "namespace": {"type": "string", "minLength": 1, "maxLength": 63, "description": format!("Namespace of the {kind} object; this object's own if unset.")},
                direct: {"type": "string", "minLength": 1, "maxLength": 2048, "description": format!("AWS's own {direct} of a {kind} that is not managed here.")},
            },
            "x-kubernetes-validations": [
                {"rule": format!("has(self.name) != has(self.{direct})"),
                 "message": format!("give exactly one of name (of a {kind} object) and {direct} (of an existing {kind} in AWS)")},
                {"rule": "!has(self.namespace) || has(self.name)", "message": "namespace only goes with name"},
            ],
            REF: {"kind": kind, "yields": T::YIELDS, "direct": direct},
        })
    }
}

/// A bare string: the name of an object in the same namespace (or, where the schema says so,
/// AWS's own name).
///
/// The engine resolves it to what the target yields before a kind sees it.
pub struct NameRef<T> {
    text: String,
    target: PhantomData<fn() -> T>,
}

impl<T> NameRef<T> {
    /// The resolved form: how a kind writes what AWS shows.
    pub fn to(id: impl Into<String>) -> Self {
        Self { text: id.into(), target: PhantomData }
    }

    /// What AWS calls the target.
    pub fn id(&self) -> &str {
        &self.text
    }
}

impl<T> Clone for NameRef<T> {
    fn clone(&self) -> Self {
        Self::to(&self.text)
    }
}

impl<T: Target> std::fmt::Debug for NameRef<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", T::KIND, self.text)
    }
}

impl<T> Serialize for NameRef<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for NameRef<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::to)
    }
}

impl<T: Target> JsonSchema for NameRef<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Name", T::KIND).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "minLength": 1, "maxLength": 253,
            REF: {"kind": T::KIND, "yields": T::YIELDS, "bare": true},
        })
    }
}
