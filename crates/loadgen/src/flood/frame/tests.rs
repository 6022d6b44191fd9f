//! Frames are read back by a parser that knows nothing of how they were made.
//!
//! It must never use the sums of a template.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;

/// What one reads in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::flood) struct Syn {
    pub(in crate::flood) from: SocketAddr,
    pub(in crate::flood) to: SocketAddr,
    pub(in crate::flood) sequence: u32,
}

/// Reads a frame that must be a correct SYN from its first byte to its last.
pub(in crate::flood) fn read(frame: &[u8]) -> Result<Syn, String> {
    let kind = u16::from_be_bytes([frame[12], frame[13]]);
    let packet = &frame[ETHERNET_BYTES..];
    let (from, to, segment): (IpAddr, IpAddr, &[u8]) = match kind {
        0x0800 => read_ipv4(packet)?,
        0x86dd => read_ipv6(packet)?,
        other => return Err(format!("kind {other:x}")),
    };
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let length = (segment.len() as u32).to_be_bytes();
    let covered = [&octets(from)[..], &octets(to), &length, &[0, 0, 0, 6], segment].concat();
    expect("checksum of the segment", ones_complement(&covered), 0xffff)?;
    expect("offset and flags", u16::from_be_bytes([segment[12], segment[13]]), 0x8002)?;
    expect("acknowledgement", &segment[8..12], &[0; 4][..])?;
    let segment_size = if from.is_ipv6() { [5, 160] } else { [5, 180] };
    expect("options", &segment[20..], &[&[2, 4][..], &segment_size, &[1, 1, 4, 2, 1, 3, 3, 7]].concat()[..])?;
    let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
    Ok(Syn { from: (from, port(0)).into(), to: (to, port(2)).into(), sequence })
}

fn read_ipv4(packet: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), String> {
    expect("version and length of the head", packet[0], 0x45)?;
    expect("length", usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len())?;
    expect("protocol", packet[9], 6)?;
    expect("checksum of the head", ones_complement(&packet[..20]), 0xffff)?;
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    Ok((address(12).into(), address(16).into(), &packet[20..]))
}

fn read_ipv6(packet: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), String> {
    expect("version", packet[0] >> 4, 6)?;
    expect("length", usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len() - 40)?;
    expect("protocol", packet[6], 6)?;
    let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap());
    Ok((address(8).into(), address(24).into(), &packet[40..]))
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should: T) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is:?} instead of {should:?}")) }
}

/// The sum of RFC 1071, in network order.
fn ones_complement(bytes: &[u8]) -> u16 {
    let mut sum: u64 = bytes.chunks(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn template(to: &str, sources: &str, seed: u64) -> Template {
    let ends = Ends { from: [2, 0, 0, 0, 0, 2], to: [2, 0, 0, 0, 0, 1] };
    Template::new(ends, to.parse().unwrap(), sources.parse().unwrap(), seed)
}

fn frame(template: &Template, number: u64) -> Vec<u8> {
    let mut frame = vec![0xee; template.bytes.len()];
    template.write(number, &mut frame);
    frame
}

/// Every kind of network, in both families.
pub(in crate::flood) const CASES: &[(&str, &str)] = &[
    ("10.0.0.1:80", "10.9.0.0/16"),
    ("10.0.0.1:65535", "10.0.0.0/8"),
    ("192.168.1.1:443", "192.168.7.4/30"),
    ("192.168.1.1:443", "192.168.7.4/31"),
    ("127.0.0.1:8080", "127.9.0.1/32"),
    ("[fd00::1]:80", "fd09::/64"),
    ("[fd00::1]:80", "fd09:0:0:1::/96"),
    ("[fd00::1]:80", "fd00::/8"),
    ("[::1]:8080", "::1/128"),
];

proptest! {
    #[test]
    fn every_frame_is_a_syn_from_the_network(seed in any::<u64>(), number in 0..u64::MAX - 1) {
        for (to, sources) in CASES {
            let template = template(to, sources, seed);
            let syn = read(&frame(&template, number)).map_err(|why| format!("{to} {sources}: {why}"));
            let syn = syn.unwrap();
            prop_assert_eq!(syn.to, to.parse().unwrap());
            prop_assert!(sources.parse::<Prefix>().unwrap().contains(syn.from.ip()));
            prop_assert!(syn.from.port() >= 1024);
        }
    }
}

#[test]
fn ends_stand_in_the_frame() {
    let bytes = frame(&template("10.0.0.1:80", "10.9.0.0/16", 0), 0);
    assert_eq!(bytes[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    assert_eq!(bytes.len(), 66);
}

#[test]
fn a_broken_frame_is_noticed() {
    let good = frame(&template("10.0.0.1:80", "10.9.0.0/16", 3), 5);
    for at in 12..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(read(&bad).is_err(), "byte {at}");
    }
}

#[test]
fn sources_are_spread_evenly() {
    let template = template("10.0.0.1:80", "10.9.0.0/16", 42);
    let count: usize = 100_000;
    let syns: Vec<Syn> = (0..count as u64).map(|number| read(&frame(&template, number)).unwrap()).collect();
    let hosts: HashSet<IpAddr> = syns.iter().map(|syn| syn.from.ip()).collect();
    // Drawn with replacement from n hosts, n (1 - e^(-count/n)) of them are met: 51 286 of 65 534, give or
    // take 80.
    assert!((50_800..51_800).contains(&hosts.len()), "{} hosts", hosts.len());
    let pairs: HashSet<SocketAddr> = syns.iter().map(|syn| syn.from).collect();
    assert!(pairs.len() > count - 10, "{} pairs of host and port", pairs.len());
    let sequences: HashSet<u32> = syns.iter().map(|syn| syn.sequence).collect();
    assert!(sequences.len() > count - 10, "{} sequence numbers", sequences.len());
}

#[test]
fn a_small_network_is_used_to_its_last_host() {
    for (sources, expected) in [("192.168.7.4/30", 2), ("192.168.7.4/31", 2), ("192.168.7.0/29", 6)] {
        let template = template("192.168.1.1:443", sources, 1);
        let hosts: HashSet<IpAddr> =
            (0..1000).map(|number| read(&frame(&template, number)).unwrap().from.ip()).collect();
        assert_eq!(hosts.len(), expected, "{sources}");
        assert!(sources != "192.168.7.0/29" || !hosts.contains(&Ipv4Addr::new(192, 168, 7, 7).into()));
    }
}

#[test]
fn the_seed_decides() {
    let one = template("10.0.0.1:80", "10.9.0.0/16", 1);
    assert_eq!(frame(&one, 7), frame(&template("10.0.0.1:80", "10.9.0.0/16", 1), 7));
    assert_ne!(frame(&one, 7), frame(&template("10.0.0.1:80", "10.9.0.0/16", 2), 7));
    assert_ne!(frame(&one, 7), frame(&one, 8));
}
