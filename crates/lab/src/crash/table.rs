//! What came of it, as a table.

use std::fmt;

/// What came of one phase of one kind.
#[derive(Debug, Clone)]
pub struct Row {
    /// The data file.
    pub life: String,
    /// `create`, `update 1`, `update 2`, …, `rotate`, `delete`.
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
    pub(super) fn new(life: &str, phase: impl fmt::Display, effects: usize) -> Self {
        let (life, phase) = (life.to_owned(), phase.to_string());
        Self { life, phase, effects, tried: 0, missed: 0, failures: Vec::new() }
    }
}

/// Life by phase: points tried, failures. Shown in Markdown.
#[derive(Debug, Clone, Default)]
pub struct Table(pub Vec<Row>);

impl Table {
    /// All failures.
    #[must_use]
    pub fn failures(&self) -> Vec<&str> {
        self.0.iter().flat_map(|row| &row.failures).map(String::as_str).collect()
    }

    /// Takes in another.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Life by life; the phases of each stay in order.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| a.life.cmp(&b.life));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.0.iter().map(|row| row.life.len()).max().unwrap_or_default().max(4);
        writeln!(f, "| {:<wide$} | phase     | calls and writes | points tried | failures |", "life")?;
        writeln!(f, "|{:-<wide$}--|-----------|-----------------:|-------------:|---------:|", "")?;
        for Row { life, phase, effects, tried, failures, .. } in &self.0 {
            let failures = failures.len();
            writeln!(f, "| {life:<wide$} | {phase:<9} | {effects:>16} | {tried:>12} | {failures:>8} |")?;
        }
        let tried: usize = self.0.iter().map(|row| row.tried).sum();
        writeln!(f, "\n{tried} points tried, {} failures", self.failures().len())
    }
}
