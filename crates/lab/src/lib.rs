//! What tests run against: a real Kubernetes control plane, AWS emulators, proxies that record
//! and inject faults between them and the operator, and the operator itself as a process.
//!
//! Everything listens on free loopback ports and ends with the test process, even a killed one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod aws;
pub mod canary;
pub mod cloudcontrol;
pub mod cluster;
pub mod control_plane;
pub mod crash;
pub mod emulator;
pub mod evidence;
pub mod fuzz;
pub mod hand;
pub mod history;
mod http;
pub mod inventory;
pub mod kstatus;
pub mod kubeconfig;
pub mod kubectl;
pub mod lifecycle;
mod lifeline;
pub mod manifest;
pub mod operator;
pub mod panics;
pub mod paths;
mod ports;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod scratch;
pub mod stub;
pub mod subject;
pub mod wait;
pub mod world;

pub use aws::{AwsError, Boto};
pub use cloudcontrol::CloudControl;
pub use control_plane::ControlPlane;
pub use emulator::Emulator;
pub use history::History;
pub use inventory::Inventory;
pub use kubeconfig::User;
pub use operator::{Operator, OperatorConfig};
pub use stub::Stub;
pub use subject::Subject;
pub use wait::eventually;
pub use world::World;
