//! Whether the data files leave anything out.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::data::{Change, Drift, Lifecycle, Refusal};
use super::files;

/// What no data file does: kinds of the chart without one, and of each field of a spec what is
/// missing (`changes`, `drifts`, `removals` of what can change, `immutable` of what can't), and kinds
/// that nobody deletes in AWS (`losses`).
pub fn gaps() -> Result<Vec<String>> {
    let lives = files::all()?;
    let mut gaps = Vec::new();
    for crd in files::crds()? {
        let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str).context("a CRD without a kind")?;
        let lives: Vec<_> = lives.iter().filter(|life| life.kind() == kind).collect();
        match lives.is_empty() {
            true => gaps.push(format!("{kind} has no data file")),
            false => gaps.extend(missing(&crd, &lives)?.into_iter().map(|gap| format!("{kind}: {gap}"))),
        }
    }
    Ok(gaps)
}

fn missing(crd: &Value, lives: &[&Lifecycle]) -> Result<Vec<String>> {
    let spec = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
    let spec = spec.context("a CRD without a spec")?;
    let fields = spec["properties"].as_object().context("a spec without fields")?;
    let (required, immutable) = (texts(&spec["required"]), immutable(spec));
    let covered: BTreeSet<_> = lives.iter().flat_map(|life| covered(life)).collect();
    let exempt = |needed: &String| lives.iter().any(|life| life.exempt.contains_key(needed));
    // Which account and region, not what is there.
    let fields = fields.keys().filter(|field| *field != "providerRef");
    let needed = fields.flat_map(|field| match (immutable.contains(field), required.contains(field)) {
        (true, _) => vec![format!("immutable/{field}")],
        (false, true) => vec![format!("changes/{field}"), format!("drifts/{field}")],
        (false, false) => {
            vec![format!("changes/{field}"), format!("drifts/{field}"), format!("removals/{field}")]
        }
    });
    let needed = needed.chain(["losses".to_owned()]);
    Ok(needed.filter(|needed| !covered.contains(needed) && !exempt(needed)).collect())
}

/// What a data file does, as `changes/field`.
fn covered(life: &Lifecycle) -> Vec<String> {
    let patched = |part: &str, patch: &Value| -> Vec<String> {
        patch.as_object().unwrap_or(&Map::new()).keys().map(|field| format!("{part}/{field}")).collect()
    };
    let changes = life.changes.iter().flat_map(|Change { spec, .. }| patched("changes", spec));
    let removals = life.removals.iter().filter(|removal| is_removal(&removal.spec));
    let removals = removals.flat_map(|Change { spec, .. }| patched("removals", spec));
    let immutable = life.immutable.iter().flat_map(|Refusal { spec, .. }| patched("immutable", spec));
    let paths = life.drifts.iter().flat_map(|Drift { paths, .. }| paths);
    let drifts = paths.filter_map(|path| Some(format!("drifts/{}", path.split('/').nth(1)?)));
    let losses = life.losses.first().map(|_| "losses".to_owned());
    changes.chain(removals).chain(immutable).chain(drifts).chain(losses).collect()
}

fn is_removal(patch: &Value) -> bool {
    patch.as_object().is_some_and(|fields| fields.values().any(Value::is_null))
}

/// The fields that admission keeps from changing: they are named by the rule that does.
fn immutable(spec: &Value) -> BTreeSet<String> {
    let rules = spec["x-kubernetes-validations"].as_array().into_iter().flatten();
    let transitions = rules.filter(|rule| rule["rule"].as_str().is_some_and(|rule| rule.contains("oldSelf")));
    let fields = transitions.filter_map(|rule| rule["fieldPath"].as_str()?.strip_prefix('.'));
    fields.map(str::to_owned).collect()
}

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
