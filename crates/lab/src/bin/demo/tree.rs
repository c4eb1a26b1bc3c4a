//! The objects as a tree: each under the one that its spec refers to.

use crate::stack::Object;

/// The shape. What has gone keeps its place.
#[derive(Default)]
pub struct Tree(Vec<Branch>);

/// A line of the tree.
pub struct Branch {
    /// What stands before the name: `│  └─ `.
    pub trunk: String,
    /// What stands before further lines about it.
    pub below: String,
    /// `VPC/quickstart`.
    pub name: String,
}

impl Tree {
    /// Grows anew if there are objects that it doesn't have. An object that refers to several
    /// stands under the first of them.
    pub fn grow(&mut self, objects: &[Object]) {
        let has = |name: &str| self.0.iter().any(|branch| branch.name == name);
        if objects.iter().all(|object| has(&object.full_name())) {
            return;
        }
        self.0.clear();
        let parent = |child: &Object| objects.iter().position(|other| child.stands_on(other));
        let parents: Vec<_> = objects.iter().map(parent).collect();
        let mut roots = children(&parents, None);
        roots.sort_by_key(|root| usize::MAX - children(&parents, Some(*root)).len());
        for root in roots {
            self.branch(objects, &parents, root, "", "");
        }
    }

    fn branch(&mut self, objects: &[Object], parents: &[Option<usize>], at: usize, trunk: &str, below: &str) {
        let children = children(parents, Some(at));
        let twig = if children.is_empty() { "" } else { "│" };
        self.0.push(Branch {
            trunk: trunk.to_owned(),
            below: format!("{below}{twig}"),
            name: objects[at].full_name(),
        });
        for (number, child) in children.iter().enumerate() {
            let (own, further) =
                if number + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.branch(objects, parents, *child, &format!("{below}{own}"), &format!("{below}{further}"));
        }
    }

    /// The lines from top to bottom.
    pub fn branches(&self) -> &[Branch] {
        &self.0
    }

    /// All names, each before what stands on it.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|branch| branch.name.clone()).collect()
    }
}

fn children(parents: &[Option<usize>], of: Option<usize>) -> Vec<usize> {
    parents.iter().enumerate().filter(|(_, parent)| **parent == of).map(|(child, _)| child).collect()
}
