//! Plans carried out with real servers and clients: what is measured, written and said, and that nothing is
//! left whatever happens.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use staunch_lab::results::{AskedBy, Protocol, Results, SCHEMA};
use staunch_netio::host::cpu;
use staunch_tests::process::{Finished, binary, finish};

use crate::model::{PATIENCE, tell};

/// A folder with a plan, removed at the end.
struct PlanFolder {
    folder: PathBuf,
}

impl PlanFolder {
    fn new(name: &str, plan: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("staunch-lab-run-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("plan.toml"), plan).expect("our folder");
        Self { folder }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["lab", "run", "--plan", &self.file("plan.toml")]).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        finish(&mut self.command(arguments))
    }

    fn results(&self) -> Results {
        let text = fs::read_to_string(self.file("lab.json")).expect("it was written");
        serde_json::from_str(&text).expect("results")
    }
}

impl Drop for PlanFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const TINY: &str = r#"
rounds = 2
scale = 0.1

[[row]]
model = ["iterative", "fork", "prefork", "thread", "prethread-handover", "epoll-edge"]
children = 3
loops = 100
bytes = 4000
pool = 3

[[row]]
model = ["fork", "epoll-edge", "staunch-epoll"]
protocol = ["http", "keep-alive"]
children = 3
loops = 100
bytes = 4000
client = "epoll"
"#;

#[test]
fn a_plan_is_measured_and_written() {
    let plan = PlanFolder::new("tiny", TINY);
    let finished = plan.run(&["--json", &plan.file("lab.json"), "--csv", &plan.file("lab.csv")]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let results = plan.results();
    assert_eq!((results.schema, results.scale, results.rows.len()), (SCHEMA, 0.1, 12));
    assert!(results.command.starts_with("staunch lab run --plan "), "{}", results.command);
    for measured in &results.rows {
        let name = &measured.row;
        let client = if name.protocol == Protocol::Paper { AskedBy::Processes } else { AskedBy::Epoll };
        assert_eq!(name.client, client, "{name:?}");
        assert_eq!((measured.row.loops, measured.rounds.len()), (10, 2), "{name:?}");
        for round in &measured.rounds {
            assert_eq!((round.client.answered, round.client.failed()), (30, 0), "{name:?}");
            assert_eq!((round.client.bytes, round.leaks.len()), (120_000, 0), "{name:?}");
            let connections = if measured.row.protocol == Protocol::KeepAlive { 3 } else { 30 };
            assert_eq!(round.client.connections, connections, "{name:?}");
            assert!(round.server.user_s + round.server.system_s > 0.0, "{name:?}");
            assert!(round.peak_memory_bytes > 0, "{name:?}");
            let served: u64 = round.served_by.iter().sum();
            let is_pooled = measured.row.pool > 0;
            assert_eq!((round.served_by.len(), served), if is_pooled { (3, 30) } else { (0, 0) }, "{name:?}");
            let forks = measured.row.model == "fork" && measured.row.protocol == Protocol::Paper;
            assert!(!forks || round.server.minor_faults > 300, "{:?}", round.server);
        }
    }
    let csv = fs::read_to_string(plan.file("lab.csv")).expect("it was written");
    assert_eq!(csv.lines().count(), 1 + 12 * 2);
}

#[test]
fn what_is_written_to_standard_output_is_nothing_but_that() {
    let plan = PlanFolder::new("pipe", TINY);
    let finished = plan.run(&["--json", "-", "--rounds", "1", "--scale", "0.01"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let results: Results = serde_json::from_str(&finished.stdout).expect("results and nothing else");
    assert!(results.rows.iter().all(|row| row.row.loops == 1 && row.rounds.len() == 1));
}

#[test]
fn wrong_plans_and_arguments_are_named() {
    let plan = PlanFolder::new("wrong", "[[row]]\nmodel = \"prefrok\"\nchildern = 3\n");
    let finished = plan.run(&[]);
    assert_eq!(finished.status.code(), Some(1));
    let said = &finished.stderr;
    assert!(said.contains("plan.toml:2:9: unknown model `prefrok` (did you mean `prefork`?)"), "{said}");
    assert!(said.contains("plan.toml:3:1: unknown key `childern` (did you mean `children`?)"), "{said}");
    let table = [
        (&["--plan", "papr"][..], 1, "did you mean `paper`?"),
        (&["--plan", "/dev/null/x"], 1, "/dev/null/x"),
        (&["--plan", "quick", "--server-cpus", "4095"], 1, "processor 4095 is not one this process may use"),
        (&["--plan", "quick", "--client-cpus", "4095"], 1, "processors of the client: processor 4095"),
        (&["--plan", "quick", "--server-cpus", "x"], 2, "write processors"),
        (&["--plan", "quick", "--scale", "0"], 2, "a factor above 0"),
        (&["--plan", "quick", "--rounds", "0"], 2, "--rounds"),
        (&["--plan", "quick", "--json", "/nowhere/at/all"], 1, "/nowhere/at/all: No such file"),
    ];
    for (arguments, code, word) in table {
        let finished = finish(Command::new(binary()).args(["lab", "run"]).args(arguments));
        assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(word), "{arguments:?}: {}", finished.stderr);
    }
}

const ONE_ROW: &str = "rounds = 1\n[[row]]\nmodel = \"poll\"\nchildren = 2\nloops = 5\nbytes = 4000\n";

#[test]
fn a_limit_that_is_too_low_is_named() {
    let plan = PlanFolder::new("limit", ONE_ROW);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 30; exec \"$0\" \"$@\""]).arg(binary());
    command.args(["lab", "run", "--plan", &plan.file("plan.toml")]);
    let finished = finish(&mut command);
    assert_eq!(finished.status.code(), Some(1));
    let said = finished.stderr;
    let expected = "poll with a pool of 0, 2 children: needs 34 descriptors, and a process may have 30";
    assert!(said.contains(expected), "{said}");
}

