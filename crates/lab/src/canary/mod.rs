//! A secret whose ways can be followed: whatever form it takes, it is found again.

mod everything;
mod forms;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

pub use everything::{Everything, Traces};

/// A secret for a test. It holds what URLs, XML and JSON write in another way, and two words that
/// all of them leave alone: a secret that was cut in two is found by either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    words: [String; 2],
    text: String,
}

/// Where a secret was found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// How it is written there.
    pub written: &'static str,
    /// What stands around it.
    pub excerpt: String,
}

impl Canary {
    /// One that differs from all others by its name, a word of letters.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let words = [format!("canary{name}"), format!("sings{name}")];
        let text = format!("{}+7 %&\"<{}", words[0], words[1]);
        Self { words, text }
    }

    /// The secret itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The secret in each way in which AWS may quote it, by the way's name.
    #[must_use]
    pub fn forms(&self) -> Vec<(&'static str, String)> {
        forms::all(&self.text)
    }

    /// A sentence that quotes it in all of these.
    #[must_use]
    pub fn quoted(&self) -> String {
        let quotes = self.forms().into_iter().map(|(way, form)| format!("{way} {form}"));
        format!("AWS quotes: {}", quotes.collect::<Vec<_>>().join("; "))
    }

    /// A text without this secret, where it stands as a whole for the first time, in JSON or not.
    fn cut_from(&self, text: &str) -> String {
        let forms = self.forms();
        let longest = ["JSON in JSON", "JSON", "raw"].iter().find_map(|way| {
            let (_, form) =
                forms.iter().find(|(known, form)| known == way && text.contains(form.as_str()))?;
            Some(text.replacen(form.as_str(), "", 1))
        });
        longest.unwrap_or_else(|| text.to_owned())
    }

    /// The first place in a text where one of its words stands, plain or encoded.
    #[must_use]
    pub fn find_in(&self, text: &str) -> Option<Leak> {
        let lower = text.to_ascii_lowercase();
        let base64 = text.replace('-', "+").replace('_', "/");
        self.words.iter().find_map(|word| {
            let plain = lower.find(&word.to_ascii_lowercase()).map(|at| ("plain", at));
            let encoded = || aligned(word).into_iter().find_map(|part| Some(("base64", base64.find(&part)?)));
            let hex = || Some(("hex", lower.find(&joined(word, "", |byte| format!("{byte:02x}")))?));
            let bytes =
                || Some(("a list of bytes", text.find(&joined(word, ", ", |byte| byte.to_string()))?));
            let (written, at) = plain.or_else(encoded).or_else(hex).or_else(bytes)?;
            Some(Leak { written, excerpt: around(text, at) })
        })
    }
}

/// What base64 makes of a word in any text, wherever it begins: its own digits, without those that it
/// shares with its neighbours.
fn aligned(word: &str) -> [String; 3] {
    std::array::from_fn(|before| {
        let digits = STANDARD_NO_PAD.encode([&vec![0; before], word.as_bytes()].concat());
        let (first, last) = ((before * 8).div_ceil(6), (before + word.len()) * 8 / 6);
        digits[first..last].to_owned()
    })
}

fn joined(word: &str, separator: &str, written: impl Fn(u8) -> String) -> String {
    let mut all = String::new();
    for (at, byte) in word.bytes().enumerate() {
        let separator = if at == 0 { "" } else { separator };
        write!(all, "{separator}{}", written(byte)).expect("a String takes everything");
    }
    all
}

fn around(text: &str, at: usize) -> String {
    let bytes = &text.as_bytes()[at.saturating_sub(120)..text.len().min(at + 80)];
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_in_every_form_and_no_other_is() {
        let (canary, other) = (Canary::new("Alpha"), Canary::new("Bravo"));
        let forms = canary.forms();
        assert!(forms.len() >= 15, "{forms:?}");
        for (way, form) in forms {
            let line = format!("some line ({form}) of a log");
            assert!(canary.find_in(&line).is_some(), "{way}: {form}");
            assert_eq!(other.find_in(&line), None, "{way}: {form}");
        }
        assert_eq!(canary.find_in("canary Alpha and songs, nothing of it: ***"), None);
    }

    #[test]
    fn it_is_found_as_programs_print_bytes_and_when_it_was_cut_in_two() {
        let canary = Canary::new("Alpha");
        let bytes = canary.text().as_bytes();
        let hex = joined(canary.text(), "", |byte| format!("{byte:02X}"));
        let cut = &canary.text()[..canary.text().len() - 3];
        for text in [format!("{bytes:?}"), hex, cut.to_owned(), canary.text()[5..].to_owned()] {
            assert!(canary.find_in(&text).is_some(), "{text}");
        }
    }

    #[test]
    fn it_is_found_in_base64_wherever_it_begins() {
        let canary = Canary::new("Alpha");
        for before in ["", "a", "ab", "abc", "{\"password\":\""] {
            let text = STANDARD_NO_PAD.encode(format!("{before}{}\"}}", canary.text()));
            let leak = canary.find_in(&text).unwrap();
            assert_eq!(leak.written, "base64", "{before}");
        }
    }

    #[test]
    fn a_leak_is_shown_with_what_stands_around_it() {
        let canary = Canary::new("Alpha");
        let leak = canary.find_in(&format!("at /spec/password: {} é", canary.text())).unwrap();
        assert!(leak.written == "plain" && leak.excerpt.contains("at /spec/password: "), "{leak:?}");
    }
}
