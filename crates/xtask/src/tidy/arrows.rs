//! The arrows of the house: which crate may depend on which.
//!
//! It owns the allow-list. It must never know a crate from outside.
use std::process::Command;

use serde::Deserialize;

use super::finding::Finding;
use super::source::Tree;

const ANY: &str = "*";

/// Crate, and the crates of ours it may use, in programs and tests alike. ARCHITECTURE.md says why.
const ARROWS: &[(&str, &[&str])] = &[
    ("staunch-protocol", &[]),
    ("staunch-netio", &[]),
    ("staunch-config", &[]),
    ("staunch-confine", &[]),
    ("staunch-dictionary", &[]),
    ("staunch-engine", &["staunch-protocol", "staunch-netio", "staunch-tls"]),
    (
        "staunch-server",
        &["staunch-dictionary", "staunch-engine", "staunch-live", "staunch-protocol", "staunch-tls"],
    ),
    ("staunch-figures", &[]),
    ("staunch-tls", &[]),
    ("staunch-acme", &["staunch-netio", "staunch-tls"]),
    ("staunch-kmod", &["staunch-figures", "staunch-netio", "staunch-program"]),
    ("staunch-publishing", &["staunch-program"]),
    ("staunch-loadgen", &["staunch-figures", "staunch-protocol", "staunch-netio"]),
    ("staunch-gate", &["staunch-netio"]),
    ("staunch-dostp", &["staunch-netio"]),
    ("staunch-dostp-shim", &["staunch-dostp", "staunch-netio"]),
    (
        "staunch-dostp-tools",
        &[
            "staunch-config",
            "staunch-confine",
            "staunch-dostp",
            "staunch-netio",
            "staunch-program",
            "staunch-server",
            "staunch-service",
        ],
    ),
    ("staunch-live", &["staunch-dictionary", "staunch-protocol"]),
    ("staunch-lab", &["staunch-figures", "staunch-engine", "staunch-protocol", "staunch-netio"]),
    (
        "staunch-service",
        &[
            "staunch-acme",
            "staunch-config",
            "staunch-confine",
            "staunch-dostp",
            "staunch-engine",
            "staunch-gate",
            "staunch-live",
            "staunch-netio",
            "staunch-program",
            "staunch-protocol",
            "staunch-server",
            "staunch-tls",
        ],
    ),
    // The command of the server, which is built without the instruments.
    (
        "staunch",
        &[
            "staunch-acme",
            "staunch-config",
            "staunch-doctor",
            "staunch-dostp-tools",
            "staunch-engine",
            "staunch-figures",
            "staunch-gate",
            "staunch-kmod",
            "staunch-live",
            "staunch-netio",
            "staunch-program",
            "staunch-protocol",
            "staunch-publishing",
            "staunch-server",
            "staunch-service",
        ],
    ),
    ("staunch-tests", &[ANY]),
    ("staunch-doctor", &[]),
    ("staunch-queueing", &[]),
    ("staunch-program", &[]),
    (
        "staunch-instruments",
        &[
            "staunch-config",
            "staunch-figures",
            "staunch-lab",
            "staunch-loadgen",
            "staunch-netio",
            "staunch-program",
            "staunch-queueing",
        ],
    ),
    ("staunch-bench", &["staunch-dictionary", "staunch-figures", "staunch-loadgen", "staunch-queueing"]),
    (
        "staunch-counted",
        &["staunch-dostp", "staunch-engine", "staunch-protocol", "staunch-server", "staunch-tls"],
    ),
    ("xtask", &[]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Only dependencies inside the house have one.
    path: Option<String>,
}

/// Checks the arrows that `cargo metadata` shows.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    if tree.file("Cargo.toml").is_none() {
        return Vec::new();
    }
    match metadata(tree) {
        Ok(metadata) => metadata.packages.iter().flat_map(|package| wrong_arrows(tree, package)).collect(),
        Err(error) => vec![Finding::at("Cargo.toml", 1, format!("cargo metadata failed: {error}"))],
    }
}

fn metadata(tree: &Tree) -> Result<Metadata, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(&tree.root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn wrong_arrows(tree: &Tree, package: &Package) -> Vec<Finding> {
    let manifest = package.manifest_path.strip_prefix(&*tree.root.to_string_lossy()).unwrap_or("/Cargo.toml");
    let manifest = manifest.trim_start_matches('/');
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
        let message = format!("`{}` is not in the list of arrows: a new room needs a reason", package.name);
        return vec![Finding::at(manifest, 1, message)];
    };
    let is_wrong = |name: &str| !allowed.contains(&ANY) && !allowed.contains(&name) && name != package.name;
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.path.is_some() && is_wrong(&dependency.name))
        .map(|dependency| {
            let message = format!("`{}` must not use `{}`", package.name, dependency.name);
            Finding::at(manifest, line_of_dependency(tree, manifest, &dependency.name), message)
        })
        .collect()
}

fn line_of_dependency(tree: &Tree, manifest: &str, name: &str) -> usize {
    let source = tree.file(manifest);
    source
        .and_then(|source| source.lines().find(|(_, line)| line.starts_with(name)))
        .map_or(1, |(number, _)| number)
}
