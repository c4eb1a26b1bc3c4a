//! Chance that follows from the seed.
//!
//! Every decision has a name of its own (which object, which call, the how manieth) and is drawn from
//! seed and name alone. So what happens to one object does not depend on the order in which others had
//! their turn, and a script that is cut short is the same up to the cut.

use std::collections::BTreeMap;
use std::time::Duration;

/// All chance of one run.
#[derive(Clone, Debug)]
pub struct Chance {
    seed: u64,
    turns: BTreeMap<String, u64>,
}

impl Chance {
    /// The chance of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, turns: BTreeMap::new() }
    }

    /// The dice of a decision that is made once.
    pub fn once(&self, name: &str) -> Dice {
        // FNV-1a: the same on every machine and in every release.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut dice = Dice(hash ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        dice.next();
        dice
    }

    /// The dice of a decision that comes again and again: each time others.
    pub fn again(&mut self, name: &str) -> Dice {
        let turn = self.turns.entry(name.to_owned()).or_default();
        *turn += 1;
        let name = format!("{name} {turn}");
        self.once(&name)
    }
}

/// A row of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `range`.
    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start).max(1)
    }

    /// A time from so many milliseconds.
    pub fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// Whether something comes true that does so in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.within(0..100) < percent
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.within(0..choices.len() as u64) as usize]
    }

    /// One of these, each as likely as its weight.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.within(0..choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *choice,
            }
        }
        choices[0].1
    }
}
