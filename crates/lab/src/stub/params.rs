//! The parameters of a form: `Tag.1.Key=a&Tag.1.Value=b` as a list of structures.

use std::collections::{BTreeMap, BTreeSet};

use super::refusal::Refusal;

/// Tags by key.
pub(super) type Tags = BTreeMap<String, String>;

/// The parameters below a prefix.
#[derive(Clone)]
pub(super) struct Params<'a> {
    all: &'a BTreeMap<String, String>,
    prefix: String,
}

impl<'a> Params<'a> {
    /// All of them.
    pub fn new(all: &'a BTreeMap<String, String>) -> Self {
        Self { all, prefix: String::new() }
    }

    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.all.get(&format!("{}{name}", self.prefix)).map(String::as_str)
    }

    pub fn text(&self, name: &str) -> Result<&'a str, Refusal> {
        let missing = || format!("The request must contain the parameter {name}");
        self.get(name).ok_or_else(|| Refusal::new("MissingParameter", missing()))
    }

    /// The items of a list, by number.
    pub fn items(&self, name: &str) -> Vec<Self> {
        let below = format!("{}{name}.", self.prefix);
        let numbers: BTreeSet<usize> = self
            .all
            .range(below.clone()..)
            .map_while(|(key, _)| key.strip_prefix(&below))
            .filter_map(|rest| rest.split('.').next()?.parse().ok())
            .collect();
        let item = |number| Self { all: self.all, prefix: format!("{below}{number}.") };
        numbers.into_iter().map(item).collect()
    }

    /// The values of a list of texts.
    pub fn values(&self, name: &str) -> Vec<&'a str> {
        let below = format!("{}{name}.", self.prefix);
        let listed = self.all.range(below.clone()..).take_while(|(key, _)| key.starts_with(&below));
        listed.map(|(_, value)| value.as_str()).collect()
    }

    /// A list of tags.
    pub fn tags(&self, name: &str) -> Tags {
        let tag = |item: &Self| Some((item.get("Key")?.to_owned(), item.get("Value")?.to_owned()));
        self.items(name).iter().filter_map(tag).collect()
    }
}
