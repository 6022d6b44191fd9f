//! The tracker: who becomes known, and what is seen of connections.
//!
//! It must never learn from anything but a handshake the kernel completed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use staunch_gate::layout::{Counters, Flows};
use staunch_gate::observation::Orders;
use staunch_gate::program::{Attach, Program, Sizes};
use staunch_netio::clock::{now_ns, pause};
use staunch_netio::host::packet::PacketSender;
use staunch_netio::host::route;
use staunch_tests::house::waiting::HANG;

use crate::cable::{Cable, End};
use crate::packet::packet;
use crate::trial::{self, HOUR_NS, PORTS, permitted};

/// Long enough for a SYN that is let in, and shorter than its first repetition.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often it is looked for what the kernel does in its own time.
const LOOKS: u32 = 500;

/// The gate at the server's end, which sheds all but known clients.
pub(crate) fn gate(cable: &Cable, sizes: Sizes) -> Option<Program> {
    cable.at(End::Server, move || {
        let attach = Attach { interface: "vs", ports: &PORTS, tracker: true, ..Attach::default() };
        let gate = permitted(Program::attach_sized(&attach, &sizes))?;
        if !gate.is_tracking() {
            println!("skipped: {}", gate.notes().join("; "));
            return None;
        }
        assert!(gate.notes().is_empty(), "{:?}", gate.notes());
        Some(gate)
    })
}

fn only_known(gate: &mut Program) {
    gate.give(&trial::ration([1_000, 0, 0]), now_ns() + HOUR_NS).unwrap();
}

pub(crate) fn everybody(gate: &mut Program) {
    gate.give(&Default::default(), now_ns() + HOUR_NS).unwrap();
}

pub(crate) fn listen(cable: &Cable, at: &'static str) -> TcpListener {
    cable.at(End::Server, move || TcpListener::bind(at).expect("a listener"))
}

/// A connection from an address of the client's end that must come about, however long that takes on a busy
/// machine.
pub(crate) fn connect(cable: &Cable, from: &str, to: &'static str) -> TcpStream {
    connect_within(HANG, cable, from, to).expect("it is let in")
}

/// Whether the first SYN is let in.
fn is_let_in(cable: &Cable, from: &str, to: &'static str) -> bool {
    connect_within(PATIENCE, cable, from, to).is_ok()
}

fn connect_within(
    patience: Duration,
    cable: &Cable,
    from: &str,
    to: &'static str,
) -> std::io::Result<TcpStream> {
    let from: SocketAddr = from.parse().unwrap();
    cable.at(End::Client, move || {
        use rustix::net::{AddressFamily, SocketType, bind, socket};
        let family = if from.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let bound = socket(family, SocketType::STREAM, None)?;
        bind(&bound, &from)?;
        rustix::net::sockopt::set_socket_timeout(
            &bound,
            rustix::net::sockopt::Timeout::Send,
            Some(patience),
        )?;
        let to: SocketAddr = to.parse().unwrap();
        rustix::net::connect(&bound, &to)?;
        Ok(TcpStream::from(bound))
    })
}

/// Looks until it is so.
pub(crate) fn until(gate: &Program, what: &str, is_so: impl Fn(&Counters, &Flows) -> bool) -> Flows {
    for _ in 0..LOOKS {
        let counters = gate.counters().unwrap();
        let flows = counters.flows.clone().expect("a tracker");
        if is_so(&counters, &flows) {
            return flows;
        }
        pause(Duration::from_millis(10));
    }
    panic!("{what}: {:?}", gate.counters().unwrap());
}

