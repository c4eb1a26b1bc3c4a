//! Health and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Prometheus reads this form; see the OpenMetrics specification.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/metrics`.
pub async fn metrics(address: SocketAddr, registry: Registry) -> Result<()> {
    let registry = Arc::new(registry);
    let page = move || {
        let registry = registry.clone();
        async move {
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, OPEN_METRICS)], text),
                Err(error) => {
                    let plain = [(header::CONTENT_TYPE, "text/plain")];
                    (StatusCode::INTERNAL_SERVER_ERROR, plain, error.to_string())
                }
            }
        }
    };
    serve(address, Router::new().route("/metrics", get(page)), "--metrics-addr").await
}

/// Serves `/healthz` (the process answers) and `/readyz` (it works, or stands by to).
pub async fn health(address: SocketAddr, up: watch::Receiver<bool>) -> Result<()> {
    let ready = move || {
        let up = *up.borrow();
        async move { if up { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "starting") } }
    };
    let router = Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready));
    serve(address, router, "--health-addr").await
}

async fn serve(address: SocketAddr, router: Router, flag: &str) -> Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("{flag} {address}"))?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}