/// With one processor it goes on, and says what that means.
#[test]
fn one_processor_for_both_is_said() {
    let cpu = cpu::available_cpus().expect("processors")[0].to_string();
    let plan = PlanFolder::new("one", ONE_ROW);
    let output = plan.file("lab.json");
    let mut alone = Command::new("taskset");
    alone.args(["-c", &cpu]).arg(binary());
    alone.args(["lab", "run", "--plan", &plan.file("plan.toml"), "--json", &output]);
    let mut told = plan.command(&["--server-cpus", &cpu, "--client-cpus", &cpu, "--json", &output]);
    for command in [&mut alone, &mut told] {
        let finished = finish(command);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let expected = format!("WARNING: server and client share processor {cpu}:");
        assert!(finished.stderr.contains(&expected), "{}", finished.stderr);
        assert_eq!(plan.results().rows[0].rounds[0].client.answered, 10);
    }
}

/// A row that ends at once, and one that does not end.
const ENDLESS: &str = r#"
[[row]]
model = "prefork"
children = 2
loops = 5
bytes = 4000
pool = 2

[[row]]
model = "prefork"
children = 2
loops = 77_777_777
bytes = 4000
pool = 2
"#;

/// Children of a process with their command lines.
fn children(process: u32) -> Vec<(u32, String)> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let numbers = list.split_ascii_whitespace().filter_map(|number| number.parse().ok());
    let line = |child: u32| fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
    numbers.map(|child| (child, line(child).replace('\0', " "))).collect()
}

fn start_endless(plan: &PlanFolder) -> Child {
    let mut command = plan.command(&["--json", &plan.file("lab.json")]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program")
}

/// Waits until the endless row is under way: its server and its client.
fn started_by(run: u32) -> Vec<u32> {
    let start = Instant::now();
    loop {
        let children = children(run);
        if children.iter().any(|(_, line)| line.contains("lab client") && line.contains(" 77777777 ")) {
            return children.into_iter().map(|(child, _)| child).collect();
        }
        assert!(start.elapsed() < PATIENCE, "the endless row does not begin: {children:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn assert_gone(processes: &[u32]) {
    let start = Instant::now();
    while processes.iter().any(|process| Path::new(&format!("/proc/{process}/exe")).read_link().is_ok()) {
        assert!(start.elapsed() < PATIENCE, "{processes:?} go on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_was_measured_until_it_was_interrupted_is_written() {
    for signal in [Signal::INT, Signal::TERM] {
        let plan = PlanFolder::new(&format!("endless-{}", signal.as_raw()), ENDLESS);
        let run = start_endless(&plan);
        let started = started_by(run.id());
        tell(run.id(), signal);
        let output = run.wait_with_output().expect("a child of ours");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.contains("interrupted: 1 of 6 measurements were made"), "{said}");
        let rounds: Vec<usize> = plan.results().rows.iter().map(|row| row.rounds.len()).collect();
        assert_eq!(rounds, [1, 0]);
        assert_gone(&started);
    }
}

/// Even if the harness cannot tell them.
#[test]
fn server_and_client_do_not_outlive_a_harness_that_is_killed() {
    let plan = PlanFolder::new("killed", ENDLESS);
    let mut run = start_endless(&plan);
    let started = started_by(run.id());
    assert_eq!(started.len(), 2, "a server and a client");
    let servants: Vec<u32> =
        started.iter().flat_map(|child| children(*child)).map(|(servant, _)| servant).collect();
    tell(run.id(), Signal::KILL);
    run.wait().expect("a child of ours");
    assert_gone(&started);
    assert_gone(&servants);
}
