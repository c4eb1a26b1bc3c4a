//! Shows that the simulation bites: each mutant, a broken variant of what is simulated, must be caught.
//!
//! A mutant is a patch in `crates/simulation/mutants`, with a sentence at its top that says what it breaks.
//! The crates are copied to a folder below the target directory, where one patch after the other is applied,
//! built and run. `mutants NAME…` runs just these. Ends with 0 if all were caught, with 1 if one was not, with 2
//! if that could not be found out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use simulation::SEEDS;

/// What is copied, from the root of the repository.
const CRATES: &[&str] = &["resource", "engine", "aws", "simulation"];

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all of them are caught.
fn run(wanted: &[String]) -> Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let copy = target.join("mutants");
    let mut patches: Vec<PathBuf> = fs::read_dir(root.join("crates/simulation/mutants"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    patches.retain(|patch| wanted.is_empty() || wanted.contains(&name(patch)));
    patches.sort();
    ensure!(!patches.is_empty(), "no such mutant");
    let began = Instant::now();
    let mut escaped = 0;
    for patch in &patches {
        let started = Instant::now();
        let caught = try_out(&root, &copy, &target, patch).with_context(|| name(patch))?;
        let (outcome, seconds) = (caught.as_deref().unwrap_or("NOT CAUGHT"), started.elapsed().as_secs());
        println!("{:<45} {seconds:>4} s  {outcome}", name(patch));
        escaped += usize::from(caught.is_none());
    }
    let seconds = began.elapsed().as_secs();
    println!("{} of {} mutants caught in {seconds} s", patches.len() - escaped, patches.len());
    Ok(escaped == 0)
}

fn name(patch: &Path) -> String {
    patch.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What the simulation says of a mutant; None if it finds nothing wrong.
fn try_out(root: &Path, copy: &Path, target: &Path, patch: &Path) -> Result<Option<String>> {
    refresh(root, copy)?;
    let applied = Command::new("patch")
        .args(["--strip=1", "--quiet", "--input"])
        .arg(patch)
        .current_dir(copy)
        .output()?;
    ensure!(applied.status.success(), "the patch no longer applies:\n{}", text(&applied));
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--offline", "--quiet", "--package", "simulation", "--bin", "mutant"]);
    // The same target directory: what comes from a registry is built already.
    let built = build.current_dir(copy).env("CARGO_TARGET_DIR", target).output()?;
    ensure!(built.status.success(), "it does not compile:\n{}", text(&built));
    let mutant = target.join("debug/mutant");
    let ran = Command::new(mutant).args(["--quick", "--seeds", &SEEDS.to_string()]).output()?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.code() {
        Some(0) => Ok(None),
        Some(1) => {
            Ok(Some(said.lines().find(|line| line.starts_with("seed ")).unwrap_or_default().to_owned()))
        }
        _ => bail!("it breaks down, instead of violating an invariant:\n{}", text(&ran)),
    }
}

/// Brings the copy to what the repository has; what is the same keeps its time, and is not built again.
fn refresh(root: &Path, copy: &Path) -> Result<()> {
    for part in CRATES.iter().map(|part| format!("crates/{part}")) {
        mirror(&root.join(&part), &copy.join(&part))?;
    }
    // Under a name of its own: the target directory is shared, and `simulate` is to stay what it is.
    let bin = "crates/simulation/src/bin";
    write(&copy.join(bin).join("mutant.rs"), &fs::read(root.join(bin).join("simulate.rs"))?)?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let manifest = manifest.lines().map(in_copy).collect::<Vec<_>>().join("\n");
    write(&copy.join("Cargo.toml"), manifest.as_bytes())?;
    if !copy.join("Cargo.lock").exists() {
        fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    }
    Ok(())
}

/// A line of the workspace's manifest, as the copy has it.
fn in_copy(line: &str) -> &str {
    match line {
        line if line.starts_with("members = ") => r#"members = ["crates/*"]"#,
        // Another version: cargo must never take what a mutant left in the target directory for the real thing.
        line if line.starts_with("version = ") => r#"version = "0.0.0-mutant""#,
        line => line,
    }
}

fn mirror(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            mirror(&from, &to)?;
        } else {
            write(&to, &fs::read(&from)?)?;
        }
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|before| before == content) {
        return Ok(());
    }
    fs::write(path, content).with_context(|| path.display().to_string())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
