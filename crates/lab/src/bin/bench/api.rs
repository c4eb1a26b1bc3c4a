//! What the API server has answered, as it counts itself.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::Client;

/// Requests by verb, with the subresource where there is one: `PATCH status`.
pub type Requests = BTreeMap<String, u64>;

/// Our kinds, and events.
const GROUPS: [&str; 2] = ["aws.konfig.io", "events.k8s.io"];

/// The requests of the operator so far. The benchmark itself creates objects, and lists and watches
/// them; all else is the operator's, so these are left out.
pub async fn requests(client: &Client) -> Result<Requests> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let text = client.request_text(request).await?;
    let mut requests = Requests::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
        let Some((labels, value)) = line.rsplit_once("} ") else { continue };
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let (group, verb) = (label("group").unwrap_or_default(), label("verb").unwrap_or_default());
        let is_ours = matches!(verb, "LIST" | "WATCH") || (group == GROUPS[0] && verb == "POST");
        if !GROUPS.contains(&group) || is_ours {
            continue;
        }
        let what = match (group == GROUPS[1], label("subresource").unwrap_or_default()) {
            (true, _) => " event".to_owned(),
            (false, "") => String::new(),
            (false, subresource) => format!(" {subresource}"),
        };
        *requests.entry(format!("{verb}{what}")).or_default() += value.parse::<f64>()? as u64;
    }
    Ok(requests)
}

/// What came since.
pub fn since<K: Ord + Clone>(now: &BTreeMap<K, u64>, before: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let new = now.iter().map(|(key, count)| (key.clone(), count - before.get(key).unwrap_or(&0)));
    new.filter(|(_, count)| *count > 0).collect()
}
