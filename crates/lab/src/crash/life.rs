//! One life of an object, with the operator killed in its phases.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, DynamicObject, PostParams};

use super::rotation::Rotation;
use super::trap::{Point, Trap};
use crate::history::Version;
use crate::lifecycle::{Change, Drive, Lifecycle};
use crate::operator::Operator;
use crate::proxy::{aws, kube as api_server};
use crate::wait::eventually;
use crate::world::World;

const TIME_SCALE: f64 = 0.03;
/// How long AWS's reads lag behind a create after which the operator is killed: 30 s, scaled.
const LAG: Duration = Duration::from_millis(900);
/// No check for drift falls into a life.
const ARGS: &[&str] = &["--drift-interval=24h"];
const WITHIN: Duration = Duration::from_secs(45);
/// After so long without an effect, none is expected any more.
const QUIET: Duration = Duration::from_millis(300);

/// A part of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Create,
    /// By its place among the changes and removals of the data file.
    Change(usize),
    /// The value of its Secret changes.
    Rotate,
    Delete,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("create"),
            Self::Change(index) => write!(f, "update {}", index + 1),
            Self::Rotate => f.write_str("rotate"),
            Self::Delete => f.write_str("delete"),
        }
    }
}

/// How a phase ended well.
pub(super) struct End {
    /// Its effects, up to the kill.
    pub effects: Vec<String>,
    pub killed: bool,
}

/// A world in which one life follows another.
pub(super) struct Lives<'a> {
    world: World,
    life: &'a Lifecycle,
    operator: Operator,
    rotation: Option<Rotation>,
}

impl<'a> Lives<'a> {
    pub async fn new(life: &'a Lifecycle) -> Result<Self> {
        let world = World::prepare(life.emulator.into()).await?.time_scale(TIME_SCALE);
        let operator = world.operator(ARGS).await?;
        let lives = Self { world, life, operator, rotation: None };
        lives.drive().await?.prepare().await?;
        Ok(lives)
    }

    /// Leads one life; the operator is killed at these points. Ends with the first phase that
    /// ended wrong.
    pub async fn lead(
        &mut self,
        plan: impl Iterator<Item = (Phase, Option<Point>)>,
    ) -> Vec<(Phase, Result<End>)> {
        let mut ends = Vec::new();
        for (phase, point) in plan {
            let end = self.phase(phase, point).await;
            let failed = end.is_err();
            ends.push((phase, end));
            if failed {
                break;
            }
        }
        ends
    }

    /// Leads through one phase and looks at what came of it.
    async fn phase(&mut self, phase: Phase, point: Option<Point>) -> Result<End> {
        let (calls, writes) = (self.world.aws.mark(), self.world.kube.mark());
        let lags = phase == Phase::Create && point.is_some();
        self.world.aws.lag(if lags { LAG } else { Duration::ZERO });
        let trap = Trap::set(&self.world.aws, &self.world.kube, point);
        let ended = self.lead_through(phase, &trap).await;
        // Whatever still waits in it is let go.
        trap.bury();
        self.world.aws.clear_hook();
        self.world.kube.clear_hook();
        let effects = trap.effects();
        let killed = ended.with_context(|| {
            format!(
                "(the last effect was {:?})\n{}{}",
                effects.last(),
                aws::Table(&self.world.aws.calls_since(calls)),
                api_server::Table(&self.world.kube.writes_since(writes)),
            )
        })?;
        Ok(End { effects, killed })
    }

