//! `make demo`: the operator at work on this machine, between a real control plane and an emulated
//! AWS. With `--once` everything is deleted again, in the worst order, and AWS asked what is left.

mod database;
mod play;
mod stack;
mod stage;
mod terminal;
mod text;
mod tree;
mod view;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::{Inventory, paths};
use tokio::signal::ctrl_c;
use tokio::time::{Instant, sleep};

use stack::{Object, Stack};
use stage::{NAMESPACE, Stage};
use terminal::{Style, Terminal};
use tree::Tree;

const USAGE: &str =
    "usage: demo [--once]\n\n  --once  delete everything again, see that nothing is left in AWS, and end";
const QUICKSTART: &str = "examples/quickstart.yaml";
/// How long the stack may take to become Ready, or to go.
const PATIENCE: Duration = Duration::from_secs(180);
/// The exit code of what Ctrl-C ended, as shells have it.
const INTERRUPTED: u8 = 130;
const FRAME: Duration = Duration::from_millis(120);
/// What is shown of the operator's log when something fails.
const LOG_LINES: usize = 40;

#[tokio::main]
async fn main() -> ExitCode {
    let once = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [arg] if arg == "--once" => true,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut terminal = Terminal::open();
    let shown = tokio::select! {
        shown = show(&mut terminal, once) => shown,
        _ = ctrl_c() => {
            eprintln!("\ndemo: interrupted");
            return ExitCode::from(INTERRUPTED);
        }
    };
    match shown {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(stage)) => {
            tokio::select! {
                () = play::follow(&stage, &terminal) => {}
                _ = ctrl_c() => terminal.line("\nStopped: control plane, emulator and operator go, with all that they hold."),
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{} {error:#}", terminal.paint(Style::Bad, "demo:"));
            ExitCode::FAILURE
        }
    }
}

/// Shows everything up to the point where the user takes over; with `once`, to the end.
async fn show(terminal: &mut Terminal, once: bool) -> Result<Option<Stage>> {
    terminal.title("konfig-konector: AWS from Kubernetes objects");
    let mut stage = Stage::set(terminal).await?;
    let shown = perform(&mut stage, terminal, once).await;
    if let Err(error) = shown {
        eprintln!("\nThe end of the operator's log:\n{}\n", stage.log_tail(LOG_LINES));
        return Err(error);
    }
    Ok((!once).then_some(stage))
}

async fn perform(stage: &mut Stage, terminal: &mut Terminal, once: bool) -> Result<()> {
    let before = Inventory::take(&stage.boto).await?;
    let stack = Stack::installed(&stage.client, NAMESPACE).await?;
    let mut tree = Tree::default();
    fill(stage, &stack, &mut tree, terminal).await?;
    terminal.title("kubectl get konfig");
    terminal.line(stage.kubectl().run(&["get", "konfig"]).await?.trim_end());
    if !once {
        return play::invite(stage, terminal, &stack.objects().await?).await;
    }
    database::rotate(stage, terminal).await?;
    empty(stage, &stack, &mut tree, terminal).await?;
    nothing_left(stage, &before, terminal).await
}

/// The tree fills up until all is Ready.
async fn fill(stage: &mut Stage, stack: &Stack, tree: &mut Tree, terminal: &mut Terminal) -> Result<()> {
    terminal.title("Applied, until all is Ready (NAT gateways take their time, as in AWS)");
    terminal.command(&format!("kubectl apply --server-side -f {QUICKSTART}"));
    let path = paths::repository(QUICKSTART);
    let path = path.to_str().context("a path that is no text")?;
    let apply = ["apply", "--server-side", "--validate=strict", "-f", path];
    let is_ready = |object: &Object| object.ready;
    let seconds = run_until(stage, stack, tree, terminal, &apply, is_ready, "Ready").await?.as_secs_f64();
    let calls = stage.aws.mutating_calls().len();
    terminal.line(&format!(
        "\n  All Ready after {seconds:.1} s, by {calls} AWS calls that make or change something."
    ));
    Ok(())
}

/// The Secret first: no deletion needs it. Then what others stand on; it must wait, and says for what.
async fn empty(stage: &mut Stage, stack: &Stack, tree: &mut Tree, terminal: &mut Terminal) -> Result<()> {
    terminal.title("Deleted in the worst order: the Secret, then what all others stand on");
    let mut names = vec![format!("Secret/{}", stage.database.secret)];
    names.extend(tree.names());
    terminal.command(&format!("kubectl delete --wait=false {}", names.join(" ")));
    let delete: Vec<_> =
        ["delete", "--wait=false"].into_iter().chain(names.iter().map(String::as_str)).collect();
    // One that is still there is one too many.
    let is_gone = |_: &Object| false;
    let seconds = run_until(stage, stack, tree, terminal, &delete, is_gone, "gone").await?.as_secs_f64();
    terminal.line(&format!("\n  All gone after {seconds:.1} s."));
    Ok(())
}

/// Runs a kubectl command and shows the tree until every object is as wanted.
async fn run_until(
    stage: &mut Stage,
    stack: &Stack,
    tree: &mut Tree,
    terminal: &mut Terminal,
    command: &[&str],
    wanted: impl Fn(&Object) -> bool,
    what: &str,
) -> Result<Duration> {
    let start = Instant::now();
    let kubectl = stage.kubectl();
    let mut running = Box::pin(kubectl.run(command));
    let mut ended = false;
    loop {
        tokio::select! {
            outcome = &mut running, if !ended => ended = outcome.map(|_| true)?,
            () = sleep(FRAME) => {}
        }
        let objects = stack.objects().await?;
        tree.grow(&objects);
        terminal.draw(tree, &objects);
        let late: Vec<_> = objects.iter().filter(|object| !wanted(object)).map(Object::full_name).collect();
        if ended && late.is_empty() {
            terminal.settle();
            return Ok(start.elapsed());
        }
        stage.ensure_running()?;
        ensure!(
            start.elapsed() < PATIENCE,
            "not {what} within {} s: {}",
            PATIENCE.as_secs(),
            late.join(", ")
        );
    }
}

/// The emulator itself is asked, not the operator.
async fn nothing_left(stage: &Stage, before: &Inventory, terminal: &mut Terminal) -> Result<()> {
    terminal.title("What AWS still has of it");
    let left = Inventory::take(&stage.boto).await?.beyond(before);
    for (what, ids) in &left {
        let count = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        let style = if ids.is_empty() { Style::Good } else { Style::Bad };
        terminal.line(&format!("  {what:<20} {}", terminal.paint(style, &count)));
    }
    ensure!(left.iter().all(|(_, ids)| ids.is_empty()), "something is left in AWS");
    terminal.line("\n  Nothing is left.");
    Ok(())
}
