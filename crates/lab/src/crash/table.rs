//! What came of it, as a table.

use std::fmt;

/// What came of one phase of one kind.
#[derive(Debug, Clone)]
pub struct Row {
    /// The kind.
    pub kind: String,
    /// `create`, `update`, `update 2`, …, `delete`.
    pub phase: String,
    /// The AWS calls and API-server writes of the phase when nothing is killed.
    pub effects: usize,
    /// The points at which the operator was killed.
    pub tried: usize,
    /// The points that were meant and never came: a phase is not quite the same each time.
    pub missed: usize,
    /// How it ended wrong, with the point.
    pub failures: Vec<String>,
}

impl Row {
    pub(super) fn new(kind: &str, phase: impl fmt::Display, effects: usize) -> Self {
        let (kind, phase) = (kind.to_owned(), phase.to_string());
        Self { kind, phase, effects, tried: 0, missed: 0, failures: Vec::new() }
    }
}

/// Kind by phase: points tried, failures. Shown in Markdown.
#[derive(Debug, Clone, Default)]
pub struct Table(pub Vec<Row>);

impl Table {
    /// All failures.
    #[must_use]
    pub fn failures(&self) -> Vec<&str> {
        self.0.iter().flat_map(|row| &row.failures).map(String::as_str).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| Kind | Phase | Calls and writes | Points tried | Failures |")?;
        writeln!(f, "|---|---|---:|---:|---:|")?;
        for Row { kind, phase, effects, tried, failures, .. } in &self.0 {
            writeln!(f, "| {kind} | {phase} | {effects} | {tried} | {} |", failures.len())?;
        }
        Ok(())
    }
}
