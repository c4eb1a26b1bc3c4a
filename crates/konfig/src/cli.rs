//! The flags.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Keeps AWS in the state that Kubernetes objects declare.
#[derive(Parser)]
#[command(version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the operator.
    Operator(Flags),
    /// Print the CustomResourceDefinitions.
    Crds,
    /// Print the ClusterRole that the operator needs.
    Rbac,
}

/// The operator's flags. Credentials, region and endpoint come from AWS's own environment variables.
#[derive(Args)]
pub struct Flags {
    /// How often every object is checked against AWS.
    #[arg(long, default_value = "5m", value_parser = interval)]
    pub drift_interval: Duration,
    /// How many objects are changed in AWS at once.
    #[arg(long, default_value_t = 16)]
    pub workers: usize,
    /// Let a Lease decide which of several operators works; on inside a cluster, off outside.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: Option<bool>,
    /// Where Prometheus finds the metrics.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub metrics_addr: SocketAddr,
    /// Where /healthz and /readyz are served.
    #[arg(long, default_value = "0.0.0.0:8081")]
    pub health_addr: SocketAddr,
    /// The cluster's name in the ownership tags in AWS; the uid of kube-system if not given.
    #[arg(long)]
    pub cluster_name: Option<String>,
    /// Tags for every resource beside its own: team=web,stage=prod.
    #[arg(long, value_delimiter = ',', value_parser = tag)]
    pub default_tags: Vec<(String, String)>,
    /// Whether what exists in AWS under an object's unique name, without an owner, is adopted.
    #[arg(long, value_enum, default_value_t = Adopt::Unowned)]
    pub adopt: Adopt,
    /// Whether references may lead to another namespace.
    #[arg(long, value_enum, default_value_t = CrossNamespaceRefs::Allow)]
    pub cross_namespace_refs: CrossNamespaceRefs,
    /// How the log is written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Scales polling intervals, settle windows and backoff, for tests.
    #[arg(long, hide = true, default_value_t = 1.0)]
    pub time_scale: f64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Adopt {
    Unowned,
    Never,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum CrossNamespaceRefs {
    Allow,
    Deny,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Unlike the annotation, the flag takes any length: an hour for a quiet account, a second for a test.
fn interval(text: &str) -> Result<Duration, String> {
    let interval =
        text.parse::<jiff::SignedDuration>().ok().and_then(|interval| Duration::try_from(interval).ok());
    interval.filter(|interval| !interval.is_zero()).ok_or_else(|| "write it like 30s, 5m or 2h".to_owned())
}

fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it like key=value,key=value")?;
    if key.is_empty() || resource::tags::is_reserved(key) {
        return Err(format!("{key:?} cannot be the key of a default tag"));
    }
    Ok((key.to_owned(), value.to_owned()))
}
