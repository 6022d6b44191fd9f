//! Variables that begin with `STAUNCH_` and are no key: probably a mistake, and always without effect.
//!
//! They are told, never refused: an orchestrator sets variables that nobody chose.

use crate::config::flags;
use crate::group::Group as _;
use crate::groups::{Content, Names};
use crate::key::{Form, Key};

/// Likeness from which on a name is meant as a known one: variables are long and all begin alike.
const LIKENESS_MIN: f64 = 0.8;

/// Variables of the program that are no keys, and those by which its tests are told something.
const OWN: [&str; 9] = [
    "STAUNCH_CONFIG",
    "STAUNCH_HANDOVER",
    "STAUNCH_CONFINED",
    "STAUNCH_BINARY",
    "STAUNCH_SEED",
    "STAUNCH_SEEDS",
    "STAUNCH_WIRE",
    "STAUNCH_STORM_FRAMES",
    "STAUNCH_WRITE_EXPECTED",
];

/// Starts of further ones: tests, and what Kubernetes sets for a service that is called `staunch`.
const OWN_STARTS: [&str; 3] = ["STAUNCH_TEST_", "STAUNCH_SERVICE_", "STAUNCH_PORT_"];

/// A sentence for each variable that says something and is not known, in the order of their names.
pub fn unknown_variables(environment: &[(String, String)]) -> Vec<String> {
    let known: Vec<String> = flags().map(|(_, key)| key.variable()).collect();
    let is_own = |name: &str| {
        OWN.contains(&name)
            || name == "STAUNCH_PORT"
            || OWN_STARTS.iter().any(|start| name.starts_with(start))
    };
    let is_unknown =
        |name: &&str| name.starts_with("STAUNCH_") && !is_own(name) && !known.iter().any(|own| own == name);
    let said = environment.iter().filter(|(_, value)| !value.is_empty());
    let mut names: Vec<&str> = said.map(|(name, _)| name.as_str()).filter(is_unknown).collect();
    names.sort_unstable();
    names.iter().map(|name| format!("{name} has no effect: {}", why(name, &known))).collect()
}

fn why(name: &str, known: &[String]) -> String {
    let of_file = |key: &&Key| key.form == Form::File && key.variable() == name;
    if let Some(key) = Content::KEYS.iter().chain(Names::KEYS).find(of_file) {
        return format!("`{}` stands in a file only", key.name);
    }
    let likeness = |variable: &String| strsim::normalized_damerau_levenshtein(name, variable);
    let nearest = known.iter().map(|variable| (likeness(variable), variable));
    match nearest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, variable)) if likeness >= LIKENESS_MIN => {
            format!("there is no such setting (did you mean {variable}?)")
        }
        _ => "there is no such setting".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_told_with_the_nearest() {
        for (name, expected) in [
            ("STAUNCH_KEEPALIVE", Some("there is no such setting (did you mean STAUNCH_KEEP_ALIVE?)")),
            ("STAUNCH_WORKER", Some("there is no such setting (did you mean STAUNCH_WORKERS?)")),
            ("STAUNCH_KEEP_ALIVE", None),
            ("STAUNCH_FROBNICATE", Some("there is no such setting")),
            ("STAUNCH_REDIRECTS", Some("`redirects` stands in a file only")),
            ("STAUNCH_CONFIG", None),
            ("STAUNCH_TEST_ANYTHING", None),
            ("STAUNCH_PORT", None),
            ("STAUNCH_PORT_80_TCP_ADDR", None),
            ("STAUNCH_SERVICE_HOST", None),
            ("PATH", None),
        ] {
            let said = unknown_variables(&[(name.into(), "x".into()), (name.to_lowercase(), "x".into())]);
            let expected: Vec<String> =
                expected.map(|why| format!("{name} has no effect: {why}")).into_iter().collect();
            assert_eq!(said, expected);
            assert!(unknown_variables(&[(name.into(), String::new())]).is_empty());
        }
    }
}
