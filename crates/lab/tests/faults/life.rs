//! A whole life of the stack while something is wrong with AWS.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::proxy::aws::{Action, Call, Match, Table};
use lab::{Operator, World};

use crate::stack::Stack;

/// Changes that a life takes on a good day, as `calm` found them.
const CHANGES: usize = 45;

/// What is wrong with AWS, and what may come of it.
pub struct Storm {
    pub name: &'static str,
    /// Struck in this order; the first that strikes a call decides.
    pub faults: Vec<(Match, Action)>,
    /// How long each part of a life may take.
    pub within: Duration,
    /// What is told of it: a reason of Ready, and words of which one is in its message.
    pub told: Vec<(&'static str, &'static [&'static str])>,
    /// Whether it may all heal at the next look, before anything is told.
    pub heals_untold: bool,
    /// Further arguments of the operator.
    pub args: &'static [&'static str],
    /// How many transmissions of changes to one that is needed are too many.
    pub patience: usize,
}

/// How a life went.
pub struct Life {
    /// The calls until all was Ready.
    pub calls: Vec<Call>,
}

impl Storm {
    pub fn new(name: &'static str, faults: Vec<(Match, Action)>) -> Self {
        let within = Duration::from_secs(120);
        Self { name, faults, within, told: vec![], heals_untold: false, args: &[], patience: 3 }
    }

    /// The stack comes up, is put right and goes again under this storm, with an operator of its own.
    pub async fn lead(&self, world: &World) -> Result<Life> {
        let mut operator = world.operator(self.args).await?;
        let began = world.aws.mark();
        let life = self.through(world, &mut operator).await;
        world.aws.clear_faults();
        let life = life.with_context(|| {
            format!(
                "{}\n{}\n{}",
                self.name,
                Table(&world.aws.calls_since(began)),
                operator.log().lines().rev().take(40).collect::<Vec<_>>().join("\n")
            )
        })?;
        ended_well(&mut operator).await?;
        Ok(life)
    }

    async fn through(&self, world: &World, operator: &mut Operator) -> Result<Life> {
        for (matcher, action) in &self.faults {
            world.aws.fault(matcher.clone(), action.clone());
        }
        let start = Instant::now();
        let stack = Stack::apply(world).await?;
        stack.ready(self.within).await?;
        let (ready, life) = (start.elapsed(), Life { calls: stack.calls() });
        stack.drift(self.within).await?;
        let settled = start.elapsed();
        stack.ensure_made_once()?;
        stack.delete().await?;
        stack.gone(self.within).await?;
        ensure!(operator.exited()?.is_none(), "the operator ended");
        stack.ensure_made_once()?;
        self.ensure_told(&stack)?;
        self.ensure_bounded(&stack)?;
        let sent = stack.calls().iter().filter(|call| call.mutating).count();
        println!(
            "{:<28} Ready {:>5.1} s, put right {:>5.1} s, gone {:>5.1} s; {} calls, {sent} changes sent, {} done",
            self.name,
            ready.as_secs_f64(),
            settled.as_secs_f64(),
            start.elapsed().as_secs_f64(),
            stack.calls().len(),
            stack.changes().len(),
        );
        Ok(life)
    }

    /// What the objects said of their troubles is true, and was said.
    fn ensure_told(&self, stack: &Stack<'_>) -> Result<()> {
        let troubles = stack.troubles();
        let is_told = |(reason, words): &(&str, &[&str]), (shown, message): &(String, String)| {
            shown == reason && words.iter().any(|word| message.contains(word))
        };
        for trouble in &troubles {
            let known = self.told.iter().any(|told| is_told(told, trouble));
            ensure!(known, "not what is wrong: {trouble:?}");
        }
        for told in self.told.iter().filter(|_| !self.heals_untold) {
            ensure!(troubles.iter().any(|trouble| is_told(told, trouble)), "never said: {told:?}");
        }
        Ok(())
    }

    fn ensure_bounded(&self, stack: &Stack<'_>) -> Result<()> {
        let (calls, changes) = (stack.calls(), stack.changes());
        let sent = calls.iter().filter(|call| call.mutating).count();
        ensure!(sent <= CHANGES * self.patience, "{sent} changes sent:\n{}", Table(&calls));
        ensure!(changes.len() <= CHANGES * 3 / 2, "{} changes done:\n{}", changes.len(), Table(&changes));
        Ok(())
    }
}

/// Ends it: it neither broke nor complained of itself.
pub async fn ended_well(operator: &mut Operator) -> Result<()> {
    let ended = operator.term(Duration::from_secs(60)).await?;
    let log = operator.log();
    ensure!(ended.success(), "{ended}\n{log}");
    ensure!(!log.contains("panicked"), "{log}");
    Ok(())
}
