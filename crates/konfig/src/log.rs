//! The log.

use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::LogFormat;

/// What may print the bodies of requests, passwords included, below the level info.
const LOUD: [&str; 11] = [
    "aws_config",
    "aws_runtime",
    "aws_sdk",
    "aws_sigv4",
    "aws_smithy",
    "h2",
    "hyper",
    "hyper_util",
    "kube_client",
    "rustls",
    "tower",
];

/// Where the operator panics goes to the log, as everything else. What the panic says stays out of it unless it
/// is fixed text: it may quote data.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let said = panic.payload().downcast_ref::<&'static str>().unwrap_or(&"(what it says may quote data)");
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(location, said, %backtrace, "panicked");
    }));
}

/// Sets the log up. `RUST_LOG` chooses what is shown (default: info), but what may print request
/// bodies is capped at info whatever it says.
pub fn init(format: LogFormat) {
    let chosen = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env_lossy();
    let cap = tracing_subscriber::filter::filter_fn(|metadata| {
        let is_loud = LOUD.iter().any(|loud| metadata.target().starts_with(loud));
        !is_loud || *metadata.level() <= tracing::Level::INFO
    });
    let layer = match format {
        LogFormat::Json => tracing_subscriber::fmt::layer().json().flatten_event(true).boxed(),
        LogFormat::Text => {
            let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
            tracing_subscriber::fmt::layer().with_ansi(is_terminal).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(cap)).with(chosen).init();
    log_panics();
}
