//! Rust text with everything blanked out that is not code, so that the rules can search plainly.
//!
//! It owns the lexical grammar the rules need: comments, strings, characters, and which lines are tests.
//! It must never change a line's number or an offset's column (in characters).

/// `text` with comments, strings and character literals as spaces. Line ends stay.
pub(crate) fn mask(text: &str) -> String {
    let from: Vec<char> = text.chars().collect();
    let mut to = String::with_capacity(text.len());
    let mut at = 0;
    while at < from.len() {
        let end = skip(&from, at);
        if end == at {
            to.push(from[at]);
            at += 1;
        } else {
            to.extend(from[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    to
}

/// For every line of masked code, whether it belongs to an item under `#[cfg(test)]`.
pub(crate) fn test_lines(code: &str) -> Vec<bool> {
    let mut lines = vec![false; code.lines().count()];
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(test)]") {
        let start = from + found;
        let end = item_end(code, start);
        let first = line_of(code, start);
        for line in first..=line_of(code, end) {
            if let Some(mark) = lines.get_mut(line - 1) {
                *mark = true;
            }
        }
        from = end.max(start + 1);
    }
    lines
}

/// The line (counted from 1) of a byte offset.
pub(crate) fn line_of(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}

/// The offset of the brace that closes the one at `open`, in masked code.
pub(crate) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return offset,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len().saturating_sub(1)
}

fn item_end(code: &str, start: usize) -> usize {
    match code[start..].find(['{', ';']).map(|found| start + found) {
        Some(open) if code.as_bytes()[open] == b'{' => closing_brace(code, open),
        Some(semicolon) => semicolon,
        None => code.len().saturating_sub(1),
    }
}

/// The end of the comment, string or character that begins at `at`, or `at` if none does.
fn skip(from: &[char], at: usize) -> usize {
    match (from[at], from.get(at + 1)) {
        ('/', Some('/')) => line_end(from, at),
        ('/', Some('*')) => comment_end(from, at),
        ('"', _) => string_end(from, at + 1),
        ('\'', _) => character_end(from, at),
        ('r', Some('"' | '#')) if begins_word(from, at) => raw_string_end(from, at),
        _ => at,
    }
}

fn line_end(from: &[char], at: usize) -> usize {
    from[at..].iter().position(|&c| c == '\n').map_or(from.len(), |length| at + length)
}

fn comment_end(from: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < from.len() {
        match (from[at], from.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) if depth == 1 => return at + 2,
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    from.len()
}

fn string_end(from: &[char], mut at: usize) -> usize {
    while at < from.len() {
        match from[at] {
            '"' => return at + 1,
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    from.len()
}

/// A lifetime is no character: it has no quote behind its first letter.
fn character_end(from: &[char], at: usize) -> usize {
    match (from.get(at + 1), from.get(at + 2)) {
        (Some('\\'), Some(_)) => {
            from[at + 3..].iter().position(|&c| c == '\'').map_or(from.len(), |n| at + n + 4)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

fn raw_string_end(from: &[char], at: usize) -> usize {
    let hashes = from[at + 1..].iter().take_while(|&&c| c == '#').count();
    let open = at + 1 + hashes;
    if from.get(open) != Some(&'"') {
        return at;
    }
    let is_hash = |at: usize| from.get(at) == Some(&'#');
    let closes = |end: usize| from[end] == '"' && (end + 1..=end + hashes).all(is_hash);
    (open + 1..from.len()).find(|&end| closes(end)).map_or(from.len(), |end| end + 1 + hashes)
}

/// Whether no identifier runs into `at`; the `b` and `c` of byte and C strings may.
fn begins_word(from: &[char], at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match at.checked_sub(1).map(|before| from[before]) {
        Some('b' | 'c') => at < 2 || !is_word(from[at - 2]),
        Some(before) => !is_word(before),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_code_is_blanked() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"{", y)"#, "f(      , y)"),
            (r##"f(r#"a"{"#, y)"##, "f(        , y)"),
            ("f(b'{', '\\'', 'ä')", "f(b   ,     ,    )"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("for r in br\"{\" {}", "for r in b     {}"),
        ];
        for (text, code) in cases {
            assert_eq!(mask(text), code, "of {text}");
        }
    }

    #[test]
    fn tests_are_found_by_their_attribute() {
        let block = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n";
        let code = format!("{block}fn c() {{}}\n#[cfg(test)]\nmod x;\nfn d() {{}}\n");
        assert_eq!(test_lines(&code), [false, true, true, true, true, false, true, true, false]);
    }
}
