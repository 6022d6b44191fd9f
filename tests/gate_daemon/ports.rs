//! Several servers behind one gate, each at a port of its own: a slow one keeps no client of another out.

use std::time::Duration;

use serde_json::Value;
use staunch_tests::house::waiting::until;

use crate::crowd::{Crowd, listen_at, serve_from, serve_slowly};
use crate::world::World;

/// The slow one stands at the usual port.
const FAST_ADDRESS: &str = "10.0.0.1:8001";
const PORTS: &str = "8000,8001";
/// Three at a time make no line.
const FEW: usize = 3;

/// What is told of a port, by its place among those that were named.
fn port(status: &Value, place: usize) -> &Value {
    &status["by_port"][place]
}

fn shed(port: &Value) -> u64 {
    let of = |class: &str, why: &str| port["syn"][class][why].as_u64().expect("a count");
    ["known", "verified", "unknown"]
        .map(|class| of(class, "shed_credit") + of(class, "shed_fair"))
        .iter()
        .sum()
}

#[test]
fn a_slow_server_keeps_no_client_of_a_fast_one_out() {
    let Some(world) = World::new() else { return };
    serve_slowly(&world);
    serve_from(listen_at(&world, FAST_ADDRESS, 4096), Duration::ZERO);
    let gate = world.gate(&["--port", PORTS, "--metrics", "127.0.0.1:9091"]);
    let few = Crowd::at(&world, FAST_ADDRESS, FEW);
    let crowd = Crowd::new(&world);
    let line = gate.await_line("open -> shedding");
    assert!(line.starts_with("staunch: gate: port 8000: open -> shedding after "), "{line}");
    let (fast, slow) = (few.answered(), crowd.answered());
    until("answers of both", || few.answered() > fast + 1_000 && crowd.answered() > slow + 1_000);
    let status = world.await_status("shed from one", |status| shed(port(status, 0)) > 0);
    let (slow, fast) = (port(&status, 0), port(&status, 1));
    assert_eq!((&slow["port"], &slow["state"]), (&8000.into(), &"shedding".into()), "{status:#}");
    assert_eq!((&fast["port"], &fast["state"]), (&8001.into(), &"open".into()), "{status:#}");
    assert_eq!((&fast["changes"], shed(fast)), (&0.into(), 0), "{status:#}");
    assert_eq!((&status["state"], &status["changes"]), (&"shedding".into(), &slow["changes"]), "{status:#}");
    assert_eq!((&slow["queue"]["listeners"], &fast["queue"]["listeners"]), (&1.into(), &1.into()));
    let metrics = world.at_server("curl -sS http://127.0.0.1:9091/metrics");
    for (port, state) in [(8000, 1), (8001, 0)] {
        let line = format!("staunch_gate_state{{port=\"{port}\"}} {state}");
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    drop((crowd, few));
    let text = world.at_server(&format!("{} gate status", staunch_tests::process::binary().display()));
    assert!(text.contains("\nport 8000 ") && text.contains("\nport 8001 "), "{text}");
}

#[test]
fn each_short_accept_queue_is_named_with_its_port() {
    let Some(world) = World::new() else { return };
    serve_slowly(&world);
    serve_from(listen_at(&world, FAST_ADDRESS, 5), Duration::from_millis(2));
    let gate = world.gate(&["--port", PORTS]);
    let _crowd = Crowd::at(&world, FAST_ADDRESS, 100);
    gate.await_line("port 8001: accept queue of 5 bounds this server; raise its backlog");
    let status = world.await_status("the hint", |status| port(status, 1)["hint"].is_string());
    assert_eq!(port(&status, 0)["hint"], Value::Null, "{status:#}");
    assert_eq!(port(&status, 1)["estimate"]["small_queue"], true, "{status:#}");
    assert_eq!(port(&status, 0)["estimate"]["small_queue"], false, "{status:#}");
}

#[test]
fn too_many_ports_are_refused() {
    let Some(world) = World::new() else { return };
    let ports: Vec<String> = (1..=65).map(|port: u32| port.to_string()).collect();
    let refused = world.no_gate(&["--interface", "vs", "--port", &ports.join(",")]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.stderr.contains("65 ports are to be protected; it may be 64"), "{refused:?}");
}