#[test]
fn who_completed_a_handshake_is_known() {
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = gate(&cable, Sizes::default()) else { return };
    cable.run(End::Client, "ip addr add 10.0.0.3/24 dev vc && ip addr add fd00::3/64 dev vc nodad");
    let _ipv4 = listen(&cable, "10.0.0.1:80");
    let _both = listen(&cable, "[::]:443");
    for (client, stranger, to) in [
        ("10.0.0.2:0", "10.0.0.3:0", "10.0.0.1:80"),
        ("[fd00::2]:0", "10.0.0.3:0", "[fd00::1]:443"),
        // A listener of both kinds sees this client as an IPv6 one.
        ("10.0.0.4:0", "10.0.0.3:0", "10.0.0.1:443"),
    ] {
        cable.run(End::Client, "ip addr replace 10.0.0.4/24 dev vc");
        only_known(&mut gate);
        assert!(!is_let_in(&cable, client, to), "{client} is not known yet");
        everybody(&mut gate);
        connect(&cable, client, to);
        until(&gate, "established", |_, flows| flows.established > 0);
        only_known(&mut gate);
        connect(&cable, client, to);
        let to_ipv4 = if to.starts_with('[') { "10.0.0.1:80" } else { to };
        assert!(!is_let_in(&cable, stranger, to_ipv4), "{stranger} is not");
    }
}

/// ACKs nobody asked for, whole conversations without a handshake, and resets teach nothing.
#[test]
fn forged_acknowledgements_teach_nothing() {
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = gate(&cable, Sizes::default()) else { return };
    let _listener = listen(&cable, "10.0.0.1:80");
    everybody(&mut gate);
    let sent = cable.at(End::Client, || {
        let sender = PacketSender::by_link(route::link("vc").unwrap().index).unwrap();
        let mut sent = 0;
        for flags in ["A", "PA", "SA", "FA", "R", "RA", "S", "A"] {
            let mut frame = packet(&format!("broadcast ipv4=10.0.0.2 tcp flags={flags}"));
            frame[30..34].copy_from_slice(&[10, 0, 0, 1]);
            sent += sender.send(&frame, frame.len()).unwrap();
        }
        sent
    });
    assert_eq!(sent, 8);
    until(&gate, "all were seen", |counters, _| counters.small >= 7 && counters.syn(2) >= 1);
    assert_eq!(gate.counters().unwrap().flows.unwrap().established, 0);
    only_known(&mut gate);
    assert!(!is_let_in(&cable, "10.0.0.2:0", "10.0.0.1:80"));
    assert_eq!(gate.counters().unwrap().syn(0), 0, "nobody is known");
}

/// Far too many at once are told at once, if somebody wants to know.
#[test]
fn a_jump_rings() {
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = gate(&cable, Sizes::default()) else { return };
    let _listener = listen(&cable, "10.0.0.1:80");
    let come = || {
        cable.at(End::Client, || {
            let connect = |_| TcpStream::connect("10.0.0.1:80").expect("a connection");
            let mut clients = (0..48).map(connect).collect::<Vec<TcpStream>>();
            clients.iter_mut().for_each(|client| client.write_all(b"x").expect("a connection"));
            clients
        })
    };
    everybody(&mut gate);
    drop(come());
    assert!(!gate.wait(Duration::from_millis(20)).unwrap(), "nobody wants to know");
    gate.give(&Orders { alarm: 8, ..Orders::default() }, now_ns() + HOUR_NS).unwrap();
    drop(come());
    assert!(gate.wait(Duration::from_secs(10)).unwrap());
    assert!(!gate.wait(Duration::from_millis(20)).unwrap(), "it has been told");
}

/// When more wait than there is room for, the others are served all the same; they are only not followed.
#[test]
fn connections_beyond_the_map_are_not_followed() {
    let Some(cable) = Cable::lay() else { return };
    let sizes = Sizes { waiting: 8, ..Sizes::default() };
    let Some(mut gate) = gate(&cable, sizes) else { return };
    let listener = listen(&cable, "10.0.0.1:80");
    everybody(&mut gate);
    let clients: Vec<TcpStream> = (0..20).map(|_| connect(&cable, "10.0.0.2:0", "10.0.0.1:80")).collect();
    let flows = until(&gate, "all are seen", |_, flows| flows.established == 20);
    assert_eq!((flows.tracked, flows.silent()), (8, 8));
    for mut client in clients {
        client.write_all(b"x").unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
    }
    let flows = until(&gate, "all were read from", |_, flows| flows.reads >= 20);
    assert_eq!((flows.begun, flows.waiting()), (8, 0));
}

