//! Faults between the redirects of one site: rules that never apply, and rules that lead in a circle.
//!
//! The check follows a word that stands in no rule through the whole list. It must never judge a rule that
//! leads to another host, because what is answered there is not known.

use std::collections::BTreeMap;

/// Redirects that a browser follows at most (Fetch standard, section 4.4): what goes on then is a circle.
const HOPS_MAX: usize = 20;

/// What a star stands for while a rule is followed.
const WORD: &str = "q0z";

/// Where a rule leads from, and where to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

/// What is wrong, each with the number of the rule to blame, in the order of the rules.
pub(crate) fn faults(rules: &[Rule<'_>]) -> Vec<(usize, String)> {
    let mut faults = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        if rule.from.contains('?') {
            faults.insert(
                index,
                "`from` is compared with the path, without its query: this rule never applies".into(),
            );
        } else if let Some(text) = lacks_star(rule) {
            faults.insert(index, text);
        } else if let Some(earlier) = rules[..index].iter().find(|earlier| covers(earlier.from, rule.from)) {
            faults.insert(index, never_applies(earlier, rule));
        } else if let Some((culprit, text)) = circle(rules, index) {
            faults.entry(culprit).or_insert(text);
        }
    }
    faults.into_iter().collect()
}

fn lacks_star(rule: &Rule<'_>) -> Option<String> {
    let stars = rule.from.matches('*').count();
    let number = (1..=9).rev().find(|number| rule.to.contains(&format!("${number}")))?;
    let stars_text = if stars == 1 { "1 star".into() } else { format!("{stars} stars") };
    (number > stars).then(|| format!("`to` has ${number}, but `from` has {stars_text}"))
}

fn never_applies(earlier: &Rule<'_>, rule: &Rule<'_>) -> String {
    let (first, second) = (earlier.from, rule.from);
    if first == second {
        return format!("a second rule for `{first}`: the first one is taken, this one never applies");
    }
    format!(
        "this rule never applies: `{first}`, before it, takes every path of `{second}`; put this one first"
    )
}

/// Whether every path of one pattern is a path of the other: a star of the second is matched by stars only.
fn covers(earlier: &str, later: &str) -> bool {
    earlier == later || (earlier.contains('*') && captures(earlier, later).is_some())
}

/// The way from a rule back into itself, and the last rule that is part of it.
fn circle(rules: &[Rule<'_>], start: usize) -> Option<(usize, String)> {
    let mut path = example(rules[start].from);
    let mut way = vec![path.clone()];
    let mut taken = Vec::new();
    for _ in 0..HOPS_MAX {
        let found = rules.iter().enumerate().find_map(|(index, rule)| {
            captures(rule.from, &path).map(|stars| (index, location(rule.to, &stars)))
        });
        let (index, next) = found?;
        taken.push(index);
        path = next?;
        way.push(path.clone());
    }
    // The rules taken last are those of the circle, without the way into it.
    let culprit = *taken.iter().rev().take(rules.len().min(HOPS_MAX / 2)).max()?;
    way.truncate(4);
    let way = way.join(" -> ").replace(WORD, "*");
    Some((culprit, format!("this leads in a circle: {way} -> ...")))
}

/// A path that a pattern matches.
fn example(pattern: &str) -> String {
    let path = pattern.replace('*', WORD);
    if path.starts_with('/') { path } else { format!("/{path}") }
}

/// The path a target leads to; `None` on another host.
fn location(to: &str, stars: &[&str]) -> Option<String> {
    if !to.starts_with('/') {
        return None;
    }
    let end = to.find(['?', '#']).unwrap_or(to.len());
    let filled = stars
        .iter()
        .enumerate()
        .fold(to[..end].to_owned(), |path, (index, star)| path.replace(&format!("${}", index + 1), star));
    Some(format!("/{}", filled.trim_start_matches('/')))
}

/// What the stars of a pattern stand for in a path, as the server matches: all but the last take as little as
/// they can.
fn captures<'a>(pattern: &str, path: &'a str) -> Option<Vec<&'a str>> {
    let mut pieces = pattern.split('*');
    let mut rest = path.strip_prefix(pieces.next()?)?;
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty().then(Vec::new) };
    let mut found = Vec::new();
    for piece in middle {
        let at = rest.find(piece)?;
        found.push(&rest[..at]);
        rest = &rest[at + piece.len()..];
    }
    found.push(rest.strip_suffix(last)?);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules, and what is said: the number of the rule to blame, and how the sentence begins.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(usize, &'a str)]);

    const CASES: &[Case<'_>] = &[
        (&[("/old/*", "/new/$1"), ("/a", "/b"), ("/*", "https://b.example/$1")], &[]),
        (&[("/a/*", "/a/$1")], &[(0, "this leads in a circle: /a/* -> /a/* -> ")]),
        (&[("/a/*", "/a/b/$1")], &[(0, "this leads in a circle: /a/* -> /a/b/* -> /a/b/b/*")]),
        (&[("/*", "/new/$1")], &[(0, "this leads in a circle: /* -> /new/*")]),
        (&[("*.html", "/x$1.html?a#b")], &[(0, "this leads in a circle: /*.html -> /x/*.html")]),
        (&[("/a", "/a")], &[(0, "this leads in a circle: /a -> /a")]),
        (&[("/a", "/b"), ("/c", "/a"), ("/b", "/a?x=1")], &[(2, "this leads in a circle: /a -> /b -> /a")]),
        // Ends after a step or two, or elsewhere.
        (&[("/a/*", "/b/$1"), ("/b/*", "/c/$1"), ("/x/x/*", "/x/$1"), ("/s*", "/$1")], &[]),
        (&[("/a/*", "https://a.example/a/$1")], &[]),
        (&[("/a", "/b"), ("/a", "/c")], &[(1, "a second rule for `/a`")]),
        (&[("/a/*", "/b"), ("/a/c", "/d")], &[(1, "this rule never applies: `/a/*`, before it,")]),
        (&[("/a/*", "/b"), ("/a/*.php", "/d")], &[(1, "this rule never applies")]),
        (&[("/a/c", "/d"), ("/a/*", "/b"), ("/a/*/e*", "/b")], &[(2, "this rule never applies")]),
        (&[("/a/*/c", "/b"), ("/a/*", "/d")], &[]),
        (&[("/a/*", "/b/$2")], &[(0, "`to` has $2, but `from` has 1 star")]),
        (&[("/index.php?id=3", "/b")], &[(0, "`from` is compared with the path, without its query")]),
        (&[("/a", "/b/$1")], &[(0, "`to` has $1, but `from` has 0 stars")]),
    ];

    #[test]
    fn rules_that_cannot_be_meant_are_told() {
        for (rules, expected) in CASES {
            let rules: Vec<Rule<'_>> = rules.iter().map(|&(from, to)| Rule { from, to }).collect();
            let said = faults(&rules);
            assert_eq!(said.len(), expected.len(), "{rules:?}: {said:?}");
            for ((index, text), (number, start)) in said.iter().zip(*expected) {
                assert!(index == number && text.starts_with(start), "{rules:?}: {index} {text}");
            }
        }
    }
}
