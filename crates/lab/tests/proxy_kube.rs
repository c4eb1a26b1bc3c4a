//! The API server proxy between kube-rs and a real kube-apiserver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, Config};
use lab::ControlPlane;
use lab::proxy::kube::{Action, KubeProxy, Match, Verb};
use lab::proxy::{Stage, Verdict};
use serde_json::json;

async fn proxied() -> (KubeProxy, Api<ConfigMap>) {
    let control_plane = ControlPlane::shared().await.unwrap();
    let ca = std::fs::read(control_plane.ca()).unwrap();
    let proxy = KubeProxy::start(&control_plane.url(), &ca);
    let kubeconfig = control_plane.kubeconfig(lab::kubeconfig::User::Admin, Some(&proxy.endpoint())).unwrap();
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    (proxy, Api::namespaced(client, "default"))
}

fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn status<T: std::fmt::Debug>(outcome: kube::Result<T>) -> u16 {
    match outcome.unwrap_err() {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn records_and_streams() {
    let (proxy, api) = proxied().await;
    let watch = api
        .watch(&WatchParams::default().disable_bookmarks().fields("metadata.name=streamed"), "0")
        .await
        .unwrap();
    pin_mut!(watch);
    api.create(&PostParams::default(), &config_map("streamed")).await.unwrap();
    // The event comes while the watch is open: nothing waits for its end.
    let event = tokio::time::timeout(Duration::from_secs(5), watch.try_next()).await.unwrap().unwrap();
    assert!(matches!(event, Some(WatchEvent::Added(_))), "{event:?}");
    let patch = Patch::Merge(json!({"data": {"a": "b"}}));
    api.patch("streamed", &PatchParams::default(), &patch).await.unwrap();

    let writes = proxy.writes();
    assert_eq!(writes.len(), 2, "{}", proxy.table());
    assert_eq!(writes[0].target.to_string(), "Create configmaps/default/streamed");
    assert_eq!((writes[0].status, writes[1].target.verb), (Some(201), Verb::Patch));
    assert_eq!(writes[1].content_type, "application/merge-patch+json");
    assert_eq!(writes[1].body, json!({"data": {"a": "b"}}));
    assert_eq!(proxy.reads()[&(Verb::Watch, "configmaps".to_owned())], 1);
}

#[tokio::test]
async fn cuts() {
    let (proxy, api) = proxied().await;
    let watch = api
        .watch(&WatchParams::default().disable_bookmarks().fields("metadata.name=none"), "0")
        .await
        .unwrap();
    pin_mut!(watch);
    proxy.cut(true);
    let end = tokio::time::timeout(Duration::from_secs(5), watch.next()).await.unwrap();
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
    api.create(&PostParams::default(), &config_map("cut")).await.unwrap_err();
    proxy.cut(false);
    api.create(&PostParams::default(), &config_map("cut")).await.unwrap();
}

#[tokio::test]
async fn injects_and_loses() {
    let (proxy, api) = proxied().await;
    proxy.fault(Match::verb(Verb::Create).resource("configmaps").times(1), Action::Status(409));
    assert_eq!(status(api.create(&PostParams::default(), &config_map("faulty")).await), 409);
    proxy.fault(Match::writes().name("faulty").times(1), Action::ResetAfter);
    api.create(&PostParams::default(), &config_map("faulty")).await.unwrap_err();
    api.get("faulty").await.unwrap();
}

#[tokio::test]
async fn hooks_stop_writes_at_both_stages() {
    let (proxy, api) = proxied().await;
    for (at, name, exists) in [(Stage::Before, "hook-before", false), (Stage::After, "hook-after", true)] {
        proxy.on_write(
            move |stage, _| async move { if stage == at { Verdict::Drop } else { Verdict::Continue } },
        );
        api.create(&PostParams::default(), &config_map(name)).await.unwrap_err();
        assert_eq!(api.get_opt(name).await.unwrap().is_some(), exists);
    }
}
