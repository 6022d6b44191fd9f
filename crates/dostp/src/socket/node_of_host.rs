//! What a socket has to know and to have before it is opened: the interface, the node's address, a port.
//!
//! It must never open a way for frames.

use std::io::{self, Read as _};
use std::net::Ipv4Addr;

use siphasher::sip::SipHasher24;
use staunch_netio::host::interface::Interface;

use super::claim::Claim;
use super::endpoint::low_bits;
use super::options::Options;
use crate::header::EVERYBODY;
use crate::limits::MTU_MIN;

/// The first of the ports that are given to sockets which ask for none (RFC 6335, section 6).
const EPHEMERAL_FIRST: u16 = 49_152;

/// The interface, if frames can travel by it.
pub(super) fn usable(name: &str) -> io::Result<Interface> {
    let interface = Interface::find(name).map_err(|error| not_found(name, &error))?;
    if interface.is_loopback {
        let message = format!("interface {name} is a loopback interface, which reaches no other node");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    if !interface.is_up {
        return Err(io::Error::new(io::ErrorKind::NetworkDown, format!("interface {name} is down")));
    }
    if interface.mtu < u32::from(MTU_MIN) {
        let message = format!("interface {name} has MTU {}; DOSTP needs {MTU_MIN}", interface.mtu);
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(interface)
}

/// Why there is no such interface, in words.
fn not_found(name: &str, error: &io::Error) -> io::Error {
    let errno = |errno: rustix::io::Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if errno(rustix::io::Errno::NODEV) {
        return io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {name}"));
    }
    if errno(rustix::io::Errno::INVAL) {
        let message = format!("`{name}` is no name of an interface: 1 to 15 bytes");
        return io::Error::new(io::ErrorKind::InvalidInput, message);
    }
    io::Error::new(error.kind(), format!("interface {name}: {error}"))
}

pub(super) fn own_address(asked: Ipv4Addr, interface: &Interface, options: &Options) -> io::Result<Ipv4Addr> {
    let asked = Some(asked).filter(|address| !address.is_unspecified()).or(options.address);
    let unavailable = |message: String| Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
    let Some(own) = asked.or(interface.address) else {
        return unavailable(format!("interface {} has no IPv4 address, and none was told", interface.name));
    };
    match low_bits(own) {
        0 | EVERYBODY => {
            unavailable(format!("{own} is no address of a node: its low 16 bits are 0 or all ones"))
        }
        _ => Ok(own),
    }
}

/// Claims this port, or a free one.
pub(super) fn claim(interface: u32, ether_type: u16, port: u16, seed: [u8; 16]) -> io::Result<(Claim, u16)> {
    if port != 0 {
        return Ok((Claim::port(interface, ether_type, port)?, port));
    }
    let count = u16::MAX - EPHEMERAL_FIRST;
    let start = u16::from_le_bytes([seed[0], seed[1]]) % count;
    for step in 0..count {
        let port = EPHEMERAL_FIRST + (start + step) % count;
        match Claim::port(interface, ether_type, port) {
            Ok(claim) => return Ok((claim, port)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// A number that all processes of a node share, and that is another after each start of the host.
pub(super) fn boot_number(link: [u8; 6], ether_type: u16) -> io::Result<u64> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    let node = [&boot[..], &link, &ether_type.to_be_bytes()].concat();
    Ok(SipHasher24::new_with_key(b"dostp boot numbr").hash(&node).max(1))
}

pub(super) fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
