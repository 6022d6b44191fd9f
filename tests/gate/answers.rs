//! What a SYN that was shed is answered: every field of it, and that the kernel takes the cookie.
//!
//! It must never trust a checksum it has not added up.

use staunch_gate::program::{Attach, Program, Reject};
use staunch_netio::clock::{now_ns, pause};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::attached::comes_off;
use crate::cable::{Cable, End};
use crate::packet::packet;
use crate::trial::{self, HOUR_NS, ONE_PLACE, PORTS, REPLY, permitted};

const SERVERS: [&str; 2] = ["10.0.0.1:80", "[fd00::1]:443"];
/// How often it is looked for what the kernel does in its own time.
const LOOKS: u32 = 500;

/// Where the header of IP begins, and where the segment does.
struct Places {
    internet: usize,
    segment: usize,
}

fn places(words: &str) -> Places {
    let tags = words.split(' ').filter(|word| ["vlan", "qinq"].contains(word)).count();
    let internet = 14 + 4 * tags;
    Places { internet, segment: internet + if words.contains("ipv6") { 40 } else { 20 } }
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    })
}

/// Checks what every answer has, and gives its segment.
fn check(words: &str, sent: &[u8], reply: &[u8]) -> Vec<u8> {
    let Places { internet, segment } = places(words);
    assert_eq!((&reply[..6], &reply[6..12]), (&sent[6..12], &sent[..6]), "{words}: hardware addresses");
    assert_eq!(reply[12..internet], sent[12..internet], "{words}: tags and type");
    let (addresses, length) = if words.contains("ipv6") {
        assert_eq!(reply[internet..internet + 4], [0x60, 0, 0, 0]);
        assert_eq!(reply[internet + 6..internet + 8], [6, 64]);
        (internet + 8, usize::from(u16::from_be_bytes([reply[internet + 4], reply[internet + 5]])))
    } else {
        assert_eq!(sum(&reply[internet..segment]), 0xffff, "{words}: checksum of the header");
        assert_eq!((reply[internet], reply[internet + 9]), (0x45, 6));
        let total = u16::from_be_bytes([reply[internet + 2], reply[internet + 3]]);
        (internet + 12, usize::from(total) - 20)
    };
    let address = (segment - addresses) / 2;
    let (from, to) = reply[addresses..segment].split_at(address);
    assert_eq!((to, from), sent[addresses..segment].split_at(address), "{words}: addresses");
    let answer = &reply[segment..segment + length];
    let pseudo = [&reply[addresses..segment], &[0, 6], &(length as u16).to_be_bytes(), answer].concat();
    assert_eq!(sum(&pseudo), 0xffff, "{words}: checksum of the segment");
    assert_eq!((&answer[..2], &answer[2..4]), (&sent[segment + 2..segment + 4], &sent[segment..segment + 2]));
    let sequence = u32::from_be_bytes(sent[segment + 4..segment + 8].try_into().unwrap());
    assert_eq!(answer[8..12], (sequence + 1).to_be_bytes(), "{words}: what is acknowledged");
    assert_eq!(usize::from(answer[12] >> 4) * 4, length, "{words}: length");
    answer.to_vec()
}

const SYNS: [&str; 5] = [
    "ipv4 tcp mss",
    "ipv6 tcp mss",
    "vlan ipv4 tcp mss nop",
    "qinq vlan ipv6 tcp mss nop nop",
    "ipv4 tcp mss pad=60",
];

#[test]
fn a_reset_names_the_syn() {
    let attach = Attach { ports: &PORTS, reject: Reject::Reset, ..Attach::default() };
    let Some(mut trial) = trial::load(&attach, &ONE_PLACE) else { return };
    trial::give(&mut trial, &trial::shed());
    for words in SYNS {
        let sent = packet(words);
        let judged = trial.judge(&sent).unwrap();
        assert_eq!(judged.action, REPLY, "{words}");
        let answer = check(words, &sent, &judged.frame);
        assert_eq!((answer.len(), answer[13]), (20, 0x14), "{words}");
        assert_eq!((&answer[4..8], &answer[14..16]), (&[0; 4][..], &[0; 2][..]), "{words}");
    }
    assert_eq!(trial.counters().unwrap().answered, SYNS.len() as u64);
}

