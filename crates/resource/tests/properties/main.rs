//! What must hold of the parsers and comparers for any text of a user's or AWS's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conditions;
mod diffs;
mod policies;
mod secrets;
mod small;
