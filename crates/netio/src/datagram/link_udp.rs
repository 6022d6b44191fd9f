//! Frames in UDP: for networks that carry only IP. A link address is an IPv4 address followed by a port.
//!
//! It must never send to a broadcast address: clouds do not carry that, and nobody asks for it.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::{BatchSent, Datagram, DatagramLimits, Datagrams, LinkAddress, Readiness, Transmit};

/// The longest frame: a UDP datagram within an Ethernet's MTU would be 1472, and fragments of IP carry more.
const FRAME_BYTES_MAX: usize = 65_507;

/// Bytes the kernel may keep until they are taken: those of a ring.
const RECEIVE_BYTES: usize = 4 << 20;

/// One UDP socket.
#[derive(Debug)]
pub struct LinkUdp {
    socket: UdpSocket,
    buffer: Vec<u8>,
    frame: Vec<u8>,
}

impl LinkUdp {
    /// Binds a socket.
    ///
    /// # Errors
    /// EADDRINUSE: another process holds the port; those of bind(2).
    pub fn bind(address: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // The kernel gives what its limit allows (net.core.rmem_max): the longest message has 190 frames.
        set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
        Ok(Self { socket, buffer: vec![0; FRAME_BYTES_MAX], frame: Vec::new() })
    }

    /// The link address of an IPv4 address and port.
    pub fn link(address: SocketAddrV4) -> LinkAddress {
        let [a, b, c, d] = address.ip().octets();
        let [high, low] = address.port().to_be_bytes();
        LinkAddress([a, b, c, d, high, low])
    }

    /// Where the socket is bound.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn local_port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    fn send(&mut self, transmit: &Transmit<'_, LinkAddress>) -> io::Result<()> {
        let [a, b, c, d, high, low] = transmit.path.0;
        let to = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
        if transmit.head.is_empty() {
            self.socket.send_to(transmit.bytes, to)?;
            return Ok(());
        }
        self.frame.clear();
        self.frame.extend_from_slice(transmit.head);
        self.frame.extend_from_slice(transmit.bytes);
        self.socket.send_to(&self.frame, to)?;
        Ok(())
    }
}

impl Datagrams for LinkUdp {
    type Path = LinkAddress;

    fn limits(&self) -> DatagramLimits {
        DatagramLimits { datagram_bytes_max: FRAME_BYTES_MAX, segments_max: 1, ecn: false }
    }

    fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::Descriptor(self.socket.try_clone()?.into()))
    }

    fn receive_batch(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, LinkAddress>),
    ) -> io::Result<usize> {
        let mut count = 0;
        while count < count_max {
            let (length, from) = match self.socket.recv_from(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A former datagram met a closed port: nothing that concerns this one.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            count += 1;
            let SocketAddr::V4(from) = from else { continue };
            let bytes = &mut self.buffer[..length];
            take(Datagram { path: Self::link(from), segment_bytes: length, bytes, ecn: None });
        }
        Ok(count)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<BatchSent> {
        let mut sent = BatchSent::default();
        for transmit in batch {
            match self.send(transmit) {
                Ok(()) => sent.done += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    sent.done += 1;
                    sent.refused = 1;
                    sent.errno = error.raw_os_error().unwrap_or_default();
                    break;
                }
            }
        }
        Ok(sent)
    }
}
