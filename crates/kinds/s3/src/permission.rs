//! IAM's names for S3's operations, which differ in many:
//! <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html>.

/// Operations that IAM knows under another name, and that name.
const RENAMED: &[(&str, &str)] = &[
    ("DeleteBucketCors", "PutBucketCORS"),
    ("DeleteBucketLifecycle", "PutLifecycleConfiguration"),
    ("DeleteBucketTagging", "PutBucketTagging"),
    ("GetBucketAccelerateConfiguration", "GetAccelerateConfiguration"),
    ("GetBucketCors", "GetBucketCORS"),
    ("GetBucketEncryption", "GetEncryptionConfiguration"),
    ("GetBucketLifecycleConfiguration", "GetLifecycleConfiguration"),
    ("GetBucketNotificationConfiguration", "GetBucketNotification"),
    ("GetObjectLockConfiguration", "GetBucketObjectLockConfiguration"),
    ("GetPublicAccessBlock", "GetBucketPublicAccessBlock"),
    ("ListBuckets", "ListAllMyBuckets"),
    ("PutBucketAccelerateConfiguration", "PutAccelerateConfiguration"),
    ("PutBucketCors", "PutBucketCORS"),
    ("PutBucketEncryption", "PutEncryptionConfiguration"),
    ("PutBucketLifecycleConfiguration", "PutLifecycleConfiguration"),
    ("PutBucketNotificationConfiguration", "PutBucketNotification"),
    ("PutObjectLockConfiguration", "PutBucketObjectLockConfiguration"),
    ("PutPublicAccessBlock", "PutBucketPublicAccessBlock"),
];

/// The permission that an operation needs.
pub(crate) fn permission(operation: &str) -> String {
    let renamed = RENAMED.iter().find(|(named, _)| *named == operation);
    format!("s3:{}", renamed.map_or(operation, |(_, action)| action))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The operations that the source calls: those on a bucket by `ask!`, and the two others.
    fn called() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bucket");
        let mut called: BTreeSet<_> = ["CreateBucket", "ListBuckets"].map(str::to_owned).into();
        for file in std::fs::read_dir(folder).unwrap() {
            let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let calls = source.split("ask!(bucket, ").skip(1);
            called.extend(calls.map(|call| camel(call.split([',', ')']).next().unwrap())));
        }
        called
    }

    fn camel(operation: &str) -> String {
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        operation.split('_').map(capital).collect()
    }

    #[test]
    fn the_permissions_asked_for_are_those_of_the_calls() {
        let needed: BTreeSet<_> = called().iter().map(|operation| permission(operation)).collect();
        let meta = <crate::bucket::S3Bucket as resource::Resource>::META;
        let mut stated: BTreeSet<_> = meta.permissions.iter().map(|action| (*action).to_owned()).collect();
        // CreateBucket needs it where it carries tags.
        assert!(stated.remove("s3:TagResource"));
        assert_eq!(needed, stated);
    }

    #[test]
    fn every_renamed_operation_is_one_that_is_called() {
        let called = called();
        let unknown: Vec<_> = RENAMED.iter().filter(|(operation, _)| !called.contains(*operation)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
