//! AWS's answers as a small tree: enough to look into, cut and mend them.

use std::fmt::Write as _;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element. Its texts and attributes are kept escaped, as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub name: String,
    attributes: String,
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), attributes: String::new(), nodes: Vec::new() }
    }

    pub fn text_of(name: &str, text: &str) -> Self {
        let mut element = Self::new(name);
        element.nodes.push(Node::Text(quick_xml::escape::escape(text).into_owned()));
        element
    }

    fn from_tag(tag: &BytesStart<'_>) -> Self {
        let mut element = Self::new(tag.name().as_ref());
        element.attributes = tag.attributes_raw().trim_end().to_owned();
        element
    }

    /// The root of a document; nothing for what is no XML.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader::from_str(text);
        let mut open = vec![Self::new("")];
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => open.push(Self::from_tag(&tag)),
                Event::Empty(tag) => open.last_mut()?.nodes.push(Node::Element(Self::from_tag(&tag))),
                Event::End(_) => {
                    let closed = open.pop()?;
                    open.last_mut()?.nodes.push(Node::Element(closed));
                }
                Event::Text(text) => open.last_mut()?.nodes.push(Node::Text(text.to_string())),
                Event::GeneralRef(name) => {
                    open.last_mut()?.nodes.push(Node::Text(format!("&{};", &*name)));
                }
                Event::CData(text) => {
                    let text = quick_xml::escape::escape(&*text).into_owned();
                    open.last_mut()?.nodes.push(Node::Text(text));
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let document = (open.len() == 1).then(|| open.pop()).flatten()?;
        document.nodes.into_iter().find_map(|node| match node {
            Node::Element(root) => Some(root),
            Node::Text(_) => None,
        })
    }

    pub fn children(&self) -> impl Iterator<Item = &Self> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    pub fn children_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        self.nodes.iter_mut().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children().find(|child| child.name == name)
    }

    /// The text directly inside, without the white space around it.
    pub fn text(&self) -> String {
        let texts = self.nodes.iter().filter_map(|node| match node {
            Node::Text(text) => Some(text.as_str()),
            Node::Element(_) => None,
        });
        let escaped = texts.collect::<String>();
        let escaped = escaped.trim();
        quick_xml::escape::unescape(escaped).map_or_else(|_| escaped.to_owned(), |text| text.into_owned())
    }

    pub fn child_text(&self, name: &str) -> Option<String> {
        self.child(name).map(Self::text)
    }

    /// The first element of that name, here or below, outermost first.
    pub fn find(&self, name: &str) -> Option<&Self> {
        if self.name == name {
            return Some(self);
        }
        self.child(name).or_else(|| self.children().find_map(|child| child.find(name)))
    }

    pub fn find_mut(&mut self, name: &str) -> Option<&mut Self> {
        if self.name == name {
            return Some(self);
        }
        if self.child(name).is_some() {
            return self.children_mut().find(|child| child.name == name);
        }
        self.children_mut().find_map(|child| child.find_mut(name))
    }

    /// Gives the child of that name this text, adding the child if there is none.
    pub fn set(&mut self, name: &str, text: &str) {
        let new = Self::text_of(name, text);
        if let Some(child) = self.children_mut().find(|child| child.name == name) {
            child.nodes = new.nodes;
            return;
        }
        self.push(new);
    }

    pub fn push(&mut self, child: Self) {
        self.nodes.push(Node::Element(child));
    }

    /// The texts of all elements of that name, at any depth.
    pub fn all(&self, name: &str) -> Vec<String> {
        let here = (self.name == name).then(|| self.text());
        here.into_iter().chain(self.children().flat_map(|child| child.all(name))).collect()
    }

    /// The outermost element that has a child of that name.
    pub fn holder_mut(&mut self, name: &str) -> Option<&mut Self> {
        if self.child(name).is_some() {
            return Some(self);
        }
        self.children_mut().find_map(|child| child.holder_mut(name))
    }

    /// Drops the child elements for which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(&Self) -> bool) {
        self.nodes.retain(|node| match node {
            Node::Element(element) => keep(element),
            Node::Text(_) => true,
        });
    }

    pub fn document(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        let _ = write!(out, "<{}{}>", self.name, self.attributes);
        for node in &self.nodes {
            match node {
                Node::Element(element) => element.write(out),
                Node::Text(text) => out.push_str(text),
            }
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"<?xml version="1.0"?>
<R xmlns="urn:x"><vpcSet><item><vpcId> vpc-1 </vpcId><n>a &amp; b</n></item><item><vpcId>vpc-2</vpcId></item></vpcSet><empty/></R>"#;

    #[test]
    fn reads_and_writes_back() {
        let root = Element::parse(ANSWER).unwrap();
        assert_eq!(root.find("vpcId").unwrap().text(), "vpc-1");
        assert_eq!(root.find("n").unwrap().text(), "a & b");
        assert_eq!(Element::parse(&root.document()).unwrap(), root);
        assert!(root.document().contains(r#"<R xmlns="urn:x">"#));
        assert!(root.document().contains("a &amp; b"));
    }

    #[test]
    fn cuts_and_sets() {
        let mut root = Element::parse(ANSWER).unwrap();
        let set = root.find_mut("vpcSet").unwrap();
        set.retain(|item| item.child_text("vpcId").as_deref() != Some("vpc-1"));
        assert_eq!(set.children().count(), 1);
        root.set("nextToken", "<2>");
        root.set("empty", "no");
        assert_eq!(root.child_text("nextToken").unwrap(), "<2>");
        assert_eq!(root.child_text("empty").unwrap(), "no");
    }

    #[test]
    fn what_is_no_xml_is_nothing() {
        assert_eq!(Element::parse("<a><b></a>"), None);
        assert_eq!(Element::parse("{\"a\": 1}"), None);
    }
}
