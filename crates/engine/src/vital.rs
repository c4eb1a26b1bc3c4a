//! Tasks without which the engine would look alive and do nothing.

use tokio_util::sync::CancellationToken;

/// Held by a task for as long as it runs. Let go before the task was told to end (by a panic, say), it ends
/// the engine: a fresh process can do what this one no longer can.
pub struct Vital {
    pub name: &'static str,
    /// Tells the task to end.
    pub told: CancellationToken,
    /// Ends the engine.
    pub engine: CancellationToken,
}

impl Drop for Vital {
    fn drop(&mut self) {
        if !self.told.is_cancelled() {
            tracing::error!(task = self.name, "ended untold, which is a bug; the engine ends with it");
            self.engine.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the engine ends with a task that panics.
    async fn panics(told: bool) -> bool {
        let (task, engine) = (CancellationToken::new(), CancellationToken::new());
        let vital = Vital { name: "test", told: task.clone(), engine: engine.clone() };
        if told {
            task.cancel();
        }
        let ended = tokio::spawn(async move {
            let _vital = vital;
            panic!("as a test");
        });
        assert!(ended.await.is_err_and(|error| error.is_panic()));
        engine.is_cancelled()
    }

    #[tokio::test]
    async fn the_engine_ends_with_a_task_that_ends_untold() {
        assert!(panics(false).await);
        assert!(!panics(true).await);
    }
}
