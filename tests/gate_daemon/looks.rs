//! What operators and monitors see: the view, snapshots, metrics, lines of JSON.

use rustix::process::Signal;
use serde_json::Value;
use staunch_tests::process;
use staunch_tests::terminal::Terminal;

use crate::crowd::get;
use crate::served::Site;
use crate::world::{Gate, INTERFACE, World};

#[test]
fn the_view_names_what_there_is() {
    let Some(world) = World::new() else { return };
    let _gate = world.gate(&["--port", "8080", "--policy", "paper", "--mode", "reset"]);
    world.await_status("a first second", |status| {
        status["uptime_seconds"].as_f64().is_some_and(|up| up > 1.0)
    });
    for arguments in [&[][..], &["--once"], &["--interface", INTERFACE]] {
        let finished =
            process::finish(world.command(process::binary()).args(["gate", "status"]).args(arguments));
        assert!(finished.status.success(), "{finished:?}");
        for words in
            ["ports 8080, paper by reset", "open for", "vs attached (native)", "accept queues 0 of 0"]
        {
            assert!(finished.stdout.contains(words), "{words}: {}", finished.stdout);
        }
    }
}

#[test]
fn the_view_follows_and_ends_with_a_key() {
    let Some(world) = World::new() else { return };
    if !process::is_installed("tmux") {
        return;
    }
    let site = Site::new(&world);
    let mut gate = world.gate(&["--port", "8080"]);
    let enter = world.command(process::binary());
    let words = std::iter::once(enter.get_program()).chain(enter.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let terminal = Terminal::start(&std::env::temp_dir(), &format!("{} gate status", words.join(" ")));
    let first = terminal.await_screen(&["q: end", "open for", "unknown      0 let in", "up to"]);
    assert!(first.lines().all(|line| line.chars().count() <= 80), "{first}");
    assert_eq!(get(&world, site.port), "HTTP/1.1 200 OK");
    let second = terminal.await_screen(&["unknown      1 let in"]);
    assert_eq!(second.matches("interfaces").count(), 1, "a rest was left behind:\n{second}");
    gate.end(Signal::TERM);
    terminal.await_screen(&["no gate answers", "looking again"]);
    let _next = world.gate(&["--port", "8080"]);
    terminal.await_screen(&["unknown      0 let in"]);
    terminal.press("q");
    terminal.await_screen(&["exit code 0"]);
}

#[test]
fn snapshots_and_metrics_say_the_same() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&world);
    let gate = world.gate(&["--port", "8080", "--metrics", "127.0.0.1:0"]);
    let line = gate
        .said()
        .into_iter()
        .find(|line| line.contains("metrics "))
        .unwrap_or_else(|| gate.await_line("metrics "));
    let address = line.split_once("http://").expect("an address").1.trim_end_matches("/metrics").to_owned();
    assert_eq!(get(&world, site.port), "HTTP/1.1 200 OK");
    let read = |status: &Value| status["connections"]["begun"] == 1;
    let status = world.await_status("a connection", read);
    assert_eq!(status["host"]["listeners"], 1, "{status}");
    let fetch = |path: &str| world.at_server(&format!("curl -sS http://{address}{path}"));
    let metrics = fetch("/metrics");
    for line in [
        "staunch_gate_syn_total{port=\"8080\",class=\"unknown\",verdict=\"passed\"} 1",
        "staunch_gate_connections_total{port=\"8080\",event=\"begun\"} 1",
        "staunch_gate_wait_seconds_count{port=\"8080\"} 1",
        "staunch_gate_state{port=\"8080\"} 0",
        "staunch_gate_attached{interface=\"vs\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a sample");
        assert!(name.starts_with("staunch_gate_") && value.parse::<f64>().is_ok(), "{line}");
    }
    let json: Value = serde_json::from_str(&fetch("/status.json")).expect("a snapshot");
    assert_eq!(json["syn"], status["syn"]);
    assert_eq!(fetch("/healthz"), "ok\n");
}

#[test]
fn lines_are_json_on_request() {
    let Some(world) = World::new() else { return };
    let mut command = world.command(process::binary());
    let gate = Gate::spawn(command.args(["gate", "--interface", INTERFACE, "--json"]));
    let started: Value = serde_json::from_str(&gate.await_line("\"start\"")).expect("JSON");
    assert!(started["text"].as_str().is_some_and(|text| text.contains("staunch gate on vs")), "{started}");
    world.at_server("ip link set vs down");
    let down: Value = serde_json::from_str(&gate.await_line("is down")).expect("JSON");
    assert_eq!((&down["event"], &down["interface"]), (&"interface".into(), &INTERFACE.into()));
    assert!(down["time"].as_f64().is_some_and(|time| time > 1e9), "{down}");
}