#[test]
fn a_cookie_is_a_syn_with_ack() {
    let Some(cable) = Cable::lay() else { return };
    cable.run(End::Server, "sysctl -q net.ipv4.tcp_syncookies=2");
    cable.at(End::Server, || {
        let attach = Attach { ports: &PORTS, reject: Reject::Cookie, ..Attach::default() };
        let Some(mut trial) = trial::load(&attach, &ONE_PLACE) else { return };
        trial::give(&mut trial, &trial::shed());
        for words in SYNS {
            let sent = packet(words);
            let judged = trial.judge(&sent).unwrap();
            assert_eq!(judged.action, REPLY, "{words}");
            let answer = check(words, &sent, &judged.frame);
            assert_eq!((answer.len(), answer[13]), (24, 0x12), "{words}");
            let mss: u16 = if words.contains("ipv6") { 1440 } else { 1460 };
            assert_eq!(answer[20..], [&[2, 4][..], &mss.to_be_bytes()].concat(), "{words}");
            assert_ne!(answer[4..8], [0; 4], "{words}: the cookie");
        }
        let without = trial.judge(&packet("ipv4 tcp nop")).unwrap();
        assert_eq!(without.action, trial::DROP, "without a segment size there is no cookie");
    });
}

#[test]
fn cookies_need_a_kernel_that_expects_them() {
    let Some(cable) = Cable::lay() else { return };
    cable.run(End::Server, "sysctl -q net.ipv4.tcp_syncookies=1");
    cable.at(End::Server, || {
        let attach = Attach { interface: "vs", ports: &PORTS, reject: Reject::Cookie, ..Attach::default() };
        let refused = Program::attach(&attach).err().expect("a refusal");
        let words = "net.ipv4.tcp_syncookies is 2, and it is 1";
        assert!(refused.to_string().contains(words), "{refused}");
    });
}

/// With a cookie, a client gets in though nobody has a credit; with a reset it knows at once.
#[test]
fn a_client_meets_the_answer() {
    let Some(cable) = Cable::lay() else { return };
    cable.run(End::Server, "sysctl -q net.ipv4.tcp_syncookies=2");
    // A veth takes what a program sends back only if it has a program too.
    let taker = cable.at(End::Client, || {
        permitted(Program::attach(&Attach { interface: "vc", ports: &[9], ..Attach::default() }))
    });
    if taker.is_none() {
        return;
    }
    for reject in [Reject::Reset, Reject::Cookie] {
        let gate = cable.at(End::Server, move || {
            let attach = Attach { interface: "vs", ports: &PORTS, reject, ..Attach::default() };
            let gate = permitted(Program::attach(&attach))?;
            Some((gate, SERVERS.map(|at| TcpListener::bind(at).unwrap())))
        });
        let Some((mut gate, listeners)) = gate else { return };
        let connect = || {
            cable.at(End::Client, || {
                SERVERS.map(|at| TcpStream::connect_timeout(&at.parse().unwrap(), Duration::from_secs(10)))
            })
        };
        // The kernel looks at cookies for two minutes after it last gave one itself: to a SYN that was let
        // in.
        for (stream, listener) in connect().into_iter().zip(&listeners) {
            stream.expect("no orders were given yet");
            listener.accept().unwrap();
            listener.set_nonblocking(true).unwrap();
        }
        gate.give(&trial::shed(), now_ns() + HOUR_NS).unwrap();
        let reached = connect();
        for (stream, listener) in reached.into_iter().zip(&listeners) {
            if reject == Reject::Cookie {
                let client = stream.unwrap().local_addr().unwrap();
                let accepted = (0..LOOKS).find_map(|_| {
                    pause(Duration::from_millis(10));
                    listener.accept().ok()
                });
                assert_eq!(accepted.map(|(_, peer)| peer), Some(client));
            } else {
                assert_eq!(stream.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
            }
        }
        assert!(gate.counters().unwrap().answered >= 2);
        drop(gate);
        assert!(comes_off(&cable, "vs"));
    }
}
