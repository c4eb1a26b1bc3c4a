//! What became of objects.

use std::collections::BTreeMap;

/// How many ended with which reason.
pub type Reasons = BTreeMap<String, usize>;

/// Counts of what became of objects.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// How many there were.
    pub made: usize,
    /// How many the API server refused.
    pub refused: usize,
    /// Of the others: how many ended with which reason.
    pub reasons: Reasons,
    /// How many of these were to be changed.
    pub changed: usize,
    /// How many changes the API server refused.
    pub refused_changes: usize,
    /// How those ended whose change it took.
    pub reasons_then: Reasons,
    /// AWS calls.
    pub calls: usize,
    /// Calls that an emulator answered with an error of its own, by operation.
    pub emulator: Reasons,
}

impl Tally {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.made += other.made;
        self.refused += other.refused;
        add(&mut self.reasons, other.reasons);
        self.changed += other.changed;
        self.refused_changes += other.refused_changes;
        add(&mut self.reasons_then, other.reasons_then);
        self.calls += other.calls;
        add(&mut self.emulator, other.emulator);
    }
}

fn add(sum: &mut Reasons, other: Reasons) {
    other.into_iter().for_each(|(reason, n)| *sum.entry(reason).or_default() += n);
}
