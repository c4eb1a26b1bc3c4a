//! Clusters of EKS as AWS has them: updates, which no emulator does, and creations and deletions
//! that take time. From AWS's API reference; the values that updates change lie over the emulator's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::super::core::Cut;
use super::answer::Answer;
use super::asked::Asked;
use super::eks_update::{Plan, Refusal, plan};
use super::serve::World;

/// Describes that pass, unless a test says otherwise, before an update is done.
const UPDATING: usize = 1;

/// What the proxy knows of clusters.
#[derive(Default)]
pub(super) struct Eks(Mutex<State>);

#[derive(Default)]
struct State {
    clusters: HashMap<Key, Cluster>,
    /// By operation: for how many describes its effect is not finished.
    polls: HashMap<String, usize>,
    /// By operation: what its next update will fail with.
    failures: HashMap<String, Issue>,
    /// By name: what is wrong with a cluster that is FAILED.
    broken: HashMap<String, Issue>,
}

/// Region and name.
type Key = (String, String);

/// What AWS says is wrong.
#[derive(Clone)]
struct Issue {
    code: String,
    message: String,
}

#[derive(Default)]
struct Cluster {
    /// Describes that still show it CREATING.
    creating: usize,
    /// Describes that still show it DELETING; the emulator has it until the last.
    deleting: Option<usize>,
    /// What updates have changed, as a patch.
    changed: Value,
    updates: Vec<Update>,
}

struct Update {
    /// As DescribeUpdate shows it.
    shown: Value,
    changes: Value,
    failure: Option<Issue>,
    left: usize,
}

impl Eks {
    /// Takes the operations that can be slow here; false for others.
    pub fn set_slow(&self, operation: &str, polls: usize) -> bool {
        const SLOW: [&str; 5] = [
            "CreateCluster",
            "DeleteCluster",
            "UpdateClusterVersion",
            "UpdateClusterConfig",
            "AssociateEncryptionConfig",
        ];
        let known = SLOW.contains(&operation);
        if known {
            self.0.lock().polls.insert(operation.to_owned(), polls);
        }
        known
    }

    /// The next update by this operation is accepted, and then fails.
    pub fn fail_next(&self, operation: &str, code: &str, message: &str) {
        let issue = Issue { code: code.to_owned(), message: message.to_owned() };
        self.0.lock().failures.insert(operation.to_owned(), issue);
    }

    /// The cluster of this name is FAILED, whenever it is looked at.
    pub fn break_cluster(&self, name: &str, code: &str, message: &str) {
        let issue = Issue { code: code.to_owned(), message: message.to_owned() };
        self.0.lock().broken.insert(name.to_owned(), issue);
    }

    /// A cluster of that name was made.
    fn made(&self, asked: &Asked, body: &Value, cluster: &mut Value) {
        let mut state = self.0.lock();
        let creating = state.polls.get("CreateCluster").copied().unwrap_or_default();
        let mut changed = json!({"upgradePolicy": body.get("upgradePolicy").cloned().unwrap_or_default()});
        if let Some(setups) = body.pointer("/logging/clusterLogging") {
            changed["logging"] = json!({"clusterLogging": setups});
        }
        let made = Cluster { creating, changed, ..Cluster::default() };
        made.show(cluster);
        state.clusters.insert(key(asked), made);
    }

    /// Shows a cluster as AWS would, and counts the describe. True: the emulator is to delete it now.
    fn describe(&self, asked: &Asked, cluster: &mut Value) -> bool {
        let mut state = self.0.lock();
        let broken = state.broken.get(name(asked)).cloned();
        let known = state.clusters.entry(key(asked)).or_default();
        known.settle();
        known.show(cluster);
        if let Some(issue) = broken {
            cluster["status"] = "FAILED".into();
            cluster["health"] =
                json!({"issues": [{"code": issue.code, "message": issue.message, "resourceIds": []}]});
        }
        known.pass()
    }

