//! The names of S3's operations on buckets: a method, and a word in the query.

use std::collections::BTreeMap;

use http::Method;

use super::super::core::Cut;
use super::answer::Answer;
use super::asked::Asked;
use super::serve::World;
use super::xml::Element;

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

/// A new bucket bears the tags of its create call; moto leaves them out.
pub(super) async fn tag(world: &World, asked: &Asked) -> Result<(), Cut> {
    if asked.operation != "CreateBucket" {
        return Ok(());
    }
    let wish = std::str::from_utf8(&asked.body).ok().and_then(Element::parse);
    let Some(mut tags) = wish.as_ref().and_then(|wish| wish.find("Tags")).cloned() else {
        return Ok(());
    };
    let path = format!("{}?tagging", asked.parts.uri.path());
    // Some it has already: it was there before, which us-east-1 answers with success, or the emulator keeps them.
    if world.ask_rest(asked, Method::GET, &path).await?.is_success() {
        return Ok(());
    }
    tags.name = "TagSet".to_owned();
    let mut tagging = Element::new("Tagging");
    tagging.push(tags);
    world.put_rest(asked, &path, tagging.document()).await.map(drop)
}

/// AWS's root element, which its SDKs look at; moto has a name of its own.
pub(super) fn mend(asked: &Asked, answer: &mut Answer) {
    if asked.operation == "GetBucketVersioning"
        && let Some(mut root) = answer.xml().filter(|_| answer.is_success())
    {
        root.name = "VersioningConfiguration".to_owned();
        answer.put(&root);
    }
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
