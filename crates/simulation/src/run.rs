//! One run: a seed, a script, and the lives of the engine.

use std::sync::{Arc, Once};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Accounts, CrossNamespace, Engine, Metrics, Options};
use prometheus_client::registry::Registry;
use resource::{Scope, Tags};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cloud::Bug;
use crate::script::{Step, script};
use crate::trace::Trace;
use crate::world::World;
use crate::{api, kinds, rest, user};

/// How often the engine checks what is in order.
pub const DRIFT_INTERVAL: Duration = Duration::from_secs(600);

/// A stop takes no longer: the slowest call, and the writes that follow it.
const GRACE: Duration = Duration::from_secs(120);

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The invariant that was violated first.
    pub violation: Option<String>,
    /// What happened.
    pub trace: Trace,
    /// How many steps of the script there are.
    pub steps: usize,
    /// How many effects the engine had.
    pub effects: u64,
    /// How often it was started.
    pub lives: u64,
}

/// How a life of the engine ends.
enum End {
    Crashed,
    Stopped,
    Settled,
}

/// Runs the first `steps` steps of a seed's script, and to the end.
///
/// # Errors
/// When the runtime cannot be built.
pub fn run(seed: u64, steps: usize) -> anyhow::Result<Outcome> {
    BUGS.call_once(hush_bugs);
    let script = script(seed);
    let steps = steps.min(script.len());
    let world = World::new(seed);
    let left = script.into_iter().take(steps).collect::<Vec<_>>().into_iter();
    let mut user = User { world: world.clone(), left, due: None };
    let mut lives = 0;
    loop {
        lives += 1;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let ended = runtime.block_on(life(&world, &mut user, lives));
        // Whatever the engine was at ends here and now.
        drop(runtime);
        let mut state = world.state();
        if state.violation.is_some() || matches!(ended, End::Settled) {
            let (violation, trace) = (state.violation.take(), std::mem::take(&mut state.trace));
            return Ok(Outcome { violation, trace, steps, effects: state.effects, lives });
        }
    }
}

static BUGS: Once = Once::new();

/// Nobody needs to read of the panics that belong to the simulation.
fn hush_bugs() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload().is::<Bug>() {
            report(panic);
        }
    }));
}

async fn life(world: &World, user: &mut User, number: u64) -> End {
    world.time.begin();
    {
        let mut state = world.state();
        (state.crashed, state.trap) = (false, None);
        state.unrecorded.clear();
        state.cloud.forget_all_shown();
    }
    if number == 1 {
        user::install(world);
    }
    world.note(format!("the engine starts, for the {number}. time"));
    let stop = CancellationToken::new();
    let working = start(world, stop.clone()).await;
    let ended = tokio::select! {
        biased;
        () = world.over.notified() => End::Crashed,
        ended = user.go_on() => ended,
    };
    if matches!(ended, End::Stopped) {
        stop.cancel();
        tokio::select! {
            biased;
            () = world.over.notified() => {}
            _ = working => {}
            () = tokio::time::sleep(GRACE) => world.state().violate("the engine is told to stop, and does not"),
        }
    }
    if world.state().crashed {
        world.note("the engine crashes");
    }
    world.time.end();
    ended
}

/// Starts the engine.
async fn start(world: &World, stop: CancellationToken) -> JoinHandle<()> {
    let options = Options {
        drift_interval: DRIFT_INTERVAL,
        workers: 3,
        cluster_name: Some("simulation".to_owned()),
        default_tags: Tags::new(),
        adopt_unowned: true,
        cross_namespace: CrossNamespace::Allow,
        time_scale: 1.0,
        clock: Arc::new(world.clone()),
    };
    let metrics = Metrics::register(&mut Registry::default());
    let (client, kinds) = (api::client(world), kinds::all(world));
    let engine =
        Engine::new(client, "konfig-system".to_owned(), kinds, Arc::new(OneAccount), options, metrics, None)
            .await;
    let world = world.clone();
    tokio::spawn(async move {
        // It asks for nothing while it is put together, as the cluster's name is given: no error.
        if let Ok(engine) = engine
            && let Err(ended) = engine.run(stop).await
        {
            world.state().violate(ended.to_string());
        }
    })
}

struct OneAccount;

#[async_trait]
impl Accounts for OneAccount {
    async fn own_scope(&self) -> resource::Result<Scope> {
        Ok(Scope {
            provider: String::new(),
            account_id: "123456789012".to_owned(),
            region: "eu-central-1".to_owned(),
            partition: "aws".to_owned(),
        })
    }
}

/// Who leads through the script, from one life of the engine to the next.
struct User {
    world: World,
    left: std::vec::IntoIter<Step>,
    /// When the next step is due.
    due: Option<Duration>,
}

impl User {
    async fn go_on(&mut self) -> End {
        while let Some((pause, action)) = self.left.as_slice().first().cloned() {
            let due = *self.due.get_or_insert(self.world.time.elapsed() + pause);
            self.world.time.reach(due).await;
            (self.due, _) = (None, self.left.next());
            let goes_on = user::act(&self.world, &action);
            self.world.bell.notify_waiters();
            if !goes_on {
                return End::Stopped;
            }
        }
        rest::rest(&self.world).await;
        End::Settled
    }
}
