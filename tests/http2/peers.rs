//! Clients of other hands: curl, nghttp and h2load (nghttp2), Python's h2, h2spec.

use std::path::{Path, PathBuf};
use std::process::Command;

use staunch_tests::conversation::Change;
use staunch_tests::process::{finish, is_installed};
use staunch_tests::tree::{bytes_of, standard_changes};

use crate::world::{ENGINES, World};

/// Debian's own, which sees the modules that Debian's packages bring.
const PYTHON: &str = "/usr/bin/python3";
const PYTHON_H2: &str = "/usr/lib/python3/dist-packages/h2";

/// What a program says that ends well.
fn said(command: &mut Command) -> String {
    let finished = finish(command);
    assert!(finished.status.success(), "{command:?}: {}{}", finished.stdout, finished.stderr);
    finished.stdout
}

/// The bytes of a file of the standard tree.
fn file(name: &str) -> Vec<u8> {
    let find = |change: &Change| match change {
        Change::File { path, content } if path == name => Some(bytes_of(content)),
        _ => None,
    };
    standard_changes().iter().find_map(find).expect("a file of the standard tree")
}

#[test]
fn curl_speaks_it() {
    if !is_installed("curl") {
        return;
    }
    for io in ENGINES {
        let world = World::new(io, &[]);
        let url = world.server.url();
        let out = world.tree.root().parent().expect("a folder").join("big");
        let shown = "%{http_version} %{response_code} %{size_download}\n";
        let mut command = Command::new("curl");
        command.args(["-sS", "--http2-prior-knowledge", "-w", shown, "-o"]).arg(&out);
        assert_eq!(said(command.arg(format!("{url}/big.bin"))).trim(), "2 200 3000000", "{io}");
        let mut command = Command::new("curl");
        command.args(["-sSI", "--http2-prior-knowledge", "-w", shown, "-o", "/dev/null"]);
        assert_eq!(said(command.arg(format!("{url}/absent"))).trim(), "2 404 0", "{io}");
        assert!(std::fs::read(&out).expect("a file") == file("big.bin"), "{io}: other bytes");
        // By an upgrade of HTTP/1.1 (RFC 7540) it is not spoken: the answer is one of HTTP/1.1.
        let mut command = Command::new("curl");
        command.args(["-sS", "--http2", "-w", "%{http_version}", "-o", "/dev/null"]);
        assert_eq!(said(command.arg(format!("{url}/a.txt"))), "1.1", "{io}");
    }
}

/// Answers that come before the bodies they are for. curl 7.88 loses one that comes together with the reset
/// of its stream.
#[test]
fn curl_gets_early_answers() {
    if !is_installed("curl") {
        return;
    }
    for io in ENGINES {
        let world = World::new(io, &[]);
        let body = world.tree.root().parent().expect("a folder").join("body");
        for (size, times) in [(3, 20), (60_000, 10), (200_000, 3)] {
            std::fs::write(&body, vec![b'x'; size]).expect("a file of ours");
            for _ in 0..times {
                let mut command = Command::new("curl");
                command.args(["-sS", "--http2-prior-knowledge", "-w", "%{response_code}", "-o", "/dev/null"]);
                command.arg("--data-binary").arg(format!("@{}", body.display()));
                let told = said(command.arg(format!("{}/a.txt", world.server.url())));
                assert_eq!(told, "405", "{io}: {size} bytes");
            }
        }
    }
}

#[test]
fn nghttp_gets_many_at_a_time() {
    if !is_installed("nghttp") {
        return;
    }
    for io in ENGINES {
        let world = World::new(io, &[]);
        let url = world.server.url();
        let urls = ["a.txt", "page.html", "picture.png", "a.txt"].map(|name| format!("{url}/{name}"));
        let text = said(Command::new("nghttp").args(["-n", "-s", "-m", "5"]).args(&urls));
        assert_eq!(text.matches(" 200 ").count(), 20, "{io}: {text}");
        assert_eq!(world.metric("staunch_http2_connections_total"), 1, "{io}");
    }
}

