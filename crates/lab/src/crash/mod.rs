//! The operator, killed at every step of an object's life and started again.
//!
//! An effect is an AWS call or an API-server write. A life without a kill counts the effects of
//! each phase; then one life after another is led in the same world, the operator killed before
//! or after one effect of each of its phases. Every phase must end as the data file says, and
//! with exactly one of everything in AWS.

mod life;
mod rotation;
mod table;
mod trap;

use std::collections::VecDeque;

use anyhow::{Context, Result};

pub use table::{Row, Table};
pub use trap::Point;

use crate::lifecycle::Lifecycle;
use crate::proxy::Stage;
use life::{End, Lives, Phase};

/// How much of a kind's life is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every point of creation, of every change and removal, of the rotation of its Secrets and of
    /// deletion.
    All,
    /// The same, with one change.
    OneChange,
    /// So many points, spread evenly, of each phase, with one change.
    Sample(usize),
}

impl Extent {
    /// As the environment variable `KONFIG_CRASH` says (`all`, or `change` for one change), else this.
    #[must_use]
    pub fn or_as_asked(self) -> Self {
        match std::env::var("KONFIG_CRASH").as_deref() {
            Ok("all") => Self::All,
            Ok("change") => Self::OneChange,
            _ => self,
        }
    }

    fn phases(self, life: &Lifecycle) -> Vec<Phase> {
        // The first that asks something of AWS.
        let first = life.changes.iter().position(|change| !change.calls.is_empty());
        let changes = match self {
            Self::All => 0..life.edits().count(),
            _ => first.map_or(0..0, |first| first..first + 1),
        };
        let has_secrets = life.prerequisites.iter().any(|object| object["kind"] == "Secret");
        let rotate = has_secrets.then_some(Phase::Rotate);
        let changes = changes.map(Phase::Change);
        [Phase::Create].into_iter().chain(changes).chain(rotate).chain([Phase::Delete]).collect()
    }

    /// The points of a phase with so many effects.
    fn points(self, effects: usize) -> VecDeque<Point> {
        let sides = [Stage::Before, Stage::After];
        let all: Vec<_> =
            (1..=effects).flat_map(|effect| sides.map(|stage| Point { effect, stage })).collect();
        match self {
            Self::Sample(wanted) if wanted < all.len() => {
                (0..wanted).map(|index| all[index * all.len() / wanted]).collect()
            }
            _ => all.into(),
        }
    }
}

/// A phase, the points still to be tried, and what came of the others.
struct Trial {
    phase: Phase,
    points: VecDeque<Point>,
    row: Row,
}

/// Leads a kind through one life after another and says what became of them; `progress` is told
/// how many points are left.
pub async fn run(life: &Lifecycle, extent: Extent, progress: impl Fn(usize)) -> Result<Table> {
    let mut lives = Lives::new(life).await?;
    let mut trials = Vec::new();
    let phases = extent.phases(life).into_iter();
    for (phase, end) in lives.lead(phases.map(|phase| (phase, None))).await {
        let effects = end.with_context(|| format!("{} {phase}, without a kill", life.name))?.effects;
        let row = Row::new(&life.name, phase, effects.len());
        trials.push(Trial { phase, points: extent.points(effects.len()), row });
    }
    while trials.iter().any(|trial| !trial.points.is_empty()) {
        let plan: Vec<_> = trials.iter().map(|trial| (trial.phase, trial.points.front().copied())).collect();
        let ends = lives.lead(plan.into_iter()).await;
        let failed = ends.iter().any(|(_, end)| end.is_err());
        // A phase that a failure kept from being reached keeps its point for the next life.
        for (trial, (_, end)) in trials.iter_mut().zip(ends) {
            trial.enter(end);
        }
        if failed {
            lives = Lives::new(life).await?;
        }
        progress(trials.iter().map(|trial| trial.points.len()).sum());
    }
    Ok(Table(trials.into_iter().map(|trial| trial.row).collect()))
}

impl Trial {
    fn enter(&mut self, end: Result<End>) {
        let Some(point) = self.points.pop_front() else {
            // Led through without a kill: it failed for what came before.
            self.row.failures.extend(end.err().map(|error| format!("{error:#}")));
            return;
        };
        match end {
            Ok(end) if end.killed => self.row.tried += 1,
            Ok(_) => self.row.missed += 1,
            Err(error) => {
                self.row.tried += 1;
                let failure = format!("{} {}, killed {point}: {error:#}", self.row.life, self.row.phase);
                self.row.failures.push(failure);
            }
        }
    }
}
