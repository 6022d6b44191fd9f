//! A setting explained at length.
//!
//! It owns the search for a name. It must never guess when several are meant: it shows all of them.

use std::fmt::Write as _;

use crate::check::Check;
use crate::checks::GROUPS;
use crate::finding::Finding;

/// What a setting does, what is right, and how it stands here. `name` is the whole name, or a part such as
/// `somaxconn`. `None` if there is none of the name.
pub fn explain(findings: &[Finding], name: &str) -> Option<String> {
    let checks: Vec<&Check> = GROUPS.iter().flat_map(|(_, checks)| checks.iter()).collect();
    let wanted = name.to_lowercase();
    let mut chosen: Vec<&Check> =
        checks.iter().copied().filter(|check| check.name.to_lowercase() == wanted).collect();
    if chosen.is_empty() {
        chosen = checks.iter().copied().filter(|check| check.name.to_lowercase().contains(&wanted)).collect();
    }
    if chosen.is_empty() || wanted.is_empty() {
        return None;
    }
    let texts: Vec<String> = chosen.iter().map(|check| one(check, findings)).collect();
    Some(texts.join("\n"))
}

fn one(check: &Check, findings: &[Finding]) -> String {
    let mut text = format!("{}\n  does    {}\n  right   {}\n", check.name, check.reason, check.rule);
    let is_of = |finding: &&Finding| {
        finding.name.strip_prefix(check.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    for finding in findings.iter().filter(is_of) {
        let name = finding.name.strip_prefix(check.name).unwrap_or_default();
        let _ = write!(text, "  here   {name} {}", finding.state.name());
        if !finding.value.is_empty() {
            let _ = write!(text, ", {}", finding.value);
        }
        if !finding.advice.is_empty() {
            let _ = write!(text, "; better: {}", finding.advice);
        }
        text.push('\n');
        if finding.reason != check.reason {
            let _ = writeln!(text, "          {}", finding.reason);
        }
    }
    let _ = writeln!(text, "  source  {}", check.source);
    text
}
