//! Calls to AWS: sessions per account and region, one guard around every call, errors sorted by
//! what they mean, and reads joined into batches. Knows no Kubernetes.
//!
//! A kind holds its clients, makes calls with them, and turns each result with [`Answer`]:
//!
//! ```no_run
//! # use aws::{Answer, Batch, Clients, Sessions};
//! # use std::sync::Arc;
//! # async fn example(sessions: Arc<Sessions>, scope: resource::Scope) -> resource::Result<()> {
//! use aws_sdk_sts::{Client, config::Builder};
//!
//! // Once, in the kind's constructor.
//! let clients = Clients::new(sessions, |config, guard| {
//!     Client::from_conf(Builder::from(config).interceptor(guard).build())
//! });
//!
//! // In its verbs.
//! let identity = clients.get(&scope).await?.get_caller_identity().send().await.answer()?;
//! let gone = clients.get(&scope).await?.get_caller_identity().send().await;
//! let gone = gone.answer_or_absent(&["InvalidVpcID.NotFound"])?.is_none();
//!
//! // Also once: reads of many objects in one call.
//! let reader = clients.clone();
//! let batch: Batch<String> = Batch::new(move |scope, ids| {
//!     let clients = reader.clone();
//!     async move {
//!         let _client = clients.get(&scope).await?;
//!         Ok(ids.into_iter().map(|id| (id.clone(), format!("what was found of {id}"))).collect())
//!     }
//! });
//! let found: Vec<String> = batch.get(&scope, "vpc-1").await?;
//! # Ok(()) }
//! ```

mod batch;
mod class;
mod clients;
mod error;
mod guard;
mod metrics;
mod session;

pub use batch::Batch;
pub use class::classify;
pub use clients::{Clients, Turn};
pub use error::{Answer, or_absent};
pub use guard::{Fence, Guard};
pub use metrics::Metrics;
pub use session::{ATTEMPT_TIMEOUT, Options, Sessions};
