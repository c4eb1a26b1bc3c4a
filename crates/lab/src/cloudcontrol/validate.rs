//! Whether properties are as their schema says: the part of JSON Schema that types use.

use regex::Regex;
use serde_json::{Map, Value};

/// What is wrong with a value; nothing, if it is as the schema says.
pub(super) fn faults(root: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root, faults: Vec::new() };
    check.value(root, value, "#");
    check.faults
}

struct Check<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, place: &str, what: impl std::fmt::Display) {
        self.faults.push(format!("{place}: {what}"));
    }

    fn value(&mut self, part: &Value, value: &Value, place: &str) {
        if let Some(target) = part["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
            let root = self.root;
            return self.value(root.pointer(target).unwrap_or(&Value::Null), value, place);
        }
        if !has_type(&part["type"], value) {
            return self.fault(place, format!("expected type: {}, found: {value}", part["type"]));
        }
        if let Some(allowed) = part["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
            self.fault(
                place,
                format!("{value} is not a valid enum value of {}", Value::from(allowed.clone())),
            );
        }
        match value {
            Value::String(text) => self.text(part, text, place),
            Value::Number(number) => self.number(part, number.as_f64().unwrap_or_default(), place),
            Value::Array(items) => self.items(part, items, place),
            Value::Object(fields) => self.fields(part, fields, place),
            _ => {}
        }
        self.combined(part, value, place);
    }

    fn combined(&mut self, part: &Value, value: &Value, place: &str) {
        for all in part["allOf"].as_array().into_iter().flatten() {
            self.value(all, value, place);
        }
        for (word, exactly) in [("anyOf", false), ("oneOf", true)] {
            let Some(options) = part[word].as_array() else { continue };
            let fitting = options.iter().filter(|option| self.fits(option, value)).count();
            if fitting == 0 || (exactly && fitting > 1) {
                self.fault(place, format!("{fitting} subschemas matched of {word}"));
            }
        }
    }

    fn fits(&self, part: &Value, value: &Value) -> bool {
        let mut check = Check { root: self.root, faults: Vec::new() };
        check.value(part, value, "#");
        check.faults.is_empty()
    }

    fn text(&mut self, part: &Value, text: &str, place: &str) {
        let length = text.chars().count() as u64;
        if part["minLength"].as_u64().is_some_and(|least| length < least)
            || part["maxLength"].as_u64().is_some_and(|most| length > most)
        {
            self.fault(place, format!("length: {length} is out of bounds"));
        }
        // Patterns that look ahead are beyond this engine, and not checked.
        let pattern =
            part["pattern"].as_str().and_then(|pattern| Regex::new(&pattern.replace("\\Z", "\\z")).ok());
        if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
            self.fault(
                place,
                format!("failed validation constraint for keyword [pattern] {}", part["pattern"]),
            );
        }
    }

    fn number(&mut self, part: &Value, number: f64, place: &str) {
        if part["minimum"].as_f64().is_some_and(|least| number < least)
            || part["maximum"].as_f64().is_some_and(|most| number > most)
        {
            self.fault(place, format!("{number} is out of bounds"));
        }
    }

    fn items(&mut self, part: &Value, items: &[Value], place: &str) {
        let count = items.len() as u64;
        if part["minItems"].as_u64().is_some_and(|least| count < least)
            || part["maxItems"].as_u64().is_some_and(|most| count > most)
        {
            self.fault(place, format!("{count} items are out of bounds"));
        }
        for (index, item) in items.iter().enumerate() {
            if part["uniqueItems"] == true && items[..index].contains(item) {
                self.fault(place, "array items are not unique");
            }
            self.value(&part["items"], item, &format!("{place}/{index}"));
        }
    }

    fn fields(&mut self, part: &Value, fields: &Map<String, Value>, place: &str) {
        for required in part["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(required) {
                self.fault(place, format!("required key [{required}] not found"));
            }
        }
        let known = part["properties"].as_object();
        for (field, value) in fields {
            let below = format!("{place}/{field}");
            let patterns = part["patternProperties"].as_object().into_iter().flatten();
            let by_pattern = patterns
                .filter(|(pattern, _)| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(field)))
                .map(|(_, part)| part)
                .next();
            match known.and_then(|known| known.get(field)).or(by_pattern) {
                Some(part) => self.value(part, value, &below),
                None if part["additionalProperties"] == false => {
                    self.fault(place, format!("extraneous key [{field}] is not permitted"));
                }
                None => {}
            }
        }
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => true,
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}
