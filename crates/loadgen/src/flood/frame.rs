//! SYN segments with forged sources, byte by byte: Ethernet, IP, and TCP with the options Linux sends.
//!
//! It owns what a frame looks like. Everything that is the same in all frames is made once; a frame of its
//! own is known by its number alone. `bpf/flood.bpf.c` writes the same frames, a test compares both. It must
//! never send.

use std::net::{IpAddr, SocketAddr};

use staunch_netio::host::route::HardwareAddress;

use super::source::Prefix;

/// Bytes of an Ethernet head.
pub(super) const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// With options.
const TCP_BYTES: usize = 32;
const TCP_PROTOCOL: u8 = 6;
/// RFC 9293, section 3.1: a head of eight words, SYN, a window of 64240, no checksum yet, nothing urgent.
const TCP_FROM_OFFSET: [u8; 8] = [((TCP_BYTES / 4) << 4) as u8, 0x02, 0xfa, 0xf0, 0, 0, 0, 0];
/// After the option of the segment size: SACK is permitted, the window is scaled by 7 (RFC 2018, 7323).
const TCP_OPTIONS: [u8; 8] = [1, 1, 4, 2, 1, 3, 3, 7];
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both ends of the cable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) from: HardwareAddress,
    pub(super) to: HardwareAddress,
}

/// What all frames share, and what they vary in. Sums are those of RFC 1071 over words as they stand in
/// memory.
#[derive(Debug, Clone)]
pub(super) struct Template {
    /// The frame with zeros where it varies.
    pub(super) bytes: Vec<u8>,
    pub(super) is_ipv6: bool,
    pub(super) seed: u64,
    /// IPv4: how many sources there are, and the first.
    pub(super) source_count: u32,
    pub(super) source_first: u32,
    /// IPv6: the low half of the network as it stands in memory, and which of its bits vary.
    pub(super) source_low: u64,
    pub(super) source_mask: u64,
    /// Of the IPv4 head.
    pub(super) internet_sum: u32,
    /// Of the segment and its pseudo head.
    pub(super) segment_sum: u32,
}

impl Template {
    /// Of frames to this address. Both addresses must be of one family.
    pub(super) fn new(ends: Ends, destination: SocketAddr, sources: Prefix, seed: u64) -> Self {
        let mut bytes = [ends.to, ends.from].concat();
        let (source_low, source_mask) = match (destination.ip(), sources.address()) {
            (IpAddr::V6(to), IpAddr::V6(network)) => {
                let low = network.octets()[8..].try_into().map_or(0, u64::from_ne_bytes);
                let mask = u64::MAX.checked_shr(u32::from(sources.bits().saturating_sub(64))).unwrap_or(0);
                // The upper half of the source is the same in all.
                push_ipv6(&mut bytes, &network.octets()[..8], &to.octets());
                (low, mask.to_be())
            }
            (IpAddr::V4(to), _) => {
                push_ipv4(&mut bytes, &to.octets());
                (0, 0)
            }
            (IpAddr::V6(_), IpAddr::V4(_)) => unreachable!("the guard has compared the families"),
        };
        let segment = bytes.len();
        push_segment(&mut bytes, destination);
        let (source_count, source_first) = ipv4_hosts(sources);
        let is_ipv6 = destination.is_ipv6();
        let addresses = segment - if is_ipv6 { 32 } else { 8 };
        let pseudo = [0, TCP_PROTOCOL, 0, TCP_BYTES as u8];
        Self {
            is_ipv6,
            seed,
            source_count,
            source_first,
            source_low,
            source_mask,
            internet_sum: sum(&bytes[ETHERNET_BYTES..segment]),
            segment_sum: sum(&bytes[addresses..]) + sum(&pseudo),
            bytes,
        }
    }

    /// Writes the frame of this number, counted from 0.
    ///
    /// # Panics
    /// When the place is not of the frame's length.
    pub(super) fn write(&self, number: u64, frame: &mut [u8]) {
        frame.copy_from_slice(&self.bytes);
        let place = mix(self.seed.wrapping_add((number + 1).wrapping_mul(GOLDEN)));
        let chance = mix(place);
        if self.is_ipv6 {
            let source = (self.source_low | place & self.source_mask).to_ne_bytes();
            frame[30..38].copy_from_slice(&source);
            self.write_segment(&mut frame[ETHERNET_BYTES + IPV6_BYTES..], chance, sum(&source));
        } else {
            let host = (((place >> 32) * u64::from(self.source_count)) >> 32) as u32;
            let source = self.source_first.wrapping_add(host).to_be_bytes();
            frame[26..30].copy_from_slice(&source);
            frame[24..26].copy_from_slice(&checksum(self.internet_sum + sum(&source)));
            self.write_segment(&mut frame[ETHERNET_BYTES + IPV4_BYTES..], chance, sum(&source));
        }
    }

    fn write_segment(&self, segment: &mut [u8], chance: u64, source_sum: u32) {
        let port = (1024 + (((chance & 0xffff) * 64512) >> 16) as u16).to_be_bytes();
        let sequence = ((chance >> 16) as u32).to_ne_bytes();
        segment[0..2].copy_from_slice(&port);
        segment[4..8].copy_from_slice(&sequence);
        let sum = self.segment_sum + source_sum + sum(&port) + sum(&sequence);
        segment[16..18].copy_from_slice(&checksum(sum));
    }
}

/// RFC 791. The kernel asks for no number of a datagram that is never cut (RFC 6864, section 4.1).
fn push_ipv4(bytes: &mut Vec<u8>, destination: &[u8; 4]) {
    const DO_NOT_FRAGMENT: u8 = 0x40;
    let length = (IPV4_BYTES + TCP_BYTES) as u8;
    bytes.extend([0x08, 0x00]);
    bytes.extend([0x45, 0, 0, length, 0, 0, DO_NOT_FRAGMENT, 0, 64, TCP_PROTOCOL, 0, 0]);
    bytes.extend([0; 4]);
    bytes.extend(destination);
}

/// RFC 8200.
fn push_ipv6(bytes: &mut Vec<u8>, source_high: &[u8], destination: &[u8; 16]) {
    bytes.extend([0x86, 0xdd]);
    bytes.extend([0x60, 0, 0, 0, 0, TCP_BYTES as u8, TCP_PROTOCOL, 64]);
    bytes.extend(source_high);
    bytes.extend([0; 8]);
    bytes.extend(destination);
}

fn push_segment(bytes: &mut Vec<u8>, destination: SocketAddr) {
    // What is left of 1500 bytes by heads without options.
    let segment_size: u16 = if destination.is_ipv6() { 1440 } else { 1460 };
    bytes.extend([0; 2]);
    bytes.extend(destination.port().to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend(TCP_FROM_OFFSET);
    bytes.extend([2, 4]);
    bytes.extend(segment_size.to_be_bytes());
    bytes.extend(TCP_OPTIONS);
}

/// How many hosts an IPv4 network has, without its first and last address where those have a meaning.
fn ipv4_hosts(sources: Prefix) -> (u32, u32) {
    let IpAddr::V4(network) = sources.address() else { return (1, 0) };
    match 32 - sources.bits() {
        few @ 0..=1 => (1 << few, network.to_bits()),
        bits => (u32::MAX >> (32 - bits) & !1, network.to_bits() + 1),
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// RFC 1071. All pieces have an even length.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_ne_bytes([word[0], word[1]]))).sum()
}

fn checksum(sum: u32) -> [u8; 2] {
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (!(folded as u16)).to_ne_bytes()
}

#[cfg(test)]
pub(super) mod tests;
