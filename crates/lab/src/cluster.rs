//! What an installation puts into a control plane, and what each test puts there for itself.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client, core::GroupVersionKind};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::control_plane::ControlPlane;
use crate::kubeconfig::User;
use crate::paths;

/// The shared control plane with CRDs and the operator's rights installed.
pub async fn shared() -> Result<&'static ControlPlane> {
    static INSTALLED: OnceCell<&'static ControlPlane> = OnceCell::const_new();
    let install = async || {
        let control_plane = ControlPlane::shared().await?;
        install_crds(control_plane).await?;
        install_rbac(control_plane).await?;
        anyhow::Ok(control_plane)
    };
    Ok(INSTALLED.get_or_try_init(install).await?)
}

/// Installs all CRDs of the chart and waits until they are served.
pub async fn install_crds(control_plane: &ControlPlane) -> Result<()> {
    let folder = paths::repository(paths::CRDS);
    let folder = folder.to_str().context("a path that is no text")?;
    let kubectl = control_plane.kubectl(User::Admin);
    kubectl.run(&["apply", "--server-side", "--validate=strict", "-f", folder]).await?;
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "-f", folder]).await?;
    Ok(())
}

/// Installs the chart's RBAC as it is and gives the user `operator` exactly these rights.
pub async fn install_rbac(control_plane: &ControlPlane) -> Result<()> {
    // The operator runs in the namespace `default` here.
    for (rules, kind, namespace) in
        [(paths::RBAC, "ClusterRole", None), (paths::ROLE, "Role", Some("default"))]
    {
        let text =
            std::fs::read_to_string(paths::repository(rules)).with_context(|| format!("read {rules}"))?;
        control_plane.apply(&text).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": format!("{kind}Binding"),
            "metadata": { "name": "konfig-konector-under-test", "namespace": namespace },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": kind,
                "name": "konfig-konector",
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "User",
                "name": User::Operator.name(),
            }],
        });
        control_plane.apply(&binding.to_string()).await?;
    }
    Ok(())
}

/// Creates a namespace that no other test has, and returns its name.
pub async fn namespace(client: &Client, prefix: &str) -> Result<String> {
    let namespace = serde_json::from_value::<Namespace>(json!({
        "metadata": { "generateName": format!("{prefix}-") },
    }))?;
    let made = Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    made.metadata.name.context("a namespace without a name")
}

/// How the API server serves a kind of ours.
#[must_use]
pub fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("aws.konfig.io", "v1alpha1", kind))
}

/// The objects of a kind of ours in a namespace.
#[must_use]
pub fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind))
}
