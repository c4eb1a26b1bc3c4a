//! Taking secrets out of texts, in whatever way others write them.

/// What stands in the place of a secret.
const MASK: &str = "***";

/// The text without these secrets: as they are, as URLs, XML, JSON and Rust's own debug output write
/// them, once or twice, each character in its own way; and as base64.
pub(crate) fn scrub(text: &str, secrets: &[&str]) -> String {
    // A secret of stars alone would stand in what takes its place; one that is longer than the text, a
    // megabyte maybe, cannot stand in it: no spelling is shorter than the secret itself.
    let may_stand = |secret: &&&str| secret.len() <= text.len() && !secret.trim_matches('*').is_empty();
    let secrets: Vec<_> = secrets.iter().filter(may_stand).collect();
    let mut encoded: Vec<String> = secrets.iter().flat_map(|secret| base64_of(secret)).collect();
    encoded.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
    let mut text = text.to_owned();
    loop {
        let masked = secrets.iter().fold(text.clone(), |text, secret| mask(&text, secret));
        let masked = encoded.iter().fold(masked, |text, spelling| text.replace(spelling, MASK));
        // What was left and right of one may be another. It ends: each has a character that is no star.
        if masked == text {
            return text;
        }
        text = masked;
    }
}

/// Takes one secret out, by its longest spelling at each place.
fn mask(text: &str, secret: &str) -> String {
    let Some(first) = secret.chars().next() else { return text.to_owned() };
    let starts = spellings(first);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let may_start = starts.iter().any(|start| rest.starts_with(start.as_str()));
        match may_start.then(|| length(rest, secret)).flatten() {
            Some(length) => {
                clean.push_str(MASK);
                rest = &rest[length..];
            }
            None => {
                clean.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    clean
}

/// How much of the text, from its beginning, the secret takes up there.
fn length(text: &str, secret: &str) -> Option<usize> {
    let mut ends = vec![0];
    for character in secret.chars() {
        let spellings = spellings(character);
        let longer = ends.iter().flat_map(|&end| {
            let follows = spellings.iter().filter(move |spelling| text[end..].starts_with(spelling.as_str()));
            follows.map(move |spelling| end + spelling.len())
        });
        let mut longer: Vec<usize> = longer.collect();
        longer.sort_unstable();
        longer.dedup();
        if longer.is_empty() {
            return None;
        }
        ends = longer;
    }
    ends.last().copied()
}

/// The ways to write a character.
fn spellings(character: char) -> Vec<String> {
    let code = u32::from(character);
    let mut bytes = [0; 4];
    let bytes = character.encode_utf8(&mut bytes).as_bytes();
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units);
    let upper = |prefix: &str| -> String { bytes.iter().map(|byte| format!("{prefix}{byte:02X}")).collect() };
    let lower = |prefix: &str| -> String { bytes.iter().map(|byte| format!("{prefix}{byte:02x}")).collect() };
    let mut all = vec![character.to_string()];
    // Percent signs, which may have been written so themselves.
    all.extend([upper("%"), lower("%"), upper("%25"), lower("%25")]);
    // Escapes with a backslash, which may have been escaped itself.
    let mut escapes = vec![
        format!("u{{{code:x}}}"),
        units.iter().map(|unit| format!("u{unit:04x}")).collect::<Vec<_>>().join("\\"),
        units.iter().map(|unit| format!("u{unit:04X}")).collect::<Vec<_>>().join("\\"),
    ];
    let short = match character {
        '\n' => Some("n"),
        '\r' => Some("r"),
        '\t' => Some("t"),
        '\0' => Some("0"),
        '\u{8}' => Some("b"),
        '\u{c}' => Some("f"),
        _ => None,
    };
    escapes.extend(short.map(str::to_owned));
    if matches!(character, '"' | '\'' | '/' | '\\') {
        escapes.push(character.to_string());
        all.push(format!("\\\\\\{character}"));
    }
    for escape in escapes {
        all.push(format!("\\{escape}"));
        all.push(format!("\\\\{}", escape.replace('\\', "\\\\")));
    }
    // Entities, the ampersand of which may be one itself.
    let name = match character {
        '&' => Some("amp"),
        '<' => Some("lt"),
        '>' => Some("gt"),
        '"' => Some("quot"),
        '\'' => Some("apos"),
        _ => None,
    };
    let numbers = [format!("#{code}"), format!("#0{code}"), format!("#x{code:x}"), format!("#x{code:X}")];
    for entity in numbers.into_iter().chain(name.map(str::to_owned)) {
        all.push(format!("&{entity};"));
        all.push(format!("&amp;{entity};"));
    }
    if character == ' ' {
        all.push("+".to_owned());
    }
    all
}

/// Base64 of the text, in both alphabets, and of what any text that holds it has in common whatever
/// precedes it.
fn base64_of(secret: &str) -> Vec<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let texts = (0..3).filter_map(|shift| {
        let bits: Vec<bool> = std::iter::repeat_n(0u8, shift)
            .chain(secret.bytes())
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
            .collect();
        let digit = |six: &[bool]| six.iter().fold(0usize, |digit, bit| digit * 2 + usize::from(*bit));
        let digits: Vec<u8> = bits.chunks_exact(6).map(|six| ALPHABET[digit(six)]).collect();
        // The first digits depend on what precedes it.
        let text: String =
            digits.iter().skip((shift * 8).div_ceil(6)).map(|byte| char::from(*byte)).collect();
        (text.len() >= 4).then_some(text)
    });
    texts.flat_map(|text| [text.replace('+', "-").replace('/', "_"), text]).collect()
}
