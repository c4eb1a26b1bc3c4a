//! What the user sees: on a terminal redrawn in place and in colour, elsewhere one line a change.

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use anyhow::Result;
use rustix::termios::tcgetwinsize;
use tokio::time::{Instant, interval};

use crate::stack::Object;
use crate::tree::{Branch, Tree};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(120);
/// Between the lines of a long command.
const COMMAND: &str = " \\\n      ";
/// Before what stands below the line that it is about.
const INDENT: &str = "          ";
/// Width of a step's name.
const STEP: usize = 26;
/// What a line of the tree has beside the name and the detail.
const REST: usize = 25;

/// Standard output.
pub struct Terminal {
    live: bool,
    colour: bool,
    /// Lines that the next drawing replaces.
    drawn: usize,
    frame: usize,
    started: Instant,
    /// Without a terminal: what was last said of each object.
    said: HashMap<String, String>,
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

    /// The tree as it is now.
    pub fn draw(&mut self, tree: &Tree, objects: &[Object]) {
        if self.live {
            let lines = self.lines(tree, objects);
            self.redraw(&lines);
        } else {
            self.tell_changes(tree, objects);
        }
    }

    /// What is drawn stays; the next drawing comes below.
    pub fn settle(&mut self) {
        self.drawn = 0;
        self.said.clear();
    }

    fn lines(&mut self, tree: &Tree, objects: &[Object]) -> Vec<String> {
        let spinner = self.spinner();
        let names = tree.branches().iter().map(|branch| width(&branch.trunk) + width(&branch.name));
        let column = names.max().unwrap_or_default();
        let mut lines = Vec::new();
        for branch in tree.branches() {
            let object = objects.iter().find(|object| object.full_name() == branch.name);
            let (style, mark) = look(object, spinner);
            let space = " ".repeat(column - width(&branch.trunk) - width(&branch.name));
            let trunk = self.paint(Style::Dim, &branch.trunk);
            let state = self.paint(style, &format!("{mark} {:<18}", reason(object)));
            let line = format!("  {trunk}{}{space}  {state} ", branch.name);
            if object.is_some_and(|object| object.reason == "Error") {
                lines.push(line);
                lines.extend(self.refusal(branch, detail(object)));
            } else {
                let room = columns().saturating_sub(column + REST);
                lines.push(line + &self.paint(Style::Dim, &shorten(detail(object), room)));
            }
        }
        lines
    }

    /// AWS's words, at full width, below the object.
    fn refusal(&self, branch: &Branch, message: &str) -> Vec<String> {
        let below = format!("{:<6}", branch.below);
        let room = columns().saturating_sub(width(&below) + 2);
        let lines = sentences(message).into_iter().flat_map(|sentence| wrap(&sentence, room));
        lines.map(|line| format!("  {}{line}", self.paint(Style::Dim, &below))).collect()
    }

    fn tell_changes(&mut self, tree: &Tree, objects: &[Object]) {
        for branch in tree.branches() {
            let object = objects.iter().find(|object| object.full_name() == branch.name);
            let state = format!("{:<18} {}", reason(object), detail(object));
            if self.said.get(&branch.name) != Some(&state) {
                let seconds = self.started.elapsed().as_secs_f64();
                self.line(format!("  {seconds:>6.1} s  {:<28} {state}", branch.name).trim_end());
                self.said.insert(branch.name.clone(), state);
            }
        }
    }

    fn spinner(&mut self) -> &'static str {
        self.frame += 1;
        SPINNER[self.frame % SPINNER.len()]
    }

    /// Replaces what was drawn last.
    fn redraw(&mut self, lines: &[String]) {
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

/// Mark and colour of an object that is there, or gone.
fn look(object: Option<&Object>, spinner: &'static str) -> (Style, &'static str) {
    let Some(object) = object else { return (Style::Dim, "✓") };
    match object.reason.as_str() {
        "Synced" => (Style::Good, "✓"),
        "Error" => (Style::Bad, "✗"),
        "" | "DependencyNotReady" => (Style::Dim, "○"),
        _ => (Style::Busy, spinner),
    }
}

fn reason(object: Option<&Object>) -> &str {
    match object {
        None => "gone",
        Some(object) if object.reason.is_empty() => "applied",
        Some(object) => &object.reason,
    }
}

/// The identifier once it is Ready, until then why it is not.
fn detail(object: Option<&Object>) -> &str {
    object.map_or("", |object| if object.ready { &object.identifier } else { &object.message })
}

/// A message, sentence by sentence, without the request id, which kubectl shows.
fn sentences(message: &str) -> Vec<String> {
    let (before, after) = message.split_once(" (request id ").unwrap_or((message, ""));
    let after = after.split_once(')').map_or("", |(_, after)| after);
    let text = before.trim_end_matches('.').to_owned() + ". " + after.trim_start_matches(['.', ' ']);
    text.split(". ").filter(|sentence| !sentence.is_empty()).map(str::to_owned).collect()
}

/// Lines no longer than that, where words allow it.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// How wide the terminal is; a file is wide enough for everything.
fn columns() -> usize {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => usize::MAX,
    }
}
