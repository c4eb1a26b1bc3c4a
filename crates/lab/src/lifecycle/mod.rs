//! The whole life of a kind, as data: `e2e/lifecycle/<kind>.yaml` says what is done to an object
//! and what AWS is then asked and holds. This module drives it and says nothing about any kind.

mod complete;
mod data;
mod drive;
mod expect;
mod files;
mod fill;
mod pick;
mod record;
mod stages;

pub use complete::gaps;
pub use data::{Change, Drift, Emulation, Foreign, Hand, Lifecycle, Look, Loss, Refusal, Sees, Step};
pub use drive::Drive;
pub use files::all;
pub use files::crds;
pub use fill::Objects;
pub use pick::pick;
