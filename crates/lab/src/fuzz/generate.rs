//! A spec at random, from a schema.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use super::known::Known;
use super::words::{NEARLY, NUMBERS, TEXTS};

/// Longer texts and lists than this show nothing new and cost time.
const LONGEST: u64 = 4096;
/// How many values a spec may have before its lists become short.
const BUDGET: usize = 400;

/// Makes one spec.
pub struct Generator<'a> {
    dice: StdRng,
    known: &'a Known,
    /// Of a hundred values, how many are known ones.
    tame: u32,
    budget: usize,
    /// Makes names in AWS distinct, mostly.
    mark: String,
}

impl<'a> Generator<'a> {
    /// The generator of that seed.
    pub fn new(seed: u64, known: &'a Known) -> Self {
        Self::with(StdRng::seed_from_u64(seed), [10, 60, 85], seed, known)
    }

    /// The one of what becomes of that seed's object. It has dice of its own: what is made of a seed must not
    /// depend on what is done to it. And it is tamer: most of what is new in a field may not be changed.
    pub fn of_change(seed: u64, known: &'a Known) -> Self {
        Self::with(StdRng::seed_from_u64(!seed), [60, 85, 95], seed, known)
    }

    fn with(mut dice: StdRng, tame: [u32; 3], seed: u64, known: &'a Known) -> Self {
        let tame = tame[dice.random_range(0..3)];
        Self { dice, known, tame, budget: BUDGET, mark: format!("-{seed:x}") }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.dice.random_range(0..n)
    }

    /// A spec: a known one of which a few fields are changed, or one from the schema alone.
    pub fn spec(&mut self, schema: &Value) -> Value {
        let known: Vec<_> = self.known.at("").iter().filter(|spec| is_complete(schema, spec)).collect();
        if known.is_empty() || !self.percent(60) {
            return self.value("", schema);
        }
        let mut spec = known[self.dice.random_range(0..known.len())].clone();
        for _ in 0..self.dice.random_range(0..4) {
            let (field, value) = self.field(schema);
            spec[field] = value;
        }
        for (field, value) in spec.as_object_mut().into_iter().flatten() {
            self.name_apart(field, value);
        }
        spec
    }

    /// A field of a spec, with a value.
    pub fn field(&mut self, schema: &Value) -> (String, Value) {
        let fields: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
        let (field, part) = fields[self.dice.random_range(0..fields.len())];
        (field.clone(), self.value(&format!("/{field}"), part))
    }

    fn value(&mut self, place: &str, schema: &Value) -> Value {
        self.budget = self.budget.saturating_sub(1);
        let known = self.known.at(place);
        let mut value = if !known.is_empty() && self.percent(self.tame) {
            known[self.dice.random_range(0..known.len())].clone()
        } else if self.percent(2) {
            self.anything(2)
        } else {
            self.typed(place, schema)
        };
        self.name_apart(place.rsplit('/').next().unwrap_or_default(), &mut value);
        value
    }

    fn typed(&mut self, place: &str, schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array()
            && self.percent(90)
        {
            return values[self.dice.random_range(0..values.len())].clone();
        }
        match schema["type"].as_str() {
            Some("object") if schema["properties"].is_object() => self.object(place, schema),
            Some("object") if schema["additionalProperties"].is_object() => self.map(place, schema),
            Some("array") => self.list(place, schema),
            Some("string") => json!(self.text(schema)),
            Some("integer") => json!(self.integer(schema)),
            Some("number") => json!(self.integer(schema) as f64 / 2.0),
            Some("boolean") => json!(self.percent(50)),
            _ => self.anything(3),
        }
    }