#[test]
fn h2load_loses_nothing() {
    if !is_installed("h2load") {
        return;
    }
    for io in ENGINES {
        let world = World::new(io, &[]);
        for (name, count, window) in
            [("a.txt", "5000", "16"), ("page.html", "2000", "16"), ("big.bin", "60", "14")]
        {
            let url = format!("{}/{name}", world.server.url());
            let mut command = Command::new("h2load");
            command.args(["-n", count, "-c", "4", "-m", "20", "-w", window, "-W", window, &url]);
            let text = said(&mut command);
            let all = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
            assert!(text.contains(&all), "{io}: {text}");
        }
        assert_eq!(world.metric("staunch_http2_requests_total"), 7_060, "{io}");
        world.until_metric("staunch_connections{state=\"idle\"}", 0);
    }
}

/// Its library raises when the server passes a window, answers a stream twice or sends a bad block.
#[test]
fn a_client_of_python_keeps_to_its_windows() {
    if !Path::new(PYTHON_H2).exists() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{PYTHON_H2} is missing");
        println!("skipped: {PYTHON_H2} is missing (cargo xtask install --for test brings it)");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("http2/client.py");
    for io in ENGINES {
        let world = World::new(io, &[]);
        let port = world.address().port().to_string();
        assert_eq!(said(Command::new(PYTHON).arg(&script).arg(&port)).trim(), "ok", "{io}");
    }
}

/// A case for each kind that a suite for WebSockets has, each on a stream of one connection.
#[test]
fn a_client_of_python_opens_websockets() {
    if !Path::new(PYTHON_H2).exists() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{PYTHON_H2} is missing");
        println!("skipped: {PYTHON_H2} is missing (cargo xtask install --for test brings it)");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("http2/websocket.py");
    for io in ENGINES {
        let world = World::with_settings(io, "live = true\nlive_echo = true\n", &[]);
        let port = world.address().port().to_string();
        assert_eq!(said(Command::new(PYTHON).arg(&script).arg(&port)).trim(), "ok", "{io}");
        assert_eq!(world.metric("staunch_http2_connections_total"), 1, "{io}");
    }
}

/// Parts of h2spec, how many seconds it waits in each, and the cases that a server of files answers
/// otherwise, as it may.
const H2SPEC: [(&[&str], &str, &[&str]); 2] = [
    (
        &["generic", "hpack", "http2/3", "http2/4", "http2/5", "http2/6", "http2/7"],
        "10",
        // The preface is answered 400, for it may be of HTTP/1.1.
        &["Sends invalid connection preface"],
    ),
    (&["http2/8"], "3", &[]),
];
/// Cases of the version that is installed.
const H2SPEC_CASES: usize = 146;

/// Go builds it (`cargo xtask install --for test`). The file is larger than the windows, so that its answers
/// wait while streams are tried.
#[test]
fn h2spec_finds_no_fault() {
    let Some(program) = h2spec() else {
        println!("skipped: h2spec is missing (cargo xtask install --for test brings it where there is Go)");
        return;
    };
    for io in ENGINES {
        let world = World::new(io, &[]);
        let port = world.address().port().to_string();
        let mut cases = 0;
        for (parts, seconds, otherwise) in H2SPEC {
            let mut command = Command::new(&program);
            command.args(["-h", "127.0.0.1", "-p", &port, "-P", "/big.bin", "-o", seconds, "--strict"]);
            let finished = finish(command.args(parts));
            let (all, found) = verdict(&finished.stdout);
            assert_eq!(found, otherwise, "{io}: {}{}", finished.stdout, finished.stderr);
            cases += all;
        }
        assert_eq!(cases, H2SPEC_CASES, "{io}");
    }
}

/// How many cases were tried, and which of them failed.
fn verdict(report: &str) -> (usize, Vec<&str>) {
    let last = report.lines().find(|line| line.contains(" tests, ") && line.contains(" 0 skipped"));
    let count = last.and_then(|line| line.split(' ').next()?.parse().ok());
    let failures = report.split_once("Failures:").map_or("", |(_, failures)| failures);
    let failed =
        failures.lines().filter_map(|line| Some(line.trim().strip_prefix("\u{d7} ")?.split_once(": ")?.1));
    (count.unwrap_or_else(|| panic!("no verdict: {report}")), failed.collect())
}

/// Where `cargo xtask install` puts it, or on the path.
fn h2spec() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([root.join("target/tools/bin")]);
    folders.map(|folder| folder.join("h2spec")).find(|program| program.is_file())
}
