//! WebSockets of other hands: Python's `websockets`, Centrifugo's client for JavaScript, a browser, the load
//! generator.
//!
//! It must never skip a test silently: what is missing is named, and is a failure when `CI` is true.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use staunch_tests::house::skipping::skip;
use staunch_tests::process::{binary, is_installed};
use staunch_tests::tree::Tree;

use crate::browsers::{Client, script};
use crate::world::{ENGINES, TOKEN, World};

/// Python of Debian, the one that finds modules of Debian's packages.
const PYTHON: &str = "/usr/bin/python3";
const PYTHON_WEBSOCKETS: &str = "/usr/lib/python3/dist-packages/websockets";
const SECRET: &str = "a-secret-of-an-issuer-of-32-bytes-or-more";

/// Whether a library of a client is there; if not, that is said.
fn is_there(library: &str, found: bool) -> bool {
    if !found {
        skip(&format!("{library} is not installed"));
    }
    found
}

/// Where packages of npm are installed for tests.
pub(crate) fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/npm/node_modules")
}

/// The line of settings that names an issuer, whose secret is put into a folder.
fn issuer(folder: &Tree) -> String {
    let file = folder.root().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).expect("a file of ours");
    format!(
        "live_issuer = [{{ name = \"https://id.example.org\", audience = \"https://live.example.org\", \
         secret_file = \"{}\" }}]",
        file.display()
    )
}

fn assert_held(io: &str, output: &Output) {
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("held\n"), "{io}: {said}{complaints}");
}

#[test]
fn python_opens_websockets() {
    if !is_there("websockets for Python (package python3-websockets)", Path::new(PYTHON_WEBSOCKETS).is_dir())
    {
        return;
    }
    let secrets = Tree::new().expect("a folder");
    let settings = format!("live_echo = true\n{}", issuer(&secrets));
    for io in ENGINES {
        let world = World::with_settings(io, &[], &settings);
        let at = world.address().to_string();
        let mut python = Command::new(PYTHON);
        python.arg(script("websocket.py")).args([&at[..], TOKEN, SECRET]).stdin(Stdio::null());
        assert_held(io, &python.output().expect("python3"));
    }
}

#[test]
fn a_client_of_centrifugo_reads_publishes_recovers_and_renews() {
    let folder = packages();
    let is_complete = ["centrifuge", "ws"].iter().all(|name| folder.join(name).is_dir());
    if !is_installed("node") || !is_there("centrifuge and ws of npm", is_complete) {
        return;
    }
    let secrets = Tree::new().expect("a folder");
    let settings = format!(
        "live_topic = [{{ match = \"l.*\", kind = \"log\", ring = 100 }}, \
         {{ match = \"private.*\", private = true }}]\n{}",
        issuer(&secrets)
    );
    for (io, language) in [(ENGINES[0], "json"), (ENGINES[1], "json"), (ENGINES[0], "protobuf")] {
        let world = World::with_settings(io, &[], &settings);
        let mut node = Command::new("node");
        node.arg(script("centrifuge.mjs")).arg(&folder).arg(world.address().to_string()).arg(SECRET);
        node.arg(language).stdin(Stdio::null());
        assert_held(&format!("{io}, {language}"), &node.output().expect("node"));
    }
}

/// The program of a browser, if it and what drives it are there.
fn browser() -> Option<String> {
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    (is_installed(&chromium) && is_installed("node")).then_some(chromium)
}

/// Six tabs use `/live.js`: one connection serves all of them. What a late tab asks for is there at once.
#[test]
fn six_tabs_of_a_browser_share_one_connection() {
    let Some(chromium) = browser() else { return };
    for io in ENGINES {
        let log = "live_topic = [{ match = \"l.*\", kind = \"log\", ring = 1000 }]";
        let world = World::with_settings(io, &[], log);
        std::fs::copy(script("tab.html"), world.tree.root().join("tab.html")).expect("a file of ours");
        world.put("v.a", "before");
        let mut node = Client::start(
            Command::new("node").arg(script("tabs.mjs")).arg(world.server.url()).env("CHROMIUM", &chromium),
        );
        node.line_with("ready");
        let readers = || {
            let lines = crate::world::publisher("application/json");
            let answer = world.ask("POST", "/publish", &lines, br#"{"topic":"l.a","data":0}"#);
            answer.text()
        };
        // The tabs share a reader that asks for `l.a`, `l.*` and `*`: of six readers two would ask by name.
        assert!(readers().contains("\"readers\":3}"), "{io}: {}", readers());
        (1..20).for_each(|number| drop(world.publish(&format!("{{\"topic\":\"l.a\",\"data\":{number}}}"))));
        world.put("v.a", "after");
        assert_eq!(node.line_with("held"), "held", "{io}");
    }
}

#[test]
fn the_load_generator_loses_nothing_by_websocket() {
    for io in ENGINES {
        let log = "live_topic = [{ match = \"load\", kind = \"log\", ring = 10000 }]";
        let world = World::with_settings(io, &[], log);
        let url = world.server.url().replace("http://", "ws://");
        // What is published between handshake and command is due as well, so all that is kept is asked for.
        let commands = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"{{topic}}\",\
                        \"recover\":true}}";
        for (path, sent) in [("/ws?topic={{topic}}", None), ("/connection/websocket", Some(commands))] {
            let mut load = Command::new(binary());
            load.args(["load", "live", &format!("{url}{path}"), "-c", "40", "-n", "200", "-r", "200/s"]);
            load.args(["--fail-on-loss", "--json", "-", "--quiet", "--token", TOKEN]);
            if let Some(sent) = sent {
                load.args(["--send", sent]);
            }
            let finished = staunch_tests::process::finish(&mut load);
            assert!(finished.status.success(), "{io} {path}: {}", finished.stderr);
            let document: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
            let count = |name: &str| document["counts"][name].as_u64().expect("a count");
            assert_eq!(count("delivered"), 40 * 200, "{io} {path}: {document:#}");
        }
    }
}
