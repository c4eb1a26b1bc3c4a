//! Who may speak to the API server, and the files that say so.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

/// A user of the API server, by static token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// May do everything.
    Admin,
    /// The operator under test: has no right but what RBAC grants it.
    Operator,
}

impl User {
    /// The user's name, as RBAC knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
        }
    }

    pub(crate) fn token(self) -> String {
        format!("{}-token", self.name())
    }
}

/// The API server's token file.
pub(crate) fn tokens() -> String {
    let line =
        |user: User, groups: &str| format!("{},{},{},\"{groups}\"\n", user.token(), user.name(), user.name());
    line(User::Admin, "system:masters") + &line(User::Operator, "")
}

/// Writes a kubeconfig. `ca` is only read for an https server.
pub(crate) fn write(path: &Path, server: &str, ca: &Path, user: User) -> Result<()> {
    let mut cluster = json!({ "server": server });
    if server.starts_with("https:") {
        cluster["certificate-authority"] = json!(ca);
    }
    // JSON is YAML.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": user.name() } }],
        "clusters": [{ "name": "lab", "cluster": cluster }],
        "users": [{ "name": user.name(), "user": { "token": user.token() } }],
    });
    std::fs::write(path, config.to_string())?;
    Ok(())
}
