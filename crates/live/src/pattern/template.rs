//! URI templates (RFC 6570) read backwards: whether a text can be what a template expands to.
//!
//! It owns which characters an expression can give. It must never give the values: they are not needed, and
//! often not unique.

/// A template, as literals and expressions.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Literal(String),
    /// What stands in braces: any number of characters, or nothing at all. With a value it begins with
    /// `first`.
    Expression {
        first: Option<char>,
        has_reserved: bool,
        also: &'static str,
    },
}

impl Template {
    /// Reads a template; `None` if it is none.
    pub(super) fn new(text: &str) -> Option<Self> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(open) = rest.find(['{', '}']) {
            let (literal, behind) = rest.split_at(open);
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let (expression, behind) = behind.strip_prefix('{')?.split_once('}')?;
            parts.push(expression_part(expression)?);
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Some(Self { parts })
    }

    /// Whether the text is an expansion. Looks at each place of the text once for each part.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut places = vec![false; text.len() + 1];
        places[0] = true;
        for part in &self.parts {
            places = match part {
                Part::Literal(literal) => behind_literal(&places, text, literal),
                Part::Expression { first, has_reserved, also } => {
                    let fits =
                        |c: char| is_unreserved(c) || also.contains(c) || (*has_reserved && is_reserved(c));
                    behind_expression(&places, text, *first, fits)
                }
            };
        }
        places[text.len()]
    }
}

/// Operators and what they give (RFC 6570, section 3.2 and appendix A).
fn expression_part(expression: &str) -> Option<Part> {
    let (operator, names) = match expression.chars().next()? {
        operator if "+#./;?&".contains(operator) => (Some(operator), &expression[1..]),
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
    let (first, has_reserved, also) = match operator {
        None => (None, false, ",="),
        Some('+') => (None, true, ",="),
        Some('#') => (Some('#'), true, ",="),
        Some('.') => (Some('.'), false, ",=."),
        Some('/') => (Some('/'), false, ",=/"),
        Some(';') => (Some(';'), false, ",=;"),
        Some('?') => (Some('?'), false, ",=&"),
        Some(_) => (Some('&'), false, ",=&"),
    };
    Some(Part::Expression { first, has_reserved, also })
}

/// Unreserved characters, those that are percent-encoded, and those beyond ASCII, as they stand in IRIs.
fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~%".contains(c) || !c.is_ascii()
}

fn is_reserved(c: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(c)
}

fn behind_literal(places: &[bool], text: &str, literal: &str) -> Vec<bool> {
    let mut behind = vec![false; places.len()];
    for place in (0..places.len()).filter(|place| places[*place]) {
        if text.as_bytes()[place..].starts_with(literal.as_bytes()) {
            behind[place + literal.len()] = true;
        }
    }
    behind
}

fn behind_expression(
    places: &[bool],
    text: &str,
    first: Option<char>,
    fits: impl Fn(char) -> bool,
) -> Vec<bool> {
    let mut behind = places.to_vec();
    // Whether an expression that has begun before may go on here.
    let mut runs = false;
    for (place, character) in text.char_indices() {
        let begins = places[place] && first.is_none_or(|first| first == character);
        let goes_on = runs && fits(character);
        runs = goes_on || (begins && (first.is_some() || fits(character)));
        if runs {
            behind[place + character.len_utf8()] = true;
        }
    }
    behind
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
        ];
        for (template, matching, other) in table {
            let parsed = Template::new(template).unwrap();
            matching.iter().for_each(|text| assert!(parsed.matches(text), "{template} {text}"));
            other.iter().for_each(|text| assert!(!parsed.matches(text), "{template} {text}"));
        }
        for text in ["{", "}", "{}", "{a", "a}b", "{=a}", "{a,,b}", "{a b}", "{{a}}"] {
            assert!(Template::new(text).is_none(), "{text}");
        }
    }
}
