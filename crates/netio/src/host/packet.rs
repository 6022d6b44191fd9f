//! Sending raw packets through sockets: whole frames by an interface, or datagrams the kernel routes.
//!
//! It must never make a packet, nor ask whether sending it is right: both are decided above. Needs
//! CAP_NET_RAW.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, connect, ipproto, socket_with};

/// How many packets are handed to the kernel in one call: beyond this the call's own cost does not show.
pub const BATCH_COUNT: usize = 64;

/// A socket that sends what it is given, headers included.
#[derive(Debug)]
pub struct PacketSender {
    socket: OwnedFd,
}

impl PacketSender {
    /// Sends frames by this interface, past its queueing discipline (packet(7), PACKET_QDISC_BYPASS). It
    /// receives nothing.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; those of bind(2), for instance ENODEV.
    pub fn by_link(index: u32) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open for the length of the call, and the value is an int of the size
        // given.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        check(result)?;
        let address = link_address(index);
        // SAFETY: the address is a sockaddr_ll of the size given, and lives for the length of the call.
        let result = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        check(result)?;
        Ok(Self { socket })
    }

    /// Sends datagrams with their own header to this address, by the kernel's routes (raw(7), IP_HDRINCL).
    /// What is sent to loopback this way is taken for traffic of this host; a frame put on `lo` would be
    /// thrown away.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; those of connect(2), for instance ENETUNREACH.
    pub fn to_host(address: IpAddr) -> io::Result<Self> {
        // Linux takes this protocol for IP_HDRINCL, and for IPV6_HDRINCL.
        const RAW: Option<Protocol> = Some(ipproto::RAW);
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, RAW)?;
        connect(&socket, &std::net::SocketAddr::new(address, 0))?;
        Ok(Self { socket })
    }

    /// Hands over packets of one length that stand one after the other, [`BATCH_COUNT`] at most, and says how
    /// many the kernel took. Never waits.
    ///
    /// # Errors
    /// When the first was not taken: EAGAIN or ENOBUFS (no room just now), ENETDOWN, EMSGSIZE.
    ///
    /// # Panics
    /// When the bytes are no whole number of packets.
    pub fn send(&self, packets: &[u8], length: usize) -> io::Result<usize> {
        assert!(length > 0 && packets.len().is_multiple_of(length), "whole packets");
        let count = (packets.len() / length).min(BATCH_COUNT);
        let mut vectors: [libc::iovec; BATCH_COUNT] = [const { empty_vector() }; BATCH_COUNT];
        for (vector, packet) in vectors.iter_mut().zip(packets.chunks_exact(length)) {
            *vector = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: length };
        }
        // SAFETY: all zeros are a valid mmsghdr: no name, no control bytes, no vector.
        let mut messages: [libc::mmsghdr; BATCH_COUNT] = unsafe { std::mem::zeroed() };
        for (message, vector) in messages.iter_mut().zip(&mut vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `count` messages are initialised. Each names one vector, and each vector borrowed bytes
        // that the kernel only reads; all live until the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                // The parameter is signed in glibc and unsigned in musl.
                libc::MSG_DONTWAIT as _,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

const fn empty_vector() -> libc::iovec {
    libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }
}

/// Protocol 0: nothing is received.
fn link_address(index: u32) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
