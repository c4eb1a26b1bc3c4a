//! All that the operator has ever written, wherever it went.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::try_join_all;
use kube::api::DynamicObject;
use kube::discovery::{Discovery, verbs};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::Canary;
use crate::history::{History, Version};
use crate::proxy::aws::{Call, Plain};
use crate::proxy::kube::Write;
use crate::world::World;

/// Every version of every object in the cluster, of whatever kind, from now on.
pub struct Everything(Vec<(String, History)>);

impl Everything {
    /// Watches all that the API server has.
    pub async fn of(client: &Client) -> Result<Self> {
        let discovery = Discovery::new(client.clone()).run().await.context("ask for all kinds")?;
        let kinds = discovery.groups().flat_map(|group| group.recommended_resources());
        let watched = kinds.filter(|(_, known)| known.supports_operation(verbs::WATCH));
        let all = watched.map(async |(kind, _)| {
            let history = History::of(Api::<DynamicObject>::all_with(client.clone(), &kind)).await;
            anyhow::Ok((kind.kind.clone(), history.with_context(|| kind.plural.clone())?))
        });
        Ok(Self(try_join_all(all).await?))
    }
}

/// Texts that the operator wrote, each with the place where it stands.
#[derive(Debug, Default)]
pub struct Traces {
    texts: Vec<(String, String)>,
    /// The calls that carried a secret where they may: operation and parameter, with the values.
    carried: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Traces {
    /// All that a world has recorded. `own` is the Secret of its namespace that holds what the test itself has
    /// written, and `carriers` are the operations with the one parameter that takes a secret to AWS.
    #[must_use]
    pub fn of(world: &World, everything: &Everything, own: &str, carriers: &[(&str, &str)]) -> Self {
        let mut traces = Self::default();
        for (kind, history) in &everything.0 {
            let own = (world.namespace.as_str(), own);
            history.all().into_iter().for_each(|version| traces.version(kind, version, own));
        }
        world.kube.heads().into_iter().for_each(|head| traces.head(head));
        world.kube.writes().iter().for_each(|write| traces.write(write));
        world.aws.plain_calls().into_iter().for_each(|call| traces.plain_call(call, carriers));
        world.aws.calls().iter().for_each(|call| traces.call(call, carriers));
        traces
    }

    /// A text of many lines.
    pub fn lines(&mut self, place: &str, text: &str) {
        self.texts.extend(text.lines().map(|line| (place.to_owned(), line.to_owned())));
    }

    /// Another process's.
    pub fn append(&mut self, others: Self) {
        self.texts.extend(others.texts);
        self.carried.extend(others.carried);
    }

    fn version(&mut self, kind: &str, version: Version, own: (&str, &str)) {
        let mut object = version.object;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let place = format!("object {kind} {name}");
        if kind == "Secret" {
            let data =
                object.data.as_object_mut().and_then(|fields| fields.remove("data")).unwrap_or_default();
            let is_own = (namespace.as_str(), name.as_str()) == own;
            for (key, value) in data.as_object().into_iter().flatten().filter(|_| !is_own) {
                self.text(place.clone(), format!("{key}: {value} {}", decoded(value)));
            }
        }
        self.text(place, serde_json::to_string(&object).unwrap_or_default());
    }

    /// A request to the API server, without its body.
    fn head(&mut self, head: String) {
        self.text(format!("request {}", head.lines().next().unwrap_or_default()), head);
    }

    fn write(&mut self, write: &Write) {
        let place = format!("write {:?} {}", write.target.verb, write.path);
        self.text(place, format!("{} {} {}", write.path, write.content_type, write.body));
    }

    /// A call as the lab prints it.
    fn call(&mut self, call: &Call, carriers: &[(&str, &str)]) {
        let mut call = call.clone();
        let place = format!("recorded call {}", call.operation);
        call.params.retain(|param, _| !carriers.contains(&(call.operation.as_str(), param.as_str())));
        self.text(place, format!("{call:?}"));
    }

    /// A call as it was sent.
    fn plain_call(&mut self, mut call: Plain, carriers: &[(&str, &str)]) {
        for (operation, param) in carriers.iter().filter(|(operation, _)| *operation == call.operation) {
            if let Some(carried) = call.params.remove(*param) {
                let carrier = ((*operation).to_owned(), (*param).to_owned());
                self.carried.entry(carrier).or_default().insert(carried);
            }
        }
        self.text(format!("call {}", call.operation), format!("{} {:?}", call.head, call.params));
    }

    fn text(&mut self, place: String, text: String) {
        self.texts.push((place, text));
    }

    /// Whether a call has carried this secret in its parameter.
    #[must_use]
    pub fn has_carried(&self, carrier: (&str, &str), canary: &Canary) -> bool {
        let carried = self.carried.get(&(carrier.0.to_owned(), carrier.1.to_owned()));
        carried.into_iter().flatten().any(|value| canary.find_in(value).is_some())
    }

    /// What carried a secret where it may, without it: it may stand there once.
    fn beside(&self, canaries: &[Canary]) -> Vec<(String, String)> {
        let without =
            |value: &str| canaries.iter().fold(value.to_owned(), |rest, canary| canary.cut_from(&rest));
        let values = self
            .carried
            .iter()
            .flat_map(|(carrier, values)| values.iter().map(move |value| (carrier, value)));
        values
            .map(|((operation, param), value)| (format!("call {operation}, {param}"), without(value)))
            .collect()
    }

    /// How many texts there are of places that begin like this.
    #[must_use]
    pub fn count(&self, place: &str) -> usize {
        self.texts.iter().filter(|(known, _)| known.starts_with(place)).count()
    }

    /// Every place where one of these secrets stands, the first few of each place.
    #[must_use]
    pub fn leaks(&self, canaries: &[Canary]) -> Vec<String> {
        let beside = self.beside(canaries);
        let mut seen = BTreeMap::<&str, usize>::new();
        let found = self.texts.iter().chain(&beside).flat_map(|(place, text)| {
            let leaks = canaries.iter().filter_map(|canary| Some((canary, canary.find_in(text)?)));
            leaks.map(move |(canary, leak)| {
                (place, format!("{place}: {:?}, {}: …{}…", canary.text(), leak.written, leak.excerpt))
            })
        });
        let first_few = found.filter(|(place, _)| {
            let times = seen.entry(place.as_str()).or_default();
            *times += 1;
            *times <= 3
        });
        first_few.map(|(_, leak)| leak).collect()
    }
}

/// What a value of a Secret holds.
fn decoded(value: &Value) -> String {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::proxy::kube::{Target, Verb};

    const CARRIER: (&str, &str) = ("CreateThing", "Password");

    const OWN: (&str, &str) = ("test", "own");

    fn version(namespace: &str, name: &str, rest: Value) -> Version {
        let mut object = json!({"metadata": {"namespace": namespace, "name": name}});
        json_patch::merge(&mut object, &rest);
        Version { object: serde_json::from_value(object).unwrap(), deleted: false }
    }

    fn write(body: serde_json::Value) -> Write {
        let target = Target {
            verb: Verb::Patch,
            group: String::new(),
            resource: "things".to_owned(),
            namespace: None,
            name: None,
            subresource: None,
        };
        Write {
            seq: 0,
            at: Instant::now(),
            target,
            path: "/things/a".to_owned(),
            content_type: "application/json".to_owned(),
            body,
            status: None,
            forwarded: true,
            note: None,
        }
    }

    fn call(operation: &str, params: &[(&str, &str)], head: &str) -> Plain {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Plain { operation: operation.to_owned(), params: params.collect(), head: head.to_owned() }
    }

    /// A leak of this form in each place, and how each place is called.
    fn planted(form: &str) -> Vec<(&'static str, Traces)> {
        let trace = |plant: &dyn Fn(&mut Traces)| {
            let mut traces = Traces::default();
            plant(&mut traces);
            traces
        };
        let object = |kind: &str, namespace: &str, name: &str, rest: Value| {
            trace(&|all| all.version(kind, version(namespace, name, rest.clone()), OWN))
        };
        vec![
            ("object Thing own", object("Thing", "test", "own", json!({"data": {"x": [form]}}))),
            (
                "object Thing a",
                object("Thing", "test", "a", json!({"metadata": {"annotations": {"x": form}}})),
            ),
            ("object Thing a", object("Thing", "test", "a", json!({"metadata": {"labels": {form: "x"}}}))),
            (
                "object Thing a",
                object("Thing", "test", "a", json!({"status": {"conditions": [{"message": form}]}})),
            ),
            ("object ConfigMap b", object("ConfigMap", "kube-system", "b", json!({"data": {form: "x"}}))),
            ("object Lease b", object("Lease", "default", "b", json!({"spec": {"holderIdentity": form}}))),
            ("object Event c", object("Event", "default", "c", json!({"note": form}))),
            ("object Secret b", object("Secret", "test", "b", json!({"data": {"x": form}}))),
            ("object Secret b", object("Secret", "test", "b", json!({"data": {"x": STANDARD.encode(form)}}))),
            ("object Secret own", object("Secret", "default", "own", json!({"data": {"x": form}}))),
            (
                "object Secret own",
                object("Secret", "test", "own", json!({"metadata": {"annotations": {"x": form}}})),
            ),
            ("request GET /a", trace(&|all| all.head(format!("GET /a?fieldSelector={form}")))),
            ("request GET /a", trace(&|all| all.head(format!("GET /a\nuser-agent: {form}")))),
            ("write Patch /things/a", trace(&|all| all.write(&write(json!(format!("no JSON: {form}")))))),
            ("write Patch /things/a", trace(&|all| all.write(&write(json!({"status": {"message": form}}))))),
            (
                "log of one",
                trace(&|all| all.lines("log of one", &format!("first\nTRACE it is {form}\nlast"))),
            ),
            (
                "metrics of one",
                trace(&|all| all.lines("metrics of one", &format!("a 1\nb{{why=\"{form}\"}} 2"))),
            ),
            (
                "call CreateThing",
                trace(&|all| all.plain_call(call("CreateThing", &[("Name", form)], ""), &[CARRIER])),
            ),
            (
                "call DeleteThing",
                trace(&|all| all.plain_call(call("DeleteThing", &[("Password", form)], ""), &[CARRIER])),
            ),
            (
                "call DeleteThing",
                trace(&|all| {
                    all.plain_call(call("DeleteThing", &[], &format!("POST / x-header: {form}")), &[])
                }),
            ),
        ]
    }

    #[test]
    fn a_planted_leak_is_found_in_every_form_and_place() {
        let canary = Canary::new("Alpha");
        for (way, form) in canary.forms() {
            for (place, traces) in planted(&form) {
                let leaks = traces.leaks(std::slice::from_ref(&canary));
                assert!(leaks.len() == 1 && leaks[0].starts_with(place), "{way} in {place}: {leaks:?}");
                assert!(traces.leaks(&[Canary::new("Bravo")]).is_empty(), "{way} in {place}");
            }
        }
    }

    #[test]
    fn what_carries_it_may_hold_it_once() {
        let canary = Canary::new("Alpha");
        let inner = json!({"Password": canary.text()});
        for once in [canary.text().to_owned(), inner.to_string(), json!(inner.to_string()).to_string()] {
            for (way, form) in canary.forms() {
                let mut traces = Traces::default();
                traces.plain_call(call("CreateThing", &[("Password", &once)], ""), &[CARRIER]);
                assert_eq!(traces.leaks(std::slice::from_ref(&canary)), Vec::<String>::new(), "{once}");
                let twice = format!("{once} and {form}");
                traces.plain_call(call("CreateThing", &[("Password", &twice)], ""), &[CARRIER]);
                let leaks = traces.leaks(std::slice::from_ref(&canary));
                let is_it = leaks.len() == 1 && leaks[0].starts_with("call CreateThing, Password");
                assert!(is_it, "{way} beside {once}: {leaks:?}");
            }
        }
    }

    #[test]
    fn where_it_may_stand_it_is_none() {
        let canary = Canary::new("Alpha");
        let mut traces = Traces::default();
        traces.version("Secret", version("test", "own", json!({"data": {"password": canary.text()}})), OWN);
        assert!(!traces.has_carried(CARRIER, &canary));
        traces.plain_call(call("CreateThing", &[("Password", canary.text())], "POST /"), &[CARRIER]);
        assert_eq!(traces.leaks(std::slice::from_ref(&canary)), Vec::<String>::new());
        assert!(traces.has_carried(CARRIER, &canary));
        assert!(!traces.has_carried(CARRIER, &Canary::new("Bravo")));
        assert_eq!(traces.count("call CreateThing"), 1);
    }
}
