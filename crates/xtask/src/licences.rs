//! `cargo xtask licences`: licences, sources and doubled versions of dependencies, judged by `deny.toml`.
//!
//! It reads of that file what the commands of this project need, so that nobody waits for cargo-deny to be
//! compiled; `make soak` runs cargo-deny itself. It must never ask the network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use spdx::{Expression, ParseMode};
use toml::de::{DeTable, DeValue};

use crate::running::{cargo, output};

/// A package that is depended on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    licence: String,
    /// Where it comes from, if that is neither crates.io nor this tree.
    source: Option<String>,
}

/// The part of `deny.toml` that is judged by.
#[derive(Default)]
struct Law {
    targets: Vec<String>,
    licences: BTreeSet<String>,
    banned: BTreeSet<String>,
    /// Packages of which another version may be there, as `name@version`.
    skipped: Vec<String>,
}

/// Judges and prints. Fails if anything is found, or if `deny.toml` or cargo's words cannot be read.
pub(crate) fn run(root: &Path) -> ExitCode {
    match judge_tree(root) {
        Ok((packages, faults)) => {
            faults.iter().for_each(|fault| println!("{fault}"));
            println!("licences: {packages} packages, {} findings", faults.len());
            if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("licences: {error}");
            ExitCode::FAILURE
        }
    }
}

fn judge_tree(root: &Path) -> Result<(usize, BTreeSet<String>), String> {
    let text =
        std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let law = Law::read(&text)?;
    if law.targets.is_empty() {
        return Err("deny.toml: graph.targets names no target".into());
    }
    let mut packages = BTreeSet::new();
    for target in &law.targets {
        let words = ["tree", "--workspace", "--all-features", "--locked", "--prefix", "none"];
        let form = ["--format", "{p}|{l}", "--target"];
        let said = output(cargo().args(words).args(form).arg(target).current_dir(root))?;
        let own = format!("({}", root.display());
        packages
            .extend(said.lines().filter(|line| !line.is_empty() && !line.contains(&own)).map(Package::read));
    }
    Ok((packages.len(), judge(&law, &packages)))
}

/// What the law forbids of these packages.
fn judge(law: &Law, packages: &BTreeSet<Package>) -> BTreeSet<String> {
    let mut faults = BTreeSet::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Package { name, version, licence, source } in packages {
        if law.banned.contains(name) {
            faults.insert(format!("{name} {version}: deny.toml bans it"));
        }
        if let Some(source) = source {
            faults.insert(format!("{name} {version}: comes from {source}, not from crates.io"));
        }
        if let Err(why) = law.allows(licence) {
            faults.insert(format!("{name} {version}: {why}"));
        }
        if !law.skipped.iter().any(|skipped| is_named(skipped, name, version)) {
            versions.entry(name).or_default().push(version);
        }
    }
    let doubled = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    faults
        .extend(doubled.map(|(name, versions)| format!("{name}: versions {} at once", versions.join(", "))));
    faults
}

impl Package {
    /// A line of `cargo tree`: name, version, perhaps `(proc-macro)`, perhaps a source, a bar, the licence.
    fn read(line: &str) -> Self {
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|').unwrap_or((line, ""));
        let mut words = package.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (name, version, rest) = (word(), word().trim_start_matches('v').to_owned(), word());
        let source = rest.replace("(proc-macro)", "");
        let source = (!source.trim().is_empty()).then(|| source.trim().to_owned());
        Self { name, version, licence: licence.to_owned(), source }
    }
}

/// Whether `name@version` of the file means this package; a version may be cut behind a dot.
fn is_named(skipped: &str, name: &str, version: &str) -> bool {
    let (skipped_name, skipped_version) = skipped.split_once('@').unwrap_or((skipped, ""));
    let rest = version.strip_prefix(skipped_version);
    skipped_name == name
        && rest.is_some_and(|rest| skipped_version.is_empty() || rest.is_empty() || rest.starts_with('.'))
}

