//! Taking secrets out of texts: none is left, however it is written.

use proptest::prelude::*;
use resource::{Secret, Secrets};
use serde_json::json;

fn secrets(texts: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    for (number, text) in texts.iter().enumerate() {
        secrets.insert(format!("/secret{number}"), Secret::new(*text));
    }
    secrets
}

/// Longer than what stands in any text by chance.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9]{8,20}", r#"[ -~]{8,20}"#, r#"[a-zA-Z%&+"'<> \\/é日😀]{8,20}"#, r"\PC{8,20}",]
        // What stands for a secret is none.
        .prop_filter("stars", |secret| !secret.contains('*') && secret.trim() == secret)
}

fn hex(byte: u8, upper: bool) -> String {
    if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") }
}

fn url(text: &str, plus: bool, upper: bool) -> String {
    let one = |byte: u8| match byte {
        b' ' if plus => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => char::from(byte).to_string(),
        byte => hex(byte, upper),
    };
    text.bytes().map(one).collect()
}

/// As JSON writers do that keep to ASCII.
fn ascii_json(text: &str) -> String {
    let quoted = json!(text).to_string();
    let mut units = [0; 2];
    let one = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        c => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    quoted[1..quoted.len() - 1].chars().map(one).collect()
}

/// Ways in which others write a text.
fn spellings(text: &str) -> Vec<String> {
    let json = json!(text).to_string();
    let json = &json[1..json.len() - 1];
    let twice = json!(json).to_string();
    let debug = format!("{text:?}");
    let xml = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    vec![
        text.to_owned(),
        json.to_owned(),
        json.replace('/', "\\/"),
        twice[1..twice.len() - 1].to_owned(),
        ascii_json(text),
        debug[1..debug.len() - 1].to_owned(),
        url(text, false, true),
        url(text, true, true),
        url(text, false, false),
        url(text, true, false),
        xml.replace('"', "&quot;").replace('\'', "&apos;"),
        xml.replace('"', "&#34;").replace('\'', "&#39;"),
        xml.replace('"', "&#x22;").replace('\'', "&#x27;"),
        xml,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn none_is_left_however_it_is_written(secret in secret(), before in any::<String>(), after in any::<String>()) {
        let secrets = secrets(&[&secret]);
        for written in spellings(&secret) {
            let scrubbed = secrets.scrub(&format!("{before}({written}){after}"));
            prop_assert!(!scrubbed.contains(&written), "{written} in {scrubbed}");
        }
    }

    #[test]
    fn what_is_clean_stays(secret in "[A-Z]{8,20}", text in "[^A-Z%&]{0,80}") {
        prop_assert_eq!(secrets(&[&secret]).scrub(&text), text);
    }

    #[test]
    fn twice_is_once(secrets_in in prop::collection::vec(any::<String>(), 0..4), text in any::<String>()) {
        let all: Vec<_> = secrets_in.iter().map(String::as_str).collect();
        let (secrets, text) = (secrets(&all), format!("{text}{}", all.join("")));
        let once = secrets.scrub(&text);
        prop_assert_eq!(secrets.scrub(&once), once);
    }

    #[test]
    fn of_several_none_is_left(one in secret(), other in secret(), apart: bool) {
        // One may be a part of the other.
        let other = if apart { other } else { format!("{one}{other}") };
        let secrets = secrets(&[&one, &other]);
        let scrubbed = secrets.scrub(&format!("{one} {other} {one}{other}"));
        prop_assert!(!scrubbed.contains(&one) && !scrubbed.contains(&other), "{scrubbed}");
    }
}

#[test]
fn a_megabyte_is_no_burden() {
    let long = "p".repeat(1_000_000);
    let start = std::time::Instant::now();
    let text = "the password of postgres is p".repeat(100);
    assert_eq!(secrets(&[&long]).scrub(&text), text);
    assert_eq!(secrets(&[&format!("{}q", &text[1..])]).scrub(&text), text);
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}