    /// Begins an update, or refuses it.
    fn begin(&self, asked: &Asked, body: &Value, cluster: &mut Value) -> Result<Value, Refusal> {
        let mut state = self.0.lock();
        let State { clusters, polls, failures, .. } = &mut *state;
        let known = clusters.entry(key(asked)).or_default();
        known.settle();
        known.show(cluster);
        let plan = plan(&asked.operation, body, cluster)?;
        known.refuse_busy(cluster, name(asked), plan.kind)?;
        let left = polls.get(&asked.operation).copied().unwrap_or(UPDATING);
        let update = Update::new(plan, failures.remove(&asked.operation), left);
        let shown = update.shown.clone();
        known.updates.push(update);
        Ok(shown)
    }

    /// An update, as it stands now; the describe counts.
    fn update(&self, asked: &Asked, id: &str) -> Option<Value> {
        let mut state = self.0.lock();
        let known = state.clusters.get_mut(&key(asked))?;
        known.settle();
        let shown = known.updates.iter().find(|update| update.shown["id"] == id)?.shown.clone();
        known.pass();
        Some(shown)
    }

    fn update_ids(&self, asked: &Asked) -> Vec<Value> {
        let state = self.0.lock();
        let updates = state.clusters.get(&key(asked)).map(|known| &known.updates[..]).unwrap_or_default();
        updates.iter().map(|update| update.shown["id"].clone()).collect()
    }

    /// Why AWS would not delete it now.
    fn refuse_delete(&self, asked: &Asked) -> Option<Refusal> {
        let mut state = self.0.lock();
        let known = state.clusters.get_mut(&key(asked))?;
        known.settle();
        known.refuse_busy(&Value::Null, name(asked), "DeleteCluster").err()
    }

    /// Whether a delete takes time: it is then begun.
    fn begin_delete(&self, asked: &Asked, cluster: &mut Value) -> bool {
        let mut state = self.0.lock();
        let polls = state.polls.get("DeleteCluster").copied().unwrap_or_default();
        state.broken.remove(name(asked));
        let known = state.clusters.entry(key(asked)).or_default();
        if polls > 0 {
            known.deleting.get_or_insert(polls);
            known.creating = 0;
        }
        known.show(cluster);
        cluster["status"] = "DELETING".into();
        polls > 0
    }

    fn forget(&self, asked: &Asked) {
        self.0.lock().clusters.remove(&key(asked));
    }
}

impl Cluster {
    /// Ends the update whose time has come.
    fn settle(&mut self) {
        let Some(update) = self.updates.last_mut().filter(|update| update.runs() && update.left == 0) else {
            return;
        };
        match &update.failure {
            None => {
                update.shown["status"] = "Successful".into();
                merge(&mut self.changed, &update.changes);
            }
            Some(issue) => {
                update.shown["status"] = "Failed".into();
                update.shown["errors"] =
                    json!([{"errorCode": issue.code, "errorMessage": issue.message, "resourceIds": []}]);
            }
        }
    }

    fn show(&self, cluster: &mut Value) {
        merge(cluster, &self.changed);
        complete(cluster);
        if self.deleting.is_some() {
            cluster["status"] = "DELETING".into();
        } else if self.creating > 0 {
            cluster["status"] = "CREATING".into();
            if let Some(fields) = cluster.as_object_mut() {
                fields.retain(|field, _| {
                    !matches!(field.as_str(), "endpoint" | "certificateAuthority" | "identity")
                });
            }
        } else if self.updates.last().is_some_and(Update::runs) {
            cluster["status"] = "UPDATING".into();
        }
    }

    /// A describe has passed. True: a deletion is due.
    fn pass(&mut self) -> bool {
        self.creating = self.creating.saturating_sub(1);
        if let Some(update) = self.updates.last_mut() {
            update.left = update.left.saturating_sub(1);
        }
        if let Some(left) = &mut self.deleting {
            *left -= 1;
            return *left == 0;
        }
        false
    }

    /// AWS does one thing to a cluster at a time.
    fn refuse_busy(&self, cluster: &Value, name: &str, what: &str) -> Result<(), Refusal> {
        let in_use = |message: String| Err(Refusal { status: 409, code: "ResourceInUseException", message });
        if let Some(update) = self.updates.last().filter(|update| update.runs()) {
            let id = update.shown["id"].as_str().unwrap_or_default();
            return in_use(format!(
                "Cannot {what} because cluster {name} currently has update {id} in progress"
            ));
        }
        if self.creating > 0 || cluster["status"] == "CREATING" {
            return in_use(format!("Cannot {what} because cluster {name} is currently being created"));
        }
        Ok(())
    }
}

