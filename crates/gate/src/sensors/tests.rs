//! All sensors together: on this host, and where there is nothing.

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn what_is_not_there_is_said_and_left_out() {
    let nowhere = std::env::temp_dir().join(format!("staunch-no-proc-{}", std::process::id()));
    let (mut sensors, notes) = Sensors::open_beneath(&nowhere, &[80]);
    let seen = sensors.read(SECOND_NS, Closeness::Close);
    assert_eq!(seen, Seen { listeners: seen.listeners.clone(), ..Seen::default() });
    for lost in ["processor", "kernel's threads", "sockets", "memory"] {
        assert!(notes.iter().any(|note| note.contains(lost)), "{lost}: {notes:?}");
    }
}

#[test]
fn this_host_is_seen() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (mut sensors, notes) = Sensors::open(&[port, 1]);
    let seen = sensors.read(SECOND_NS, Closeness::Calm);
    assert!(seen.sockets.is_some_and(|sockets| sockets > 0), "{seen:?} {notes:?}");
    assert!(seen.memory.as_ref().is_some_and(|memory| memory.available_share > 0.0), "{seen:?}");
    let count = |seen: &Seen| {
        let listeners = seen.listeners.as_ref().expect("sock_diag");
        listeners.iter().map(|one| (one.queue.listeners, one.queue.waiting)).collect::<Vec<_>>()
    };
    assert_eq!(count(&seen), [(1, 0), (0, 0)], "of each port");
    let _waits = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Looked at calmly it stays what it was until it is due; looked at closely it is new each time.
    assert_eq!(sensors.read(SECOND_NS + CALM_NS - 1, Closeness::Calm).listeners, seen.listeners);
    while count(&sensors.read(SECOND_NS + 1, Closeness::Close))[0] != (1, 1) {}
    assert_eq!(count(&sensors.read(SECOND_NS + CALM_NS, Closeness::Calm)), [(1, 1), (0, 0)]);
}

#[test]
fn every_sensor_has_a_cost() {
    let (mut sensors, _) = Sensors::open(&[1]);
    let costs = sensors.costs();
    assert_eq!(costs.len(), 5);
    assert!(costs.iter().flat_map(|cost| cost.ns).all(|ns| ns > 0.0), "{costs:?}");
}
