//! Standard output: on a terminal in colour and redrawn in place, elsewhere plain lines.

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use anyhow::Result;
use rustix::termios::tcgetwinsize;
use tokio::time::{Instant, interval};

use crate::text::{sentences, width, wrap};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(120);
/// Between the lines of a long command.
const COMMAND: &str = " \\\n      ";
/// Before what stands below the line that it is about.
const INDENT: &str = "          ";
/// Width of a step's name.
const STEP: usize = 26;

/// Standard output.
pub struct Terminal {
    pub live: bool,
    colour: bool,
    /// Lines that the next drawing replaces.
    drawn: usize,
    frame: usize,
    pub started: Instant,
    /// Without a terminal: what was last said of each object.
    pub said: HashMap<String, String>,
}

/// How a text looks in colour.
#[derive(Clone, Copy)]
pub enum Style {
    Good,
    Busy,
    Bad,
    Dim,
    Bold,
}

impl Terminal {
    /// Finds out what standard output can do.
    pub fn open() -> Self {
        let live = stdout().is_terminal() && env::var_os("TERM").is_some_and(|term| term != "dumb");
        let colour = live && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { live, colour, drawn: 0, frame: 0, started: Instant::now(), said: HashMap::new() }
    }

    /// The text in colour, where there are colours.
    pub fn paint(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Good => "32",
            Style::Busy => "33",
            Style::Bad => "31",
            Style::Dim => "2",
            Style::Bold => "1",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A line, or several.
    pub fn line(&self, text: &str) {
        // Nobody may be reading any more.
        writeln!(stdout(), "{text}").ok();
    }

    /// A message after its head, or below it where it doesn't fit.
    pub fn told(&self, head: &str, message: &str) {
        let sentences = sentences(message);
        match sentences.as_slice() {
            [only] if width(head) + width(only) <= columns() => self.line(&format!("{head}{only}")),
            _ => {
                self.line(head.trim_end());
                let room = columns().saturating_sub(INDENT.len());
                let lines = sentences.iter().flat_map(|sentence| wrap(sentence, room));
                lines.for_each(|line| self.line(&format!("{INDENT}{}", self.paint(Style::Dim, &line))));
            }
        }
    }

    /// What comes next.
    pub fn title(&self, text: &str) {
        self.line(&format!("\n{}\n", self.paint(Style::Bold, text)));
    }

    /// A command that is run.
    pub fn command(&self, text: &str) {
        let lines = wrap(&format!("$ {text}"), columns().saturating_sub(COMMAND.len() + 2));
        self.line(&format!("  {}\n", self.paint(Style::Dim, &lines.join(COMMAND))));
    }

    /// Shows that a step is under way, then what came of it.
    pub async fn step<T>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<(T, String)>>,
    ) -> Result<T> {
        let start = Instant::now();
        let mut work = Box::pin(work);
        let mut ticks = interval(FRAME);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                _ = ticks.tick() => {
                    let seconds = start.elapsed().as_secs();
                    let line = format!("  {} {what:<STEP$} {seconds} s", self.spinner());
                    self.redraw(&[line]);
                }
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let (mark, detail) = match &done {
            Ok((_, detail)) => (self.paint(Style::Good, "✓"), detail.as_str()),
            Err(_) => (self.paint(Style::Bad, "✗"), "failed"),
        };
        let line = format!("  {mark} {what:<STEP$} {detail:<38} {seconds:>5.1} s");
        self.redraw(std::slice::from_ref(&line));
        self.settle();
        if !self.live {
            self.line(&line);
        }
        Ok(done?.0)
    }

    /// What is drawn stays; the next drawing comes below.
    pub fn settle(&mut self) {
        self.drawn = 0;
        self.said.clear();
    }

    pub fn spinner(&mut self) -> &'static str {
        self.frame += 1;
        SPINNER[self.frame % SPINNER.len()]
    }

    /// Replaces what was drawn last.
    pub fn redraw(&mut self, lines: &[String]) {
        if !self.live {
            return;
        }
        let mut text = String::new();
        if self.drawn > 0 {
            write!(text, "\x1b[{}A", self.drawn).ok();
        }
        // Without wrapping: a line too long would take two, and the next drawing miss its place.
        text += "\x1b[?7l";
        for line in lines {
            writeln!(text, "\r\x1b[K{line}").ok();
        }
        // The last drawing may have been longer.
        text += "\x1b[J\x1b[?7h";
        write!(stdout(), "{text}").ok();
        stdout().flush().ok();
        self.drawn = lines.len();
    }
}

/// How wide the terminal is; a file is wide enough for everything.
pub fn columns() -> usize {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => usize::MAX,
    }
}
