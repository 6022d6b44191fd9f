//! Addresses for servers that must be told theirs before they have them.
//!
//! A port that was free a moment ago may be another's by the time it is taken: the kernel gives it to whoever
//! binds or connects without a port of their own. So the ports given here lie below those that it gives. This
//! file must never give one twice while the process that has it lives.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as LocalAddress, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port that is tried: below stand those of known services.
const FIRST: u32 = 10_000;
/// The first port that the kernel gives unless it is told otherwise.
const FIRST_OF_KERNEL: u32 = 32_768;
/// With fewer ports below those that the kernel gives, some of its own are given too.
const COUNT_MIN: u32 = 1_000;

/// An address of this machine for a server of TCP or UDP. No other call gives it, in no process of the tests,
/// until this process ends.
///
/// # Panics
/// When none is left.
pub fn reserved_address() -> SocketAddr {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let count = count();
    for _ in 0..count {
        // Tests that begin together begin at different places.
        let place = std::process::id().wrapping_mul(131) + TRIED.fetch_add(1, Ordering::Relaxed);
        let port = (FIRST + place % count) as u16;
        if reserve(port) {
            return (Ipv4Addr::LOCALHOST, port).into();
        }
    }
    panic!("no port from {FIRST} to {} is free", FIRST + count);
}

/// Whether the port is free, and nobody else's from now on.
fn reserve(port: u16) -> bool {
    let name = LocalAddress::from_abstract_name(format!("staunch-tests-port-{port}")).expect("a short name");
    let Ok(reservation) = UnixListener::bind_addr(&name) else { return false };
    let address = (Ipv4Addr::LOCALHOST, port);
    let is_free = TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok();
    if is_free {
        // The name is free again when the process ends.
        std::mem::forget(reservation);
    }
    is_free
}

/// How many ports may be given.
fn count() -> u32 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_ascii_whitespace().next().and_then(|first| first.parse::<u32>().ok());
    let below = first.unwrap_or(FIRST_OF_KERNEL).saturating_sub(FIRST);
    if below < COUNT_MIN { FIRST_OF_KERNEL - FIRST } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let mut ports: Vec<u16> = (0..100).map(|_| reserved_address().port()).collect();
        assert!(!reserve(ports[0]));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| (FIRST..FIRST + count()).contains(&u32::from(*port))));
    }

    #[test]
    fn a_port_that_is_taken_is_not_given() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        assert!(!reserve(taken.local_addr().expect("an address").port()));
    }
}
