//! What was measured, for a terminal and as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::usage::Usage;

/// A scenario.
pub struct Run {
    pub name: String,
    pub about: &'static str,
    /// How many objects.
    pub count: usize,
    /// The drift interval of the last two phases.
    pub interval: Duration,
    pub phases: Vec<Phase>,
}

/// One phase of it.
pub struct Phase {
    pub name: &'static str,
    pub took: Duration,
    pub cpu: Duration,
    /// At its end.
    pub usage: Usage,
    /// AWS calls by operation.
    pub calls: BTreeMap<String, u64>,
    /// API-server requests by verb.
    pub requests: BTreeMap<String, u64>,
}

/// A critical path.
pub struct Path {
    pub name: &'static str,
    pub latency: Duration,
    pub calls: usize,
    /// Until all are Ready.
    pub took: Duration,
    /// The same calls alone, one after the other.
    pub alone: Duration,
}

impl Path {
    fn ratio(&self) -> f64 {
        self.took.as_secs_f64() / self.alone.as_secs_f64()
    }

    fn cells(&self) -> [String; 6] {
        [
            self.name.to_owned(),
            format!("{} ms", self.latency.as_millis()),
            self.calls.to_string(),
            format!("{:.2} s", self.took.as_secs_f64()),
            format!("{:.2} s", self.alone.as_secs_f64()),
            format!("{:.2}", self.ratio()),
        ]
    }
}

const PHASE: [&str; 8] =
    ["phase", "time", "CPU", "resident", "own", "peak", "AWS calls (an object)", "API-server requests"];
const PATH: [&str; 6] = ["objects", "latency", "AWS calls", "to all Ready", "calls alone", "ratio"];

fn cells(phase: &Phase, count: usize) -> [String; 8] {
    let megabytes = |kilobytes: u64| format!("{:.1} MB", kilobytes as f64 / 1024.0);
    let total: u64 = phase.calls.values().sum();
    [
        phase.name.to_owned(),
        format!("{:.1} s", phase.took.as_secs_f64()),
        format!("{:.2} s", phase.cpu.as_secs_f64()),
        megabytes(phase.usage.resident),
        megabytes(phase.usage.anonymous),
        megabytes(phase.usage.peak),
        format!("{total} ({:.2})", total as f64 / count as f64),
        phase.requests.values().sum::<u64>().to_string(),
    ]
}

/// A scenario's phases in columns, and below them the calls by operation.
pub fn aligned(run: &Run) -> String {
    let rows = run.phases.iter().map(|phase| cells(phase, run.count).to_vec());
    let mut text = format!("\n{}: {} {}\n\n", run.name, run.count, run.about);
    text += &columns(&PHASE, rows.collect());
    for phase in &run.phases {
        for (what, counts) in [("AWS", &phase.calls), ("API server", &phase.requests)] {
            if !counts.is_empty() {
                writeln!(text, "  {}, {what}: {}", phase.name, listed(counts)).ok();
            }
        }
    }
    text
}

/// The critical paths in columns.
pub fn aligned_paths(paths: &[Path]) -> String {
    format!("\n{}", columns(&PATH, paths.iter().map(|path| path.cells().to_vec()).collect()))
}

/// All of it as Markdown, with the machine, the date and the command.
pub fn markdown(runs: &[Run], paths: &[Path], names: &str) -> String {
    let mut text = format!("{}\n\n`make bench ARGS=\"{names}\"`\n", machine());
    for run in runs {
        let interval = run.interval.as_secs();
        writeln!(text, "\n### {}: {} {}\n", run.name, grouped(run.count), run.about).ok();
        text += &piped(&PHASE, run.phases.iter().map(|phase| cells(phase, run.count).to_vec()));
        writeln!(text, "\nThe drift interval of the last two rows is {interval} s. AWS calls:\n").ok();
        for phase in run.phases.iter().filter(|phase| !phase.calls.is_empty()) {
            writeln!(text, "- {}: {}", phase.name, listed(&phase.calls)).ok();
        }
        text += "\nAPI-server requests:\n\n";
        for phase in run.phases.iter().filter(|phase| !phase.requests.is_empty()) {
            writeln!(text, "- {}: {}", phase.name, listed(&phase.requests)).ok();
        }
    }
    if !paths.is_empty() {
        text += "\n### Critical path\n\n";
        text += &piped(&PATH, paths.iter().map(|path| path.cells().to_vec()));
    }
    text
}

fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unnamed CPU", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    format!("{date}, {cores} cores of {model}, Linux {}, load {load} at the end.", kernel.trim())
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    let each = counts.iter().map(|(what, count)| format!("{what} {}", grouped(*count as usize)));
    each.collect::<Vec<_>>().join(", ")
}

/// 10000 as 10,000.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let chunks: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    chunks.join(",")
}

fn columns(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<_> = (0..rows[0].len()).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  "))
    };
    rows.iter().map(line).collect()
}

fn piped(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|---{}|\n", head.join(" | "), "|---:".repeat(head.len() - 1));
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).ok();
    }
    text
}
