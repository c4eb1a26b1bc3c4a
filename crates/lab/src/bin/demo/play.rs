//! The user's turn: what to try, and what the operator says to it.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use lab::aws::{CREDENTIALS, REGION};
use lab::paths;
use tokio::time::{Instant, sleep};

use crate::QUICKSTART;
use crate::database::{passwords_sent, told};
use crate::stack::Object;
use crate::stage::{DRIFT_INTERVAL, NAMESPACE, Stage};
use crate::terminal::{Style, Terminal};

const LOOK: Duration = Duration::from_millis(300);

/// Says how to go on by hand.
pub async fn invite(stage: &Stage, terminal: &Terminal, objects: &[Object]) -> Result<()> {
    let env = stage.scratch.file("env");
    fs::write(&env, environment(stage).await?)?;
    let db = objects.iter().find(|object| object.full_name() == "SecurityGroup/db");
    let db = &db.context("the quickstart has no security group db")?.identifier;
    let quickstart = paths::repository(QUICKSTART).canonicalize()?;
    let say = |text: &str| terminal.line(&format!("  {text}"));
    let command = |text: &str| say(&format!("   {}", terminal.paint(Style::Bold, text)));

    terminal.title("Your turn, in another terminal");
    command(&format!(". {}", env.display()));
    say("   It sets KUBECONFIG, puts kubectl and a python3 with boto3 on the PATH, and leads boto3 and");
    say(&format!("   the aws command line to the emulator: AWS_ENDPOINT_URL={}", stage.emulator.endpoint()));
    say("\n  1. Edit: a tag reaches AWS at once.");
    command(r#"kubectl patch vpc quickstart --type merge --patch '{"spec":{"tags":{"team":"mine"}}}'"#);
    say("\n  2. Rotate: another password in the Secret reaches AWS at once.");
    command(&stage.database.change_command());
    if let Some(login) = stage.database.login_command() {
        say("   From then on it logs in, and the old one no longer:");
        command(&login);
    }
    say(&format!(
        "\n  3. Break in AWS: open the database's firewall. It is shut again within {DRIFT_INTERVAL}."
    ));
    command(&open_firewall(db));
    say(
        "\n  4. Delete: the VPC alone must wait, and says for what; with the rest it goes, and all comes again.",
    );
    command("kubectl delete vpc quickstart --wait=false; sleep 3; kubectl get vpc -o wide");
    command("kubectl delete konfig --all");
    command(&format!("kubectl apply --server-side --force-conflicts -f {}", quickstart.display()));
    terminal.title("What the operator does meanwhile (Ctrl-C ends it all)");
    Ok(())
}

/// What a shell needs to know.
async fn environment(stage: &Stage) -> Result<String> {
    let kubectl = stage.kubectl();
    let programs = kubectl.program().parent().context("kubectl in no folder")?;
    let emulators = paths::emulators().await?;
    let programs = [Some(programs), Some(&*emulators), stage.database.programs()];
    let path: String =
        programs.into_iter().flatten().map(|folder| format!("'{}':", folder.display())).collect();
    let mut lines = vec![
        format!("export KUBECONFIG='{}'", kubectl.kubeconfig().display()),
        format!("export PATH={path}\"$PATH\""),
        format!("export AWS_ENDPOINT_URL={}", stage.emulator.endpoint()),
        format!("export AWS_REGION={REGION} AWS_DEFAULT_REGION={REGION}"),
        // Nothing of the user's own may lead these to the real AWS, or through a proxy.
        "unset AWS_PROFILE AWS_SESSION_TOKEN".to_owned(),
        "export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1".to_owned(),
    ];
    lines.extend(CREDENTIALS.map(|(name, value)| format!("export {name}={value}")));
    Ok(lines.join("\n") + "\n")
}

fn open_firewall(group: &str) -> String {
    format!(
        "python3 -c 'import boto3; boto3.client(\"ec2\").authorize_security_group_ingress(GroupId=\"{group}\", \
         IpProtocol=\"tcp\", FromPort=22, ToPort=22, CidrIp=\"0.0.0.0/0\")'"
    )
}

/// Prints the operator's events as they come, and what AWS gets to know of passwords.
pub async fn follow(stage: &Stage, terminal: &Terminal) {
    let events: Api<Event> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let start = Instant::now();
    let mut known = HashSet::new();
    let mut first = true;
    let mut mark = stage.aws.mark();
    loop {
        let list = events.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        for event in list {
            let count = event.series.as_ref().map_or(1, |series| series.count);
            if known.insert((event.metadata.uid.clone(), count)) && !first {
                tell_event(terminal, start.elapsed(), &event);
            }
        }
        first = false;
        mark = tell_passwords(stage, terminal, start.elapsed(), mark).await;
        sleep(LOOK).await;
    }
}

/// Tells which calls since the mark gave AWS a password; the mark for the next time.
async fn tell_passwords(stage: &Stage, terminal: &Terminal, after: Duration, mark: u64) -> u64 {
    let calls = passwords_sent(&stage.aws, mark);
    for call in &calls {
        tell(terminal, after, "AWS", &call.operation, &told(call));
        if call.operation == "CreateDBInstance"
            && let Err(error) = stage.database.renew().await
        {
            tell(terminal, after, "PostgreSQL", "Error", &format!("{error:#}"));
        }
    }
    calls.last().map_or(mark, |call| call.seq + 1)
}

fn tell_event(terminal: &Terminal, after: Duration, event: &Event) {
    let about = event.regarding.as_ref();
    let kind = about.and_then(|about| about.kind.as_deref()).unwrap_or_default();
    let name = about.and_then(|about| about.name.as_deref()).unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or_default();
    let note = event.note.as_deref().unwrap_or_default();
    tell(terminal, after, &format!("{kind}/{name}"), reason, note);
}

fn tell(terminal: &Terminal, after: Duration, who: &str, reason: &str, what: &str) {
    let seconds = after.as_secs();
    terminal.told(&format!("  {seconds:>4} s  {who:<28} {reason:<15} "), what);
}