impl Update {
    fn new(plan: Plan, failure: Option<Issue>, left: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let params: Vec<_> =
            plan.params.iter().map(|(kind, value)| json!({"type": kind, "value": value})).collect();
        let shown = json!({
            "id": format!("00000000-0000-4000-9000-{:012x}", NEXT.fetch_add(1, Ordering::Relaxed)),
            "status": "InProgress",
            "type": plan.kind,
            "params": params,
            "createdAt": now.map(|now| now.as_secs_f64()).unwrap_or_default(),
            "errors": [],
        });
        Self { shown, changes: plan.changes, failure, left }
    }

    fn runs(&self) -> bool {
        self.shown["status"] == "InProgress"
    }
}

/// What AWS shows and ministack leaves out.
fn complete(cluster: &mut Value) {
    if cluster.pointer("/upgradePolicy/supportType").is_none_or(Value::is_null) {
        cluster["upgradePolicy"] = json!({"supportType": "EXTENDED"});
    }
    let mode = cluster.pointer("/accessConfig/authenticationMode").and_then(Value::as_str);
    // Whether the creator became an administrator, AWS does not show again.
    cluster["accessConfig"] = json!({"authenticationMode": mode.unwrap_or("CONFIG_MAP")});
    if cluster.pointer("/resourcesVpcConfig/endpointPublicAccess") == Some(&json!(false)) {
        cluster["resourcesVpcConfig"]["publicAccessCidrs"] = json!([]);
    }
}

/// Lays a patch over a value: objects field by field, everything else as a whole; nulls say nothing.
fn merge(into: &mut Value, patch: &Value) {
    match patch {
        Value::Null => {}
        Value::Object(fields) => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            fields.iter().for_each(|(field, value)| merge(&mut into[field], value));
        }
        plain => *into = plain.clone(),
    }
}

fn name(asked: &Asked) -> &str {
    asked.params.get("name").map(String::as_str).unwrap_or_default()
}

fn key(asked: &Asked) -> Key {
    (asked.region.clone(), name(asked).to_owned())
}

