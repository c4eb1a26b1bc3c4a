#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
use resource::record::*;
use resource::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn prep(which: &str) -> Value {
    let all: Value =
        serde_json::from_str(&std::fs::read_to_string("/work/cp/rds/prep.json").unwrap()).unwrap();
    all[which].clone()
}

struct Bench {
    kind: Arc<dyn Kind>,
    call: Call,
    want: Value,
}

impl Bench {
    fn new(kind: &str, name: &str, spec: Value) -> Self {
        let mut registry = prometheus_client::registry::Registry::default();
        let sessions = aws::Sessions::new(aws::Options {
            fence: Arc::new(|| Ok(())),
            metrics: aws::Metrics::register(&mut registry),
        });
        let kind = rds::kinds(sessions).into_iter().find(|k| k.meta().kind == kind).unwrap();
        let ownership = tags::Ownership::new(
            "lab",
            "default",
            kind.meta().kind,
            name,
            "0b7c3c1e-1111-2222-3333-444455556666",
        );
        let mut secrets = Secrets::default();
        secrets.insert("/masterUserPasswordRef".into(), Secret::new("correct-horse-1"));
        let call = Call {
            scope: Scope {
                provider: String::new(),
                account_id: "000000000000".into(),
                region: "eu-west-1".into(),
                partition: "aws".into(),
            },
            ownership,
            token: None,
            tags: Tags::new(),
            spec: Value::Null,
            secrets,
        };
        let mut b = Self { kind, call, want: Value::Null };
        b.want(spec);
        b
    }
    fn want(&mut self, spec: Value) {
        let mut want = self.kind.canonical(spec).unwrap();
        let mut tags: serde_json::Map<String, Value> =
            want.get("tags").and_then(Value::as_object).cloned().unwrap_or_default();
        for (k, v) in self.call.ownership.tags() {
            tags.insert(k, json!(v));
        }
        want["tags"] = json!(tags);
        self.call.tags = serde_json::from_value(want["tags"].clone()).unwrap();
        self.call.spec = want.clone();
        self.want = want;
    }
    async fn observe(&self, id: &str) -> Option<Live> {
        match self.kind.observe(&self.call, Role::MAIN, id, Some(&self.want)).await.unwrap() {
            Observed::Live(l) => Some(l),
            Observed::Absent => None,
        }
    }
    fn diff(&self, live: &Live, managed: &BTreeSet<String>) -> diff::Difference {
        diff::diff(self.kind.schema(), &self.want, &live.spec, managed, &BTreeSet::new())
    }
    async fn create(&self) -> String {
        let c = self.kind.create(&self.call, Role::MAIN, &self.want, &Made::default()).await.unwrap();
        println!("created {} phase {:?}", c.id, c.live.as_ref().map(|l| &l.phase));
        if let Some(l) = &c.live {
            let d = self.diff(l, &BTreeSet::new());
            println!("  diff of answer: {:?} forbidden {:?}", d.changes.paths(), d.forbidden);
        }
        c.id
    }
    async fn settle(&self, id: &str) -> Live {
        for _ in 0..40 {
            let l = self.observe(id).await.unwrap();
            if !matches!(l.phase, Phase::Busy(_)) {
                return l;
            }
            println!("  {:?}", l.phase);
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
        panic!("busy")
    }
    async fn step(&mut self, id: &str, spec: Value, managed: &BTreeSet<String>) {
        let mut all = self.want.clone();
        all.as_object_mut().unwrap().remove("tags");
        for (k, v) in spec.as_object().unwrap() {
            if v.is_null() {
                all.as_object_mut().unwrap().remove(k);
            } else {
                all[k] = v.clone();
            }
        }
        self.want(all);
        let live = self.observe(id).await.unwrap();
        let d = self.diff(&live, managed);
        println!(
            "step {spec}: changes {:?} forbidden {:?}",
            d.changes.paths(),
            d.forbidden.iter().map(|c| c.path.clone()).collect::<Vec<_>>()
        );
        if !d.changes.is_empty() {
            let r = self.kind.update(&self.call, id, &live, &d.target, &d.changes).await;
            println!("  update -> {r:?}");
        }
        let live = self.settle(id).await;
        let d = self.diff(&live, managed);
        println!(
            "  after: left {:?} status {}",
            d.changes
                .iter()
                .map(|c| format!("{} want {} live {}", c.path, c.want, c.live))
                .collect::<Vec<_>>(),
            live.status
        );
    }
    async fn delete(&self, id: &str) -> Result<Progress> {
        let live = self.observe(id).await.unwrap();
        self.kind.delete(&self.call, Role::MAIN, id, &live).await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore]
async fn mini() {
    let p = prep("mini");
    let s = |i: usize| json!({"id": p["subnets"][i]});
    let mut g = Bench::new(
        "DBSubnetGroup",
        "main",
        json!({"dbSubnetGroupName": "Main", "description": "databases", "subnetRefs": [s(0), s(1)], "tags": {"team": "data"}}),
    );
    println!("find {:?}", g.kind.find(&g.call, Role::MAIN, Some(&g.want)).await.unwrap());
    println!("observe {:?}", g.observe("main").await.map(|l| l.status));
    let gid = g.create().await;
    let managed: BTreeSet<String> = ["/tags/team".to_owned()].into();
    println!("find {:?}", g.kind.find(&g.call, Role::MAIN, Some(&g.want)).await.unwrap());
    g.step(&gid, json!({}), &managed).await;
    g.step(&gid, json!({"description": "changed", "subnetRefs": [s(1), s(2)]}), &managed).await;
    g.step(&gid, json!({"tags": {"stage": "test"}}), &managed).await;
    println!(
        "again: {:?}",
        g.kind
            .create(&g.call, Role::MAIN, &g.want, &Made::default())
            .await
            .map_err(|e| (e.class, e.to_string()))
            .err()
    );

    let mut d = Bench::new(
        "DBInstance",
        "orders",
        json!({
        "dbInstanceIdentifier": "Orders", "dbInstanceClass": "db.t4g.micro", "engine": "postgres", "engineVersion": "16",
        "masterUsername": "orders", "masterUserPasswordRef": {"name": "x", "key": "y"}, "allocatedStorage": 20, "dbName": "orders",
        "dbSubnetGroupRef": "Main", "port": 15432, "multiAZ": false, "vpcSecurityGroupRefs": [{"id": p["group"]}], "backupRetentionPeriod": 3,
        "preferredMaintenanceWindow": "Sun:05:00-Sun:06:00", "preferredBackupWindow": "03:00-04:00", "storageType": "gp3", "maxAllocatedStorage": 100,
        "storageEncrypted": true, "publiclyAccessible": false, "autoMinorVersionUpgrade": true, "copyTagsToSnapshot": true, "enableIAMDatabaseAuthentication": true,
        "enablePerformanceInsights": true, "performanceInsightsRetentionPeriod": 7,"enabledCloudwatchLogsExports": ["postgresql"], "deletionProtection": true, "tags": {"team": "data"}}),
    );
    println!("find {:?}", d.kind.find(&d.call, Role::MAIN, Some(&d.want)).await.unwrap());
    println!("observe {:?}", d.observe("orders").await.map(|l| l.status));
    let id = d.create().await;
    let live = d.settle(&id).await;
    println!("live {} tags {:?}", live.spec, live.tags);
    let managed = diff::managed_paths(d.kind.schema(), &d.want);
    d.step(&id, json!({}), &managed).await;
    d.step(&id, json!({"dbInstanceClass": "db.t4g.small"}), &managed).await;
    d.step(&id, json!({}), &managed).await;
    d.step(&id, json!({"tags": {"stage": "test"}}), &managed).await;
    d.step(
        &id,
        json!({"backupRetentionPeriod": 5, "applyImmediately": true, "preferredBackupWindow": "04:00-05:00"}),
        &managed,
    )
    .await;
    d.step(&id, json!({"applyImmediately": null, "allocatedStorage": 10}), &managed).await;
    d.step(&id, json!({"allocatedStorage": 20, "engineVersion": "17"}), &managed).await;
    d.step(&id, json!({"engineVersion": "15"}), &managed).await;
    d.step(&id, json!({"engineVersion": "16", "maxAllocatedStorage": null}), &managed).await;
    d.step(&id, json!({"enabledCloudwatchLogsExports": ["upgrade"], "enableIAMDatabaseAuthentication": null, "monitoringInterval": 60, "monitoringRoleArn": "arn:aws:iam::000000000000:role/m"}), &managed).await;
    let live = d.observe(&id).await.unwrap();
    let r = d
        .kind
        .update(&d.call, &id, &live, &d.want, &Changes::of_secrets(["/masterUserPasswordRef".to_owned()]))
        .await;
    println!("rotate {r:?}");
    d.settle(&id).await;
    println!("delete protected: {:?}", d.delete(&id).await.map_err(|e| (e.class, e.to_string())));
    println!("group in use: {:?}", g.delete(&gid).await.map_err(|e| (e.class, e.to_string())));
    d.step(&id, json!({"deletionProtection": false}), &managed).await;
    println!("delete: {:?}", d.delete(&id).await.map_err(|e| (e.class, e.to_string())));
    for _ in 0..20 {
        match d.observe(&id).await {
            None => {
                println!("gone");
                break;
            }
            Some(l) => println!("{:?}", l.phase),
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    // a second one with the same uid: the snapshot's name is taken
    d.want({
        let mut w = d.want.clone();
        w.as_object_mut().unwrap().remove("tags");
        w["deletionProtection"] = json!(false);
        w
    });
    let id = d.create().await;
    d.settle(&id).await;
    println!("delete 2: {:?}", d.delete(&id).await.map_err(|e| (e.class, e.to_string())));
    d.kind.untag(&d.call, Role::MAIN, "nothing", &["a".to_owned()]).await.unwrap();
    for _ in 0..20 {
        if d.observe(&id).await.is_none() {
            println!("gone");
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    println!("delete absent-> {:?}", g.kind.untag(&g.call, Role::MAIN, "nothing", &["a".to_owned()]).await);
    println!("group: {:?} {:?}", g.delete(&gid).await, g.observe(&gid).await.map(|l| l.status));
    // an Aurora member without its cluster
    let m = Bench::new(
        "DBInstance",
        "m",
        json!({"dbInstanceIdentifier": "m", "dbInstanceClass": "db.r6g.large", "engine": "aurora-postgresql", "dbClusterIdentifier": "Nowhere"}),
    );
    println!(
        "member: {:?}",
        m.kind
            .create(&m.call, Role::MAIN, &m.want, &Made::default())
            .await
            .map_err(|e| (e.class, e.to_string()))
            .err()
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore]
async fn moto() {
    let p = prep("moto");
    let mut c = Bench::new(
        "DBCluster",
        "orders",
        json!({
        "dbClusterIdentifier": "Orders", "engine": "aurora-postgresql", "engineVersion": "15", "masterUsername": "orders",
        "masterUserPasswordRef": {"name": "x", "key": "y"}, "dbSubnetGroupRef": "Main", "vpcSecurityGroupRefs": [{"id": p["group"]}], "backupRetentionPeriod": 3,
        "preferredMaintenanceWindow": "Sun:05:00-Sun:06:00", "preferredBackupWindow": "03:00-04:00", "storageEncrypted": true, "port": 5432, "engineMode": "provisioned",
        "serverlessV2ScalingConfig": {"minCapacity": 0.5, "maxCapacity": 4}, "networkType": "IPV4", "enableIAMDatabaseAuthentication": true, "copyTagsToSnapshot": true,
        "enabledCloudwatchLogsExports": ["postgresql"], "deletionProtection": true, "tags": {"team": "data"}}),
    );
    println!("find {:?}", c.kind.find(&c.call, Role::MAIN, Some(&c.want)).await.unwrap());
    println!("observe {:?}", c.observe("orders").await.map(|l| l.status));
    let id = c.create().await;
    let live = c.settle(&id).await;
    println!("live {} tags {:?}", live.spec, live.tags);
    let managed = diff::managed_paths(c.kind.schema(), &c.want);
    c.step(&id, json!({}), &managed).await;
    c.step(&id, json!({"tags": {"stage": "test"}}), &managed).await;
    c.step(&id, json!({"backupRetentionPeriod": 5, "preferredBackupWindow": "04:00-05:00"}), &managed).await;
    c.step(&id, json!({"serverlessV2ScalingConfig": {"minCapacity": 1, "maxCapacity": 8}}), &managed).await;
    c.step(&id, json!({"enabledCloudwatchLogsExports": [], "copyTagsToSnapshot": false, "enableIAMDatabaseAuthentication": null, "port": 5433}), &managed).await;
    c.step(&id, json!({"enableHttpEndpoint": true}), &managed).await;
    c.step(&id, json!({"engineVersion": "16"}), &managed).await;
    c.step(&id, json!({"engineVersion": "15", "enableHttpEndpoint": null}), &managed).await;
    let live = c.observe(&id).await.unwrap();
    println!(
        "rotate {:?}",
        c.kind
            .update(&c.call, &id, &live, &c.want, &Changes::of_secrets(["/masterUserPasswordRef".to_owned()]))
            .await
    );
    c.settle(&id).await;
    let m = Bench::new(
        "DBInstance",
        "orders-1",
        json!({"dbInstanceIdentifier": "orders-1", "dbInstanceClass": "db.r6g.large", "engine": "aurora-postgresql", "dbClusterIdentifier": "Orders", "engineVersion": "15", "tags": {"a": "b"}}),
    );
    let mid = m.create().await;
    let live = m.settle(&mid).await;
    println!("member {} diff {:?}", live.spec, m.diff(&live, &BTreeSet::new()).changes.paths());
    println!("members {}", c.observe(&id).await.unwrap().status);
    println!("delete protected: {:?}", c.delete(&id).await.map_err(|e| (e.class, e.to_string())));
    c.step(&id, json!({"deletionProtection": false}), &managed).await;
    println!("delete with members: {:?}", c.delete(&id).await.map_err(|e| (e.class, e.to_string())));
    println!("member delete: {:?}", m.delete(&mid).await);
    println!("member {:?}", m.observe(&mid).await.map(|l| l.phase));
    println!("delete: {:?}", c.delete(&id).await.map_err(|e| (e.class, e.to_string())));
    println!("{:?}", c.observe(&id).await.map(|l| l.phase));
}
