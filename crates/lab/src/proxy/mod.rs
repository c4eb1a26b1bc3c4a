//! The two proxies of a test: one between the operator and an AWS emulator, one between
//! the operator and kube-apiserver. Both record what passes, and spoil it on demand.
//!
//! Each runs on threads of its own, so a test may block its own runtime, and both can be
//! started from plain code.

pub mod aws;
pub(crate) mod core;
mod faults;
pub mod kube;

pub use self::aws::AwsProxy;
pub use self::core::{Stage, Verdict};
pub use self::faults::{Fault, Schedule};
pub use self::kube::KubeProxy;
