//! CloudControlResource: any CloudFormation type, by requests that take their time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adoption;
mod cloud;
mod forgotten;
mod life;
mod once;
mod secrets;
