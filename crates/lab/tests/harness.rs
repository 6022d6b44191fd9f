//! The harness with a program that fails in every way: what failed is told, and the rest is measured.
//!
//! All of it is one test: the harness inherits orphans, so its process must have no other children.
#![forbid(unsafe_code)]

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use staunch_lab::harness::{PlanOutcome, Setup, run};
use staunch_lab::plan::Plan;
use staunch_lab::results::{AskedBy, MeasuredOn, Protocol, Row};
use staunch_netio::host::cpu;

/// Plays `lab serve MODEL` and `lab client HOST PORT CHILDREN LOOPS BYTES`; the model says how to serve, the
/// loops say what the client reports.
const PROGRAM: &str = r#"#!/bin/sh
serves='$SIG{TERM} = sub { exit 0 }; $| = 1; print "listening on http://127.0.0.1:PORT\n"; '
case "$2 $3" in
"serve mute") echo "no such luck" >&2; exit 1 ;;
"serve strange") echo "hello"; exit 0 ;;
"serve dying") exec perl -e "$serves"' select undef, undef, undef, 0.2; exit 7' ;;
"serve failing") exec perl -e "$serves"' $SIG{TERM} = sub { exit 3 }; sleep 1000' ;;
"serve leaving") setsid sleep 1000 >/dev/null 2>&1 & exec perl -e "$serves sleep 1000" ;;
"serve good") exec perl -e "$serves sleep 1000" ;;
esac
report() {
    echo '{"wall_s": 0.5, "answered": '$1', "connections": 2, "errors": ['"$2"'], "bytes": 9,
        "child_s": [0.5],
        "usage": {"user_s": 0, "system_s": 0, "minor_faults": 0, "major_faults": 0, "voluntary_switches": 0,
        "involuntary_switches": 0}}'
}
case "$6" in
2) report 2 ;;
3) report 2 '["Connection refused", 1]'; exit 1 ;;
4) echo "out of order" >&2; exit 2 ;;
5) exec sleep 1000 ;;
esac
"#;

/// A program of this text in a folder of its own.
struct Fake {
    folder: PathBuf,
    program: PathBuf,
}

impl Fake {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("staunch-lab-harness-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let program = folder.join("staunch");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let text = PROGRAM.replace("PORT", &free.port().to_string());
        fs::write(&program, text).expect("our folder");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("our file");
        Self { folder, program }
    }

    fn run(&self, rows: &[(&str, u64)], rounds: u64, stop: &AtomicBool) -> PlanOutcome {
        let row = |&(model, loops): &(&str, u64)| Row {
            model: model.to_owned(),
            protocol: Protocol::Paper,
            children: 1,
            loops,
            bytes: 9,
            pool: 0,
            client: AskedBy::Processes,
        };
        let cpus = cpu::available_cpus().expect("processors");
        let setup = Setup {
            program: self.program.clone(),
            plan: Plan { name: "fake".into(), rounds, scale: 1.0, rows: rows.iter().map(row).collect() },
            machine: MeasuredOn {
                processor: "A CPU".into(),
                processors: cpus.len(),
                server_cpus: vec![cpus[0]],
                client_cpus: vec![cpus[cpus.len() - 1]],
                kernel: "6.1".into(),
                version: "0".into(),
                began: "2026-01-01T00:00:00Z".into(),
            },
            command: "fake".into(),
        };
        run(&setup, stop, &mut |_| {}).expect("a run")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn what_fails_is_told_and_the_rest_is_measured() {
    let fake = Fake::new();
    let rows = [
        ("mute", 2),
        ("strange", 2),
        ("good", 2),
        ("dying", 5),
        ("failing", 2),
        ("leaving", 2),
        ("good", 3),
        ("good", 4),
    ];
    let outcome = fake.run(&rows, 2, &AtomicBool::new(false));
    let measured: Vec<usize> = outcome.results.rows.iter().map(|row| row.rounds.len()).collect();
    assert_eq!(measured, [0, 0, 2, 0, 0, 2, 2, 0], "{:#?}", outcome.faults);
    let told = [
        "mute, 1 x 2, 9 B, paper, round 1: the server does not come up: no such luck",
        "strange, 1 x 2, 9 B, paper, round 1: the server does not come up: hello",
        "dying, 1 x 5, 9 B, paper, round 1: the server ended under load with exit status: 7",
        "failing, 1 x 2, 9 B, paper, round 1: the server ended with exit status: 3",
        "leaving, 1 x 2, 9 B, paper, round 1: left behind: a process is left: ",
        "good, 1 x 3, 9 B, paper, round 1: 2 of 3 answers came (Connection refused 1)",
        "good, 1 x 4, 9 B, paper, round 1: the client ended with exit status: 2: out of order",
    ];
    assert_eq!(outcome.faults.len(), 2 * told.len(), "{:#?}", outcome.faults);
    for (fault, start) in outcome.faults.iter().zip(told) {
        assert!(fault.starts_with(start), "{fault}\n{start}");
    }
    assert!(!outcome.interrupted);
    interrupted(&fake);
}

/// The step under way is given up, and what was measured stays.
fn interrupted(fake: &Fake) {
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| fake.run(&[("good", 2), ("good", 5)], 3, &stop));
        // The second row waits for a client that never ends.
        std::thread::sleep(std::time::Duration::from_secs(1));
        stop.store(true, Ordering::Relaxed);
        run.join().expect("a run")
    });
    let measured: Vec<usize> = outcome.results.rows.iter().map(|row| row.rounds.len()).collect();
    assert_eq!((measured, outcome.interrupted), (vec![1, 0], true));
    assert_eq!(outcome.faults, [""; 0]);
}
