//! Texts cut to fit.

/// A message, sentence by sentence, without the request id, which kubectl shows.
pub fn sentences(message: &str) -> Vec<String> {
    let (before, after) = message.split_once(" (request id ").unwrap_or((message, ""));
    let after = after.split_once(')').map_or("", |(_, after)| after);
    let text = before.trim_end_matches('.').to_owned() + ". " + after.trim_start_matches(['.', ' ']);
    text.split(". ").filter(|sentence| !sentence.is_empty()).map(str::to_owned).collect()
}

/// Lines no longer than that, where words allow it.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Cut to fit.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// How many columns it takes.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_sentences_without_its_request_id() {
        let message = "DeleteVpc: DependencyViolation: It cannot be deleted. (request id 0-1). Still used by Subnet a/b; it goes on";
        assert_eq!(
            sentences(message),
            ["DeleteVpc: DependencyViolation: It cannot be deleted", "Still used by Subnet a/b; it goes on"]
        );
        assert_eq!(sentences("created vpc-1"), ["created vpc-1"]);
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible", 7), ["incomprehensible"]);
        assert_eq!(shorten("one two", 7), "one two");
        assert_eq!(shorten("one two", 4), "one…");
    }
}
