//! What happened, for people.

use std::fmt::{self, Display};
use std::time::Duration;

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A person, or chance itself.
    World,
    /// The engine, in the cluster.
    Api,
    /// The engine, in AWS.
    Aws,
}

impl Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::World => "world",
            Self::Api => "  api",
            Self::Aws => "  aws",
        })
    }
}

/// Everything that happened, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace(Vec<(Duration, String)>);

impl Trace {
    /// Something happened.
    pub fn add(&mut self, at: Duration, who: Who, what: impl Display) {
        self.0.push((at, format!("{who}  {what}")));
    }

    /// The same whatever came first within one millisecond: maps of the libraries have no order.
    pub fn in_order(&self) -> Vec<String> {
        let mut lines = self.0.clone();
        lines.sort();
        lines.iter().map(line).collect()
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|entry| writeln!(f, "{}", line(entry)))
    }
}

fn line((at, what): &(Duration, String)) -> String {
    format!("{:>10.3}  {what}", at.as_secs_f64())
}
