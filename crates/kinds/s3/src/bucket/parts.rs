//! The sub-resources of a bucket: one list, and how they are read and written.

use async_trait::async_trait;
use resource::{Call, Changes, Class, Error, Result};
use serde_json::{Map, Value, json};

use super::access::Bucket;
use super::{Spec, accelerate, cors, encryption, lifecycle, logging, notification, object_lock};
use super::{public_access_block, tags, versioning, website};

/// One sub-resource of a bucket, with read and write calls of its own.
#[async_trait]
pub(super) trait Part: Sync {
    /// Its field in the spec.
    fn field(&self) -> &'static str;
    /// Enters into `live` what AWS has of it, in the terms of what is `wanted` where that means the
    /// same.
    async fn read(&self, bucket: &Bucket, wanted: &Spec, live: &mut Spec) -> Result<()>;
    /// Makes it what `after` says, wholly: AWS replaces the whole sub-resource.
    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()>;
}

/// All of them, in the order in which they are written: Object Lock needs versioning.
const PARTS: &[&dyn Part] = &[
    &versioning::Part,
    &encryption::Part,
    &public_access_block::Part,
    &object_lock::Part,
    &lifecycle::Part,
    &cors::Part,
    &notification::Part,
    &website::Part,
    &accelerate::Part,
    &logging::Part,
    &tags::Part,
];

/// Reads what the spec sets, or set at the last sync; the tags are read already. What the
/// credentials may not read holds up only itself: its field is returned, and in `live` it differs from
/// what is wanted, so that the update comes by and says why it can't be made.
pub(super) async fn read(
    bucket: &Bucket,
    call: &Call,
    wanted: &Spec,
    live: &mut Spec,
) -> Result<Vec<String>> {
    let mut unread = Vec::new();
    let set = json!(wanted);
    for part in PARTS.iter().filter(|part| part.field() != tags::FIELD) {
        if set.get(part.field()).is_none() && !call.manages(part.field()) {
            continue;
        }
        match part.read(bucket, wanted, live).await {
            Err(error) if error.class == Class::Denied => {
                stand_in(part.field(), live)?;
                unread.push(part.field().to_owned());
            }
            read => read?,
        }
    }
    Ok(unread)
}

/// Puts something into `live` for a part that may not be read. Where nothing is wanted in its place, its
/// removal would pass for done.
fn stand_in(field: &str, live: &mut Spec) -> Result<()> {
    let something = json!({
        "serverSideEncryption": {"kmsKeyId": "?"},
        "lifecycleRules": [{}],
        "corsRules": [{"allowedMethods": [], "allowedOrigins": []}],
        "notificationConfig": {
            "lambdaFunctionConfigurations": [{"lambdaFunctionARN": "", "events": []}],
            "queueConfigurations": [{"queueARN": "", "events": []}],
            "topicConfigurations": [{"topicARN": "", "events": []}],
        },
        "websiteConfig": {
            "indexDocument": "?", "errorDocument": "?", "routingRules": [{"redirect": {}}],
            "redirectAllTo": {"hostName": "?", "protocol": "?"},
        },
        "objectLockConfig": {"rule": {"defaultRetention": {"mode": "?", "days": -1, "years": -1}}},
        "loggingConfig": {"targetBucket": "?", "targetPrefix": "?"},
    });
    let mut spec = json!(live);
    if let Some(something) = something.get(field) {
        spec[field] = something.clone();
    }
    *live = serde_json::from_value(spec).map_err(|error| Error::invalid("spec", error.to_string()))?;
    Ok(())
}

/// Tries every part that differs, whatever becomes of the others. What could not be read before is
/// read first.
pub(super) async fn write(
    bucket: &Bucket,
    live: &Spec,
    unread: &[String],
    target: &Spec,
    changes: &Changes,
) -> Result<()> {
    let (mut live, mut failures) = (live.clone(), Vec::new());
    let mut parts: Vec<_> = PARTS.iter().filter(|part| changes.touch(part.field())).collect();
    for part in parts.iter().filter(|part| unread.iter().any(|field| field == part.field())) {
        if let Err(error) = part.read(bucket, target, &mut live).await {
            failures.push((part.field(), error));
        }
    }
    parts.retain(|part| failures.iter().all(|(field, _)| *field != part.field()));
    let after = changed(&live, changes)?;
    for part in parts {
        if let Err(error) = part.write(bucket, &after).await {
            failures.push((part.field(), error));
        }
    }
    joined(failures)
}

/// What is live, with the changes made.
fn changed(live: &Spec, changes: &Changes) -> Result<Spec> {
    let mut spec = json!(live);
    for change in changes.iter() {
        put(&mut spec, &change.path, &change.want);
    }
    serde_json::from_value(spec).map_err(|error| Error::invalid("spec", error.to_string()))
}

/// Puts a value where the pointer leads; null takes away what is there.
fn put(spec: &mut Value, path: &str, want: &Value) {
    let mut fields =
        path.split('/').skip(1).map(|field| field.replace("~1", "/").replace("~0", "~")).peekable();
    let mut at = spec;
    while let Some(field) = fields.next() {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(object) = at.as_object_mut() else { return };
        if want.is_null() && fields.peek().is_none() {
            object.remove(&field);
            return;
        }
        at = object.entry(field).or_insert(Value::Null);
    }
    *at = want.clone();
}

