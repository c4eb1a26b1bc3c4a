//! The messages of conditions.

use jiff::Timestamp;
use proptest::prelude::*;
use resource::condition::{Verdict, conditions, find, is_ready};
use serde_json::{Value, json};

fn message_of(verdict: &Verdict) -> String {
    let list = conditions(&Value::Null, verdict, false, 1, Timestamp::UNIX_EPOCH);
    find(&list, "Ready").unwrap()["message"].as_str().unwrap().to_owned()
}

proptest! {
    #[test]
    fn a_message_is_whole_or_cut_at_a_character(head in "a{1000,1030}", tail in any::<String>()) {
        let whole = format!("{head}{tail}");
        let message = message_of(&Verdict::stalled(&whole));
        prop_assert!(message.len() <= 1024, "{} bytes", message.len());
        match message.strip_suffix('…').filter(|_| message != whole) {
            None => prop_assert_eq!(message, whole),
            Some(cut) => {
                prop_assert!(whole.starts_with(cut) && whole.len() > 1024);
                // Nothing is cut off without need.
                prop_assert!(cut.len() > 1024 - '…'.len_utf8() - 4);
            }
        }
    }

    #[test]
    fn whatever_stood_there_before_is_no_harm(before in crate::diffs::json(), paused: bool) {
        let list = conditions(&before, &Verdict::synced("done"), paused, 3, Timestamp::UNIX_EPOCH);
        let status = json!({"conditions": list});
        prop_assert!(is_ready(&status, 3));
    }
}
