//! What the kernel knows of interfaces, routes and neighbours, in the network namespace of the calling thread
//! (rtnetlink(7)).
//!
//! It must never change any of it.

mod message;
mod own;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::clock::pause;
use message::{Answer, Request};

pub use own::{OwnAddresses, OwnPrefix};

/// Address of an Ethernet interface.
pub type HardwareAddress = [u8; 6];

/// Bytes for one answer of the kernel: an interface with all its attributes is some 2 KiB.
const ANSWER_BYTES: usize = 32 * 1024;
/// How often and how long it is waited for a neighbour to answer: a second in all, as ARP does.
const RESOLVE_TRIES: u32 = 100;
const RESOLVE_PAUSE: Duration = Duration::from_millis(10);

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// What made it: `veth`, `bridge`, `vlan`, ... Hardware and `lo` have none.
    pub kind: Option<String>,
    /// Whether it is `lo`.
    pub is_loopback: bool,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether the kernel names a piece of hardware behind it (since Linux 5.14).
    pub has_parent: bool,
    /// Its address, if it is of Ethernet's length.
    pub address: Option<HardwareAddress>,
    /// Packets sent by it.
    pub sent: u64,
    /// Packets it should have sent and has dropped.
    pub dropped: u64,
}

/// What the kernel would do with a packet to some address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The interface it would leave by.
    pub index: u32,
    /// The address is one of this host's.
    pub is_local: bool,
    /// The address belongs to one host (not a broadcast or multicast address).
    pub is_unicast: bool,
    /// The packet would be given to a router.
    pub has_gateway: bool,
}

/// The interface of this name.
///
/// # Errors
/// ENODEV if there is none; those of socket(2).
pub fn link(name: &str) -> io::Result<Link> {
    let mut request = Request::new(libc::RTM_GETLINK, &[0; message::LINK_BYTES]);
    request.attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    let mut buffer = vec![0; ANSWER_BYTES];
    let answer = ask(&request, &mut buffer)?;
    let flags = answer.u32_at(8);
    let statistics = answer.attribute(libc::IFLA_STATS64).unwrap_or_default();
    Ok(Link {
        index: answer.u32_at(4),
        kind: answer.nested(libc::IFLA_LINKINFO, libc::IFLA_INFO_KIND).map(text),
        is_loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        is_up: flags & libc::IFF_UP as u32 != 0,
        has_parent: answer.attribute(message::IFLA_PARENT_DEV_NAME).is_some(),
        address: answer.attribute(libc::IFLA_ADDRESS).and_then(|bytes| bytes.try_into().ok()),
        sent: message::u64_at(statistics, 8),
        dropped: message::u64_at(statistics, 56),
    })
}

/// The name of an interface by its number.
///
/// # Errors
/// ENODEV if there is no such interface; those of socket(2).
pub fn name(index: u32) -> io::Result<String> {
    let mut head = [0; message::LINK_BYTES];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut buffer = vec![0; ANSWER_BYTES];
    let answer = ask(&Request::new(libc::RTM_GETLINK, &head), &mut buffer)?;
    Ok(answer.attribute(libc::IFLA_IFNAME).map(text).unwrap_or_default())
}

/// The number of the XDP program on an interface, if there is one.
///
/// # Errors
/// ENODEV if there is no such interface; those of socket(2).
pub fn xdp_program(index: u32) -> io::Result<Option<u32>> {
    let mut head = [0; message::LINK_BYTES];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut buffer = vec![0; ANSWER_BYTES];
    let answer = ask(&Request::new(libc::RTM_GETLINK, &head), &mut buffer)?;
    let id = answer.nested(message::IFLA_XDP, message::IFLA_XDP_PROG_ID);
    Ok(id.map(|bytes| message::u32_at(bytes, 0)).filter(|id| *id != 0))
}

