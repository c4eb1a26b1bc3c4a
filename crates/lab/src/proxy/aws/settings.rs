//! Settings of databases that an emulator takes and forgets, or keeps pending for ever.
//!
//! ministack ignores some parameters of CreateDBInstance and ModifyDBInstance, moto some of a cluster's;
//! AWS shows all of them afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;

use super::super::core::Cut;
use super::asked::Asked;
use super::serve::World;
use super::xml::Element;

/// The parameters, and the elements that show them.
const SHOWN: &[(&str, &str)] = &[
    ("AutoMinorVersionUpgrade", "AutoMinorVersionUpgrade"),
    ("DBSubnetGroupName", "DBSubnetGroup/DBSubnetGroupName"),
    ("DBPortNumber", "Endpoint/Port"),
    ("EnableIAMDatabaseAuthentication", "IAMDatabaseAuthenticationEnabled"),
    ("EnablePerformanceInsights", "PerformanceInsightsEnabled"),
    ("PerformanceInsightsKMSKeyId", "PerformanceInsightsKMSKeyId"),
    ("PerformanceInsightsRetentionPeriod", "PerformanceInsightsRetentionPeriod"),
    ("StorageThroughput", "StorageThroughput"),
];
/// What shows the logs that go to CloudWatch.
const LOGS: &str = "EnabledCloudwatchLogsExports";
/// What shows the changes that wait for the maintenance window.
const PENDING: &str = "PendingModifiedValues";
/// The two types, by the element that shows one and the name of its identifier.
const TYPES: [(&str, &str); 2] =
    [("DBInstance", "DBInstanceIdentifier"), ("DBCluster", "DBClusterIdentifier")];

