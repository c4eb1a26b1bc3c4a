//! Engine versions: what the user asks for is a prefix or a floor, never a step back.

use std::cmp::Ordering;

use resource::{Error, Result};

/// Whether the version that AWS runs is one that the user asks for: it begins with it, or is above
/// it within the same major version.
pub(crate) fn satisfied(engine: &str, wanted: &str, live: &str) -> bool {
    same_major(engine, wanted, live) && compare(live, wanted).is_ge()
}

/// Whether AWS may be asked to go from the version it runs to another one.
pub(crate) fn upgrade(engine: &str, wanted: &str, live: &str, allow_major: bool) -> Result<()> {
    let refused = |message: String| Err(Error::invalid("engineVersion", message));
    if compare(live, wanted).is_gt() {
        return refused(format!(
            "AWS runs {live} and cannot go back to {wanted}: set engineVersion to {live} or to what it begins with"
        ));
    }
    if !allow_major && !same_major(engine, wanted, live) {
        return refused(format!(
            "from {live} to {wanted} is a major version upgrade, which may break applications and cannot be \
             undone: set allowMajorVersionUpgrade to true if it is meant"
        ));
    }
    Ok(())
}

/// Where one of them is too short to tell, what both say counts.
fn same_major(engine: &str, wanted: &str, live: &str) -> bool {
    let (wanted, live) = (parts(wanted), parts(live));
    let length = major_length(engine, &live);
    wanted.iter().zip(&live).take(length).all(|(wanted, live)| number(wanted) == number(live))
}

/// How many parts of a version make the major version.
fn major_length(engine: &str, live: &[&str]) -> usize {
    if engine.contains("postgres") {
        // 9.6 was a major version; since 10, the first number is.
        let first = live.first().and_then(|part| part.parse().ok()).unwrap_or(0);
        return if first >= 10 { 1 } else { 2 };
    }
    if engine.contains("oracle") || engine.contains("sqlserver") {
        return 1;
    }
    // 8.0.mysql_aurora.3.04.0
    if live.contains(&"mysql_aurora") { 4 } else { 2 }
}

/// How two versions stand to each other. One that begins with the whole of the other one is above it
/// or the same: 8.0.35 is an 8.0.
fn compare(live: &str, wanted: &str) -> Ordering {
    let (live, wanted) = (parts(live), parts(wanted));
    let mut parts = live.iter().zip(&wanted).map(|(live, wanted)| number(live).cmp(&number(wanted)));
    let differing = parts.find(|order| order.is_ne());
    differing.unwrap_or(if live.len() < wanted.len() { Ordering::Less } else { Ordering::Equal })
}

fn parts(version: &str) -> Vec<&str> {
    version.split(['.', '-']).collect()
}

/// Numbers compare as numbers, anything else as text.
fn number(part: &str) -> (u64, &str) {
    part.parse().map_or((0, part), |number| (number, ""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_prefix_or_a_floor_is_met() {
        for (engine, wanted, live) in [
            ("mysql", "8.0", "8.0.35"),
            ("mysql", "8", "8.0.35"),
            ("mysql", "8.0.35", "8.0.35"),
            ("mysql", "8.0.9", "8.0.35"),
            ("mysql", "8", "8.4.3"),
            ("mariadb", "10.6", "10.6.14"),
            ("postgres", "16", "16.3"),
            ("postgres", "14.9", "14.10"),
            ("postgres", "9.6", "9.6.24"),
            ("oracle-ee", "19", "19.0.0.0.ru-2023-04.rur-2023-04.r1"),
            ("oracle-ee", "19.0.0.0.ru-2023-01.rur-2023-01.r1", "19.0.0.0.ru-2023-04.rur-2023-04.r1"),
            ("sqlserver-ex", "15.00", "15.00.4236.7.v1"),
            ("aurora-mysql", "8.0", "8.0.mysql_aurora.3.04.0"),
            ("aurora-mysql", "8.0.mysql_aurora.3.03", "8.0.mysql_aurora.3.04.0"),
            ("aurora-postgresql", "15.2", "15.4"),
        ] {
            assert!(satisfied(engine, wanted, live), "{engine} {wanted} {live}");
        }
    }

    #[test]
    fn what_is_below_or_of_another_major_version_is_not() {
        for (engine, wanted, live) in [
            ("mysql", "8.0.36", "8.0.35"),
            ("mysql", "8.0.35", "8.0"),
            ("mysql", "8.0", "8.4.3"),
            ("mysql", "8.4", "8.0.35"),
            ("mysql", "8.0.3", "8.4.2"),
            ("postgres", "16", "15.7"),
            ("postgres", "15", "16.3"),
            ("postgres", "1", "16.3"),
            ("postgres", "9.6", "10.4"),
            ("aurora-mysql", "8.0.mysql_aurora.3.04.0", "5.7.mysql_aurora.2.11.3"),
        ] {
            assert!(!satisfied(engine, wanted, live), "{engine} {wanted} {live}");
        }
    }

    #[test]
    fn a_minor_upgrade_goes_and_a_major_one_needs_a_word() {
        assert!(upgrade("mysql", "8.0.36", "8.0.35", false).is_ok());
        assert!(upgrade("postgres", "16", "15.7", true).is_ok());
        let refused = upgrade("postgres", "16", "15.7", false).unwrap_err();
        assert!(refused.message.contains("allowMajorVersionUpgrade"), "{refused}");
    }

    #[test]
    fn no_word_leads_back() {
        for (wanted, live) in [("15", "16.3"), ("8.0", "8.4.3")] {
            let refused = upgrade("postgres", wanted, live, true).unwrap_err();
            assert!(refused.message.contains("cannot go back"), "{refused}");
        }
    }
}
