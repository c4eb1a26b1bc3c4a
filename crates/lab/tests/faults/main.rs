//! Faults around the operator as a process: an AWS that throttles, fails, cuts off, dawdles, lags
//! and expires; an API server that goes away; leaders that freeze; CRDs and namespaces that are
//! taken away. The tests named `sample_…` are part of `make test`; `make faults` runs all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_server;
mod crds;
mod credentials;
mod leaders;
mod life;
mod many;
mod resent;
mod stack;
mod storms;
