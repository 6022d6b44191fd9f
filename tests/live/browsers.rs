//! Clients of other hands: curl, Python, and a browser with its EventSource.
//!
//! It must never skip a test silently: a missing program is named, and is a failure when `CI` is true.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use staunch_tests::process::is_installed;

use crate::world::{ENGINES, World};

pub(crate) fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("live").join(name)
}

/// Lines of a client's output; the client is ended on drop.
pub(crate) struct Client {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a client");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no line with {part}")).expect("a line");
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A value that is worth compressing.
fn value(number: usize) -> String {
    format!("update {number} {}", "goal by nobody, ".repeat(20))
}

#[test]
fn curl_decodes_every_coding_event_by_event() {
    if !is_installed("curl") {
        return;
    }
    for io in ENGINES {
        let world = World::new(io, &[]);
        world.put("a", &value(0));
        for coding in ["identity", "gzip", "zstd"] {
            let url = format!("{}/events?topic=a&plain=1", world.server.url());
            let accept = format!("Accept-Encoding: {coding}");
            let mut curl = Client::start(Command::new("curl").args([
                "-sN",
                "--compressed",
                "-H",
                &accept,
                &url,
                "--max-time",
                "60",
            ]));
            curl.line_with("data: ");
            for number in 1..6 {
                world.put("a", &value(number));
                assert_eq!(curl.line_with("data: "), format!("data: {}", value(number)), "{io} {coding}");
            }
            world.put("a", &value(0));
        }
    }
}

#[test]
fn python_decodes_gzip_of_a_stream_that_is_joined_late() {
    if !is_installed("python3") {
        return;
    }
    for io in ENGINES {
        let world = World::new(io, &[]);
        (0..5).for_each(|number| world.put("a", &value(number)));
        let mut first =
            Client::start(Command::new("python3").arg(script("events.py")).arg(world.server.url()));
        assert_eq!(first.line_with("update"), value(4));
        world.put("a", &value(5));
        assert_eq!(first.line_with("update"), value(5));
        let mut late =
            Client::start(Command::new("python3").arg(script("events.py")).arg(world.server.url()));
        assert_eq!(late.line_with("update"), value(5));
        world.put("a", &value(6));
        for client in [&mut first, &mut late] {
            assert_eq!(client.line_with("update"), value(6), "{io}");
        }
    }
}

/// The page shows what came of each of six streams: updates in order, and how a stream that was ended by the
/// server comes back by itself.
#[test]
fn a_browser_reads_events_and_comes_back_where_it_was() {
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    if !is_installed(&chromium) || !is_installed("node") {
        return;
    }
    let log = "live_topic = [{ match = \"log\", kind = \"log\", ring = 1000 }]";
    for io in ENGINES {
        let world = World::with_settings(io, &[], log);
        std::fs::copy(script("page.html"), world.tree.root().join("live-page.html")).expect("a file of ours");
        let mut node = Client::start(
            Command::new("node")
                .arg(script("browser.mjs"))
                .arg(world.server.url())
                .env("CHROMIUM", &chromium),
        );
        node.line_with("ready");
        for number in 0..20 {
            world.publish(&format!("{{\"topic\":\"log\",\"data\":\"{number}\"}}"));
        }
        let seen = node.line_with("seen");
        let expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(seen, format!("seen {}", expected.join(",")), "{io}");
    }
}
