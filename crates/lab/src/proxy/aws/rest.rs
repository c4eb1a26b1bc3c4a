//! The names of operations that REST services only write as method and path.

use std::collections::BTreeMap;

use http::Method;

use super::s3;

/// The operation behind a method and a path, where the service is known here.
pub(super) fn operation(
    service: &str,
    method: &Method,
    path: &str,
    params: &BTreeMap<String, String>,
) -> Option<&'static str> {
    if service == "s3" {
        return s3::operation(method, path, params);
    }
    if service != "eks" {
        return None;
    }
    let known = EKS.iter().find(|(verb, pattern, _)| *verb == method.as_str() && fits(pattern, path));
    known.map(|(_, _, name)| *name)
}

/// What the path names first, as a parameter.
pub(super) fn subject<'a>(service: &str, path: &'a str) -> Option<(&'static str, &'a str)> {
    if service == "s3" {
        return Some(("Bucket", s3::bucket(path)?));
    }
    let rest = path.strip_prefix("/clusters/").filter(|_| service == "eks")?;
    Some(("name", rest.split('/').next()?))
}

/// `*` stands for one part of the path.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.trim_end_matches('/').split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
            _ => return false,
        }
    }
}

const EKS: [(&str, &str, &str); 36] = [
    ("POST", "/clusters", "CreateCluster"),
    ("GET", "/clusters", "ListClusters"),
    ("GET", "/clusters/*", "DescribeCluster"),
    ("DELETE", "/clusters/*", "DeleteCluster"),
    ("POST", "/clusters/*/updates", "UpdateClusterVersion"),
    ("GET", "/clusters/*/updates", "ListUpdates"),
    ("GET", "/clusters/*/updates/*", "DescribeUpdate"),
    ("POST", "/clusters/*/update-config", "UpdateClusterConfig"),
    ("POST", "/clusters/*/encryption-config/associate", "AssociateEncryptionConfig"),
    ("POST", "/clusters/*/node-groups", "CreateNodegroup"),
    ("GET", "/clusters/*/node-groups", "ListNodegroups"),
    ("GET", "/clusters/*/node-groups/*", "DescribeNodegroup"),
    ("DELETE", "/clusters/*/node-groups/*", "DeleteNodegroup"),
    ("POST", "/clusters/*/node-groups/*/update-config", "UpdateNodegroupConfig"),
    ("POST", "/clusters/*/node-groups/*/update-version", "UpdateNodegroupVersion"),
    ("POST", "/clusters/*/fargate-profiles", "CreateFargateProfile"),
    ("GET", "/clusters/*/fargate-profiles", "ListFargateProfiles"),
    ("GET", "/clusters/*/fargate-profiles/*", "DescribeFargateProfile"),
    ("DELETE", "/clusters/*/fargate-profiles/*", "DeleteFargateProfile"),
    ("POST", "/clusters/*/addons", "CreateAddon"),
    ("GET", "/clusters/*/addons", "ListAddons"),
    ("GET", "/clusters/*/addons/*", "DescribeAddon"),
    ("POST", "/clusters/*/addons/*/update", "UpdateAddon"),
    ("DELETE", "/clusters/*/addons/*", "DeleteAddon"),
    ("POST", "/clusters/*/access-entries", "CreateAccessEntry"),
    ("GET", "/clusters/*/access-entries", "ListAccessEntries"),
    ("GET", "/clusters/*/access-entries/*", "DescribeAccessEntry"),
    ("POST", "/clusters/*/access-entries/*", "UpdateAccessEntry"),
    ("DELETE", "/clusters/*/access-entries/*", "DeleteAccessEntry"),
    ("POST", "/clusters/*/pod-identity-associations", "CreatePodIdentityAssociation"),
    ("GET", "/clusters/*/pod-identity-associations", "ListPodIdentityAssociations"),
    ("GET", "/clusters/*/pod-identity-associations/*", "DescribePodIdentityAssociation"),
    ("DELETE", "/clusters/*/pod-identity-associations/*", "DeletePodIdentityAssociation"),
    ("GET", "/tags/*", "ListTagsForResource"),
    ("POST", "/tags/*", "TagResource"),
    ("DELETE", "/tags/*", "UntagResource"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_operations() {
        for (method, path, expected) in [
            ("POST", "/clusters", Some("CreateCluster")),
            ("GET", "/clusters/a", Some("DescribeCluster")),
            ("POST", "/clusters/a/updates", Some("UpdateClusterVersion")),
            ("GET", "/clusters/a/updates/u", Some("DescribeUpdate")),
            ("DELETE", "/tags/arn%3Aaws%3Aeks%3Aeu-west-1%3A1%3Acluster%2Fa", Some("UntagResource")),
            ("PUT", "/clusters/a", None),
            ("GET", "/clusters/a/b/c/d", None),
        ] {
            let found = operation("eks", &method.parse().unwrap(), path, &BTreeMap::new());
            assert_eq!(found, expected, "{method} {path}");
        }
        assert_eq!(operation("lambda", &Method::GET, "/clusters/a", &BTreeMap::new()), None);
        assert_eq!(subject("eks", "/clusters/a/updates"), Some(("name", "a")));
        assert_eq!((subject("eks", "/tags/a"), subject("s3", "/b/key")), (None, Some(("Bucket", "b"))));
    }
}
