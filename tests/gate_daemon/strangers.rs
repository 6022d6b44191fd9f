//! Clients and servers that nobody here chose: none of them may make the gate the outage.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use staunch_tests::house::waiting::until;

use crate::crowd::{ADDRESS, Crowd, PORT, listen, serve_by_events, serve_from};
use crate::world::World;

/// Connects, says nothing, and stays.
fn silent(world: &World, count: usize) -> Vec<TcpStream> {
    let connect = || TcpStream::connect(ADDRESS).expect("a connection");
    world.client(move || (0..count).map(|_| connect()).collect()).join().expect("clients")
}

/// Clients whose program has given up while their kernel goes on asking: the connection is closed as soon as
/// it stands, and nothing was ever said on it. So does Go's dialer when a request has timed out.
fn ghosts(world: &World, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let ghost = |_| {
        let stop = Arc::clone(stop);
        world.client(move || {
            let address: SocketAddr = ADDRESS.parse().expect("an address");
            while !stop.load(Relaxed) {
                drop(TcpStream::connect_timeout(&address, Duration::from_secs(10)));
            }
        })
    };
    (0..300).map(ghost).collect()
}

fn count(status: &Value, of: &str) -> u64 {
    status["connections"][of].as_u64().expect("a count")
}

#[test]
fn who_says_nothing_stands_in_no_line() {
    let Some(world) = World::new() else { return };
    serve_by_events(&world, Arc::default());
    let _gate = world.gate(&["--port", PORT]);
    let silent = silent(&world, 300);
    // So many at once may look like a crowd until it is known that they say nothing.
    let silent_and_open = |status: &Value| count(status, "silent") == 300 && status["state"] == "open";
    let before = world.await_status("they are silent", silent_and_open);
    // Three at a time are no more than the server can do.
    let crowd = Crowd::of(&world, 3);
    until("answers beside them", || crowd.answered() > 1_500);
    // A client of the crowd who has connected and not asked yet is silent, too, for a moment.
    let status = world.await_status("only they are silent", |status| count(status, "silent") == 300);
    assert_eq!((&status["state"], &status["changes"]), (&"open".into(), &before["changes"]), "{status:#}");
    drop(crowd);
    drop(silent);
    world.await_status("they have left", |status| count(status, "silent") == 0);
}

#[test]
fn a_crowd_is_served_beside_those_who_say_nothing() {
    let Some(world) = World::new() else { return };
    serve_by_events(&world, Arc::default());
    let gate = world.gate(&["--port", PORT]);
    let _silent = silent(&world, 100);
    let crowd = Crowd::new(&world);
    gate.await_line("open -> shedding");
    let before = crowd.answered();
    until("answers while it sheds", || crowd.answered() > before + 1_000);
    let status = world.status();
    assert_eq!((&status["state"], count(&status, "silent") >= 100), (&"shedding".into(), true), "{status:#}");
}

#[test]
fn a_crowd_is_served_beside_those_who_have_gone() {
    let Some(world) = World::new() else { return };
    serve_by_events(&world, Arc::default());
    let gate = world.gate(&["--port", PORT]);
    let stop = Arc::new(AtomicBool::new(false));
    let crowd = Crowd::new(&world);
    gate.await_line("open -> shedding");
    let ghosts = ghosts(&world, &stop);
    let before = crowd.answered();
    until("answers among them", || crowd.answered() > before + 1_000);
    stop.store(true, Relaxed);
    drop(crowd);
    ghosts.into_iter().for_each(|ghost| ghost.join().expect("a ghost"));
}

/// As `python3 -m http.server` is: its queue bounds it, with a gate or without.
#[test]
fn a_short_accept_queue_is_named_and_left_alone() {
    let Some(world) = World::new() else { return };
    serve_from(listen(&world, 5), Duration::from_millis(2));
    let gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::new(&world);
    gate.await_line("accept queue of 5 bounds this server; raise its backlog");
    let before = crowd.answered();
    until("answers", || crowd.answered() > before + 300);
    let status = world.status();
    assert_eq!((&status["state"], &status["changes"]), (&"open".into(), &0.into()), "{status:#}");
    assert_eq!(status["estimate"]["small_queue"], true, "{status:#}");
}

/// What a crowd has left behind is served before anybody else; the gate begins in the middle of it.
#[test]
fn a_gate_may_begin_amid_a_crowd() {
    let Some(world) = World::new() else { return };
    let stands_still = Arc::new(AtomicBool::new(true));
    serve_by_events(&world, Arc::clone(&stands_still));
    let crowd = Crowd::new(&world);
    let established = || world.at_server("ss -Htn state established 'sport = :8000' | wc -l");
    until("a crowd that waits", || established().trim() == "300");
    let _gate = world.gate(&["--port", PORT]);
    let waits = |status: &Value| count(status, "waiting") == 300 && count(status, "established") == 0;
    world.await_status("it is known", waits);
    stands_still.store(false, Relaxed);
    until("answers", || crowd.answered() > 1_000);
}

/// A server that was stopped, and goes on: nobody believes for ever that it serves nobody.
#[test]
fn a_server_that_stood_still_is_found_again() {
    let Some(world) = World::new() else { return };
    let stands_still = Arc::new(AtomicBool::new(false));
    serve_by_events(&world, Arc::clone(&stands_still));
    let gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::new(&world);
    gate.await_line("open -> shedding");
    stands_still.store(true, Relaxed);
    // The floor comes in meanwhile, and so it is seen that the server stands still.
    let still = |status: &Value| status["rates"]["begun_per_s"] == 0.0;
    let before = world.await_status("a second in which nobody was served", still);
    let let_in = |status: &Value| status["syn"]["known"]["passed"].as_u64().unwrap_or(0);
    world.await_status("the floor", |status| let_in(status) > let_in(&before));
    stands_still.store(false, Relaxed);
    let before = crowd.answered();
    until("answers again", || crowd.answered() > before + 1_000);
}
