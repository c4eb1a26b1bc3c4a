//! What is under way: one line that is drawn anew on a terminal, a line a step elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

/// Standard error.
pub struct Progress {
    live: bool,
    step: String,
    started: Instant,
}

impl Progress {
    pub fn open() -> Self {
        Self { live: stderr().is_terminal(), step: String::new(), started: Instant::now() }
    }

    /// Something else begins.
    pub fn step(&mut self, what: impl Into<String>) {
        self.clear();
        self.step = what.into();
        self.started = Instant::now();
        if !self.live {
            eprintln!("bench: {}", self.step);
        }
    }

    /// How far it is.
    pub fn at(&self, done: usize, of: usize) {
        if self.live {
            let seconds = self.started.elapsed().as_secs();
            eprint!("\r\x1b[K{}: {done} of {of}, {seconds} s", self.step);
            stderr().flush().ok();
        }
    }

    /// Makes room for other output.
    pub fn clear(&self) {
        if self.live {
            eprint!("\r\x1b[K");
        }
    }
}
