//! What AWS holds, and what it was asked, against what the data file says.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::data::{Hand, Look, Sees};
use super::fill::{Objects, fill, placeholders};
use super::pick::{pick, same};
use crate::aws::{AwsError, Boto};
use crate::proxy::aws::{Call, Table};

/// The foreign hand and the witness: another AWS client, past the proxy.
pub(super) struct Witness<'a> {
    pub boto: &'a Boto,
    pub looks: &'a BTreeMap<String, Look>,
    pub objects: &'a Objects,
}

impl Witness<'_> {
    /// Does something in AWS.
    pub async fn act(&self, hand: &Hand) -> Result<()> {
        let with = self.fill(&hand.with).await?;
        call(self.boto, &hand.call, with.clone())
            .await?
            .with_context(|| format!("{} with {with}", hand.call))?;
        Ok(())
    }

    /// Fails unless AWS holds this.
    pub async fn ensure(&self, sees: &Sees) -> Result<()> {
        for (name, places) in sees {
            let answer = self.look(name).await?;
            for (path, expected) in places {
                let expected = self.fill(expected).await?;
                let found = match (&answer, path.as_str()) {
                    (Err(error), "error") => json!(error.code),
                    (Ok(value), path) if path != "error" => pick(value, path),
                    (answer, path) => bail!("{name}{path} should be {expected}, but AWS answers {answer:?}"),
                };
                let all = answer.as_ref().map_or_else(ToString::to_string, ToString::to_string);
                ensure!(same(&found, &expected), "{name}{path} is {found} and should be {expected}: {all}");
            }
        }
        Ok(())
    }

    /// How many items a look finds.
    pub async fn count(&self, name: &str) -> Result<usize> {
        let found = self.look(name).await?.with_context(|| format!("look {name}"))?;
        let items = found.as_array().with_context(|| format!("{name} finds no list: {found}"))?;
        Ok(items.len())
    }

    async fn look(&self, name: &str) -> Result<Result<Value, AwsError>> {
        let look = self.looks.get(name).with_context(|| format!("no look is called {name}"))?;
        let filled = self.own_values(&placeholders(&look.with))?;
        let answer = call(self.boto, &look.call, fill(&look.with, &filled)).await?;
        Ok(answer.map(|answer| pick(&answer, &look.at)))
    }

    async fn fill(&self, value: &Value) -> Result<Value> {
        let mut filled = BTreeMap::new();
        for name in placeholders(value) {
            let value = match name.split_once(':') {
                Some((look, path)) => pick(&self.look(look).await??, path),
                None => self.objects.get(&name)?.clone(),
            };
            filled.insert(name, value);
        }
        Ok(fill(value, &filled))
    }

    fn own_values(&self, names: &[String]) -> Result<BTreeMap<String, Value>> {
        names.iter().map(|name| Ok((name.clone(), self.objects.get(name)?.clone()))).collect()
    }
}

/// A call by its boto3 name, such as `ec2.describe_vpcs`.
async fn call(boto: &Boto, name: &str, with: Value) -> Result<Result<Value, AwsError>> {
    let (service, operation) = name.split_once('.').with_context(|| format!("{name} names no service"))?;
    let with = if with.is_null() { json!({}) } else { with };
    Ok(boto.call(service, operation, with).await)
}

/// Fails unless exactly these operations were called, in whatever order.
pub(super) fn ensure_calls(calls: &[Call], expected: &[String]) -> Result<()> {
    let mut made: Vec<_> = calls.iter().map(|call| call.operation.as_str()).collect();
    let mut expected: Vec<_> = expected.iter().map(String::as_str).collect();
    made.sort_unstable();
    expected.sort_unstable();
    ensure!(made == expected, "the calls were {made:?} and should be {expected:?}:\n{}", Table(calls));
    Ok(())
}
