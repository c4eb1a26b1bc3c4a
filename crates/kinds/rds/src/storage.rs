//! Allocated storage: it grows, by the user's word or by AWS's autoscaling, and never shrinks.

use resource::{Error, Result};

/// What to show of the storage that AWS has: the user's number where AWS has only grown it from there
/// within what it may.
pub(crate) fn shown(wanted: Option<i32>, limit: Option<i32>, live: Option<i32>) -> Option<i32> {
    let (Some(wanted), Some(live)) = (wanted, live) else { return live };
    let limit = limit.unwrap_or(0).max(rounded_up(wanted));
    Some(if (wanted..=limit).contains(&live) { wanted } else { live })
}

/// Whether AWS may be asked for this much.
pub(crate) fn growth(wanted: i32, live: i32) -> Result<()> {
    if wanted >= live {
        return Ok(());
    }
    Err(Error::invalid(
        "allocatedStorage",
        format!(
            "AWS has {live} GiB allocated and cannot shrink that to {wanted}: set allocatedStorage to {live}"
        ),
    ))
}

/// AWS grows storage by a tenth at least: asked for 105 from 100, it makes 110.
fn rounded_up(wanted: i32) -> i32 {
    wanted.saturating_add(wanted.saturating_add(9) / 10)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_autoscaling_added_is_no_difference() {
        assert_eq!(shown(Some(100), Some(500), Some(300)), Some(100));
        assert_eq!(shown(Some(100), Some(500), Some(500)), Some(100));
        assert_eq!(shown(Some(105), None, Some(110)), Some(105));
    }

    #[test]
    fn what_is_less_or_more_than_wanted_is_one() {
        assert_eq!(shown(Some(100), Some(500), Some(50)), Some(50));
        assert_eq!(shown(Some(100), Some(500), Some(501)), Some(501));
        assert_eq!(shown(Some(100), None, Some(200)), Some(200));
        assert_eq!(shown(None, None, Some(200)), Some(200));
        assert_eq!(shown(Some(100), None, None), None);
    }

    #[test]
    fn it_never_shrinks() {
        assert!(growth(200, 100).is_ok());
        let refused = growth(100, 200).unwrap_err();
        assert!(refused.message.contains("set allocatedStorage to 200"), "{refused}");
    }
}
