//! One SDK client for each scope.

use std::collections::HashMap;
use std::sync::Arc;

use aws_types::SdkConfig;
use parking_lot::Mutex;
use resource::{Result, Scope};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{Guard, Sessions};

/// How many reads of single resources are under way at once: each takes a connection of its own.
const AT_ONCE: usize = 16;

/// A turn, until it is dropped.
pub type Turn<'a> = Option<SemaphorePermit<'a>>;

/// The clients of one AWS service, made as scopes come up. Clones share them.
pub struct Clients<C> {
    sessions: Arc<Sessions>,
    build: fn(&SdkConfig, Guard) -> C,
    made: Arc<Mutex<HashMap<Scope, C>>>,
    turns: Arc<Semaphore>,
}

impl<C> Clone for Clients<C> {
    fn clone(&self) -> Self {
        Self {
            sessions: self.sessions.clone(),
            build: self.build,
            made: self.made.clone(),
            turns: self.turns.clone(),
        }
    }
}

impl<C: Clone> Clients<C> {
    /// Clients that `build` makes. It must set the guard as an interceptor:
    ///
    /// `|config, guard| Client::from_conf(Builder::from(config).interceptor(guard).build())`
    ///
    /// A client without it fails on every call.
    pub fn new(sessions: Arc<Sessions>, build: fn(&SdkConfig, Guard) -> C) -> Self {
        Self { sessions, build, made: Arc::default(), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Waits for its turn to read a single resource: to be held during a read that objects cannot
    /// share, where nothing else bounds how many there are at once.
    pub async fn turn(&self) -> Turn<'_> {
        self.turns.acquire().await.ok()
    }

    /// The client for an account and region.
    pub async fn get(&self, scope: &Scope) -> Result<C> {
        if let Some(client) = self.made.lock().get(scope) {
            return Ok(client.clone());
        }
        let config = self.sessions.config(scope).await?;
        let client = (self.build)(&config, self.sessions.guard(scope));
        Ok(self.made.lock().entry(scope.clone()).or_insert(client).clone())
    }
}