/// What is known of each database, by type and identifier.
#[derive(Default)]
pub(super) struct Settings(Mutex<HashMap<(&'static str, String), Known>>);

#[derive(Default)]
struct Known {
    shown: BTreeMap<&'static str, String>,
    logs: Option<BTreeSet<String>>,
    /// What waited, and was then applied at once: the emulator goes on showing it.
    flushed: Option<Element>,
}

impl Settings {
    /// Learns from a call that has succeeded.
    pub fn learn(&self, asked: &Asked) {
        let Some((verb, key)) = subject(asked) else { return };
        let mut known = self.0.lock();
        if verb == "Delete" {
            known.remove(&key);
            return;
        }
        let known = known.entry(key).or_default();
        for (param, element) in SHOWN {
            // AWS would hold some of them pending; here, each is shown at once.
            if let Some(value) = asked.params.get(*param) {
                known.shown.insert(element, value.clone());
            }
        }
        let enable = match verb {
            "Create" => members(asked, "EnableCloudwatchLogsExports"),
            _ => members(asked, "CloudwatchLogsExportConfiguration.EnableLogTypes"),
        };
        let disable = members(asked, "CloudwatchLogsExportConfiguration.DisableLogTypes");
        if !enable.is_empty() || !disable.is_empty() {
            let logs = known.logs.get_or_insert_default();
            logs.extend(enable);
            logs.retain(|log| !disable.contains(log));
        }
    }

    /// Shows it wherever the answer shows a database.
    pub fn fill(&self, root: &mut Element) {
        if let Some((name, id)) = TYPES.iter().find(|(name, _)| *name == root.name)
            && let Some(id) = root.child_text(id)
            && let Some(known) = self.0.lock().get(&(*name, id.to_lowercase()))
        {
            known.show(root);
        }
        root.children_mut().for_each(|child| self.fill(child));
    }

    /// What waits is applied now. False: it was, and the emulator only goes on showing it.
    fn flush(&self, key: (&'static str, String), pending: &Element) -> bool {
        let mut known = self.0.lock();
        let flushed = &mut known.entry(key).or_default().flushed;
        let is_new = flushed.as_ref() != Some(pending);
        *flushed = Some(pending.clone());
        is_new
    }
}

impl Known {
    fn show(&self, database: &mut Element) {
        for (path, value) in &self.shown {
            match path.split_once('/') {
                None => database.set(path, value),
                Some((part, field)) => {
                    let part = database.children_mut().find(|child| child.name == part);
                    if let Some(part) = part.filter(|part| part.child(field).is_some()) {
                        part.set(field, value);
                    }
                }
            }
        }
        if let Some(logs) = &self.logs {
            let mut list = Element::new(LOGS);
            logs.iter().for_each(|log| list.push(Element::text_of("member", log)));
            replace(database, list);
        }
        if self.flushed.is_some() && database.child(PENDING) == self.flushed.as_ref() {
            replace(database, Element::new(PENDING));
        }
    }
}

/// The form to forward instead: what is applied at once is, and with it all that waited for the
/// maintenance window. ministack leaves that pending.
pub(super) async fn flushing(world: &World, asked: &Asked) -> Result<Option<String>, Cut> {
    let is_at_once = asked.params.get("ApplyImmediately").is_some_and(|value| value == "true");
    let Some((_, key)) = subject(asked).filter(|_| is_at_once && asked.operation == "ModifyDBInstance")
    else {
        return Ok(None);
    };
    let question = [("Action", "DescribeDBInstances"), ("DBInstanceIdentifier", key.1.as_str())];
    let found = world.ask(asked, &question).await?;
    let is_waiting = |pending: &&Element| pending.children().next().is_some();
    let Some(pending) = found.find(PENDING).filter(is_waiting) else { return Ok(None) };
    if !world.settings.flush(key, pending) {
        return Ok(None);
    }
    let waited = pending.children().filter(|field| !asked.params.contains_key(&field.name));
    let waited: Vec<_> = waited.map(|field| (field.name.clone(), field.text())).collect();
    let mut form = form_urlencoded::Serializer::new(String::new());
    Ok(Some(form.extend_pairs(&asked.params).extend_pairs(waited).finish()))
}

/// What a call does, and to which database.
fn subject(asked: &Asked) -> Option<(&'static str, (&'static str, String))> {
    let (name, id) =
        TYPES.iter().find(|(name, _)| asked.service == "rds" && asked.operation.ends_with(*name))?;
    let verb = ["Create", "Modify", "Delete"]
        .into_iter()
        .find(|verb| asked.operation.strip_prefix(verb).is_some_and(|rest| rest == *name))?;
    Some((verb, (name, asked.params.get(*id)?.to_lowercase())))
}

/// `List.member.1`, `List.member.2`, …
fn members(asked: &Asked, list: &str) -> BTreeSet<String> {
    let prefix = format!("{list}.member.");
    let of_list = asked.params.iter().filter(|(key, _)| key.starts_with(&prefix));
    of_list.map(|(_, value)| value.clone()).collect()
}

fn replace(parent: &mut Element, child: Element) {
    let name = child.name.clone();
    parent.retain(|other| other.name != name);
    parent.push(child);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_shown_with_what_was_asked_for() {
        let key = ("DBInstance", "orders".to_owned());
        let settings = Settings::default();
        let known = Known {
            shown: [("Endpoint/Port", "5433".to_owned()), ("StorageThroughput", "200".to_owned())].into(),
            logs: Some(["audit".to_owned()].into()),
            flushed: Element::parse("<PendingModifiedValues><MultiAZ>true</MultiAZ></PendingModifiedValues>"),
        };
        settings.0.lock().insert(key, known);
        let mut root = Element::parse(
            "<R><DBInstances><DBInstance><DBInstanceIdentifier>Orders</DBInstanceIdentifier>\
             <Endpoint><Port>5432</Port></Endpoint><PendingModifiedValues><MultiAZ>true</MultiAZ>\
             </PendingModifiedValues></DBInstance></DBInstances></R>",
        )
        .unwrap();
        settings.fill(&mut root);
        assert_eq!(root.find("Port").unwrap().text(), "5433");
        assert_eq!(root.find("StorageThroughput").unwrap().text(), "200");
        assert_eq!(root.find(LOGS).unwrap().all("member"), ["audit"]);
        assert!(root.find(PENDING).unwrap().children().next().is_none());
    }
}
