use std::collections::BTreeSet;
use std::sync::Arc;
use aws::{Metrics, Options, Sessions};
use resource::*;
use resource::record::Made;
use serde_json::{Value, json};

struct Rig { kind: Arc<dyn Kind>, call: Call }

fn own(call: &Call, want: &Value) -> Value {
    let mut want = want.clone();
    for (k, v) in call.ownership.tags() { want["tags"][k] = json!(v); }
    want
}

impl Rig {
    async fn new() -> Self {
        let sessions = Sessions::new(Options { fence: Arc::new(|| Ok(())), metrics: Metrics::default() });
        let scope = sessions.own_scope().await.unwrap();
        let ownership = resource::tags::Ownership::new("lab", "ns", "S3Bucket", "b", "uid-1");
        let kind = s3::kinds(sessions)[0].clone();
        let mut call: Call = unsafe_call(scope, ownership);
        call.token = None;
        Self { kind, call }
    }
    fn with(&self, want: &Value, managed: &BTreeSet<String>) -> (Call, Value) {
        let canonical = self.kind.canonical(want.clone()).unwrap();
        let spec = own(&self.call, &canonical);
        let mut call = self.call.clone();
        call.spec = spec.clone();
        call.managed = managed.clone();
        call.tags = serde_json::from_value(spec["tags"].clone()).unwrap();
        (call, spec)
    }
    async fn make(&self, want: &Value) -> Option<Live> {
        let (call, spec) = self.with(want, &BTreeSet::new());
        println!("-- find"); 
        let found = self.kind.find(&call, Role::MAIN, Some(&spec)).await.unwrap();
        assert!(found.is_empty(), "{found:?}");
        println!("-- create"); 
        self.kind.create(&call, Role::MAIN, &spec, &Made::default()).await.unwrap().live
    }
    /// returns paths changed
    async fn sync(&self, want: &Value, managed: &mut BTreeSet<String>, known: Option<Live>) -> Result<(Vec<String>, Live)> {
        let (call, spec) = self.with(want, managed);
        let id = want["bucketName"].as_str().unwrap();
        let live = match known { Some(live) => live, None => match self.kind.observe(&call, Role::MAIN, id, Some(&spec)).await? {
            Observed::Live(live) => live, other => panic!("{other:?}") } };
        let d = diff::diff(self.kind.schema(), &spec, &live.spec, managed, &BTreeSet::new());
        assert!(d.forbidden.is_empty(), "{:?}", d.forbidden);
        if !d.changes.is_empty() {
            for change in d.changes.iter() { println!("   {}: {} -> {}", change.path, change.live, change.want); }
            self.kind.update(&call, id, &live, &d.target, &d.changes).await?;
        }
        *managed = diff::managed_paths(self.kind.schema(), &spec);
        Ok((d.changes.paths(), live))
    }
    async fn settled(&self, want: &Value, managed: &mut BTreeSet<String>) {
        let (again, live) = self.sync(want, managed, None).await.unwrap();
        assert!(again.is_empty(), "still differs: {again:?} {}", live.spec);
    }
}

fn unsafe_call(scope: Scope, ownership: resource::tags::Ownership) -> Call {
    Call { scope, ownership, token: None, request: None, attempted_since: None, tags: Tags::new(), spec: Value::Null,
           managed: BTreeSet::new(), secrets: Secrets::default() }
}

fn full(name: &str) -> Value {
    json!({
        "bucketName": name, "versioning": true,
        "serverSideEncryption": {"sseAlgorithm": "aws:kms", "kmsKeyId": "1234abcd-12ab-34cd-56ef-1234567890ab", "bucketKeyEnabled": true},
        "blockPublicAccess": {"blockPublicAcls": true, "blockPublicPolicy": false},
        "lifecycleRules": [
            {"id": "old", "status": "Enabled", "prefix": "logs/", "expirationDays": 30,
             "transitions": [{"days": 20, "storageClass": "GLACIER"}, {"days": 10, "storageClass": "GLACIER_IR"}]},
            {"expirationDate": "2030-01-31", "tags": {"a": "1", "b": "2"}},
            {"prefix": "x/", "tags": {"a": "1"}, "noncurrentVersionExpirationDays": 9, "newerNoncurrentVersions": 2,
             "noncurrentVersionTransitions": [{"days": 3, "storageClass": "GLACIER"}], "abortIncompleteMultipartUploadDays": 7}],
        "corsRules": [{"id": "web", "allowedMethods": ["PUT", "GET"], "allowedOrigins": ["https://x.example.com"], "allowedHeaders": ["*"], "exposeHeaders": ["ETag"], "maxAgeSeconds": 60},
                      {"allowedMethods": ["GET"], "allowedOrigins": ["*"]}],
        "notificationConfig": {"eventBridgeEnabled": true},
        "websiteConfig": {"indexDocument": "index.html", "errorDocument": "error.html",
            "routingRules": [{"condition": {"keyPrefixEquals": "a/"}, "redirect": {"replaceKeyPrefixWith": "b/", "httpRedirectCode": "302"}}]},
        "accelerateStatus": "Enabled",
        "objectLockConfig": {"objectLockEnabled": true, "rule": {"defaultRetention": {"mode": "GOVERNANCE", "days": 1}}},
        "loggingConfig": {"targetBucket": "logs-target", "targetPrefix": "p/"},
        "tags": {"team": "net", "a/b": "c"},
    })
}