/// One error that names each part that failed.
fn joined(mut failures: Vec<(&'static str, Error)>) -> Result<()> {
    // What a person must see to decides how the whole is shown.
    failures.sort_by_key(|(_, error)| error.class.heals_by_itself());
    let mut errors = failures
        .into_iter()
        .map(|(field, error)| Error { operation: format!("{field}: {}", error.operation), ..error });
    let Some(mut first) = errors.next() else { return Ok(()) };
    for other in errors {
        let code = if other.code.is_empty() { String::new() } else { format!("{}: ", other.code) };
        first.message += &format!("; {}: {code}{}", other.operation, other.message);
        if !other.request_id.is_empty() {
            let before = std::mem::take(&mut first.request_id);
            first.request_id =
                if before.is_empty() { other.request_id } else { before + ", " + &other.request_id };
        }
    }
    Err(first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;

    fn spec(value: Value) -> Spec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_whole_part_is_written_and_only_what_differs_is_changed_in_it() {
        let live = json!({
            "bucketName": "pictures",
            "corsRules": [{"allowedMethods": ["GET"], "allowedOrigins": ["*"]}],
            "websiteConfig": {"indexDocument": "index.html", "errorDocument": "error.html"},
            "blockPublicAccess": {"blockPublicAcls": false, "blockPublicPolicy": true},
            "tags": {"team": "old", "a/b": "gone", "aws:cloudformation:stack-name": "theirs"},
        });
        let want = json!({
            "bucketName": "pictures",
            "websiteConfig": {"indexDocument": "index.html"},
            "blockPublicAccess": {"blockPublicAcls": true},
            "loggingConfig": {"targetBucket": "logs"},
            "tags": {"team": "new"},
        });
        let schema = resource::schema_of::<Spec>();
        let managed: BTreeSet<_> =
            ["/corsRules", "/websiteConfig/errorDocument", "/tags/a~1b"].map(str::to_owned).into();
        let difference = resource::diff::diff(&schema, &want, &live, &managed, &BTreeSet::new());
        let after = changed(&spec(live), &difference.changes).unwrap();
        assert_eq!(
            json!(after),
            json!({
                "bucketName": "pictures",
                "corsRules": [],
                "websiteConfig": {"indexDocument": "index.html"},
                "blockPublicAccess": {"blockPublicAcls": true, "blockPublicPolicy": true},
                "loggingConfig": {"targetBucket": "logs"},
                "tags": {"team": "new", "aws:cloudformation:stack-name": "theirs"},
            })
        );
    }

    #[test]
    fn each_part_that_failed_is_named_and_what_needs_a_person_comes_first() {
        let error = |class, operation: &str, request_id: &str| Error {
            code: "Code".to_owned(),
            request_id: request_id.to_owned(),
            ..Error::new(class, operation, "words")
        };
        assert!(joined(Vec::new()).is_ok());
        let failures = vec![
            ("notificationConfig", error(Class::Dependency, "PutBucketNotificationConfiguration", "R1")),
            ("corsRules", error(Class::Denied, "PutBucketCors", "R2")),
        ];
        let joined = joined(failures).unwrap_err();
        assert_eq!(joined.class, Class::Denied);
        assert_eq!(
            joined.to_string(),
            "corsRules: PutBucketCors: Code: words; notificationConfig: \
             PutBucketNotificationConfiguration: Code: words (request id R2, R1)"
        );
    }

    /// The paths of all values that a part can hold.
    fn leaves(schema: &Value, path: &str) -> BTreeSet<String> {
        let fields: Vec<_> = resource::schema::properties(schema).collect();
        if fields.is_empty() {
            return [path.to_owned()].into();
        }
        fields.iter().flat_map(|(field, part)| leaves(part, &format!("{path}/{field}"))).collect()
    }

    #[test]
    fn the_removal_of_what_may_not_be_read_is_not_taken_for_done() {
        let schema = resource::schema_of::<Spec>();
        let (bare, none) = (json!({"bucketName": "pictures"}), BTreeSet::new());
        for part in PARTS.iter().filter(|part| part.field() != tags::FIELD) {
            let field = part.field();
            let mut live = spec(bare.clone());
            stand_in(field, &mut live).unwrap();
            // Whichever of its values was the only one that was set.
            for path in leaves(&schema["properties"][field], &format!("/{field}")) {
                let managed = [path.clone()].into();
                let held = resource::diff::diff(&schema, &bare, &json!(live), &managed, &none);
                assert!(held.changes.touch(field) || leaves_it(&schema, &path), "{path}");
            }
        }
    }

    /// Whether a value, taken out of the spec, stays in AWS as it is.
    fn leaves_it(schema: &Value, path: &str) -> bool {
        let place = path.split('/').skip(1).map(|field| format!("/properties/{field}")).collect::<String>();
        let part = schema.pointer(&place).unwrap();
        !resource::schema::is(part, resource::schema::CLEARABLE)
            && part.get(resource::schema::DEFAULT).is_none()
    }

    #[test]
    fn every_part_has_a_field_and_each_only_once() {
        let schema = resource::schema_of::<Spec>();
        let fields: BTreeSet<_> = PARTS.iter().map(|part| part.field().to_owned()).collect();
        assert_eq!(fields.len(), PARTS.len());
        let mut all: BTreeSet<_> =
            resource::schema::properties(&schema).map(|(field, _)| field.clone()).collect();
        all.remove("bucketName");
        all.remove("region");
        assert_eq!(fields, all);
    }
}
