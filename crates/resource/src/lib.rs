//! What a kind is: the five verbs, the schema annotations, and the pure decisions made on them.
//!
//! Nothing here does I/O. The engine runs kinds through [`Kind`]; the people who write kinds
//! implement [`Resource`], its typed form.

pub mod api;
mod call;
pub mod condition;
pub mod decide;
pub mod diff;
mod error;
mod kind;
mod observed;
pub mod policy;
pub mod record;
mod reference;
pub mod schedule;
pub mod schema;
mod scrub;
mod secret;
pub mod tags;
pub mod targets;
mod typed;

pub use call::{Call, Scope};
pub use diff::{Change, Changes};
pub use error::{Class, Error, Result};
pub use kind::{Deletion, Kind, Meta, Polling, Protection, Reads, Role};
pub use observed::{Candidate, Created, Live, Observed, Phase, Progress};
pub use reference::{NameRef, Ref, Target};
pub use secret::{Secret, SecretRef, Secrets};
pub use tags::Tags;
pub use typed::{Resource, schema_of, typed};
