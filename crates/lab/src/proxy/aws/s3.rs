//! The names of S3's operations on buckets: a method, and a word in the query.

use std::collections::BTreeMap;

use http::Method;

/// The operation behind a call on a bucket, or on all of them.
pub(super) fn operation(
    method: &Method,
    path: &str,
    params: &BTreeMap<String, String>,
) -> Option<&'static str> {
    let bucket = path.trim_matches('/');
    if bucket.contains('/') {
        return None;
    }
    if bucket.is_empty() {
        return (method == Method::GET).then_some("ListBuckets");
    }
    let part = PARTS.iter().find(|(word, ..)| params.contains_key(*word));
    let (_, get, put, delete) = part.unwrap_or(&BUCKET);
    let name = match method.as_str() {
        "GET" => get,
        "PUT" => put,
        "DELETE" => delete,
        "HEAD" if part.is_none() => "HeadBucket",
        _ => "",
    };
    Some(name).filter(|name| !name.is_empty())
}

/// The bucket that the path names.
pub(super) fn bucket(path: &str) -> Option<&str> {
    path.trim_start_matches('/').split('/').next().filter(|name| !name.is_empty())
}

/// A word, and what GET, PUT and DELETE with it are called.
type Part = (&'static str, &'static str, &'static str, &'static str);

const BUCKET: Part = ("", "ListObjects", "CreateBucket", "DeleteBucket");

const PARTS: [Part; 14] = [
    ("tagging", "GetBucketTagging", "PutBucketTagging", "DeleteBucketTagging"),
    ("versioning", "GetBucketVersioning", "PutBucketVersioning", ""),
    ("encryption", "GetBucketEncryption", "PutBucketEncryption", "DeleteBucketEncryption"),
    ("publicAccessBlock", "GetPublicAccessBlock", "PutPublicAccessBlock", "DeletePublicAccessBlock"),
    (
        "lifecycle",
        "GetBucketLifecycleConfiguration",
        "PutBucketLifecycleConfiguration",
        "DeleteBucketLifecycle",
    ),
    ("cors", "GetBucketCors", "PutBucketCors", "DeleteBucketCors"),
    ("notification", "GetBucketNotificationConfiguration", "PutBucketNotificationConfiguration", ""),
    ("website", "GetBucketWebsite", "PutBucketWebsite", "DeleteBucketWebsite"),
    ("accelerate", "GetBucketAccelerateConfiguration", "PutBucketAccelerateConfiguration", ""),
    ("object-lock", "GetObjectLockConfiguration", "PutObjectLockConfiguration", ""),
    ("logging", "GetBucketLogging", "PutBucketLogging", ""),
    ("policy", "GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"),
    ("location", "GetBucketLocation", "", ""),
    ("list-type", "ListObjectsV2", "", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_path_and_query_read_as_operations() {
        for (method, path, word, expected) in [
            ("GET", "/", "", Some("ListBuckets")),
            ("PUT", "/b", "", Some("CreateBucket")),
            ("DELETE", "/b/", "", Some("DeleteBucket")),
            ("HEAD", "/b", "", Some("HeadBucket")),
            ("GET", "/b/", "tagging", Some("GetBucketTagging")),
            ("PUT", "/b", "object-lock", Some("PutObjectLockConfiguration")),
            ("DELETE", "/b", "lifecycle", Some("DeleteBucketLifecycle")),
            ("DELETE", "/b", "logging", None),
            ("PUT", "/b/key", "tagging", None),
        ] {
            let params = [(word.to_owned(), String::new())].into();
            let found = operation(&method.parse().unwrap(), path, &params);
            assert_eq!(found, expected, "{method} {path}?{word}");
        }
        assert_eq!((bucket("/b/key"), bucket("/")), (Some("b"), None));
    }
}
