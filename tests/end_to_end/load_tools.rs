//! Load generators of other hands, each for a moment: not one request may fail.

use std::process::Command;

use staunch_tests::process::Server;
use staunch_tests::tree::Tree;

use crate::outside::{ENGINES, is_installed, output_of, server_of};

/// Runs a tool against both engines.
fn on_both(program: &str, judge: impl Fn(&Server, &str)) {
    if !is_installed(program) {
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let mut server = server_of(&tree, &["--io", io]);
        judge(&server, io);
        assert!(server.is_running(), "{program} on {io}");
    }
}

/// The number that stands behind a label in a report.
fn number_behind(report: &str, label: &str) -> Option<f64> {
    let rest = report.split_once(label)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[test]
fn ab() {
    on_both("ab", |server, io| {
        for keep_alive in [&["-k"][..], &[]] {
            let url = format!("{}/a.txt", server.url());
            let report =
                output_of(Command::new("ab").args(keep_alive).args(["-q", "-n", "3000", "-c", "30", &url]));
            assert_eq!(number_behind(&report, "Complete requests:"), Some(3000.0), "{io}: {report}");
            assert_eq!(number_behind(&report, "Failed requests:"), Some(0.0), "{io}: {report}");
            assert!(!report.contains("Non-2xx"), "{io}: {report}");
            if !keep_alive.is_empty() {
                assert_eq!(number_behind(&report, "Keep-Alive requests:"), Some(3000.0), "{io}: {report}");
            }
        }
    });
}

#[test]
fn wrk() {
    on_both("wrk", |server, io| {
        for path in ["a.txt", "big.bin"] {
            let url = format!("{}/{path}", server.url());
            // wrk ends by the clock, and a busy machine may have answered none by then.
            let report = loop {
                let report = output_of(Command::new("wrk").args(["-t", "1", "-c", "32", "-d", "1", &url]));
                if number_behind(&report, "Requests/sec:").expect("a rate") > 0.0 {
                    break report;
                }
            };
            assert!(!report.contains("Non-2xx"), "{io}: {report}");
            assert!(!report.contains("Socket errors"), "{io}: {report}");
        }
    });
}

#[test]
fn siege() {
    on_both("siege", |server, io| {
        let home = Tree::new().expect("a folder for its settings");
        // Without settings of its own it writes some and does nothing else.
        std::fs::create_dir(home.root().join(".siege")).expect("made");
        std::fs::write(home.root().join(".siege/siege.conf"), "").expect("written");
        for way in ["close", "keep-alive"] {
            let settings = home.root().join("siegerc");
            std::fs::write(&settings, format!("connection = {way}\nlogging = false\n")).expect("written");
            let mut command = Command::new("siege");
            command.env("HOME", home.root()).arg(format!("--rc={}", settings.display()));
            let report = output_of(command.args(["-b", "-c", "10", "-r", "50"]).arg(server.url() + "/a.txt"));
            let label = if report.contains("\"failed_transactions\":") {
                "\"failed_transactions\":"
            } else {
                "Failed transactions:"
            };
            assert_eq!(number_behind(&report, label), Some(0.0), "{io} {way}: {report}");
        }
    });
}

#[test]
fn httperf() {
    on_both("httperf", |server, io| {
        let port = server.address().port().to_string();
        for (connections, calls) in [("200", "10"), ("500", "1")] {
            let report = output_of(Command::new("httperf").args([
                "--hog",
                "--server",
                "127.0.0.1",
                "--port",
                &port,
                "--uri",
                "/a.txt",
                "--num-conns",
                connections,
                "--num-calls",
                calls,
                "--timeout",
                "10",
            ]));
            let replies: f64 =
                connections.parse::<f64>().unwrap_or(0.0) * calls.parse::<f64>().unwrap_or(0.0);
            assert_eq!(number_behind(&report, "2xx="), Some(replies), "{io}: {report}");
            assert_eq!(number_behind(&report, "Errors: total"), Some(0.0), "{io}: {report}");
        }
    });
}