#[tokio::test]
async fn life() {
    let _ = tracing_subscriber::fmt().with_env_filter("aws=debug").with_test_writer().without_time().try_init();
    let rig = Rig::new().await;
    // small
    println!("===== small");
    let small = json!({"bucketName": "small-one", "versioning": true, "tags": {"a": "b"}});
    let mut managed = BTreeSet::new();
    let live = rig.make(&small).await;
    rig.sync(&small, &mut managed, live).await.unwrap();
    println!("== settled check");
    rig.settled(&small, &mut managed).await;
    // target of logs
    let logs = json!({"bucketName": "logs-target"});
    rig.make(&logs).await;
    println!("===== full");
    let mut want = full("full-one");
    let mut managed = BTreeSet::new();
    let live = rig.make(&want).await;
    rig.sync(&want, &mut managed, live).await.unwrap();
    println!("== settled check");
    rig.settled(&want, &mut managed).await;
    println!("status {:?}", rig.sync(&want, &mut managed, None).await.unwrap().1.status);

    println!("===== removals");
    for field in ["serverSideEncryption", "blockPublicAccess", "lifecycleRules", "corsRules", "notificationConfig", "websiteConfig",
                  "accelerateStatus", "loggingConfig", "tags"] {
        println!("== remove {field}");
        want.as_object_mut().unwrap().remove(field);
        rig.sync(&want, &mut managed, None).await.unwrap();
        rig.settled(&want, &mut managed).await;
    }
    println!("== remove lock rule");
    want["objectLockConfig"].as_object_mut().unwrap().remove("rule");
    rig.sync(&want, &mut managed, None).await.unwrap();
    rig.settled(&want, &mut managed).await;
    println!("== lock off");
    let mut off = want.clone();
    off["objectLockConfig"] = json!({"objectLockEnabled": false});
    println!("{}", rig.sync(&off, &mut managed, None).await.unwrap_err());

    println!("== missing target + cors");
    let mut bad = want.clone();
    bad["notificationConfig"] = json!({"queueConfigurations": [{"queueARN": "arn:aws:sqs:eu-west-1:000000000000:nope", "events": ["s3:ObjectCreated:*"], "filterPrefix": "in/"}]});
    bad["corsRules"] = json!([{"allowedMethods": ["GET"], "allowedOrigins": ["*"]}]);
    let result = rig.sync(&bad, &mut managed, None).await;
    println!("{:?}", result.as_ref().map(|r| &r.0).map_err(|e| (e.class, e.to_string())));
    println!("cors now: {:?}", rig.sync(&bad, &mut managed, None).await.map(|r| r.0).map_err(|e| e.to_string()));

    println!("== elsewhere");
    let far = json!({"bucketName": "far-one", "region": "ap-south-1", "websiteConfig": {"redirectAllTo": {"hostName": "x.example.com"}}});
    let live = rig.make(&far).await;
    let mut managed2 = BTreeSet::new();
    rig.sync(&far, &mut managed2, live).await.unwrap();
    rig.settled(&far, &mut managed2).await;
    let mut near = far.clone();
    near.as_object_mut().unwrap().remove("region");
    println!("{:?}", rig.sync(&near, &mut managed2, None).await.map(|r| r.0).map_err(|e| (e.class, e.to_string())));

    println!("== us-east-1");
    let first = json!({"bucketName": "first-one", "region": "us-east-1", "versioning": true, "tags": {"x": "y"}});
    let live = rig.make(&first).await;
    assert!(live.is_none());
    let mut managed3 = BTreeSet::new();
    rig.sync(&first, &mut managed3, live).await.unwrap();
    rig.settled(&first, &mut managed3).await;

    println!("== again / others");
    let (call, spec) = rig.with(&small, &BTreeSet::new());
    println!("{:?}", rig.kind.create(&call, Role::MAIN, &spec, &Made::default()).await.map(|_| ()).map_err(|e| (e.class, e.to_string())));
    println!("{:?}", rig.kind.find(&call, Role::MAIN, Some(&spec)).await);
    println!("== delete");
    for (name, want) in [("small-one", &small), ("far-one", &far), ("first-one", &first)] {
        let (call, _) = rig.with(want, &BTreeSet::new());
        let Observed::Live(live) = rig.kind.observe(&call, Role::MAIN, name, None).await.unwrap() else { panic!() };
        println!("{:?}", rig.kind.delete(&call, Role::MAIN, name, &live).await);
        println!("{:?}", rig.kind.observe(&call, Role::MAIN, name, None).await);
        println!("{:?}", rig.kind.find(&call, Role::MAIN, Some(&call.spec)).await);
    }
    println!("== untag full");
    let (call, _) = rig.with(&want, &managed);
    rig.kind.untag(&call, Role::MAIN, "full-one", &["konfig.io/uid".into(), "konfig.io/owner".into()]).await.unwrap();
    println!("{:?}", rig.kind.find(&call, Role::MAIN, Some(&call.spec)).await);
}
