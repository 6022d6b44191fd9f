//! The package of npm `packages/live`: packed, installed and used as by those who bundle their pages.
//!
//! It must never publish, nor write into the package's own folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use staunch_tests::house::skipping::skip;
use staunch_tests::process::is_installed;
use staunch_tests::tree::Tree;

use crate::browsers::{Client, script};
use crate::peers::packages;
use crate::world::{ENGINES, World, publisher};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packages/live")
}

/// Runs a program in a folder that is its home as well, so that no settings of a user are read. Gives what it
/// printed.
fn run(program: &str, folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env("HOME", folder).env("npm_config_cache", folder.join("cache"));
    let output = command.output().expect("it is installed");
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {words:?}: {said}{complaints}");
    said.into_owned()
}

/// A folder where the packed package is installed, if there are programs for it.
fn installed() -> Option<Tree> {
    if !is_installed("node") || !is_installed("npm") {
        return None;
    }
    let tree = Tree::new().expect("a folder");
    let folder = tree.root();
    let from = source();
    let packed = run("npm", folder, &["pack", "--silent", "--offline", from.to_str().expect("a path")]);
    fs::write(folder.join("package.json"), "{\"type\": \"module\"}").expect("a file of ours");
    let quiet = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
    run("npm", folder, &[&["install"][..], &quiet, &[packed.trim()]].concat());
    Some(tree)
}

/// A package of npm that the tests have beside them.
fn has(name: &str) -> bool {
    let found = packages().join(name).is_dir();
    if !found {
        skip(&format!("{name} of npm is not installed"));
    }
    found
}

#[test]
fn what_is_packed_is_what_the_server_serves() {
    let Some(tree) = installed() else { return };
    let inside = tree.root().join("node_modules/staunch-live");
    let names: BTreeSet<String> = fs::read_dir(&inside)
        .expect("it is installed")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let expected = ["LICENSE", "README.md", "live.d.ts", "live.js", "package.json"];
    assert_eq!(names, expected.map(str::to_owned).into());
    let read = |path: PathBuf| fs::read_to_string(path).expect("a file");
    let world = World::new(ENGINES[1], &[]);
    assert_eq!(world.ask("GET", "/live.js", "", b"").text(), read(inside.join("live.js")));
    assert_eq!(read(inside.join("LICENSE")), read(source().join("../../LICENSE")));
    let about = read(inside.join("package.json"));
    let about: serde_json::Value = serde_json::from_str(&about).expect("JSON");
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(about["private"], true, "nothing is published by accident");
}

#[test]
fn node_imports_the_package_and_reads() {
    let Some(tree) = installed() else { return };
    if !has("ws") {
        return;
    }
    fs::copy(script("package.mjs"), tree.root().join("package.mjs")).expect("a file of ours");
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("match.1", "before");
        let mut node = Command::new("node");
        node.arg("package.mjs").arg(packages()).arg(world.address().to_string());
        let mut node = Client::start(node.current_dir(tree.root()));
        node.line_with("ready");
        world.publish("{\"topic\":\"match.1\",\"data\":{\"home\":1}}");
        let ended = world.ask("DELETE", "/topics/match.1", &publisher("text/plain"), b"");
        assert_eq!(ended.status, 200, "{io}: {ended:?}");
        node.line_with("held");
    }
}

/// Modules are found in another way by bundlers than by Node.
#[test]
fn types_hold_in_typescript() {
    let Some(tree) = installed() else { return };
    if !has("typescript") {
        return;
    }
    fs::copy(script("package.ts"), tree.root().join("package.ts")).expect("a file of ours");
    let compiler = packages().join("typescript/bin/tsc");
    let compiler = compiler.to_str().expect("a path");
    for (module, resolution) in [("esnext", "bundler"), ("nodenext", "nodenext")] {
        let words = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"];
        let kinds = ["--module", module, "--moduleResolution", resolution, "package.ts"];
        run("node", tree.root(), &[&[compiler][..], &words, &kinds].concat());
    }
}
