//! What people and chance do in a run: a script that follows from the seed.

use std::time::Duration;

use crate::chance::{Chance, Dice};
use crate::foreign::Holder;
use crate::kinds::SHAPES;
use crate::weather::Weather;

/// An object of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Its kind, by its place among the shapes.
    pub shape: usize,
    /// Its name.
    pub name: &'static str,
    /// Its namespace.
    pub namespace: &'static str,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Action {
    /// An object is made, or changed if it is there.
    Apply(Actor, u64),
    /// What cannot be changed is changed.
    ChangeFixed(Actor, u64),
    /// An annotation is set or taken away.
    Annotate(Actor, &'static str, Option<&'static str>),
    /// An object is deleted.
    Delete(Actor),
    /// Somebody changes what is in AWS.
    Drift(Actor, u64),
    /// Somebody puts another object's owner tags on it in AWS.
    Steal(Actor),
    /// Somebody deletes it in AWS.
    DeleteInAws(Actor),
    /// Somebody makes, in AWS, what it would be.
    MakeInAws(Actor, Holder),
    /// The user says by its id what it is in AWS.
    AdoptById(Actor, u64),
    /// The user takes it over from another cluster.
    AdoptFrom(Actor),
    /// The CRD of its kind is deleted, with leave to take the AWS resources with it or without.
    RemoveCrd(Actor, bool),
    /// That leave is given later.
    AllowCrd(Actor),
    /// A Secret gets another value.
    ChangeSecret(&'static str, u64),
    /// What goes wrong from now on.
    Weather(Weather),
    /// The engine crashes before or after the effect that comes after so many others.
    Crash(u64, bool),
    /// The engine is stopped in good order, and started again.
    Restart,
    /// The clock on the wall is set forward, or back.
    SetClock(i64),
}

/// A step, and the pause before it.
pub type Step = (Duration, Action);

/// The script of a seed.
pub fn script(seed: u64) -> Vec<Step> {
    let chance = Chance::new(seed);
    let length = chance.once("length of the script").within(8..45);
    // Most of what happens in one run happens to one object: there it meets.
    let favourite = actor(&mut chance.once("the favourite"));
    (0..length).map(|number| step(&mut chance.once(&format!("step {number}")), favourite)).collect()
}

/// In milliseconds.
const HOUR: i64 = 3_600_000;

/// The namespace of networks that are referred to from another one.
pub const APART: &str = "apart";

const NAMES: &[&str] = &["a", "b"];

fn step(dice: &mut Dice, favourite: Actor) -> Step {
    let pause = match dice.within(0..10) {
        0..4 => dice.millis(0..800),
        4..8 => dice.millis(800..30_000),
        _ => dice.millis(30_000..700_000),
    };
    let actor = if dice.percent(40) { favourite } else { actor(dice) };
    (pause, action(dice, actor))
}

fn actor(dice: &mut Dice) -> Actor {
    let (shape, name) = (dice.within(0..SHAPES.len() as u64) as usize, dice.one_of::<&str>(NAMES));
    // What others refer to lies in another namespace, too.
    let is_apart = SHAPES[shape].meta.kind == "Network" && dice.percent(30);
    Actor { shape, name, namespace: if is_apart { APART } else { "default" } }
}

fn action(dice: &mut Dice, actor: Actor) -> Action {
    type Make = fn(&mut Dice, Actor) -> Action;
    let choices: [(u64, Make); 18] = [
        (36, |dice, actor| Action::Apply(actor, dice.within(0..1000))),
        (2, |dice, actor| Action::ChangeFixed(actor, dice.within(0..4))),
        (7, |dice, actor| {
            let (key, value) = *dice.one_of(&[
                ("paused", Some("true")),
                ("paused", None),
                ("reconcile", Some("now")),
                ("deletion-policy", Some("abandon")),
                ("deletion-policy", Some("delete")),
                ("deletion-policy", None),
                ("external-id", None),
                ("adopt-from", None),
            ]);
            Action::Annotate(actor, key, value)
        }),
        (12, |_, actor| Action::Delete(actor)),
        (6, |dice, actor| Action::Drift(actor, dice.within(0..4))),
        (2, |_, actor| Action::Steal(actor)),
        (5, |_, actor| Action::DeleteInAws(actor)),
        (7, |dice, actor| {
            use Holder::{Broken, Elsewhere, Nobody};
            Action::MakeInAws(actor, *dice.one_of(&[Nobody, Nobody, Elsewhere, Elsewhere, Broken]))
        }),
        (4, |dice, actor| Action::AdoptById(actor, dice.within(0..4))),
        (2, |_, actor| Action::AdoptFrom(actor)),
        (6, |dice, actor| Action::ChangeSecret(actor.name, dice.within(0..6))),
        (4, |dice, actor| Action::RemoveCrd(actor, dice.percent(60))),
        (2, |_, actor| Action::AllowCrd(actor)),
        (8, |dice, _| Action::Weather(Weather::of(dice))),
        (12, |dice, _| Action::Crash(dice.within(0..8), dice.percent(50))),
        (3, |_, _| Action::Restart),
        (3, |dice, _| Action::SetClock(*dice.one_of(&[-600_000, -30_000, 1_000, 20_000]))),
        (3, |dice, _| Action::SetClock(*dice.one_of(&[300_000, 3 * HOUR, 3 * 24 * HOUR]))),
    ];
    let make = dice.weighted(&choices);
    make(dice, actor)
}
