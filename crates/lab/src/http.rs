//! The least HTTP that health checks and resets on loopback need.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends a request without a body and returns the body of a 2xx answer.
pub(crate) async fn request(method: &str, address: &str, path: &str) -> Result<String> {
    // Version 1.0: the answer ends with the connection, and is never chunked.
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), exchange)
        .await
        .context("no answer")?
        .with_context(|| format!("{method} http://{address}{path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("cut short")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(status.starts_with('2'), "{method} http://{address}{path}: {status}: {body}");
    Ok(body.to_owned())
}
