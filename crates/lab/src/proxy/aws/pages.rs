//! Pages: the emulators return a list at once, AWS in parts.

use super::answer::Answer;
use super::asked::{Asked, Protocol};
use super::xml::Element;

/// EC2's lists that AWS does not page.
const WHOLE: [&str; 6] = [
    "DescribeAddresses",
    "DescribeAvailabilityZones",
    "DescribeKeyPairs",
    "DescribePlacementGroups",
    "DescribeRegions",
    "DescribeVpcAttribute",
];

fn is_paged(asked: &Asked) -> bool {
    match asked.protocol {
        Protocol::Ec2 => {
            asked.operation.starts_with("Describe") && !WHOLE.contains(&asked.operation.as_str())
        }
        Protocol::Query => ["List", "Describe"].iter().any(|verb| asked.operation.starts_with(verb)),
        _ => false,
    }
}

/// The names of the page parameters: the token and the size.
fn names(asked: &Asked) -> (&'static str, &'static str) {
    match (asked.protocol, asked.service.as_str()) {
        (Protocol::Ec2, _) => ("NextToken", "MaxResults"),
        (_, "iam") => ("Marker", "MaxItems"),
        _ => ("Marker", "MaxRecords"),
    }
}

/// The form to forward instead: it asks for everything.
pub(super) fn whole(asked: &Asked) -> Option<String> {
    if !is_paged(asked) {
        return None;
    }
    let (token, size) = names(asked);
    let fields = asked.params.iter().filter(|(key, _)| *key != token && *key != size);
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    if asked.service == "iam" {
        // moto pages IAM's lists by itself, 100 a page.
        form.append_pair(size, "1000");
    }
    Some(form.finish())
}

/// Cuts the page that was asked for out of the whole list.
pub(super) fn cut(asked: &Asked, root: &mut Element, page: usize) -> Option<Answer> {
    if !is_paged(asked) {
        return None;
    }
    let (token, size) = names(asked);
    let page =
        asked.params.get(size).and_then(|size| size.parse().ok()).map_or(page, |size: usize| size.min(page));
    let start = match asked.params.get(token) {
        None => 0,
        Some(given) => match given.strip_prefix("page-from-").and_then(|start| start.parse().ok()) {
            Some(start) => start,
            None => {
                return Some(Answer::error(asked, 400, "InvalidNextToken", "The token is not valid"));
            }
        },
    };
    // EC2's list is a child of the root, the others' one of the `…Result`.
    let holder = match asked.protocol {
        Protocol::Ec2 => root,
        _ => root.children_mut().next()?,
    };
    let list = holder.children_mut().find(|child| child.children().next().is_some())?;
    let total = list.children().count();
    let mut index = 0..;
    list.retain(|_| index.next().is_some_and(|index| (start..start + page).contains(&index)));
    let more = (start + page < total).then(|| format!("page-from-{}", start + page));
    write_token(asked, holder, more);
    None
}

fn write_token(asked: &Asked, holder: &mut Element, more: Option<String>) {
    let name = if asked.protocol == Protocol::Ec2 { "nextToken" } else { "Marker" };
    holder.retain(|child| child.name != name);
    if asked.service == "iam" {
        holder.set("IsTruncated", if more.is_some() { "true" } else { "false" });
    }
    if let Some(more) = more {
        holder.set(name, &more);
    }
}
