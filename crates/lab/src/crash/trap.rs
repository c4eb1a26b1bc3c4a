//! The trap: counts what the operator sets off, and has it killed at one of these moments.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::proxy::aws::{AwsProxy, Call};
use crate::proxy::kube::{KubeProxy, Write};
use crate::proxy::{Stage, Verdict};

/// A moment to kill at: before or after the nth effect of a phase, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Which effect.
    pub effect: usize,
    /// Which side of it.
    pub stage: Stage,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.stage == Stage::Before { "before" } else { "after" };
        write!(f, "{side} effect {}", self.effect)
    }
}

/// Set in both proxies. An effect is an AWS call or an API-server write.
#[derive(Clone)]
pub(super) struct Trap(Arc<State>);

struct State {
    at: Option<Point>,
    effects: Mutex<Vec<Effect>>,
    last: Mutex<Instant>,
    sprung: watch::Sender<bool>,
    buried: watch::Sender<bool>,
}

#[derive(PartialEq)]
struct Effect {
    /// What, in words: `CreateVpc`, `Patch vpcs/status`. With the number, unique in both logs.
    what: String,
    seq: u64,
}

impl Trap {
    /// Sets it. Without a point it only counts.
    pub fn set(aws: &AwsProxy, kube: &KubeProxy, at: Option<Point>) -> Self {
        let trap = Self(Arc::new(State {
            at,
            effects: Mutex::default(),
            last: Mutex::new(Instant::now()),
            sprung: watch::Sender::new(false),
            buried: watch::Sender::new(false),
        }));
        let (calls, writes) = (trap.clone(), trap.clone());
        aws.on_call(move |stage, call: Call| {
            let effect = Effect { what: call.operation, seq: call.seq };
            let trap = calls.clone();
            async move { trap.meet(stage, effect).await }
        });
        kube.on_write(move |stage, write: Write| {
            let what = [Some(write.target.resource), write.target.subresource];
            let what = what.into_iter().flatten().collect::<Vec<_>>().join("/");
            let effect = Effect { what: format!("{:?} {what}", write.target.verb), seq: write.seq };
            let trap = writes.clone();
            async move { trap.meet(stage, effect).await }
        });
        trap
    }

    async fn meet(&self, stage: Stage, effect: Effect) -> Verdict {
        if self.lets_pass(stage, effect) {
            return Verdict::Continue;
        }
        // What else it sets off before the kill has reached it comes to nothing too.
        let _ = self.0.buried.subscribe().wait_for(|buried| *buried).await;
        Verdict::Drop
    }

    fn lets_pass(&self, stage: Stage, effect: Effect) -> bool {
        if *self.0.sprung.borrow() {
            return *self.0.buried.borrow();
        }
        *self.0.last.lock() = Instant::now();
        let mut effects = self.0.effects.lock();
        if stage == Stage::Before {
            effects.push(effect);
            return !self.spring(stage, effects.len());
        }
        let number = effects.iter().position(|seen| *seen == effect).map(|index| index + 1);
        !number.is_some_and(|number| self.spring(stage, number))
    }

    fn spring(&self, stage: Stage, effect: usize) -> bool {
        let springs = self.0.at == Some(Point { effect, stage });
        if springs {
            self.0.sprung.send_replace(true);
        }
        springs
    }

    /// Waits until its moment has come: the operator is to be killed now.
    pub async fn sprung(&self) {
        let _ = self.0.sprung.subscribe().wait_for(|sprung| *sprung).await;
    }

    /// The operator is dead: what it waited for is cut off, and what comes now is another's.
    pub fn bury(&self) {
        self.0.buried.send_replace(true);
    }

    /// Waits until nothing was set off for that long.
    pub async fn quiet(&self, time: Duration) {
        let left = || {
            let passed = self.0.last.lock().elapsed();
            time.checked_sub(passed)
        };
        while let Some(left) = left() {
            tokio::time::sleep(left.max(Duration::from_millis(5))).await;
        }
    }

    /// What was counted, in order.
    pub fn effects(&self) -> Vec<String> {
        self.0.effects.lock().iter().map(|effect| effect.what.clone()).collect()
    }
}
