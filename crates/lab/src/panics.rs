//! Panics that a process tells of. It need not end with one: where each task is on its own, one task ends, and
//! what that task did is not done any more.

/// What the runtime writes when something broke that no code can have handled.
const MARKS: [&str; 5] = [
    "panicked at",
    "panicked while processing panic",
    "has overflowed its stack",
    "fatal runtime error",
    "memory allocation of",
];

/// How many lines of it are shown.
const SHOWN: usize = 12;

/// The first panic in a log, with what follows it; `None` if there is none.
#[must_use]
pub fn first(log: &str) -> Option<String> {
    // Other threads may write in the middle of it: it need not stand at the beginning of a line.
    let mut lines = log.lines().skip_while(|line| !MARKS.iter().any(|mark| line.contains(mark))).peekable();
    lines.peek()?;
    Some(lines.take(SHOWN).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "2026-11-29T10:00:00Z  INFO konfig: watching kind=\"VPC\"\n";
    const AFTER: &str = "\n2026-11-29T10:00:01Z  INFO reconcile{kind=\"VPC\"}: synced\n";

    #[test]
    fn whatever_breaks_is_found_in_the_middle_of_a_log() {
        for said in [
            "thread 'main' panicked at crates/a/src/lib.rs:1:2:\nwhy",
            "thread 'tokio-rt-worker' (4711) panicked at /rustc/0/library/core/src/option.rs:1:2:\nwhy",
            "thread '<unnamed>' panicked at 'why', src/main.rs:1:2",
            // Cut in two by another thread's line.
            "thread '2026-11-29T10:00:00Z  INFO reconcile: synced\ntokio-rt-worker' panicked at src/a.rs:1:2:\nwhy",
            "thread panicked while processing panic. aborting.",
            "thread 'tokio-rt-worker' has overflowed its stack\nfatal runtime error: stack overflow, aborting",
            "fatal runtime error: Rust cannot catch foreign exceptions, aborting",
            "memory allocation of 99999999999 bytes failed",
        ] {
            let found = first(&format!("{BEFORE}{said}{AFTER}")).unwrap_or_default();
            assert!(found.ends_with(AFTER.trim()) && !found.contains("watching"), "{said}: {found:?}");
            let why = said.lines().last().unwrap_or_default();
            assert!(found.contains(why), "{said}: {found:?}");
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_broke() {
        assert_eq!(first(""), None);
        assert_eq!(first(&format!("{BEFORE}2026-11-29T10:00:01Z ERROR aws: do not panic{AFTER}")), None);
    }

    #[test]
    fn no_more_than_a_few_lines_are_shown() {
        let log = format!("thread 'main' panicked at a.rs:1:2:\n{}", "why\n".repeat(100));
        assert_eq!(first(&log).unwrap_or_default().lines().count(), SHOWN);
    }
}