impl World {
    /// The answer to an operation on clusters; None for all others.
    pub async fn eks(&self, asked: &Asked) -> Result<Option<Answer>, Cut> {
        if asked.service != "eks" {
            return Ok(None);
        }
        let answer = match asked.operation.as_str() {
            "CreateCluster" => self.create_cluster(asked).await?,
            "DescribeCluster" => self.describe_cluster(asked).await?,
            "UpdateClusterVersion" | "UpdateClusterConfig" | "AssociateEncryptionConfig" => {
                self.update_cluster(asked).await?
            }
            "DescribeUpdate" => self.describe_update(asked).await?,
            "ListUpdates" => self.list_updates(asked).await?,
            "DeleteCluster" => self.delete_cluster(asked).await?,
            "ListFargateProfiles" => self.list_fargate_profiles(asked).await?,
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }

    async fn create_cluster(&self, asked: &Asked) -> Result<Answer, Cut> {
        let mut answer = self.forward(asked).await?;
        if answer.is_success() {
            let mut root = read(&answer.body);
            self.eks.made(asked, &read(&asked.body), &mut root["cluster"]);
            answer.body = Bytes::from(root.to_string());
        }
        Ok(answer)
    }

    async fn describe_cluster(&self, asked: &Asked) -> Result<Answer, Cut> {
        let mut answer = self.forward(asked).await?;
        if !answer.is_success() {
            return Ok(answer);
        }
        let mut root = read(&answer.body);
        self.current_tags(asked, &mut root["cluster"]).await?;
        let due = self.eks.describe(asked, &mut root["cluster"]);
        if due {
            self.ask_rest(asked, Method::DELETE, asked.parts.uri.path()).await?;
            self.eks.forget(asked);
        }
        answer.body = Bytes::from(root.to_string());
        Ok(answer)
    }

    /// ministack shows a cluster with the tags of its creation for ever.
    async fn current_tags(&self, asked: &Asked, cluster: &mut Value) -> Result<(), Cut> {
        let arn = cluster["arn"].as_str().unwrap_or_default().replace(':', "%3A").replace('/', "%2F");
        let answer = self.ask_rest(asked, Method::GET, &format!("/tags/{arn}")).await?;
        if let (true, Some(tags)) = (answer.is_success(), read(&answer.body).get("tags")) {
            cluster["tags"] = tags.clone();
        }
        Ok(())
    }

    async fn update_cluster(&self, asked: &Asked) -> Result<Answer, Cut> {
        let current = self.ask_rest(asked, Method::GET, &format!("/clusters/{}", name(asked))).await?;
        if !current.is_success() {
            return Ok(current);
        }
        let mut cluster = read(&current.body)["cluster"].take();
        Ok(match self.eks.begin(asked, &read(&asked.body), &mut cluster) {
            Ok(update) => answer_of(&json!({"update": update})),
            Err(refusal) => refusal.answer(asked),
        })
    }

    async fn describe_update(&self, asked: &Asked) -> Result<Answer, Cut> {
        let id = asked.parts.uri.path().rsplit('/').next().unwrap_or_default();
        let none = || Refusal {
            status: 404,
            code: "ResourceNotFoundException",
            message: format!("No update found for ID: {id}"),
        };
        let update = self.eks.update(asked, id);
        Ok(update.map_or_else(|| none().answer(asked), |update| answer_of(&json!({"update": update}))))
    }

    async fn list_updates(&self, asked: &Asked) -> Result<Answer, Cut> {
        let current = self.ask_rest(asked, Method::GET, &format!("/clusters/{}", name(asked))).await?;
        if !current.is_success() {
            return Ok(current);
        }
        Ok(answer_of(&json!({"updateIds": self.eks.update_ids(asked)})))
    }

    async fn delete_cluster(&self, asked: &Asked) -> Result<Answer, Cut> {
        let path = format!("/clusters/{}", name(asked));
        let current = self.ask_rest(asked, Method::GET, &path).await?;
        if !current.is_success() {
            return self.forward(asked).await;
        }
        let refusal = match self.eks.refuse_delete(asked) {
            None => self.refuse_attached(asked, &path).await?,
            busy => busy,
        };
        if let Some(refusal) = refusal {
            return Ok(refusal.answer(asked));
        }
        let mut cluster = read(&current.body)["cluster"].take();
        if self.eks.begin_delete(asked, &mut cluster) {
            return Ok(answer_of(&json!({"cluster": cluster})));
        }
        let answer = self.forward(asked).await?;
        if answer.is_success() {
            self.eks.forget(asked);
        }
        Ok(answer)
    }

    /// ministack deletes a cluster together with its node groups.
    async fn refuse_attached(&self, asked: &Asked, path: &str) -> Result<Option<Refusal>, Cut> {
        let groups = self.ask_rest(asked, Method::GET, &format!("{path}/node-groups")).await?;
        let groups = read(&groups.body);
        let has_any = groups["nodegroups"].as_array().is_some_and(|groups| !groups.is_empty());
        let message = "Cluster has nodegroups attached".to_owned();
        Ok(has_any.then_some(Refusal { status: 409, code: "ResourceInUseException", message }))
    }

    /// ministack has no Fargate, so a cluster has no profiles there.
    async fn list_fargate_profiles(&self, asked: &Asked) -> Result<Answer, Cut> {
        let answer = self.forward(asked).await?;
        let none = || answer_of(&json!({"fargateProfileNames": []}));
        Ok(if answer.is_success() { answer } else { none() })
    }
}

impl Refusal {
    fn answer(&self, asked: &Asked) -> Answer {
        Answer::error(asked, self.status, self.code, &self.message)
    }
}

fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

fn answer_of(body: &Value) -> Answer {
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
    Answer { status: StatusCode::OK, headers, body: Bytes::from(body.to_string()) }
}
