//! Words as markup: what comes from outside can never become an element or an attribute.

/// The words with every character escaped that means something in HTML or SVG. Control characters, which XML
/// does not allow, are replaced.
pub fn escape(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for character in words.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_from_outside_becomes_markup() {
        assert_eq!(
            escape("<a href=\"x\" b='y'>&\u{1b}[0m"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\u{fffd}[0m"
        );
        assert_eq!(escape("plain words, ümlaut"), "plain words, ümlaut");
    }
}
