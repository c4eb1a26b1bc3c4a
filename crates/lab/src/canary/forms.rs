//! The ways in which one text is written in others. They are not those of the operator's own scrubber:
//! what that one forgets must be missed here.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

/// A text in all of these ways, each with its name.
pub(super) fn all(text: &str) -> Vec<(&'static str, String)> {
    let form = form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let url = form.replace('+', "%20");
    let xml = quick_xml::escape::escape(text).into_owned();
    let json = within_quotes(&json!(text).to_string());
    let debug = within_quotes(&format!("{text:?}"));
    let mut all = vec![
        ("raw", text.to_owned()),
        ("URL-escaped", url.clone()),
        ("URL-escaped in lower case", lower_hex(&url)),
        ("a form's", form.clone()),
        ("a form's in lower case", lower_hex(&form)),
        ("URL-escaped twice", url.replace('%', "%25")),
        ("XML", xml.clone()),
        ("XML with numbers", xml.replace("&quot;", "&#34;")),
        ("XML twice", quick_xml::escape::escape(&xml).into_owned()),
        ("JSON", json.clone()),
        ("JSON for web pages", json.replace('&', "\\u0026").replace('<', "\\u003c")),
        ("JSON in JSON", within_quotes(&json!(json).to_string())),
        ("Debug", debug.clone()),
        ("Debug of Debug", within_quotes(&format!("{debug:?}"))),
    ];
    let of_longer = |before: &str| format!("{before}{text}>");
    all.extend(["", "x", "xy"].map(|before| ("base64", STANDARD.encode(of_longer(before)))));
    all.extend(["", "x", "xy"].map(|before| ("base64 for URLs", URL_SAFE_NO_PAD.encode(of_longer(before)))));
    all
}

fn within_quotes(quoted: &str) -> String {
    quoted[1..quoted.len() - 1].to_owned()
}

/// With its escapes in lower case, and nothing else.
fn lower_hex(escaped: &str) -> String {
    let mut parts = escaped.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| format!("{all}%{}{}", part[..2].to_lowercase(), &part[2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_as_others_write_it() {
        let all = all("a+b %c&\"<d");
        let is = |way: &str, form: &str| {
            assert!(all.iter().any(|known| *known == (way, form.to_owned())), "{way} {form} in {all:#?}");
        };
        is("raw", "a+b %c&\"<d");
        is("URL-escaped", "a%2Bb%20%25c%26%22%3Cd");
        is("URL-escaped in lower case", "a%2bb%20%25c%26%22%3cd");
        is("a form's", "a%2Bb+%25c%26%22%3Cd");
        is("a form's in lower case", "a%2bb+%25c%26%22%3cd");
        is("URL-escaped twice", "a%252Bb%2520%2525c%2526%2522%253Cd");
        is("XML", "a+b %c&amp;&quot;&lt;d");
        is("XML with numbers", "a+b %c&amp;&#34;&lt;d");
        is("XML twice", "a+b %c&amp;amp;&amp;quot;&amp;lt;d");
        is("JSON", r#"a+b %c&\"<d"#);
        is("JSON for web pages", r#"a+b %c\u0026\"\u003cd"#);
        is("JSON in JSON", r#"a+b %c&\\\"<d"#);
        is("Debug of Debug", r#"a+b %c&\\\"<d"#);
        is("base64", "YStiICVjJiI8ZD4=");
        is("base64 for URLs", "eGErYiAlYyYiPGQ-");
    }
}
