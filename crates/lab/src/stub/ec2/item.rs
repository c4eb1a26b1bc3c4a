//! What every EC2 resource has alike: an id, fields, tags; and how it is described.

use std::collections::{BTreeMap, HashSet};

use super::super::params::{Params, Tags};
use super::super::refusal::Refusal;
use crate::proxy::aws::asked::Asked;
use crate::proxy::aws::xml::Element;

/// How many a page has unless the caller says.
const PAGE: usize = 1000;

/// A type of resource, in EC2's words.
pub(super) struct Type {
    /// As in TagSpecification, such as `internet-gateway`.
    pub name: &'static str,
    /// What its ids begin with.
    pub prefix: &'static str,
    /// The field with the id, such as `internetGatewayId`.
    pub id: &'static str,
    /// The parameter of that name.
    pub param: &'static str,
    /// The filter by it.
    pub filter: &'static str,
    /// The list in the answer to a describe.
    pub set: &'static str,
    /// The error of an id that nothing has.
    pub missing: &'static str,
}

/// One resource.
pub(super) struct Item {
    pub fields: BTreeMap<&'static str, String>,
    pub tags: Tags,
    /// Lists of structures below it.
    pub lists: BTreeMap<&'static str, Vec<Element>>,
    /// What a describe doesn't show.
    pub attributes: BTreeMap<&'static str, bool>,
}

impl Item {
    pub fn element(&self, name: &str) -> Element {
        let mut element = Element::new(name);
        self.fields.iter().for_each(|(field, value)| element.set(field, value));
        for (name, items) in &self.lists {
            element.push(list(name, items.iter().cloned()));
        }
        let tags = self.tags.iter().map(|(key, value)| fields("item", &[("key", key), ("value", value)]));
        element.push(list("tagSet", tags));
        element
    }

    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// All resources of a type.
pub(super) struct Items {
    of: Type,
    all: BTreeMap<String, Item>,
    made: u64,
}

impl Items {
    pub fn new(of: Type) -> Self {
        Self { of, all: BTreeMap::new(), made: 0 }
    }

    /// Makes one, with the tags of the create call, and shows it.
    pub fn make(&mut self, params: &Params<'_>, fields: &[(&'static str, &str)]) -> &mut Item {
        self.made += 1;
        let id = format!("{}-{:017x}", self.of.prefix, self.made);
        let mine = |tags: &Params<'_>| tags.get("ResourceType") == Some(self.of.name);
        let tags = params.items("TagSpecification").into_iter().filter(mine);
        let mut item = Item {
            fields: fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            tags: tags.flat_map(|tags| tags.tags("Tag")).collect(),
            lists: BTreeMap::new(),
            attributes: BTreeMap::new(),
        };
        item.fields.insert(self.of.id, id.clone());
        self.all.entry(id).or_insert(item)
    }

    /// The one that the call names.
    pub fn named(&mut self, params: &Params<'_>) -> Result<&mut Item, Refusal> {
        self.get(params.text(self.of.param)?)
    }

    pub fn get(&mut self, id: &str) -> Result<&mut Item, Refusal> {
        let (of, missing) = (&self.of, format!("The {} ID '{id}' does not exist", self.of.name));
        self.all.get_mut(id).ok_or_else(|| Refusal::new(of.missing, missing))
    }

    pub fn find(&mut self, id: &str) -> Option<&mut Item> {
        self.all.get_mut(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Item> {
        self.all.values()
    }

    pub fn remove(&mut self, params: &Params<'_>) -> Result<(), Refusal> {
        self.named(params)?;
        self.all.remove(params.text(self.of.param)?);
        Ok(())
    }

    /// A page of those that pass every filter.
    pub fn describe(&self, asked: &Asked) -> Result<Vec<Element>, Refusal> {
        let params = Params::new(&asked.params);
        let ids: HashSet<_> = params.values(self.of.param).into_iter().collect();
        if let Some(lost) = ids.iter().find(|id| !self.all.contains_key(**id)) {
            let message = format!("The {} ID '{lost}' does not exist", self.of.name);
            return Err(Refusal::new(self.of.missing, message));
        }
        let filters = params.items("Filter");
        let filters = filters.iter().map(|filter| Ok((filter.text("Name")?, filter.values("Value"))));
        let filters = filters.collect::<Result<Vec<(&str, Vec<&str>)>, Refusal>>()?;
        let filters: Vec<_> = filters
            .into_iter()
            .map(|(name, values)| (name, values.into_iter().collect::<HashSet<_>>()))
            .collect();
        let after = params.get("NextToken").unwrap_or_default();
        let size = params.get("MaxResults").and_then(|size| size.parse().ok()).unwrap_or(PAGE);
        let mut page = Vec::new();
        let mut next = None;
        for (id, item) in self.candidates(&ids, &filters) {
            if id <= after || !self.passes(item, &filters)? {
                continue;
            }
            if page.len() == size {
                next = page.last().map(|(id, _): &(&str, Element)| (*id).to_owned());
                break;
            }
            page.push((id, item.element("item")));
        }
        let mut answer = vec![list(self.of.set, page.into_iter().map(|(_, element)| element))];
        answer.extend(next.map(|next| Element::text_of("nextToken", &next)));
        Ok(answer)
    }

    /// Those that are asked for by id or, if none are, all; in order.
    fn candidates<'a>(
        &'a self,
        ids: &HashSet<&'a str>,
        filters: &[(&str, HashSet<&'a str>)],
    ) -> Vec<(&'a str, &'a Item)> {
        let filter = filters.iter().find(|(name, _)| *name == self.of.filter).map(|(_, values)| values);
        match Some(ids).filter(|ids| !ids.is_empty()).or(filter) {
            Some(ids) => {
                let mut ids: Vec<_> = ids.iter().collect();
                ids.sort();
                let found = ids.into_iter().filter_map(|id| self.all.get_key_value(*id));
                found.map(|(id, item)| (id.as_str(), item)).collect()
            }
            None => self.all.iter().map(|(id, item)| (id.as_str(), item)).collect(),
        }
    }

    fn passes(&self, item: &Item, filters: &[(&str, HashSet<&str>)]) -> Result<bool, Refusal> {
        for (name, values) in filters {
            let value = match name.strip_prefix("tag:") {
                Some(key) => item.tags.get(key).map(String::as_str),
                None => Some(item.field(field_of(name)?)),
            };
            if !value.is_some_and(|value| values.contains(value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The field behind a filter. Wildcards are not known here.
fn field_of(filter: &str) -> Result<&'static str, Refusal> {
    const FIELDS: [(&str, &str); 7] = [
        ("vpc-id", "vpcId"),
        ("subnet-id", "subnetId"),
        ("group-id", "groupId"),
        ("internet-gateway-id", "internetGatewayId"),
        ("cidr-block", "cidrBlock"),
        ("group-name", "groupName"),
        ("state", "state"),
    ];
    let field = FIELDS.iter().find(|(name, _)| *name == filter).map(|(_, field)| *field);
    field.ok_or_else(|| Refusal::new("InvalidParameterValue", format!("The filter '{filter}' is invalid")))
}

/// An element with fields.
pub(super) fn fields(name: &str, fields: &[(&str, &str)]) -> Element {
    let mut element = Element::new(name);
    fields.iter().for_each(|(field, value)| element.set(field, value));
    element
}

/// An element with these in it.
pub(super) fn list(name: &str, items: impl IntoIterator<Item = Element>) -> Element {
    let mut element = Element::new(name);
    items.into_iter().for_each(|item| element.push(item));
    element
}