impl Law {
    fn read(text: &str) -> Result<Self, String> {
        let table = DeTable::parse(text).map_err(|error| format!("deny.toml: {error}"))?.into_inner();
        let words = |section: &str, key: &str, inner: &str| -> Vec<String> {
            let list = table.get(section).and_then(|section| section.get_ref().get(key));
            let list = list.and_then(|list| list.get_ref().as_array()).into_iter().flatten();
            list.filter_map(|item| word(item.get_ref(), inner)).collect()
        };
        Ok(Self {
            targets: words("graph", "targets", ""),
            licences: words("licenses", "allow", "").into_iter().collect(),
            banned: words("bans", "deny", "crate").into_iter().collect(),
            skipped: words("bans", "skip", "crate"),
        })
    }

    /// Whether a licence expression (SPDX) can be met by licences that are allowed.
    fn allows(&self, licence: &str) -> Result<(), String> {
        if licence.is_empty() {
            return Err("names no licence".into());
        }
        let expression = Expression::parse_mode(licence, ParseMode::LAX)
            .map_err(|error| format!("licence `{licence}`: {}", error.reason))?;
        if expression.evaluate(|asked| self.licences.contains(&asked.to_string())) {
            return Ok(());
        }
        Err(format!("licence `{licence}` is not allowed by deny.toml"))
    }
}

/// A string, or the one that stands in a table under this key.
fn word(value: &DeValue<'_>, key: &str) -> Option<String> {
    let value = value.get(key).map_or(value, |inner| inner.get_ref());
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
graph = { targets = ["x86_64-unknown-linux-gnu"] }
licenses = { allow = ["MIT", "Apache-2.0"] }
bans = { deny = [{ crate = "tokio" }], skip = [{ crate = "syn@2" }] }
"#;

    fn judged(lines: &[&str]) -> Vec<String> {
        let law = Law::read(TEXT).expect("a good file");
        judge(&law, &lines.iter().map(|line| Package::read(line)).collect()).into_iter().collect()
    }

    #[test]
    fn what_is_allowed_is_not_found_and_each_fault_is() {
        let good = ["either v1.0.0|MIT/Apache-2.0 (*)", "either v1.0.0|MIT/Apache-2.0", "syn v2.0.1|MIT"];
        let more = ["both v1.0.0 (proc-macro)|MIT AND Apache-2.0", "syn v3.0.1|MIT"];
        assert!(judged(&[&good[..], &more].concat()).is_empty());
        let faults = [
            ("a v1.0.0|GPL-3.0-only", "a 1.0.0: licence"),
            ("b v1.0.0|MIT AND GPL-3.0-only", "b 1.0.0: licence"),
            ("c v1.0.0|no licence at all", "c 1.0.0: licence"),
            ("d v1.0.0|", "d 1.0.0: names no licence"),
            ("e v1.0.0 (https://elsewhere#abc)|MIT", "e 1.0.0: comes from"),
            ("f v1.0.0 (proc-macro) (registry `other`)|MIT", "f 1.0.0: comes from"),
            ("tokio v1.0.0|MIT", "tokio 1.0.0: deny.toml bans it"),
        ];
        for (line, expected) in faults {
            let found = judged(&[line]);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
        }
        assert_eq!(
            judged(&["twice v1.0.0|MIT", "twice v2.0.0|MIT"]),
            ["twice: versions 1.0.0, 2.0.0 at once"]
        );
    }

    #[test]
    fn a_version_that_is_skipped_may_be_cut_behind_a_dot() {
        assert!(is_named("syn@2", "syn", "2.0.1") && is_named("syn@2.0.1", "syn", "2.0.1"));
        assert!(is_named("syn", "syn", "2.0.1"));
        assert!(!is_named("syn@2", "syn", "20.0.1") && !is_named("syn@2", "sync", "2.0.1"));
    }
}
