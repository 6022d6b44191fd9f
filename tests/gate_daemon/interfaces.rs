//! What becomes of interfaces while the gate is on them.

use serde_json::Value;

use crate::crowd::{get, get_at};
use crate::served::Site;
use crate::world::{INTERFACE, World};

fn interface(status: &Value, number: usize) -> &str {
    status["interfaces"][number]["state"].as_str().expect("a word")
}

#[test]
fn one_that_goes_down_or_is_renamed_keeps_its_gate() {
    let Some(world) = World::new() else { return };
    let gate = world.gate(&[]);
    world.at_server("ip link set vs down");
    gate.await_line("vs is down; the gate stays on it");
    world.await_status("down", |status| interface(status, 0) == "down");
    world.at_server("ip link set vs name renamed");
    gate.await_line("vs is called renamed now; the gate stays on it");
    world.at_server("ip link set renamed up");
    gate.await_line("renamed is up again");
    assert!(world.has_program("renamed"));
    world.await_status("up", |status| interface(status, 0) == "attached");
}

#[test]
fn one_that_is_removed_is_waited_for() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&world);
    let gate = world.gate(&["--port", "8080"]);
    assert_eq!(get(&world, site.port), "HTTP/1.1 200 OK");
    let before = world.await_status("a connection", |status| status["syn"]["unknown"]["passed"] == 1);
    world.at_server("ip link delete vs");
    gate.await_line("vs is gone: nothing is shed there; the gate waits for it");
    world.await_status("missing", |status| interface(status, 0) == "missing");
    world.join(INTERFACE, "vc", 0);
    gate.await_line("vs is back; the gate is on it again");
    assert!(world.has_program(INTERFACE));
    // What was counted and learned before is still known. SYN to an address pass uncounted until the gate has
    // looked for addresses again, which it does from time to time.
    let after = world.await_status("a client seen before", |status| {
        assert_eq!(get(&world, site.port), "HTTP/1.1 200 OK");
        status["syn"]["known"]["passed"] != 0
    });
    assert_eq!(after["syn"]["unknown"], before["syn"]["unknown"]);
}

#[test]
fn several_interfaces_have_one_gate() {
    let Some(world) = World::new() else { return };
    world.join("vs2", "vc2", 2);
    let site = Site::new(&world);
    let mut gate = world.gate(&["--interface", "vs2", "--port", "8080"]);
    assert!(world.has_program("vs") && world.has_program("vs2"));
    assert_eq!(get(&world, site.port), "HTTP/1.1 200 OK");
    assert_eq!(get_at(&world, "10.0.2.1", site.port), "HTTP/1.1 200 OK");
    let both = |status: &Value| status["connections"]["begun"] == 2;
    let status = world.await_status("a connection by each", both);
    assert_eq!((interface(&status, 0), interface(&status, 1)), ("attached", "attached"));
    world.at_server("ip link delete vs2");
    gate.await_line("vs2 is gone");
    assert!(world.has_program("vs") && gate.is_running());
    assert_eq!(get(&world, site.port), "HTTP/1.1 200 OK");
}
