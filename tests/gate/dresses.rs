//! A SYN in every dress, as real frames on a veth: what Linux takes for a SYN is shed, however it is wrapped.
//!
//! It must never ask the gate what a frame is: the kernel's half-open connections tell.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::time::Duration;

use staunch_gate::observation::Orders;
use staunch_gate::program::Program;
use staunch_netio::clock::{now_ns, pause};
use staunch_netio::host::packet::PacketSender;
use staunch_netio::host::route;

use crate::cable::{Cable, End};
use crate::learning::gate;
use crate::trial::{self, HOUR_NS};

/// Addresses that nobody answers for.
const CLIENT: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 0, 0, 77), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x77));
const SERVER: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const PORT: u16 = 80;
/// More than the first piece of a frame on a veth holds, which is of a page.
const LARGE: usize = 6_000;
/// How long it is looked for what the kernel does in its own time.
const LOOKS: u32 = 300;
const LOOK: Duration = Duration::from_millis(10);

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// Frames that bring a SYN from a port.
type Dress = fn(u16) -> Vec<Vec<u8>>;

const DRESSES: [(&str, Dress); 18] = [
    ("plain IPv4", |from| vec![tagged(0, ipv4(&segment(from, 0x02, 0, false), 0, &[]))]),
    ("options of IPv4", |from| vec![tagged(0, ipv4(&segment(from, 0x02, 0, false), 0, &[1; 8]))]),
    ("ECN", |from| vec![tagged(0, ipv4(&segment(from, 0xc2, 0, false), 0, &[]))]),
    ("with data", |from| vec![tagged(0, ipv4(&segment(from, 0x02, 100, false), 0, &[]))]),
    ("one tag", |from| vec![tagged(1, ipv4(&segment(from, 0x02, 0, false), 0, &[]))]),
    ("three tags", |from| vec![tagged(3, ipv4(&segment(from, 0x02, 0, false), 0, &[]))]),
    ("parts of IPv4", |from| {
        let whole = segment(from, 0x02, 0, false);
        vec![tagged(0, ipv4(&whole[..8], 0x2000, &[])), tagged(0, ipv4(&whole[8..], 1, &[]))]
    }),
    ("plain IPv6", |from| vec![tagged(0, ipv6(TCP, &segment(from, 0x02, 0, true)))]),
    ("a header of options", |from| vec![behind(1, from)]),
    ("five of them", |from| vec![behind(5, from)]),
    ("eight of them", |from| vec![behind(8, from)]),
    ("nine of them", |from| vec![behind(9, from)]),
    ("a part that is whole", |from| {
        vec![tagged(0, ipv6(FRAGMENT, &part(0, from, &segment(from, 0x02, 0, true))))]
    }),
    ("parts of IPv6", |from| {
        // Linux takes no first part without the whole header (since 5.12).
        let whole = segment(from, 0x02, 16, true);
        let parts = [part(1, from, &whole[..24]), part(24, from, &whole[24..])];
        parts.map(|part| tagged(0, ipv6(FRAGMENT, &part))).to_vec()
    }),
    ("no length", |from| {
        let mut packet =
            ipv6(HOP_BY_HOP, &[&[TCP, 0, 1, 4, 0, 0, 0, 0], &segment(from, 0x02, 0, true)[..]].concat());
        packet[4..6].fill(0);
        vec![tagged(0, packet)]
    }),
    ("pieces of IPv4", |from| vec![tagged(0, ipv4(&segment(from, 0x02, LARGE, false), 0, &[]))]),
    ("pieces of IPv6", |from| vec![tagged(0, ipv6(TCP, &segment(from, 0x02, LARGE, true)))]),
    ("pieces, options in the first", |from| {
        vec![tagged(0, ipv6(DESTINATION, &[long_options(TCP), segment(from, 0x02, LARGE, true)].concat()))]
    }),
];

fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let once = (sum >> 16) + (sum & 0xffff);
    !((once >> 16) + (once & 0xffff)) as u16
}

