//! Connections that the host forwards, and addresses that it gets and loses while the gate runs.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use staunch_tests::house::waiting::until;
use staunch_tests::process;

use crate::crowd::{Crowd, PORT, serve_from, serve_slowly};
use crate::served::Site;
use crate::world::{INTERFACE, Third, World};

/// Connections to another host while this one sheds. Of those to this host more than half are shed then.
const FORWARDED_COUNT: usize = 200;
/// As many of them come about at once, wherever the machine has something else to do for a moment.
const FORWARDED_MIN: usize = FORWARDED_COUNT * 9 / 10;
/// A SYN that was shed comes again after a second.
const AT_ONCE: Duration = Duration::from_millis(700);

fn number(status: &Value, of: &str) -> u64 {
    of.split('.').fold(status, |value, name| &value[name]).as_u64().expect("a count")
}

/// SYN that were judged, and those that went elsewhere.
fn seen(status: &Value) -> (u64, u64) {
    let judged = ["known", "verified", "unknown"].iter().flat_map(|class| {
        ["passed", "allowed", "lease_over", "shed_credit", "shed_fair", "shed_deny"]
            .map(|verdict| number(status, &format!("syn.{class}.{verdict}")))
    });
    (judged.sum(), number(status, "frames.elsewhere"))
}

/// How many of these connections came about at once, of all that were tried.
fn come_at_once(world: &World, addresses: &'static [&'static str]) -> usize {
    let client = world.client(move || {
        let tries = addresses.iter().cycle().take(FORWARDED_COUNT);
        let connect = |address: &&str| {
            TcpStream::connect_timeout(&address.parse::<SocketAddr>().expect("an address"), AT_ONCE).is_ok()
        };
        tries.filter(|address| connect(address)).count()
    });
    client.join().expect("a client")
}

/// An overloaded server of this host, and one of another host at the same port, behind this one.
fn own_is_shed_and_others_are_not(world: &World, third: &Third, addresses: &'static [&'static str]) {
    serve_slowly(world);
    for address in addresses {
        serve_from(third.listen(address), Duration::ZERO);
    }
    assert!(come_at_once(world, addresses) >= FORWARDED_MIN, "before the gate");
    let gate = world.gate(&["--port", PORT]);
    let crowd = Crowd::new(world);
    gate.await_line("open -> shedding");
    world.await_status("shed", |status| {
        ["known", "unknown"].iter().any(|class| number(status, &format!("syn.{class}.shed_credit")) > 0)
    });
    let (before, known) = (seen(&world.status()).1, number(&world.status(), "connections.established"));
    let came = come_at_once(world, addresses);
    let status = world.status();
    assert_eq!(status["state"], "shedding", "{status:#}");
    assert!(came >= FORWARDED_MIN, "{came} came about: {status:#}");
    // Figures are told a few times a second.
    let status =
        world.await_status("SYN went elsewhere", |status| seen(status).1 - before >= FORWARDED_MIN as u64);
    assert!(number(&status, "connections.established") >= known);
    until("answers of the own server", || crowd.answered() > 100);
}

#[test]
fn what_is_routed_to_others_passes_while_this_host_sheds() {
    let Some(world) = World::new() else { return };
    let third = world.third("vb", "vt");
    world.at_server(
        "ip address add 10.7.0.1/24 dev vb && ip address add fd07::1/64 dev vb nodad && ip link set vb up \
         && ip address add fd00::1/64 dev vs nodad \
         && sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
    );
    third.run(
        "ip address add 10.7.0.2/24 dev vt && ip address add fd07::2/64 dev vt nodad && ip link set vt up \
         && ip route add default via 10.7.0.1 && ip -6 route add default via fd07::1",
    );
    world.at_clients(
        "ip address add fd00::2/64 dev vc nodad && ip route add 10.7.0.0/24 via 10.0.0.1 \
         && ip -6 route add fd07::/64 via fd00::1",
    );
    own_is_shed_and_others_are_not(&world, &third, &["10.7.0.2:8000", "[fd07::2]:8000"]);
}

/// A guest at a bridge of this host, as those of a hypervisor are.
#[test]
fn what_is_bridged_to_guests_passes_while_this_host_sheds() {
    let Some(world) = World::new() else { return };
    let third = world.third("vb", "vt");
    world.at_server(
        "ip address flush dev vs && ip link add br0 type bridge && ip link set vs master br0 \
         && ip link set vb master br0 && ip link set vb up && ip address add 10.0.0.1/24 dev br0 \
         && ip link set br0 up",
    );
    third.run(
        "ip address add 10.0.0.3/24 dev vt && ip address add fd00::3/64 dev vt nodad && ip link set vt up",
    );
    world.at_clients("ip address add fd00::2/64 dev vc nodad");
    own_is_shed_and_others_are_not(&world, &third, &["10.0.0.3:8000", "[fd00::3]:8000"]);
}

/// Sends SYN to an address of the server's until they are counted as judged, or as not.
fn await_judged(world: &World, address: &'static str, is_judged: bool) {
    let what = format!("{address} {}judged", if is_judged { "" } else { "not " });
    until(&what, || {
        let before = seen(&world.status());
        let client = world.client(move || {
            let address = address.parse::<SocketAddr>().expect("an address");
            drop(TcpStream::connect_timeout(&address, Duration::from_millis(100)));
        });
        client.join().expect("a client");
        let mut after = before;
        let start = Instant::now();
        while after == before && start.elapsed() < Duration::from_secs(5) {
            after = seen(&world.status());
        }
        let of = |(judged, elsewhere)| if is_judged { judged } else { elsewhere };
        of(after) > of(before)
    });
}

