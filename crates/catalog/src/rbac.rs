//! The operator's rights in Kubernetes: just these.

use std::sync::Arc;

use resource::Kind;
use resource::api::{GROUP, OPERATOR};
use serde_json::{Value, json};

/// The ClusterRole of the operator for these kinds.
pub fn cluster_role(kinds: &[Arc<dyn Kind>]) -> Value {
    let mut plurals: Vec<_> = kinds.iter().map(|kind| kind.meta().plural.to_owned()).collect();
    plurals.sort();
    let statuses: Vec<_> = plurals.iter().map(|plural| format!("{plural}/status")).collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": OPERATOR},
        "rules": [
            {"apiGroups": [GROUP], "resources": plurals, "verbs": ["get", "list", "watch", "patch"]},
            {"apiGroups": [GROUP], "resources": statuses, "verbs": ["patch"]},
            // Which kinds are installed, and whether one is being uninstalled.
            {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list", "watch"]},
            // The cluster's identity in ownership tags.
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
            // Passwords: read when needed, watched by metadata.
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
        ],
    })
}

/// The operator's Role in its own namespace: its Lease, and the key of its fingerprints.
pub fn role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": OPERATOR},
        "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [OPERATOR], "verbs": ["get", "update"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        ],
    })
}
