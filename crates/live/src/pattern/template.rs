//! URI templates (RFC 6570) read backwards: whether a text can be what a template expands to.
//!
//! It owns which characters an expression can give. It must never give the values: they are not needed, and
//! often not unique.

use super::glob::{Again, Glob, Piece, Wildcard, WildcardKind};
use crate::name::NameFault;

/// Reads a template: literals, and for each expression any number of characters, or nothing at all.
pub(super) fn read(text: &str) -> Result<Glob, NameFault> {
    Glob::new(pieces(text).ok_or(NameFault::NoTemplate)?).ok_or(NameFault::TooManyPieces)
}

fn pieces(text: &str) -> Option<Vec<Piece>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(open) = rest.find(['{', '}']) {
        let (literal, behind) = rest.split_at(open);
        let (expression, behind) = behind.strip_prefix('{')?.split_once('}')?;
        pieces.push(Piece { before: literal.into(), run: Some(run_of(expression)?), ..Piece::literal("") });
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::literal(rest));
    }
    debug_assert!(pieces.iter().all(|piece| piece.again == Again::Once));
    Some(pieces)
}

/// Operators and what they give (RFC 6570, section 3.2 and appendix A).
fn run_of(expression: &str) -> Option<Wildcard> {
    let (operator, names) = match expression.chars().next()? {
        operator if "+#./;?&".contains(operator) => (Some(operator as u8), &expression[1..]),
        _ => (None, expression),
    };
    let is_name = |name: &str| {
        let name = name.strip_suffix('*').unwrap_or(name);
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.%".contains(c))
    };
    if !names.split(',').all(is_name) {
        return None;
    }
    let (first, has_reserved, between) = match operator {
        None => (None, false, None),
        Some(b'+') => (None, true, None),
        Some(b'#') => (Some(b'#'), true, None),
        Some(b'?') => (Some(b'?'), false, Some(b'&')),
        Some(operator) => (Some(operator), false, Some(operator)),
    };
    Some(Wildcard { first, kind: WildcardKind::Expansion { has_reserved, between }, may_be_empty: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_of_the_standard_and_what_is_none() {
        let table = [
            (
                "https://example.com/{id}",
                &["https://example.com/1", "https://example.com/"][..],
                &["https://example.com/1/2", "https://example.com/a b", "http://example.com/1"][..],
            ),
            ("https://example.com/{+path}", &["https://example.com/a/b?c#d"], &["https://example.com/a b"]),
            ("/a{#x}", &["/a", "/a#b/c"], &["/ab"]),
            ("X{.var}", &["X", "X.value", "X.a.b"], &["Xvalue"]),
            ("{/var,x}/here", &["/value/1024/here", "/here"], &["here", "/value/1024"]),
            ("{;x,y}", &[";x=1024;y=768", ""], &["x=1"]),
            ("/s{?q,lang}", &["/s?q=a&lang=b", "/s"], &["/s&q=a", "/s?q=a/b"]),
            ("/s?fixed=yes{&x*}", &["/s?fixed=yes&x=1024"], &["/s?fixed=yes?x"]),
            ("{a}-{b}-{c}", &["1-2-3", "----"], &["1-2", "1/2-3-4"]),
            ("plain", &["plain"], &["plain2", ""]),
            ("{x}ä{y:3}", &["aäb", "ää"], &["ab"]),
            ("{a}{b}{c}~1", &["~1", "xy~1"], &["xy", "/~1"]),
            ("{a}{/b}x", &["x", "a/bx", "/x"], &["/a/", "?x"]),
        ];
        for (template, matching, other) in table {
            let parsed = read(template).unwrap();
            let mut work = 0;
            matching.iter().for_each(|text| assert!(parsed.matches(text, &mut work), "{template} {text}"));
            other.iter().for_each(|text| assert!(!parsed.matches(text, &mut work), "{template} {text}"));
        }
        for text in ["{", "}", "{}", "{a", "a}b", "{=a}", "{a,,b}", "{a b}", "{{a}}"] {
            assert_eq!(read(text), Err(NameFault::NoTemplate), "{text}");
        }
    }

    #[test]
    fn expressions_side_by_side_are_one_and_few_stand_apart() {
        assert_eq!(read(&"{a}".repeat(80)), read("{a}"));
        assert_eq!(read(&"{a}x".repeat(60)), Err(NameFault::TooManyPieces));
    }
}
