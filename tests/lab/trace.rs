//! `staunch lab trace` on real models: calls are counted as they are made, and nothing is left behind.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;
use staunch_tests::process::{Finished, binary, finish, is_installed, write_program};

use crate::model::{PATIENCE, tell};

/// Requests that are traced: few, for every call costs strace a lot.
const REQUEST_COUNT: u64 = 50;

fn trace(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["lab", "trace"]).args(arguments);
    command
}

fn figures(arguments: &[&str]) -> Value {
    let requests = REQUEST_COUNT.to_string();
    let mut command = trace(arguments);
    let Finished { status, stdout, stderr } =
        finish(command.args(["--requests", &requests, "--creation=10", "--json", "-"]));
    assert!(status.success(), "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {stdout}"))
}

/// How often a call was made, of the kind that waits or of the other.
fn count(figures: &Value, name: &str, waits: bool) -> u64 {
    let calls = figures["trace"]["calls"].as_array().expect("calls");
    let is_it = |call: &&Value| call["name"] == name && call["waits"] == waits;
    calls.iter().find(is_it).and_then(|call| call["count"].as_u64()).unwrap_or(0)
}

#[test]
fn calls_of_a_request_are_counted() {
    if !is_installed("strace") {
        return;
    }
    // Calls with the kind they are, so many in each request.
    let table = [
        (
            &["prefork", "--pool", "2"][..],
            &[("accept", true, 1), ("read", true, 1), ("sendto", false, 1), ("close", false, 1)][..],
        ),
        (&["fork"], &[("clone", false, 1), ("close", false, 2), ("sendto", false, 1)]),
        (&["prefork-passing"], &[("accept", true, 1), ("recvmsg", true, 1), ("sendmsg", false, 1)]),
        (&["epoll-edge", "--keep-alive"], &[("read", false, 1), ("sendto", false, 1)]),
        (&["staunch-epoll", "--keep-alive"], &[("sendto", false, 1)]),
    ];
    for (arguments, calls) in table {
        let figures = figures(arguments);
        assert_eq!(figures["trace"]["requests"], REQUEST_COUNT);
        for &(name, waits, each) in calls {
            let (count, least) = (count(&figures, name, waits), each * REQUEST_COUNT);
            // A few more: the first and the last request, and who is woken twice.
            assert!((least..=least + REQUEST_COUNT / 2).contains(&count), "{arguments:?}: {name} {count}");
        }
        let creation = figures["creation"].as_array().expect("creation");
        assert!(creation.len() == 4 && creation.iter().all(|way| way["count"] == 10), "{creation:?}");
    }
}

#[test]
fn what_is_drawn_can_be_read() {
    if !is_installed("strace") {
        return;
    }
    let file = std::env::temp_dir().join(format!("staunch-trace-{}.json", std::process::id()));
    let path = file.to_str().expect("a path in UTF-8");
    let drawn = finish(&mut trace(&["thread", "--requests", "50", "--bytes", "100", "--json", path])).stdout;
    let words = [
        "thread: 50 requests for 100 bytes, one after the other, a connection each",
        "TIMES UNDER STRACE ARE INFLATED",
        "processor time of the server",
        "pthread_create, pthread_join, 1000 times: median", // a thread for each request: so it is shown
    ];
    for word in words {
        assert!(drawn.contains(word), "{word}: {drawn}");
    }
    let rows: Vec<&str> = drawn.lines().filter(|line| line.starts_with("accept ")).collect();
    assert!(matches!(rows[..], [row] if row.ends_with(" waits")), "{drawn}");
    let kept: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    fs::remove_file(&file).expect("a file of ours");
    assert_eq!(kept["trace"]["model"], "thread");
}

#[test]
fn creation_alone_needs_no_strace() {
    let mut command = trace(&["--creation=20"]);
    let drawn = finish(command.env("PATH", "/nowhere")).stdout;
    for word in ["fork, _exit, waitpid, 20 times", "fork with 64 MiB of touched memory, 20 times", "#"] {
        assert!(drawn.contains(word), "{word}: {drawn}");
    }
    assert!(!drawn.contains("STRACE"), "{drawn}");
}

#[test]
fn wrong_calls_name_the_fault() {
    let table = [
        (&[][..], 2, "MODEL"),
        (&["prefrok"], 2, "prefork"),
        (&["prefork", "--requests", "0"], 2, "--requests"),
        (&["prefork", "--requests", "20001"], 2, "20000"),
        (&["prefork", "--bytes", "16777217"], 2, "16777216"),
        (&["prefork", "--pool", "0"], 2, "--pool"),
        (&["--creation=0"], 2, "--creation"),
        (&["--creation=1", "--json", "/nowhere/figures.json"], 1, "/nowhere/figures.json"),
    ];
    for (arguments, code, word) in table {
        let finished = finish(&mut trace(arguments));
        assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(word), "{arguments:?}: {}", finished.stderr);
    }
}

/// Without strace, or where it may not trace, one is told the way out.
#[test]
fn without_strace_there_is_a_way_out() {
    let folder =
        folder_with_strace("echo 'strace: ptrace(PTRACE_TRACEME): Operation not permitted' >&2; exit 1");
    let table =
        [("/nowhere", "apt-get install strace"), (folder.to_str().expect("a path"), "/yama/ptrace_scope")];
    for (path, word) in table {
        let finished = finish(trace(&["prefork", "--requests", "1"]).env("PATH", path));
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        assert!(finished.stderr.contains(word), "{word}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
    fs::remove_dir_all(folder).expect("a folder of ours");
}

/// A folder with a program of this name.
fn folder_with_strace(script: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("staunch-no-strace-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("strace");
    write_program(&program, format!("#!/bin/sh\n{script}\n").as_bytes(), 0o755);
    folder
}

/// Whoever is killed while tracing takes strace and the model along.
#[test]
fn nothing_outlives_who_traces() {
    if !is_installed("strace") {
        return;
    }
    let mut command = trace(&["prefork", "--requests", "20000"]);
    let mut tracer = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
    let start = Instant::now();
    // The model under strace: it, and a child of its pool.
    let mut family = Vec::new();
    while family.len() < 3 {
        assert!(start.elapsed() < PATIENCE, "{family:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
        family = descendants(tracer.id());
    }
    tell(tracer.id(), Signal::KILL);
    tracer.wait().expect("a child of ours");
    let runs = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
    };
    while family.iter().any(runs) {
        assert!(start.elapsed() < 2 * PATIENCE, "{family:?} outlive it");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Children of a process, and theirs.
fn descendants(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_ascii_whitespace().filter_map(|number| number.parse().ok());
    children.flat_map(|child: u32| [vec![child], descendants(child)].concat()).collect()
}
