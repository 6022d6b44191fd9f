//! When logs cannot be written: the server serves, says so, and comes back by itself.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use staunch_tests::house::disk::Disk;
use staunch_tests::process::Server;
use staunch_tests::tree::Tree;

use crate::peer::{PATIENCE, Seen, await_lines, get, say, start};

/// Many requests on one connection. All of them are answered.
fn ask_many(server: &Server, count: usize) {
    let mut bytes = "GET /ten HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count - 1);
    bytes.push_str("GET /ten HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answers = say(server.address(), bytes.as_bytes());
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), count);
}

/// Lines that were written or could not be.
fn counted(seen: &Seen) -> f64 {
    ["written", "failed"]
        .map(|outcome| seen.metric(&format!("staunch_access_log_lines_total{{outcome=\"{outcome}\"}}")))
        .iter()
        .sum()
}

fn await_text(path: &Path, wanted: &str) -> String {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.contains(wanted) {
            return text;
        }
        assert!(start.elapsed() < PATIENCE, "never in {}: {wanted}\n{text}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_full_disk_loses_lines_and_nothing_else() {
    let tree = Tree::new().expect("a folder");
    let Some(disk) = Disk::mount(tree.root().join(".disk"), "size=64k") else { return };
    let (log, errors) = (disk.folder().join("log"), tree.root().join(".errors"));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let seen = start(&["--access-log", &text(&log), "--error-log", &text(&errors)]);
    let server = &seen.server;
    // 2000 lines of 70 bytes are more than the disk takes.
    ask_many(server, 2000);
    await_text(&errors, "/log: No space left on device (os error 28);");
    ask_many(server, 10);
    // What was asked until now would fill the disk again.
    while counted(&seen) < 2010.0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Room again: a log that was moved away and removed.
    File::create(&log).expect("a log");
    ask_many(server, 1);
    let said = await_text(&errors, "/log: written again;");
    assert!(said.lines().count() <= 4, "{said}");
    let text = await_text(&log, "\"GET /ten HTTP/1.1\" 200 10 \"-\" \"-\"\n");
    assert!(text.trim_start_matches('\n').lines().all(|line| line.ends_with("\"-\"")), "{text}");
}

/// A pipe that nobody reads stands for a disk that hangs.
#[test]
fn nobody_waits_for_a_log_that_hangs() {
    for io in ["epoll", "uring"] {
        let tree = Tree::new().expect("a folder");
        let pipe = tree.root().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let held = OpenOptions::new().read(true).write(true).open(&pipe).expect("a pipe");
        let seen = start(&["--io", io, "--access-log", pipe.to_str().expect("text")]);
        let filler = format!("User-Agent: {}\r\n", "x".repeat(4000));
        let one = format!("GET /ten HTTP/1.1\r\nHost: a\r\n{filler}\r\n");
        let mut asked = 0;
        while seen.metric("staunch_access_log_lines_total{outcome=\"dropped\"}") == 0.0 {
            let bytes = one.repeat(100) + "GET /ten HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            let answers = say(seen.server.address(), bytes.as_bytes());
            assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 101);
            asked += 101;
            assert!(asked < 20_000, "no line was dropped");
        }
        drop(held);
        // The end of the only reader is an error of the log, and not of the server.
        get(seen.server.address(), "/ten", "");
        seen.await_metric("staunch_access_log_lines_total{outcome=\"failed\"}", 1.0);
        assert_eq!(seen.status()["workers"][0]["requests"], asked + 1);
    }
}

#[test]
fn a_pipe_that_nobody_reads_yet_keeps_nothing_from_being_served() {
    let tree = Tree::new().expect("a folder");
    let pipe = tree.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let seen = start(&["--access-log", pipe.to_str().expect("text")]);
    get(seen.server.address(), "/ten", "");
    let ready = seen.readiness();
    assert!(ready.contains("but: access_log: the log "), "{ready}");
}

/// The writer wakes for the first line after a silence and for an order, and nobody wakes, or works, while
/// nothing is asked.
#[test]
fn a_line_comes_after_any_silence() {
    let seen = start(&["--access-log", "{}/log"]);
    let path = crate::peer::logs(&seen.tree).join("log");
    await_idleness(&seen);
    for count in 1..=3 {
        get(seen.server.address(), "/ten", "");
        await_lines(&path, count);
        std::thread::sleep(SILENCE);
    }
    await_idleness(&seen);
    seen.signal(Signal::USR1);
    await_idleness(&seen);
}

/// Long enough to fall asleep in both steps.
const SILENCE: Duration = Duration::from_millis(350);

/// Waits for a second in which no thread runs and none wakes; in the next none may either.
fn await_idleness(seen: &Seen) {
    let start = Instant::now();
    loop {
        let before = threads(seen);
        std::thread::sleep(Duration::from_millis(1000));
        let after = threads(seen);
        if before == after && after.iter().all(|(_, state)| state.starts_with('S')) {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "never idle: {before:?}, then {after:?}");
    }
    let before = threads(seen);
    std::thread::sleep(Duration::from_millis(1000));
    assert_eq!(threads(seen), before, "an idle server woke up");
}

/// How often each thread of the server went to sleep, and its state. Threads that end meanwhile are left out.
fn threads(seen: &Seen) -> Vec<(u64, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", seen.server.process_id())).expect("threads");
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Some((field("voluntary_ctxt_switches:")?.parse().ok()?, field("State:")?.to_owned()))
    };
    tasks.filter_map(of).collect()
}