    fn object(&mut self, place: &str, schema: &Value) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut fields = Map::new();
        for (field, part) in schema["properties"].as_object().into_iter().flatten() {
            let likely = if required.iter().any(|name| name == field) { 98 } else { 30 };
            if self.percent(likely) {
                fields.insert(field.clone(), self.value(&format!("{place}/{field}"), part));
            }
        }
        if self.percent(2) {
            let value = self.anything(1);
            fields.insert(self.pick(&TEXTS), value);
        }
        Value::Object(fields)
    }

    fn map(&mut self, place: &str, schema: &Value) -> Value {
        let most = schema["maxProperties"].as_u64().unwrap_or(8);
        let count = self.count(0, most);
        let entries = (0..count).map(|number| {
            let key = match self.dice.random_range(0..4) {
                0 => self.pick(&TEXTS),
                1 => "k".repeat(128) + &number.to_string(),
                _ => format!("key-{number}"),
            };
            (key, self.value(&format!("{place}/*"), &schema["additionalProperties"]))
        });
        Value::Object(entries.collect())
    }

    fn list(&mut self, place: &str, schema: &Value) -> Value {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let count = self.count(least, schema["maxItems"].as_u64().unwrap_or(8));
        let mut items: Vec<_> =
            (0..count).map(|_| self.value(&format!("{place}/*"), &schema["items"])).collect();
        if self.percent(10) {
            // Twice the same.
            items.extend(items.first().cloned());
        }
        items.into()
    }

    /// A number of items: mostly few, sometimes one less or more than there may be.
    fn count(&mut self, least: u64, most: u64) -> u64 {
        match self.dice.random_range(0..20) {
            0 => least.saturating_sub(1),
            1 if self.budget > 0 && most < 60 => most + 1,
            _ => least + self.dice.random_range(0..3),
        }
    }

    fn text(&mut self, schema: &Value) -> String {
        let least = schema["minLength"].as_u64().unwrap_or(0).min(LONGEST);
        let most = schema["maxLength"].as_u64().unwrap_or(64).min(LONGEST);
        match self.dice.random_range(0..10) {
            0..4 => self.pick(&TEXTS),
            4..6 => self.pick(&NEARLY),
            6 => self.letters(most),
            7 => self.letters(most + 1),
            8 => self.letters(least),
            _ => {
                let length = self.dice.random_range(1..12);
                self.letters(length)
            }
        }
    }

    fn letters(&mut self, length: u64) -> String {
        // Sometimes in characters of four bytes: a limit may count either.
        let letters = if self.percent(10) { ["𝒶", "😀", "𐍈"] } else { ["a", "b", "1"] };
        (0..length).map(|_| letters[self.dice.random_range(0..3)]).collect()
    }

    fn integer(&mut self, schema: &Value) -> i64 {
        let bound = |name: &str| schema[name].as_f64().map(|bound| bound as i64);
        let (least, most) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(100));
        match self.dice.random_range(0..10) {
            0 => NUMBERS[self.dice.random_range(0..NUMBERS.len())],
            1 => least.saturating_sub(1),
            2 => most.saturating_add(1),
            3 => least,
            4 => most,
            _ => self.dice.random_range(least..=most.max(least)),
        }
    }

    /// JSON of no schema.
    pub fn anything(&mut self, depth: usize) -> Value {
        match self.dice.random_range(0..if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.percent(50)),
            2 => json!(NUMBERS[self.dice.random_range(0..NUMBERS.len())]),
            3 => json!(self.dice.next_u32() as f64 / 1e3),
            4 => json!(self.pick(&TEXTS)),
            5 => (0..self.below(3)).map(|_| self.anything(depth - 1)).collect(),
            _ => {
                let fields = (0..self.below(3)).map(|_| (self.pick(&TEXTS), self.anything(depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }

    /// Two objects of one name in AWS fight for it: that is to happen, but not always.
    fn name_apart(&mut self, field: &str, value: &mut Value) {
        let is_name = field.ends_with("Name") || field.ends_with("Identifier");
        if let Value::String(text) = value
            && is_name
            && !text.is_empty()
            && !text.ends_with(&self.mark)
            && self.percent(85)
        {
            text.push_str(&self.mark);
        }
        // A CloudFormation type's own name stands a level below.
        for (field, value) in value.as_object_mut().into_iter().flatten() {
            if field.ends_with("Name") {
                self.name_apart(field, value);
            }
        }
    }

    /// One of these.
    pub fn pick(&mut self, texts: &[&str]) -> String {
        texts[self.dice.random_range(0..texts.len())].to_owned()
    }

    fn percent(&mut self, share: u32) -> bool {
        self.dice.random_ratio(share, 100)
    }
}

fn is_complete(schema: &Value, spec: &Value) -> bool {
    let required = schema["required"].as_array();
    required.into_iter().flatten().filter_map(Value::as_str).all(|field| !spec[field].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_spec_and_another_one_another() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "maxLength": 9},
            "b": {"type": "array", "items": {"type": "integer", "minimum": 3}},
        }});
        let spec = |seed| Generator::new(seed, &Known::default()).spec(&schema).to_string();
        assert_eq!(spec(7), spec(7));
        let distinct: std::collections::BTreeSet<_> = (0..100).map(spec).collect();
        assert!(distinct.len() > 60, "{}", distinct.len());
    }
}