    async fn lead_through(&mut self, phase: Phase, trap: &Trap) -> Result<bool> {
        // Begun before a deletion, its history still holds the object afterwards.
        let (world, life) = (&self.world, self.life);
        let last_seen = if phase == Phase::Delete { Some(Drive::new(world, life).await?) } else { None };
        self.rotation = match phase {
            Phase::Rotate => Some(Rotation::begin(world, life).await?),
            _ => None,
        };
        self.begin(phase).await?;
        let killed = tokio::select! {
            biased;
            () = trap.sprung() => true,
            ended = self.until_still(phase, trap) => ended.map(|()| false)?,
        };
        if killed {
            self.operator.kill()?;
            trap.bury();
            self.operator = self.world.operator(ARGS).await?;
            self.until_ended(phase).await?;
            // It may have ended before the kill: the new process must leave it at that.
            tokio::time::sleep(QUIET).await;
        }
        self.ensure_ended(phase).await?;
        match last_seen {
            Some(drive) => drive.ensure_tally(false).await?,
            None => self.judge(phase).await?,
        }
        if phase == Phase::Create {
            // From now on it must survive every kill, too.
            self.drive().await?.put_on_by_others().await?;
        }
        Ok(killed)
    }

    async fn drive(&self) -> Result<Drive<'_>> {
        Drive::new(&self.world, self.life).await
    }

    fn edit(&self, index: usize) -> Result<&Change> {
        self.life.edits().nth(index).context("no such change")
    }

    async fn begin(&self, phase: Phase) -> Result<()> {
        let (api, name) = (self.world.api(self.life.kind()), self.life.object());
        match phase {
            Phase::Create => {
                let object = serde_json::from_value::<DynamicObject>(self.life.manifest.clone())?;
                api.create(&PostParams::default(), &object).await.map(drop)?;
            }
            Phase::Change(index) => {
                let patch = serde_json::json!({"spec": self.edit(index)?.spec});
                self.world.merge(self.life.kind(), name, patch).await.map(drop)?;
            }
            // Begun with the look at what was there before.
            Phase::Rotate => {}
            Phase::Delete => {
                api.delete(name, &DeleteParams::default()).await.map(drop)?;
            }
        }
        Ok(())
    }

    /// Waits for the end of the phase, and for what still follows it.
    async fn until_still(&self, phase: Phase, trap: &Trap) -> Result<()> {
        self.until_ended(phase).await?;
        trap.quiet(QUIET).await;
        Ok(())
    }

    async fn until_ended(&self, phase: Phase) -> Result<()> {
        eventually(WITHIN, "the phase to end", async || self.ensure_ended(phase).await).await
    }

    async fn ensure_ended(&self, phase: Phase) -> Result<()> {
        let object = self.world.api(self.life.kind()).get_opt(self.life.object()).await?;
        if phase == Phase::Delete {
            let left = object.map(|object| object.data["status"].to_string());
            ensure!(left.is_none(), "still there: {left:?}");
            return Ok(());
        }
        let object = object.context("gone")?;
        let status = object.data["status"].clone();
        let generation = object.metadata.generation;
        let version = Version { object, deleted: false };
        ensure!(version.condition("Ready", "status") == Some("True"), "not Ready: {status}");
        ensure!(status["observedGeneration"].as_i64() == generation, "not yet observed: {status}");
        self.rotation.as_ref().map_or(Ok(()), |rotation| rotation.ensure_applied(&status))
    }

    /// Compares what AWS and the status hold with what they should.
    async fn judge(&self, phase: Phase) -> Result<()> {
        // Begun now, its history holds the object as it is.
        let drive = self.drive().await?;
        drive.ensure_tally(true).await?;
        drive.identifier()?;
        let status = drive.object()?.data["status"].clone();
        for field in &self.life.status {
            ensure!(!status[field].is_null(), "status.{field} is not set: {status}");
        }
        ensure!(status["adopted"] != true, "what it made is taken for adopted: {status}");
        match phase {
            Phase::Create => drive.ensure_seen(&self.life.create.sees).await?,
            Phase::Change(index) => drive.ensure_seen(&self.edit(index)?.sees).await?,
            Phase::Rotate | Phase::Delete => {}
        }
        if let Some(rotation) = &self.rotation {
            rotation.ensure_sent(&self.world)?;
        }
        if phase == Phase::Create { Ok(()) } else { drive.foreign_stays().await }
    }
}
