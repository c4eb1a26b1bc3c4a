//! Sends the updates of clusters, one at a time, and learns what became of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use aws::Answer;
use aws_sdk_eks::Client;
use aws_sdk_eks::types::{Update, UpdateStatus};
use parking_lot::Mutex;
use resource::{Call, Class, Error, Progress, Result, Scope};

use crate::step::Step;

/// How long an update that failed is not sent again as it was. AWS takes minutes for each.
const PAUSE: Duration = Duration::from_secs(600);

/// The update of each sort last sent for a cluster. It is only remembered to tell why a difference
/// is still there; after a restart, one more update is sent.
#[derive(Default)]
pub(crate) struct Updates(Mutex<HashMap<Key, BySort>>);

/// A cluster, by its name.
type Key = (Scope, String);
/// The last update of each sort.
type BySort = HashMap<&'static str, Sent>;

#[derive(Clone)]
struct Sent {
    step: Step,
    id: String,
    failed: Option<(Instant, Error)>,
}

/// What became of an update that was sent earlier and is still needed.
enum Past {
    Running,
    Failed(Error),
    /// Done, never sent, or no longer to be known.
    Over,
}

impl Updates {
    /// Sends the first of the steps that AWS takes. One that AWS refuses or failed at holds up only
    /// itself.
    pub(crate) async fn send(
        &self,
        client: &Client,
        call: &Call,
        cluster: &str,
        steps: Vec<Result<Step>>,
    ) -> Result<Progress> {
        let mut first_error = None;
        for step in steps {
            let sent = match step {
                Ok(step) => self.send_one(client, call, cluster, step).await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(()) => return Ok(Progress::Busy),
                // Another update is in progress, or AWS cannot be reached: nothing else would go.
                Err(error) if error.class.heals_by_itself() && error.code != FAILED => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(Progress::Done), Err)
    }

    /// Forgets a cluster that is being deleted.
    pub(crate) fn forget(&self, call: &Call, cluster: &str) {
        self.0.lock().remove(&key(call, cluster));
    }

    async fn send_one(&self, client: &Client, call: &Call, cluster: &str, step: Step) -> Result<()> {
        match self.past(client, call, cluster, &step).await? {
            Past::Running => return Ok(()),
            Past::Failed(error) => return Err(error),
            Past::Over => {}
        }
        let update = send(client, cluster, step.clone()).await?;
        let id = update.and_then(|update| update.id).unwrap_or_default();
        let mut known = self.0.lock();
        known.entry(key(call, cluster)).or_default().insert(sort(&step), Sent { step, id, failed: None });
        Ok(())
    }

    async fn past(&self, client: &Client, call: &Call, cluster: &str, step: &Step) -> Result<Past> {
        let sent = self.0.lock().get(&key(call, cluster)).and_then(|sent| sent.get(sort(step))).cloned();
        let Some(sent) = sent.filter(|sent| sent.step == *step && !sent.id.is_empty()) else {
            return Ok(Past::Over);
        };
        if let Some((at, error)) = sent.failed {
            return Ok(if at.elapsed() < PAUSE { Past::Failed(error) } else { Past::Over });
        }
        let answer = client.describe_update().name(cluster).update_id(&sent.id).send().await;
        let update =
            answer.answer_or_absent(&["ResourceNotFoundException"])?.and_then(|answer| answer.update);
        let past = update.map_or(Past::Over, |update| past(&update));
        if let (Past::Failed(error), Some(known)) = (&past, self.0.lock().get_mut(&key(call, cluster))) {
            known.insert(sort(step), Sent { failed: Some((Instant::now(), error.clone())), ..sent });
        }
        Ok(past)
    }
}

/// The code of an update that AWS accepted and then failed at.
const FAILED: &str = "UpdateFailed";

fn past(update: &Update) -> Past {
    match update.status() {
        // The cluster's own state may lag behind.
        Some(UpdateStatus::InProgress) => Past::Running,
        Some(UpdateStatus::Failed | UpdateStatus::Cancelled) => Past::Failed(failure(update)),
        _ => Past::Over,
    }
}

fn failure(update: &Update) -> Error {
    let reasons = update.errors().iter().map(|error| {
        let code = error.error_code().map_or("Unknown", |code| code.as_str());
        let of = error.resource_ids().join(", ");
        let of = if of.is_empty() { of } else { format!(" ({of})") };
        format!("{code}: {}{of}", error.error_message().unwrap_or("AWS gives no reason"))
    });
    let reasons: Vec<_> = reasons.collect();
    let why = if reasons.is_empty() { "AWS gives no reason".to_owned() } else { reasons.join("; ") };
    let status = update.status().map_or("Failed", |status| status.as_str());
    let what = update.r#type().map_or("the update", |kind| kind.as_str());
    let message = format!("{what} {} is {status}: {why}", update.id().unwrap_or_default());
    Error { code: FAILED.to_owned(), ..Error::new(Class::Invalid, "DescribeUpdate", message) }
}

fn key(call: &Call, cluster: &str) -> Key {
    (call.scope.clone(), cluster.to_owned())
}

fn sort(step: &Step) -> &'static str {
    match step {
        Step::Version(_) => "version",
        Step::Network(_) => "network",
        Step::Endpoint(_) => "endpoint",
        Step::Logs(_) => "logs",
        Step::Access(_) => "access",
        Step::Policy(_) => "policy",
        Step::Encryption(_) => "encryption",
    }
}

async fn send(client: &Client, cluster: &str, step: Step) -> Result<Option<Update>> {
    let config = || client.update_cluster_config().name(cluster);
    let config = match step {
        Step::Version(version) => {
            let update = client.update_cluster_version().name(cluster).version(version);
            return Ok(update.send().await.answer()?.update);
        }
        Step::Encryption(encryption) => {
            let associate = client.associate_encryption_config().cluster_name(cluster);
            return Ok(associate.encryption_config(encryption).send().await.answer()?.update);
        }
        Step::Network(vpc) | Step::Endpoint(vpc) => config().resources_vpc_config(vpc),
        Step::Logs(logging) => config().logging(logging),
        Step::Access(access) => config().access_config(access),
        Step::Policy(policy) => config().upgrade_policy(policy),
    };
    Ok(config.send().await.answer()?.update)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_eks::types::{ErrorCode, ErrorDetail, UpdateType};

    #[test]
    fn updates_read_as_what_became_of_them() {
        let update = |status: UpdateStatus| Update::builder().id("u-1").status(status);
        assert!(matches!(past(&update(UpdateStatus::InProgress).build()), Past::Running));
        assert!(matches!(past(&update(UpdateStatus::Successful).build()), Past::Over));
        let detail = ErrorDetail::builder()
            .error_code(ErrorCode::InsufficientFreeAddresses)
            .error_message("no addresses left")
            .resource_ids("subnet-a")
            .build();
        let failed = update(UpdateStatus::Failed).r#type(UpdateType::VersionUpdate).errors(detail).build();
        let Past::Failed(error) = past(&failed) else { unreachable!("{failed:?}") };
        assert_eq!(
            error.message,
            "VersionUpdate u-1 is Failed: InsufficientFreeAddresses: no addresses left (subnet-a)"
        );
        assert!(matches!(past(&update(UpdateStatus::Cancelled).build()), Past::Failed(_)));
    }
}