/// The way to an address.
///
/// # Errors
/// ENETUNREACH, EHOSTUNREACH, EACCES or EINVAL when there is none or a route forbids it; those of socket(2).
pub fn route(to: IpAddr) -> io::Result<Route> {
    let bytes = octets(to);
    let mut head = [0; message::ROUTE_BYTES];
    head[0] = family(to);
    head[1] = bytes.len() as u8 * 8;
    let mut request = Request::new(libc::RTM_GETROUTE, &head);
    request.attribute(libc::RTA_DST, &bytes);
    let mut buffer = vec![0; ANSWER_BYTES];
    let answer = ask(&request, &mut buffer)?;
    let kind = answer.u8_at(7);
    Ok(Route {
        index: answer.attribute(libc::RTA_OIF).map_or(0, |bytes| message::u32_at(bytes, 0)),
        is_local: kind == libc::RTN_LOCAL,
        is_unicast: kind == libc::RTN_UNICAST || kind == libc::RTN_LOCAL,
        has_gateway: answer.attribute(libc::RTA_GATEWAY).is_some()
            || answer.attribute(message::RTA_VIA).is_some(),
    })
}

/// The hardware address of a neighbour, if the kernel knows it.
///
/// # Errors
/// Those of socket(2).
pub fn neighbour(address: IpAddr, index: u32) -> io::Result<Option<HardwareAddress>> {
    const KNOWN: u16 = libc::NUD_REACHABLE
        | libc::NUD_STALE
        | libc::NUD_DELAY
        | libc::NUD_PROBE
        | libc::NUD_PERMANENT
        | libc::NUD_NOARP;
    let mut head = [0; message::NEIGHBOUR_BYTES];
    head[0] = family(address);
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut request = Request::new(libc::RTM_GETNEIGH, &head);
    request.attribute(libc::NDA_DST, &octets(address));
    let mut buffer = vec![0; ANSWER_BYTES];
    match ask(&request, &mut buffer) {
        Ok(answer) if answer.u16_at(8) & KNOWN == 0 => Ok(None),
        Ok(answer) => Ok(answer.attribute(libc::NDA_LLADDR).and_then(|bytes| bytes.try_into().ok())),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`neighbour`], but the kernel is made to look for it (ARP, neighbour discovery) by an empty datagram to
/// this address and port. Waits for a second at most.
///
/// # Errors
/// Those of socket(2), connect(2) and send(2).
pub fn resolve_neighbour(to: SocketAddr, index: u32) -> io::Result<Option<HardwareAddress>> {
    if let Some(known) = neighbour(to.ip(), index)? {
        return Ok(Some(known));
    }
    let unspecified: IpAddr = if to.is_ipv6() {
        std::net::Ipv6Addr::UNSPECIFIED.into()
    } else {
        std::net::Ipv4Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((unspecified, 0))?;
    socket.connect(to)?;
    socket.send(&[])?;
    for _ in 0..RESOLVE_TRIES {
        if let Some(found) = neighbour(to.ip(), index)? {
            return Ok(Some(found));
        }
        pause(RESOLVE_PAUSE);
    }
    Ok(None)
}

fn ask<'b>(request: &Request, buffer: &'b mut [u8]) -> io::Result<Answer<'b>> {
    // NETLINK_ROUTE is protocol 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &request.bytes(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let (length, _) = recv(&socket, &mut *buffer, RecvFlags::empty())?;
    Answer::parse(&buffer[..length])
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn loopback_is_what_it_is() {
        let link = link("lo").unwrap();
        assert!(link.is_loopback && !link.has_parent);
        assert_eq!((link.kind, link.address), (None, Some([0; 6])));
    }

    #[test]
    fn the_kernel_counts_what_loopback_sends() {
        let before = link("lo").unwrap();
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        assert!(link("lo").unwrap().sent > before.sent);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert_eq!(link("nosuchlink").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn an_interface_has_a_name_by_its_number() {
        assert_eq!(name(link("lo").unwrap().index).unwrap(), "lo");
        assert_eq!(name(u32::MAX / 2).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn loopback_has_no_program_and_what_is_not_there_neither() {
        assert_eq!(xdp_program(link("lo").unwrap().index).unwrap(), None);
        assert_eq!(xdp_program(u32::MAX / 2).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn loopback_addresses_are_local() {
        let lo = link("lo").unwrap();
        for address in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let route = route(address).unwrap();
            assert!(route.is_local && route.is_unicast && !route.has_gateway, "{address}: {route:?}");
            assert_eq!(route.index, lo.index);
        }
        let broadcast = route(Ipv4Addr::BROADCAST.into());
        assert!(!broadcast.is_ok_and(|route| route.is_unicast));
    }

    #[test]
    fn a_stranger_is_no_neighbour() {
        let lo = link("lo").unwrap();
        assert_eq!(neighbour(Ipv4Addr::new(192, 0, 2, 77).into(), lo.index).unwrap(), None);
    }
}
