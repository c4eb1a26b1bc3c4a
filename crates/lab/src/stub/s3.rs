//! S3's buckets, with their tags and versioning.

use std::collections::BTreeMap;

use super::ACCOUNT;
use super::params::Tags;
use super::refusal::Refusal;
use crate::proxy::aws::asked::Asked;
use crate::proxy::aws::xml::Element;

const OWNER: &str = "x-amz-expected-bucket-owner";
/// The region that answers success to a second CreateBucket of the owner's.
const FIRST_REGION: &str = "us-east-1";

#[derive(Default)]
pub(super) struct S3 {
    buckets: BTreeMap<String, Bucket>,
}

#[derive(Default)]
struct Bucket {
    tags: Tags,
    /// None of a bucket that never had it.
    versioning: Option<String>,
}

impl S3 {
    /// Some answers have no body.
    pub fn answer(&mut self, asked: &Asked) -> Result<Option<Element>, Refusal> {
        let expected = asked.parts.headers.get(OWNER);
        if expected.is_some_and(|owner| owner != ACCOUNT) {
            return Err(Refusal::with(403, "AccessDenied", "Access Denied"));
        }
        let name = asked.params.get("Bucket").map(String::as_str).unwrap_or_default();
        let body = || std::str::from_utf8(&asked.body).ok().and_then(Element::parse);
        let malformed = || Refusal::new("MalformedXML", "The XML you provided was not well-formed");
        match asked.operation.as_str() {
            "ListBuckets" => return Ok(Some(self.list())),
            "CreateBucket" => self.create(asked, name, body().as_ref())?,
            "HeadBucket" => drop(self.bucket(name)?),
            "DeleteBucket" => {
                self.bucket(name)?;
                self.buckets.remove(name);
            }
            "GetBucketTagging" => return self.tagging(name).map(Some),
            "PutBucketTagging" => self.bucket(name)?.tags = tags(&body().ok_or_else(malformed)?, "TagSet"),
            "DeleteBucketTagging" => self.bucket(name)?.tags.clear(),
            "GetBucketVersioning" => {
                let status = self.bucket(name)?.versioning.clone();
                let mut root = Element::new("VersioningConfiguration");
                status.iter().for_each(|status| root.set("Status", status));
                return Ok(Some(root));
            }
            "PutBucketVersioning" => {
                let status = body().and_then(|root| root.child_text("Status")).ok_or_else(malformed)?;
                self.bucket(name)?.versioning = Some(status);
            }
            other => return Err(Refusal::unknown(other)),
        }
        Ok(None)
    }

    fn bucket(&mut self, name: &str) -> Result<&mut Bucket, Refusal> {
        let missing = || Refusal::with(404, "NoSuchBucket", "The specified bucket does not exist");
        self.buckets.get_mut(name).ok_or_else(missing)
    }

    fn create(&mut self, asked: &Asked, name: &str, body: Option<&Element>) -> Result<(), Refusal> {
        if self.buckets.contains_key(name) {
            if asked.region == FIRST_REGION {
                return Ok(());
            }
            let message =
                "Your previous request to create the named bucket succeeded and you already own it.";
            return Err(Refusal::with(409, "BucketAlreadyOwnedByYou", message));
        }
        let tags = body.map(|body| tags(body, "Tags")).unwrap_or_default();
        self.buckets.insert(name.to_owned(), Bucket { tags, versioning: None });
        Ok(())
    }

    fn tagging(&mut self, name: &str) -> Result<Element, Refusal> {
        let tags = &self.bucket(name)?.tags;
        if tags.is_empty() {
            return Err(Refusal::with(404, "NoSuchTagSet", "The TagSet does not exist"));
        }
        let mut set = Element::new("TagSet");
        for (key, value) in tags {
            let mut tag = Element::new("Tag");
            tag.set("Key", key);
            tag.set("Value", value);
            set.push(tag);
        }
        let mut root = Element::new("Tagging");
        root.push(set);
        Ok(root)
    }

    fn list(&self) -> Element {
        let mut buckets = Element::new("Buckets");
        for name in self.buckets.keys() {
            let mut bucket = Element::new("Bucket");
            bucket.set("Name", name);
            buckets.push(bucket);
        }
        let mut root = Element::new("ListAllMyBucketsResult");
        root.push(buckets);
        root
    }
}

/// The tags in a list of that name.
fn tags(root: &Element, list: &str) -> Tags {
    let tag = |tag: &Element| Some((tag.child_text("Key")?, tag.child_text("Value")?));
    root.child(list).into_iter().flat_map(Element::children).filter_map(tag).collect()
}
