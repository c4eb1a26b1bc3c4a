//! The tree as the user sees it: on a terminal redrawn in place, elsewhere one line a change.

use crate::stack::Object;
use crate::terminal::{Style, Terminal, columns};
use crate::text::{sentences, shorten, width, wrap};
use crate::tree::{Branch, Tree};

/// What a line of the tree has beside the name and the detail.
const REST: usize = 25;

impl Terminal {
    /// The tree as it is now.
    pub fn draw(&mut self, tree: &Tree, objects: &[Object]) {
        if self.live {
            let lines = self.lines(tree, objects);
            self.redraw(&lines);
        } else {
            self.tell_changes(tree, objects);
        }
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
