//! The pages as Markdown.

use std::fmt::Write;
use std::sync::Arc;

use resource::api::{GROUP, VERSION};
use resource::schema::properties;
use resource::{Deletion, Kind, Meta, Protection, Reads};
use serde_json::{Value, json};

use super::fields::{Row, description, rows, rules};
use super::published;

const HEADER: &str = "<!-- Generated from the kinds: cargo xtask generate -->\n";

/// The annotations on any object, `aws.konfig.io/` apart.
const ANNOTATIONS: [(&str, &str); 7] = [
    (
        "deletion-policy",
        "`abandon`: deleting the object leaves the AWS resource, without our tags. `delete`: an adopted one is deleted too.",
    ),
    ("external-id", "Adopt what has this id (or name, or ARN) in AWS instead of making one."),
    ("adopt-from", "Take it over from this owner in another cluster, named as in the tag `konfig.io/owner`."),
    ("paused", "`\"true\"`: AWS is neither read nor changed. A deletion still goes on."),
    ("reconcile-interval", "Another drift interval than the operator's: `30s` to `24h`."),
    ("reconcile", "Any new text: it is checked against AWS once, now."),
    ("recreate", "`\"true\"`: what somebody deleted in AWS is made anew also where it held data."),
];

/// The page of a kind.
pub fn of(kind: &dyn Kind, example: &str) -> String {
    let meta = kind.meta();
    [
        format!("{HEADER}# {}\n\n{}\n", meta.kind, head(kind)),
        format!("## Example\n\n```yaml\n{}```\n", example),
        format!("## Spec\n\n{}", spec(kind)),
        format!("## Status\n\n{}", status(kind)),
        format!("## Life\n\n{}", life(kind)),
        format!("## IAM permissions\n\n{}", permissions(meta)),
    ]
    .join("\n")
}

/// The page that lists the kinds, and says what they share.
pub fn index(kinds: &[Arc<dyn Kind>]) -> String {
    let mut text = format!("{HEADER}# Kinds of {}/{}\n\n| Kind | |\n| --- | --- |\n", GROUP, VERSION);
    for kind in kinds {
        let meta = kind.meta();
        text += &format!("| [{}]({}.md) | {} |\n", meta.kind, meta.kind.to_lowercase(), meta.about);
    }
    text += "\n`kubectl get konfig` lists the objects of all kinds.\n";
    if let Some(kind) = kinds.first() {
        let own = published(kind.as_ref(), "spec");
        let shared = json!({"properties": {"providerRef": own["properties"]["providerRef"]}});
        text += &format!("\n## Spec of every kind\n\n{}", status_table(&rows(&shared)));
        text += "\n## Annotations of every kind\n\n| Annotation | Meaning |\n| --- | --- |\n";
        for (name, meaning) in ANNOTATIONS {
            text += &line(&[&format!("`{}/{name}`", GROUP), meaning]);
        }
        text += &format!("\n## Status of every kind\n\n{}", status_table(&common_status(kind.as_ref())));
    }
    text
}

fn head(kind: &dyn Kind) -> String {
    let meta = kind.meta();
    let about = description(kind.schema()).unwrap_or_else(|| meta.about.to_owned());
    let short = meta.short_names.iter().map(|name| format!(", `{name}`")).collect::<String>();
    format!(
        "{about}\n\nFor kubectl: `{}`, `{}`{short}. What a field means: `kubectl explain {}.spec`.",
        meta.plural,
        meta.kind.to_lowercase(),
        meta.kind.to_lowercase(),
    )
}

fn spec(kind: &dyn Kind) -> String {
    let mut text = spec_table(&rows(kind.schema()));
    text += "\nBeside these: [what every kind has](README.md#spec-of-every-kind). \
             A default applies at creation; a field that is not set is not managed.\n";
    let rules = rules(kind.schema());
    if !rules.is_empty() {
        text += "\nTogether:\n\n";
        rules.iter().for_each(|rule| text += &format!("- {rule}\n"));
    }
    text
}

fn status(kind: &dyn Kind) -> String {
    let identifier = &kind.meta().identifier;
    status_table(&rows(kind.status_schema()))
        + &format!(
            "\n`{identifier}` is the column IDENTIFIER. Beside these: \
             [what every kind has](README.md#status-of-every-kind).\n"
        )
}

/// The published fields that are not the kind's own.
fn common_status(kind: &dyn Kind) -> Vec<Row> {
    let own: Vec<_> = properties(kind.status_schema()).map(|(field, _)| field.clone()).collect();
    let mut status = published(kind, "status");
    if let Some(fields) = status.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|field, _| !own.contains(field));
    }
    rows(&status)
}

fn life(kind: &dyn Kind) -> String {
    let meta = kind.meta();
    let mut text = String::new();
    let roles = kind.roles(None);
    for role in &roles {
        let of = if roles.len() > 1 { format!(" (`{}`)", role.0) } else { String::new() };
        let _ = writeln!(text, "- Created{of}: {}", protection(kind.protection(*role, None)));
    }
    let poll = meta.polling.0.as_secs();
    let _ = writeln!(text, "- Under way in AWS: asked every {poll} s.");
    let checked = match meta.reads {
        Reads::Batched => "many objects in one call",
        Reads::OneByOne => "object by object",
    };
    let _ = writeln!(text, "- Checked against AWS at the drift interval: {checked}.");
    if meta.precious {
        text += "- Deleted in AWS by somebody: waits in Error for the annotation `aws.konfig.io/recreate: \"true\"`.\n";
    } else {
        text += "- Deleted in AWS by somebody: made again, with a Warning event.\n";
    }
    let _ = writeln!(text, "- Deleted: {}", deletion(meta.deletion));
    text
}

fn protection(protection: Protection) -> &'static str {
    match protection {
        Protection::None => {
            "AWS has no idempotency token and no unique name for it. An unclear answer is followed by a search \
             by owner tag, for a minute, before another attempt."
        }
        Protection::Token => "with an idempotency token: the same call twice makes one.",
        Protection::TokenFor(_) => {
            "An idempotency token, which AWS forgets after a while: past that, an unclear attempt is an Error."
        }
        Protection::UniqueName => "AWS refuses a second one of the same name or range.",
    }
}

fn deletion(deletion: Deletion) -> &'static str {
    match deletion {
        Deletion::Immediate => "AWS deletes at once; the object goes when AWS confirms it.",
        Deletion::Asynchronous => "AWS takes its time; the object stays until AWS confirms that it is gone.",
        Deletion::Blockable => {
            "AWS refuses while something uses it. The object then says what does (Ready=False, reason Error, \
             AWS's message) and goes on by itself once that is gone."
        }
    }
}

fn permissions(meta: &Meta) -> String {
    let statement = json!({"Effect": "Allow", "Action": meta.permissions, "Resource": "*"});
    format!("```json\n{statement:#}\n```\n")
}

fn spec_table(rows: &[Row]) -> String {
    let mut text =
        "| Field | Type | Meaning | May hold | When removed |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for Row { path, kind, meaning, constraints, removed } in rows {
        text += &line(&[&format!("`{path}`"), kind, meaning, &constraints.join("<br>"), removed]);
    }
    text
}

fn status_table(rows: &[Row]) -> String {
    let mut text = "| Field | Type | Meaning |\n| --- | --- | --- |\n".to_owned();
    for Row { path, kind, meaning, .. } in rows {
        text += &line(&[&format!("`{path}`"), kind, meaning]);
    }
    text
}

fn line(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| format!(" {} |", cell.replace('|', "\\|")));
    format!("|{}\n", cells.collect::<String>())
}