/// TCP with the option of the segment size and so many bytes of data.
fn segment(from: u16, flags: u8, data: usize, is_ipv6: bool) -> Vec<u8> {
    let mut segment = [&from.to_be_bytes()[..], &PORT.to_be_bytes(), &[0, 0, 0, 7, 0, 0, 0, 0]].concat();
    segment.extend([6 << 4, flags, 255, 255, 0, 0, 0, 0, 2, 4, 5, 0xa0]);
    segment.resize(24 + data, b'x');
    let mut pseudo = match is_ipv6 {
        true => [CLIENT.1.octets(), SERVER.1.octets()].concat(),
        false => [CLIENT.0.octets(), SERVER.0.octets()].concat(),
    };
    pseudo.extend((segment.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, TCP]);
    let sum = sum(&[pseudo, segment.clone()].concat());
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

fn ipv4(payload: &[u8], place: u16, options: &[u8]) -> Vec<u8> {
    let bytes = 20 + options.len();
    let mut head = vec![0x40 | (bytes / 4) as u8, 0];
    head.extend(((bytes + payload.len()) as u16).to_be_bytes());
    head.extend([0x12, 0x34]);
    head.extend(place.to_be_bytes());
    head.extend([64, TCP, 0, 0]);
    head.extend(CLIENT.0.octets());
    head.extend(SERVER.0.octets());
    head.extend(options);
    let sum = sum(&head);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    [head, payload.to_vec()].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = vec![0x60, 0, 0, 0];
    head.extend((payload.len() as u16).to_be_bytes());
    head.extend([next, 64]);
    head.extend(CLIENT.1.octets());
    head.extend(SERVER.1.octets());
    [head, payload.to_vec()].concat()
}

/// Behind so many headers of options that say nothing.
fn behind(count: usize, from: u16) -> Vec<u8> {
    let mut payload = segment(from, 0x02, 0, true);
    for index in 0..count {
        let next = if index == 0 { TCP } else { DESTINATION };
        payload = [&[next, 0, 1, 4, 0, 0, 0, 0], &payload[..]].concat();
    }
    tagged(0, ipv6(DESTINATION, &payload))
}

/// A header of options as long as one can be, all unknown and to be passed over.
fn long_options(next: u8) -> Vec<u8> {
    let mut header = vec![next, 255];
    for length in [255, 255, 255, 255, 255, 255, 255, 245] {
        header.extend([0x1e, length]);
        header.resize(header.len() + usize::from(length), 0);
    }
    assert_eq!(header.len(), 2048);
    header
}

fn part(place: u16, number: u16, payload: &[u8]) -> Vec<u8> {
    let place = place.to_be_bytes();
    let number = number.to_be_bytes();
    [&[TCP, 0, place[0], place[1], 0, 0, number[0], number[1]], payload].concat()
}

/// A frame with so many tags of no network. Where it goes to is written later.
fn tagged(tags: usize, packet: Vec<u8>) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0, 0].repeat(tags));
    frame.extend(if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] });
    [frame, packet].concat()
}

/// Whether there is a half-open connection from a port at the server's end.
fn is_half_open(cable: &Cable, from: u16) -> bool {
    let tables = cable.at(End::Server, || {
        ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap())
    });
    let peer = format!(":{from:04X} 03 ");
    tables.iter().any(|table| table.contains(&peer))
}

fn send(cable: &Cable, frames: Vec<Vec<u8>>) {
    let to = cable.at(End::Server, || route::link("vs").unwrap().address.expect("an address"));
    cable.at(End::Client, move || {
        let sender = PacketSender::by_link(route::link("vc").unwrap().index).unwrap();
        for mut frame in frames {
            frame[..6].copy_from_slice(&to);
            assert_eq!(sender.send(&frame, frame.len()).unwrap(), 1);
        }
    });
}

fn shed(gate: &Program) -> u64 {
    let counted = gate.counters().unwrap();
    counted.shed() + counted.malformed
}

#[test]
fn what_linux_takes_for_a_syn_is_shed_however_it_is_wrapped() {
    let Some(cable) = Cable::lay() else { return };
    cable.run(End::Server, "ip link set vs mtu 9000");
    cable.run(End::Client, "ip link set vc mtu 9000");
    let link = cable.at(End::Client, || route::link("vc").unwrap().address.expect("an address"));
    let link = link.map(|byte| format!("{byte:02x}")).join(":");
    for address in [CLIENT.0.to_string(), CLIENT.1.to_string()] {
        cable.run(End::Server, &format!("ip neighbour replace {address} lladdr {link} dev vs nud permanent"));
    }
    let Some(mut gate) = gate(&cable, Default::default()) else { return };
    let _listener = cable.at(End::Server, || TcpListener::bind("[::]:80").expect("a listener"));
    for (round, is_shed) in [(0, false), (1, true)] {
        let orders = if is_shed { trial::shed() } else { Orders::default() };
        gate.give(&orders, now_ns() + HOUR_NS).unwrap();
        for ((name, dress), number) in DRESSES.iter().zip(1..) {
            let (from, before) = (20_000 + 100 * round + number, shed(&gate));
            send(&cable, dress(from));
            let came = || if is_shed { shed(&gate) > before } else { is_half_open(&cable, from) };
            let has_come = (0..LOOKS).any(|_| {
                let came = came();
                if !came {
                    pause(LOOK);
                }
                came
            });
            assert!(
                has_come,
                "{name} is {} ({:?})",
                if is_shed { "not shed" } else { "none" },
                gate.counters()
            );
            assert!(!is_shed || !is_half_open(&cable, from), "{name} came in");
        }
    }
}
