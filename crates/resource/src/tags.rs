//! Tags: whose they are, and the two by which ownership stands in AWS.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// Names the owner: `<cluster>/<namespace>/<Kind>/<name>`.
pub const OWNER_TAG: &str = "konfig.io/owner";
/// Holds the uid of the owning Kubernetes object.
pub const UID_TAG: &str = "konfig.io/uid";

/// AWS's limit on the length of a tag value.
const TAG_VALUE_LIMIT: usize = 256;

/// Who a resource belongs to, as written into AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The value of [`OWNER_TAG`].
    pub owner: String,
    /// The value of [`UID_TAG`].
    pub uid: String,
}

impl Ownership {
    /// The ownership of one object. An owner longer than a tag value ends in a hash instead.
    pub fn new(cluster: &str, namespace: &str, kind: &str, name: &str, uid: &str) -> Self {
        let owner = shorten(format!("{cluster}/{namespace}/{kind}/{name}"));
        Self { owner, uid: uid.to_owned() }
    }

    /// Both as tags.
    pub fn tags(&self) -> Tags {
        [(OWNER_TAG, &self.owner), (UID_TAG, &self.uid)]
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .into()
    }
}

/// The parts of an owner tag: cluster, namespace, kind, name. None where it was shortened or is
/// not of our making.
pub fn parse_owner(owner: &str) -> Option<[&str; 4]> {
    if owner.len() >= TAG_VALUE_LIMIT {
        return None;
    }
    // A cluster name may hold slashes of its own (an ARN); the other three cannot.
    let mut parts = owner.rsplitn(4, '/');
    let (name, kind, namespace, cluster) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some([cluster, namespace, kind, name])
}

/// Whether a tag key belongs to AWS or to this project and so never to a user's spec.
pub fn is_reserved(key: &str) -> bool {
    key.starts_with("aws:") || key == OWNER_TAG || key == UID_TAG
}

fn shorten(owner: String) -> String {
    if owner.len() < TAG_VALUE_LIMIT {
        return owner;
    }
    let hash = hex(&Sha256::digest(owner.as_bytes())[..16]);
    let mut keep = TAG_VALUE_LIMIT - hash.len() - 1;
    while !owner.is_char_boundary(keep) {
        keep -= 1;
    }
    // Exactly at the limit, so that `parse_owner` knows it for a shortened one; in characters that
    // every service takes in tags (IAM is the narrowest).
    format!("{}{}@{hash}", &owner[..keep], "_".repeat(TAG_VALUE_LIMIT - hash.len() - 1 - keep))
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_reads_back_as_its_parts() {
        let owner = Ownership::new("prod/eu", "shop", "VPC", "main", "1-2").owner;
        assert_eq!(parse_owner(&owner), Some(["prod/eu", "shop", "VPC", "main"]));
    }

    #[test]
    fn a_long_owner_is_shortened_to_the_limit_and_stays_distinct() {
        let long = "n".repeat(253);
        let a = Ownership::new("c", "ns", "VPC", &format!("{long}a"), "1").owner;
        let b = Ownership::new("c", "ns", "VPC", &format!("{long}b"), "1").owner;
        assert_eq!(a.len(), TAG_VALUE_LIMIT);
        assert_ne!(a, b);
        assert_eq!(parse_owner(&a), None);
        assert!(a.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:/=+-@".contains(&byte)), "{a}");
    }
}
