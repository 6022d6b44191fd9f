//! What travels beside a datagram through sendmsg(2) and recvmsg(2): ECN, the local address, the length of
//! segments.
//!
//! It owns the layout of control messages (cmsg(3)). It must never read past what the kernel has written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Ecn;

const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// A control message: what travels beside a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// The two bits of ECN; read only (see [`Controls::push_ecn`]).
    Ecn(Option<Ecn>),
    /// The address of this machine.
    Local(IpAddr),
    /// Length of each of several datagrams.
    Segment(u16),
}

/// Room for all that one datagram has, aligned as the kernel wants it.
#[repr(C, align(8))]
pub(super) struct Controls {
    bytes: [u8; Self::BYTES],
    length: usize,
}

/// Length of a control message's header, and its alignment.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
const ALIGN_BYTES: usize = size_of::<usize>();

impl Controls {
    /// An address of IPv6 with its header and padding (40), the traffic class (24) and a length (24), each
    /// for both families where a socket serves both.
    pub(super) const BYTES: usize = 160;

    pub(super) const fn new() -> Self {
        Self { bytes: [0; Self::BYTES], length: 0 }
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.bytes.as_mut_ptr().cast()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The kernel has written so many bytes.
    pub(super) fn set_length(&mut self, length: usize) {
        self.length = length.min(Self::BYTES);
    }

    /// Adds a control message for sending.
    pub(super) fn push(&mut self, control: Control) {
        match control {
            Control::Ecn(ecn) => self.push_ecn(ecn, false),
            // The index of the interface (in front) and the address found in the header stay zero.
            Control::Local(IpAddr::V4(address)) => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&address.octets());
                self.append(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Control::Local(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
                Some(four) => self.push(Control::Local(IpAddr::V4(four))),
                None => {
                    let mut info = [0; 20];
                    info[..16].copy_from_slice(&address.octets());
                    self.append(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
                }
            },
            Control::Segment(length) => self.append(libc::SOL_UDP, UDP_SEGMENT, &length.to_ne_bytes()),
        }
    }

    /// The bits of ECN for a peer of one family or the other.
    pub(super) fn push_ecn(&mut self, ecn: Option<Ecn>, six: bool) {
        let bits = i32::from(ecn.map_or(0, Ecn::bits)).to_ne_bytes();
        if six {
            self.append(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &bits);
        } else {
            self.append(libc::IPPROTO_IP, libc::IP_TOS, &bits);
        }
    }

    /// What was written.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn append(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let length = HEADER_BYTES + data.len();
        let room = &mut self.bytes[self.length..self.length + length.next_multiple_of(ALIGN_BYTES)];
        let size = size_of::<usize>();
        room[..size].copy_from_slice(&length.to_ne_bytes());
        room[size..size + 4].copy_from_slice(&level.to_ne_bytes());
        room[size + 4..size + 8].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER_BYTES..length].copy_from_slice(data);
        self.length += room.len();
    }
}

const _: () = assert!(HEADER_BYTES == size_of::<usize>() + 8);

/// Those in these bytes that are known here.
pub(super) fn controls_in(bytes: &[u8]) -> impl Iterator<Item = Control> + use<'_> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let (level, kind, data, after) = split_first(rest)?;
            rest = after;
            if let Some(control) = read(level, kind, data) {
                return Some(control);
            }
        }
    })
}

/// Level, type and data of the first message, and what follows it.
fn split_first(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let (header, _) = bytes.split_at_checked(HEADER_BYTES)?;
    let size = size_of::<usize>();
    let length = usize::from_ne_bytes(header[..size].try_into().ok()?);
    let level = i32::from_ne_bytes(header[size..size + 4].try_into().ok()?);
    let kind = i32::from_ne_bytes(header[size + 4..].try_into().ok()?);
    let data = bytes.get(HEADER_BYTES..length)?;
    let next = length.next_multiple_of(ALIGN_BYTES).min(bytes.len());
    Some((level, kind, data, &bytes[next..]))
}

fn read(level: i32, kind: i32, data: &[u8]) -> Option<Control> {
    match (level, kind) {
        // ECN is one byte from IPv4, four from IPv6.
        (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            let bits = match *data {
                [bits] => bits,
                _ => i32::from_ne_bytes(data.first_chunk().copied()?) as u8,
            };
            Some(Control::Ecn(Ecn::from_bits(bits)))
        }
        // The address in the datagram's header stands behind the interface and the local one.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let address: [u8; 4] = data.get(8..12)?.try_into().ok()?;
            Some(Control::Local(Ipv4Addr::from(address).into()))
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let address: [u8; 16] = data.get(..16)?.try_into().ok()?;
            Some(Control::Local(Ipv6Addr::from(address).into()))
        }
        (libc::SOL_UDP, UDP_GRO) => {
            let length = i32::from_ne_bytes(data.first_chunk().copied()?);
            u16::try_from(length).ok().map(Control::Segment)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_the_kernels_layout_is_read_back() {
        let mut controls = Controls::new();
        let six: Ipv6Addr = "2001:db8::7".parse().unwrap();
        controls.push(Control::Local(six.into()));
        controls.push_ecn(Some(Ecn::Ce), true);
        controls.append(99, 99, b"unknown");
        controls.append(libc::SOL_UDP, UDP_GRO, &1200_i32.to_ne_bytes());
        let read: Vec<Control> = controls_in(controls.bytes()).collect();
        assert_eq!(read, [Control::Local(six.into()), Control::Ecn(Some(Ecn::Ce)), Control::Segment(1200)]);
        assert!(controls.length().is_multiple_of(ALIGN_BYTES));
        // A length beyond the end, and one below that of a header, end the list.
        for length in [9999_usize, 3, 0] {
            controls.bytes[..8].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(controls_in(controls.bytes()).count(), 0);
        }
    }

    #[test]
    fn an_address_of_ipv4_goes_by_ipv4() {
        let mut controls = Controls::new();
        let four = Ipv4Addr::new(192, 0, 2, 9);
        controls.push(Control::Local(four.to_ipv6_mapped().into()));
        let (level, kind, data, _) = split_first(&controls.bytes[..controls.length]).unwrap();
        assert_eq!((level, kind, &data[4..8]), (libc::IPPROTO_IP, libc::IP_PKTINFO, &four.octets()[..]));
    }
}
