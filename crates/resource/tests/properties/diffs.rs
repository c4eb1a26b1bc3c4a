//! The difference of what is wanted and what is there: made, there is none left.

use std::collections::BTreeSet;

use proptest::prelude::*;
use resource::Change;
use resource::diff::{diff, equal, managed_paths};
use resource::schema::{CLEARABLE, DEFAULT, FREE_FORM, IMMUTABLE, LIST, POLICY, TAGS, WRITE_ONLY};
use serde_json::{Map, Value, json};

/// JSON of any shape.
pub fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z~/]{0,3}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c~/$]{0,3}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// One field of each sort that a kind may have.
fn schema() -> Value {
    json!({"type": "object", "properties": {
        "plain": {"type": "string"},
        "number": {"type": "integer", DEFAULT: 7},
        "clearable": {"type": "string", CLEARABLE: true},
        "sequence": {"type": "array", "items": {"type": "string"}, CLEARABLE: true},
        "set": {"type": "array", "items": {"type": "string"}, LIST: "set", CLEARABLE: true},
        "keyed": {"type": "array", LIST: {"key": "id"}, CLEARABLE: true, "items": {
            "type": "object", "properties": {"id": {"type": "string"}, "value": {"type": "integer"}},
        }},
        "nested": {"type": "object", "properties": {
            "inner": {"type": "string", CLEARABLE: true},
            "deeper": {"type": "object", "properties": {"flag": {"type": "boolean", DEFAULT: false}}},
        }},
        "policy": {"type": "string", POLICY: true},
        "written": {"type": "string", WRITE_ONLY: true},
        "fixed": {"type": "string", IMMUTABLE: true},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}, TAGS: true},
        "free": {"type": "object", FREE_FORM: true},
    }})
}

fn spec() -> impl Strategy<Value = Value> {
    let text = || "[a-c]{1,2}".prop_map(Value::from);
    let texts = || prop::collection::vec(text(), 0..4).prop_map(Value::from);
    let keyed = prop::collection::btree_map("[a-d]", 0..3, 0..4).prop_map(|items| {
        items.into_iter().map(|(id, value)| json!({"id": id, "value": value})).collect::<Value>()
    });
    let nested = (prop::option::of(text()), prop::option::of(any::<bool>())).prop_map(|(inner, flag)| {
        let deeper = flag.map(|flag| json!({"flag": flag}));
        fields([("inner", inner), ("deeper", deeper)])
    });
    let policy = "[a-c]"
        .prop_map(|action| json!(json!({"Statement": [{"Effect": "Allow", "Action": action}]}).to_string()));
    let tags = prop::collection::btree_map("[a-c/~]{1,2}", "[xy]", 0..4).prop_map(|tags| json!(tags));
    let free =
        prop::collection::btree_map("[a-c/~]{1,2}", leaf_or_object(), 0..4).prop_map(|free| json!(free));
    let some = prop::option::of::<BoxedStrategy<Value>>;
    let first = (
        some(text().boxed()),
        some((0..9i32).prop_map(Value::from).boxed()),
        some(text().boxed()),
        some(texts().boxed()),
        some(texts().boxed()),
        some(keyed.boxed()),
    );
    let second = (
        some(nested.boxed()),
        some(policy.boxed()),
        some(text().boxed()),
        Just(json!("fixed")),
        some(tags.boxed()),
        some(free.boxed()),
    );
    (first, second).prop_map(
        |((plain, number, clearable, sequence, set, keyed), (nested, policy, written, fixed, tags, free))| {
            fields([
                ("plain", plain),
                ("number", number),
                ("clearable", clearable),
                ("sequence", sequence),
                ("set", set),
                ("keyed", keyed),
                ("nested", nested),
                ("policy", policy),
                ("written", written),
                ("fixed", Some(fixed)),
                ("tags", tags),
                ("free", free),
            ])
        },
    )
}

fn leaf_or_object() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..9i32).prop_map(Value::from),
        prop::collection::btree_map("[a-c]", 0..3i32, 1..3).prop_map(|fields| json!(fields)),
    ]
}

fn fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let set = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
    Value::Object(set.collect())
}

/// What an update makes of the live state: the wanted value at each path, nothing where none is.
fn apply(live: &Value, changes: &[Change]) -> Value {
    let mut live = live.clone();
    for change in changes {
        put(&mut live, &change.path, change.want.clone());
    }
    live
}

fn put(root: &mut Value, path: &str, value: Value) {
    let (parent, field) = path.rsplit_once('/').unwrap();
    let field = field.replace("~1", "/").replace("~0", "~");
    let mut place = root;
    for step in parent.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = json!({});
        }
        place = place.as_object_mut().unwrap().entry(step).or_insert_with(|| json!({}));
    }
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    match value {
        Value::Null => place.as_object_mut().unwrap().remove(&field),
        value => place.as_object_mut().unwrap().insert(field, value),
    };
}

proptest! {
    #[test]
    fn nothing_differs_from_itself(spec in spec()) {
        let schema = schema();
        let found = diff(&schema, &spec, &spec, &managed_paths(&schema, &spec), &BTreeSet::new());
        prop_assert!(found.changes.is_empty() && found.forbidden.is_empty(), "{:#?}", found);
    }

    #[test]
    fn a_difference_once_made_is_none_any_more(want in spec(), before in spec(), live in spec()) {
        let schema = schema();
        let managed = managed_paths(&schema, &before);
        let found = diff(&schema, &want, &live, &managed, &BTreeSet::new());
        let changes: Vec<_> = found.changes.iter().cloned().collect();
        let made = apply(&live, &changes);
        let again = diff(&schema, &want, &made, &managed, &BTreeSet::new());
        prop_assert!(again.changes.is_empty(), "{:#?}\n{:#?}", found.changes, again.changes);
        // What a kind sends as a whole instead leads to the same.
        let again = diff(&schema, &want, &found.target, &managed, &BTreeSet::new());
        let left: Vec<_> = again.changes.iter().filter(|change| !change.want.is_null()).collect();
        prop_assert!(left.is_empty(), "the target: {:#?}", left);
    }

    #[test]
    fn the_items_of_a_list_add_up(want in spec(), live in spec()) {
        let schema = schema();
        let found = diff(&schema, &want, &live, &BTreeSet::new(), &BTreeSet::new());
        for field in ["set", "keyed"].into_iter().filter(|field| found.changes.touch(field)) {
            let (added, removed): (Vec<Value>, Vec<Value>) =
                (found.changes.added(field).unwrap(), found.changes.removed(field).unwrap());
            let id = |item: &Value| item.get("id").cloned().unwrap_or_else(|| item.clone());
            let mut items: Vec<_> = live[field].as_array().cloned().unwrap_or_default();
            items.retain(|item| !removed.contains(item) && !added.iter().any(|new| id(new) == id(item)));
            items.extend(added);
            let part = &schema["properties"][field];
            prop_assert!(equal(part, &want[field], &items.clone().into()), "{:?}", items);
        }
    }

    #[test]
    fn any_two_values_can_be_compared(want in json(), live in json(), managed in prop::collection::btree_set("(/[a-z~/]{0,4}){0,3}", 0..4)) {
        let schema = schema();
        diff(&schema, &want, &live, &managed, &managed);
        diff(&schema, &json!({"free": want}), &json!({"free": live}), &managed, &BTreeSet::new());
        managed_paths(&schema, &want);
        prop_assert!(equal(&Value::Null, &want, &want));
        prop_assert_eq!(equal(&Value::Null, &want, &live), equal(&Value::Null, &live, &want));
    }
}
