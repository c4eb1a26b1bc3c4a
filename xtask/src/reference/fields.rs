//! Fields as rows of a table, from their annotated schema.

use resource::schema::{
    CLEARABLE, DEFAULT, IMMUTABLE, LATER, LIST, POLICY, REF, TAGS, WRITE_ONLY, is, properties,
};
use serde_json::Value;

/// A field, or one inside it.
pub struct Row {
    /// `ingressRules[].protocol`.
    pub path: String,
    /// Its type, and whether it is required, immutable and the like.
    pub kind: String,
    pub meaning: String,
    /// What it may hold.
    pub constraints: Vec<String>,
    /// What becomes of AWS's value when the field leaves the spec.
    pub removed: &'static str,
}

/// The fields of a schema and, below each, those inside it.
pub fn rows(schema: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    collect(schema, "", &mut rows, &mut Vec::new());
    rows
}

fn collect<'a>(schema: &'a Value, prefix: &str, rows: &mut Vec<Row>, items: &mut Vec<(String, &'a Value)>) {
    let required = schema.get("required").and_then(Value::as_array);
    for (field, part) in properties(schema) {
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == field));
        let path = format!("{prefix}{field}");
        let mut row = row(&path, part, is_required, prefix.is_empty());
        let known = part.get("items").and_then(|of| items.iter().find(|(_, known)| *known == of));
        let has_fields = part.get("items").is_some_and(|of| properties(of).next().is_some());
        if let Some((like, _)) = known.filter(|_| has_fields) {
            // The same fields twice would hide that they are the same.
            row.constraints = own_constraints(part);
            row.constraints.push(format!("each: as in `{like}`"));
            rows.push(row);
            continue;
        }
        rows.push(row);
        match part.get("items") {
            Some(of) => {
                items.push((path.clone(), of));
                collect(of, &format!("{path}[]."), rows, items);
            }
            None if part.get(REF).is_none() => collect(part, &format!("{path}."), rows, items),
            None => {}
        }
    }
}

fn row(path: &str, part: &Value, is_required: bool, is_top: bool) -> Row {
    let marks = marks(part, is_required, is_top);
    let can_go = is_top && !is_required && !is(part, IMMUTABLE);
    Row {
        path: path.to_owned(),
        kind: [vec![kind(part)], marks].concat().join(", "),
        meaning: description(part).unwrap_or_default(),
        constraints: constraints(part),
        removed: if can_go { removal(part) } else { "" },
    }
}

fn kind(part: &Value) -> String {
    if let Some(reference) = part.get(REF) {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let link = format!("[{0}]({1}.md)", text("kind"), text("kind").to_lowercase());
        return if is(reference, "bare") {
            format!("name of a {link}")
        } else {
            format!("a {link}: `{{name, namespace}}` or `{{{}}}`", text("direct"))
        };
    }
    if is(part, POLICY) {
        return "policy document in JSON".to_owned();
    }
    let name = part.get("type").and_then(|kind| match kind {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    });
    match (name, part.get("items"), part.get("additionalProperties")) {
        (Some("array"), Some(items), _) if part.get(LIST).is_some_and(|list| list == "set") => {
            format!("set of {}s", kind(items))
        }
        (Some("array"), Some(items), _) => format!("list of {}s", kind(items)),
        (Some("object"), _, Some(values)) => format!("map of {}s", kind(values)),
        (Some(name), ..) => name.to_owned(),
        (None, ..) => "any".to_owned(),
    }
}

fn marks(part: &Value, is_required: bool, is_top: bool) -> Vec<String> {
    let mut marks = Vec::new();
    let mut mark = |is: bool, text: &str| {
        if is {
            marks.push(text.to_owned());
        }
    };
    mark(is_required, "**required**");
    mark(is_top && is(part, IMMUTABLE), "immutable");
    mark(is(part, WRITE_ONLY), "write-only");
    if let Some(default) = part.get(DEFAULT) {
        let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        marks.push(format!("default `{text}`"));
    }
    marks
}

/// The description, on one line.
pub fn description(part: &Value) -> Option<String> {
    let text = part.get("description")?.as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What the field may hold, and each item of it.
fn constraints(part: &Value) -> Vec<String> {
    let of_items = part.get("items").map(own_constraints).unwrap_or_default();
    let mut constraints = own_constraints(part);
    constraints.extend(of_items.into_iter().map(|text| format!("each: {text}")));
    constraints
}

fn own_constraints(part: &Value) -> Vec<String> {
    let mut constraints = Vec::new();
    // What a reference may hold follows from its being one.
    if part.get(REF).is_some() {
        if is(part, LATER) {
            constraints.push("only its item of the list waits for the reference".to_owned());
        }
        return constraints;
    }
    let number = |field: &str| part.get(field).and_then(Value::as_i64);
    match part.get("enum").and_then(Value::as_array) {
        Some(values) => {
            let values = values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`"));
            constraints.push(values.collect::<Vec<_>>().join(", "));
        }
        None => constraints.extend(range(number("minLength"), number("maxLength"), " characters")),
    }
    constraints.extend(range(number("minimum"), number("maximum"), ""));
    constraints.extend(range(number("minItems"), number("maxItems"), " items"));
    constraints.extend(range(None, number("maxProperties"), " entries"));
    constraints
        .extend(part.get("pattern").and_then(Value::as_str).map(|pattern| format!("matches `{pattern}`")));
    constraints.extend(rules(part));
    constraints
}

fn range(least: Option<i64>, most: Option<i64>, of: &str) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{of}")),
        (Some(least), None) => Some(format!("at least {least}{of}")),
        (None, Some(most)) => Some(format!("at most {most}{of}")),
        (None, None) => None,
    }
}

/// What admission says to a value that breaks a rule.
pub fn rules(part: &Value) -> Vec<String> {
    let rules = part.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| rule.get("message")?.as_str()).map(str::to_owned).collect()
}

fn removal(part: &Value) -> &'static str {
    if is(part, TAGS) {
        "they go from AWS"
    } else if part.get(DEFAULT).is_some() {
        "back to the default"
    } else if is(part, CLEARABLE) {
        "cleared in AWS"
    } else {
        "stays in AWS, unmanaged"
    }
}