/// Clients send to the server's interface, whether it has the address or not.
fn lead_all_to_the_server(world: &World) {
    world.at_server("ip address add fd00::1/64 dev vs nodad");
    let link = world.at_server("ip -oneline link show dev vs | sed 's/.*link.ether \\([^ ]*\\).*/\\1/'");
    let link = link.trim();
    world.at_clients(&format!(
        "ip address add fd00::2/64 dev vc nodad && ip route add 192.0.2.0/24 dev vc \
         && for a in 10.0.0.9 fd00::9 192.0.2.7; do ip neighbour add $a lladdr {link} dev vc; done"
    ));
}

const LATER: [&str; 2] = ["10.0.0.9:8080", "[fd00::9]:8080"];

#[test]
fn addresses_that_come_and_go_are_noticed() {
    let Some(world) = World::new() else { return };
    lead_all_to_the_server(&world);
    let gate = world.gate(&["--port", "8080"]);
    await_judged(&world, "10.0.0.1:8080", true);
    await_judged(&world, "[fd00::1]:8080", true);
    for _ in 0..2 {
        LATER.iter().for_each(|address| await_judged(&world, address, false));
        world.at_server("ip address add 10.0.0.9/32 dev lo && ip address add fd00::9/128 dev vs nodad");
        LATER.iter().for_each(|address| await_judged(&world, address, true));
        world.at_server("ip address del 10.0.0.9/32 dev lo && ip address del fd00::9/128 dev vs");
    }
    // A whole prefix, and word that is lost while nobody listens.
    await_judged(&world, "192.0.2.7:8080", false);
    world.at_server("ip route add local 192.0.2.0/24 dev lo");
    await_judged(&world, "192.0.2.7:8080", true);
    gate.signal(Signal::STOP);
    world.at_server(
        "for i in 1 2; do for a in add del; do seq 1 4000 | while read n; do \
         echo route $a 10.$((100 + n / 250)).$((n % 250)).0/24 dev vs; done; done; done | ip -batch -; \
         ip route del local 192.0.2.0/24 dev lo; ip address add 10.0.0.9/24 dev vs",
    );
    gate.signal(Signal::CONT);
    await_judged(&world, "192.0.2.7:8080", false);
    await_judged(&world, LATER[0], true);
}

/// Linux answers for the addresses of an interface that is down; for one that is removed it does not.
#[test]
fn the_addresses_of_an_interface_go_with_it() {
    let Some(world) = World::new() else { return };
    lead_all_to_the_server(&world);
    let _gate = world.gate(&["--port", "8080"]);
    for _ in 0..2 {
        world.at_server("ip link add more type bridge && ip address add 10.0.0.9/32 dev more");
        world.at_server("ip link set more up");
        await_judged(&world, LATER[0], true);
        world.at_server("ip link delete more");
        await_judged(&world, LATER[0], false);
    }
}

/// By the loop of a server that has given its rights up.
#[test]
fn a_server_with_its_own_gate_notices_them_too() {
    let Some(world) = World::new() else { return };
    lead_all_to_the_server(&world);
    let _site = Site::with(&world, &["--gate", INTERFACE, "--user", "nobody"]);
    world.await_status("a gate", |status| status["interfaces"][0]["state"] == "attached");
    for _ in 0..2 {
        LATER.iter().for_each(|address| await_judged(&world, address, false));
        world.at_server("ip address add 10.0.0.9/32 dev lo && ip address add fd00::9/128 dev vs nodad");
        LATER.iter().for_each(|address| await_judged(&world, address, true));
        world.at_server("ip address del 10.0.0.9/32 dev lo && ip address del fd00::9/128 dev vs");
    }
}

#[test]
fn addresses_may_be_named() {
    let Some(world) = World::new() else { return };
    lead_all_to_the_server(&world);
    let _gate =
        world.gate(&["--port", "8080", "--address", "10.0.0.9,fd00::8/125", "--address", "192.0.2.0/24"]);
    for address in ["10.0.0.9:8080", "[fd00::9]:8080", "192.0.2.7:8080"] {
        await_judged(&world, address, true);
    }
    for address in ["10.0.0.1:8080", "[fd00::1]:8080"] {
        await_judged(&world, address, false);
    }
    for (value, words) in [
        ("10.0.0.1/24", "'10.0.0.1/24' is no prefix; '10.0.0.0/24' is the one around it"),
        ("10.0.0.300", "'10.0.0.300' is no IP address"),
        ("fd00::/129", "the length of a prefix is 0 to 128"),
        ("eth0", "'eth0' is no IP address"),
        ("", "is no IP address"),
    ] {
        let refused = process::finish(world.command(process::binary()).args([
            "gate",
            "--interface",
            INTERFACE,
            "--address",
            value,
        ]));
        assert_eq!(refused.status.code(), Some(2), "{value}: {refused:?}");
        assert!(refused.stderr.contains(words), "{value}: {}", refused.stderr);
    }
}

/// Transparent proxies have such a route for packets they have marked.
#[test]
fn a_local_route_to_everything_names_no_address() {
    let Some(world) = World::new() else { return };
    lead_all_to_the_server(&world);
    world.at_server("ip route add local 0.0.0.0/0 dev lo table 100");
    let gate = world.gate(&["--port", "8080"]);
    gate.await_line("a local route leads all addresses to this host");
    await_judged(&world, "10.0.0.1:8080", true);
    await_judged(&world, "192.0.2.7:8080", false);
}
