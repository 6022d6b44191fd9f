//! Paths of names in masked Rust code: what a file says in `use` and in `crate::a::b`.
//!
//! It owns the reading of one file. It must never know other files: `modules.rs` finds out what a path means.

/// A path that stands in a file, for example `crate::limits::HEAD_BYTES_MAX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePath {
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// Its segments; `*` for all of a module.
    pub(crate) segments: Vec<String>,
    /// How it stands there.
    pub(crate) place: PathUse,
}

/// How a path stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathUse {
    /// `use`: binds a name for this file.
    Use,
    /// `pub use`: passes a name on, the file itself need not use it.
    PassedOn,
    /// Anywhere else in the code.
    Code,
}

/// Every path of more than one segment in masked code, and every `use`.
pub(crate) fn read(code: &str) -> Vec<NamePath> {
    let tokens = tokens(code);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "use" {
            let place = if is_passed_on(&tokens, at) { PathUse::PassedOn } else { PathUse::Use };
            at = read_tree(&tokens, at + 1, &[], place, &mut paths);
        } else if is_word(tokens[at].text) {
            at = read_plain(&tokens, at, &mut paths);
        } else {
            at += 1;
        }
    }
    paths
}

struct Token<'a> {
    line: usize,
    text: &'a str,
}

/// Words, `::`, and single other characters; blanks are left out.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                _ if rest.starts_with("::") => 2,
                _ if is_letter(first) => rest.find(|c| !is_letter(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            tokens.push(Token { line: index + 1, text: &rest[..length] });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word(text: &str) -> bool {
    text.starts_with(is_letter)
}

fn text_at<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

/// Whether `pub` or `pub(...)` stands before the `use` at `at`.
fn is_passed_on(tokens: &[Token<'_>], at: usize) -> bool {
    let before: Vec<&str> = tokens[at.saturating_sub(4)..at].iter().map(|token| token.text).collect();
    matches!(before[..], [.., "pub"] | ["pub", "(", _, ")"])
}

/// A tree of a `use`, beginning at `at`, below `prefix`. Returns where it ends.
fn read_tree(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &[String],
    place: PathUse,
    paths: &mut Vec<NamePath>,
) -> usize {
    let mut segments = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match text_at(tokens, at) {
            "::" => at += 1,
            "{" => return read_group(tokens, at + 1, &segments, place, paths),
            "as" => at += 2,
            text if text == "*" || is_word(text) => {
                segments.push(text.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    if segments.len() > prefix.len() {
        paths.push(NamePath { line, segments, place });
    }
    at
}

/// Trees between braces, beginning behind the opening one. Returns where the group ends.
fn read_group(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &[String],
    place: PathUse,
    paths: &mut Vec<NamePath>,
) -> usize {
    while at < tokens.len() && text_at(tokens, at) != "}" {
        at = if text_at(tokens, at) == "," { at + 1 } else { read_tree(tokens, at, prefix, place, paths) };
    }
    at + 1
}

/// A path in code. Returns where it ends.
fn read_plain(tokens: &[Token<'_>], at: usize, paths: &mut Vec<NamePath>) -> usize {
    let mut segments = vec![tokens[at].text.to_owned()];
    let mut end = at + 1;
    while text_at(tokens, end) == "::" && is_word(text_at(tokens, end + 1)) {
        segments.push(text_at(tokens, end + 1).to_owned());
        end += 2;
    }
    if segments.len() > 1 {
        paths.push(NamePath { line: tokens[at].line, segments, place: PathUse::Code });
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_uses_and_code() {
        let code =
            "use crate::a::{self, B, c::{D as E, *}};\npub(crate) use x::Y;\nfn f() { super::g(z); h(); }\n";
        let found: Vec<String> =
            read(code).iter().map(|p| format!("{} {:?}", p.segments.join("::"), p.place)).collect();
        let expected = [
            "crate::a::self Use",
            "crate::a::B Use",
            "crate::a::c::D Use",
            "crate::a::c::* Use",
            "x::Y PassedOn",
            "super::g Code",
        ];
        assert_eq!(found, expected);
    }
}
