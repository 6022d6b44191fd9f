//! `cargo xtask tidy`: the rules of the house, checked like a compiler checks types.
//!
//! It owns the list of rules. It must never change a file. Order: read the tree once, give every rule what it
//! reads, drop what an excuse covers, print the rest.
//!
//! Every rule has a canary: a small tree in `crates/xtask/canaries/<rule>` that breaks it. The tests of this
//! module fail if a canary is not reported, if a rule has none, or if the house itself is untidy.

mod arrows;
mod c_source;
mod circles;

mod conversations;
mod documents;
mod echoes;
mod excuses;
mod finding;
mod headings;
mod lengths;
mod links;
mod masking;
mod methods;
mod module_file;
mod modules;
mod names;
mod output;
mod paths;
mod source;
mod subjects;
mod type_names;
mod walls;
mod words;

use std::path::Path;
use std::process::ExitCode;

use finding::Finding;
use source::Tree;

/// A rule: its name, and what looks for breaches of it.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// All rules. The name is what stands in a finding, in an excuse, and on the canary's folder.
const RULES: &[Rule] = &[
    Rule { name: "arrow", check: arrows::check },
    Rule { name: "circle", check: circles::check },
    Rule { name: "module-doc", check: documents::module_docs },
    Rule { name: "never", check: documents::nevers },
    Rule { name: "limit", check: documents::limits },
    Rule { name: "unsafe", check: walls::unsafe_code },
    Rule { name: "clock", check: walls::clocks },
    Rule { name: "output", check: output::check },
    Rule { name: "function-length", check: lengths::functions },
    Rule { name: "file-length", check: lengths::files },
    Rule { name: "line-length", check: lengths::lines },
    Rule { name: "methods", check: methods::check },
    Rule { name: "c-source", check: c_source::check },
    Rule { name: "name", check: names::check },
    Rule { name: "module-file", check: module_file::check },
    Rule { name: "type-name", check: type_names::check },
    Rule { name: "subject", check: subjects::check },
    Rule { name: "heading", check: headings::check },
    Rule { name: "echo", check: echoes::check },
    Rule { name: "leftover", check: words::leftovers },
    Rule { name: "machine-path", check: words::machine_paths },
    Rule { name: "wire", check: conversations::check },
    Rule { name: "link", check: links::check },
    Rule { name: "excuse", check: excuses::check },
];

/// Checks the tree at `root` and prints what it finds. Fails if that is anything, or on an unreadable tree.
pub(crate) fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: cannot read {}: {error}", root.display());
            return ExitCode::FAILURE;
        }
    };
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} rules, {} findings", tree.files.len(), RULES.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every finding that no excuse covers, in the order of the files.
fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES
        .iter()
        .flat_map(|rule| (rule.check)(tree).into_iter().map(|found| found.of(rule.name)))
        .filter(|finding| !excuses::is_excused(tree, finding))
        .collect();
    findings.sort();
    findings
}

#[cfg(test)]
mod tests;
