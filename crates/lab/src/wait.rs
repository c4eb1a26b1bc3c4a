//! Waiting for what happens elsewhere.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// A failure that waiting will not mend.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Hopeless(pub String);

const POLL: Duration = Duration::from_millis(50);

/// Calls `check` until it succeeds. What it fails with meanwhile says what it saw instead (use
/// `ensure!`, `bail!`, `context`); on time-out the last of these is in the error. [`Hopeless`] ends
/// the wait at once.
pub async fn eventually<T>(
    timeout: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match check().await {
            Ok(value) => return Ok(value),
            Err(last) if start.elapsed() >= timeout || last.is::<Hopeless>() => {
                let waited = start.elapsed();
                return Err(last).with_context(|| format!("waited {waited:.1?} for {what}"));
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// Watches for `period` that `check` keeps succeeding: for what must *not* happen.
pub async fn throughout<T>(
    period: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T>,
) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < period {
        check()
            .await
            .with_context(|| format!("not for all of {period:?}, but {:?}: {what}", start.elapsed()))?;
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}