/// When more are known than there is room for, those learned longest ago are forgotten, and only those.
#[test]
fn the_oldest_clients_are_forgotten() {
    let Some(cable) = Cable::lay() else { return };
    let sizes = Sizes { known: 1, ..Sizes::default() };
    let Some(mut gate) = gate(&cable, sizes) else { return };
    let _listener = listen(&cable, "10.0.0.1:80");
    cable.run(End::Client, "for i in 3 4 5 6 7; do ip addr add 10.0.0.$i/24 dev vc; done");
    everybody(&mut gate);
    for (host, expected) in (2..=7).zip(1..) {
        connect(&cable, &format!("10.0.0.{host}:0"), "10.0.0.1:80");
        until(&gate, "it is learned", |_, flows| flows.established == expected);
    }
    only_known(&mut gate);
    let is_known = |host: u32| is_let_in(&cable, &format!("10.0.0.{host}:0"), "10.0.0.1:80");
    assert_eq!([2, 3, 4, 5, 6, 7].map(is_known), [false, false, true, true, true, true]);
}

/// By a tunnel everybody may have a /48: 65 536 clients, as far as the table knows. Those of others stay.
#[test]
fn a_whole_network_pushes_out_few_others() {
    const PLACES: u32 = 2_048;
    const OTHERS: u64 = 40;
    let Some(cable) = Cable::lay() else { return };
    let Some(mut gate) = gate(&cable, Sizes { known: PLACES, ..Sizes::default() }) else { return };
    cable.run(End::Server, "ip -6 route add fd48::/15 via fd00::2 dev vs");
    cable
        .run(End::Client, "sysctl -qw net.ipv6.ip_nonlocal_bind=1 && ip -6 route add local fd48::/15 dev lo");
    let listener =
        cable.at(End::Server, || staunch_netio::socket::listen("[fd00::1]:443".parse().unwrap(), 4096));
    let listener = TcpListener::from(listener.expect("a listener"));
    listener.set_nonblocking(false).expect("a socket");
    std::thread::spawn(move || listener.incoming().for_each(drop));
    everybody(&mut gate);
    let come = |clients: std::ops::Range<u64>, address: fn(u64) -> String| {
        let before = gate.counters().unwrap().flows.expect("a tracker").established;
        let count = clients.end - clients.start;
        cable.at(End::Client, move || {
            for client in clients {
                let client: SocketAddr = address(client).parse().unwrap();
                let stream = come_and_go(client).expect("it is let in");
                drop(stream);
            }
        });
        until(&gate, "they came", |_, flows| flows.established >= before + count);
    };
    let others = |client| format!("[fd49:0:{client:x}::1]:0");
    come(0..OTHERS, others);
    // As many as would fill the table one and a half times.
    come(0..u64::from(PLACES) * 6, |client| format!("[fd48:0:1:{client:x}::1]:0"));
    let before = gate.counters().unwrap().syn(0);
    come(0..OTHERS, others);
    let stayed = gate.counters().unwrap().syn(0) - before;
    // The network has 256 of 2048 places: one of eight is pushed out by chance, 35 stay.
    assert!(stayed >= 24, "{stayed} of {OTHERS} are known still");
}

/// A connection from an address, that is reset when it is dropped.
fn come_and_go(from: SocketAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
    let bound = socket(AddressFamily::INET6, SocketType::STREAM, None)?;
    bind(&bound, &from)?;
    sockopt::set_socket_linger(&bound, Some(Duration::ZERO))?;
    connect(&bound, &"[fd00::1]:443".parse::<SocketAddr>().unwrap())?;
    Ok(TcpStream::from(bound))
}
