//! Frames in UDP: for networks that carry only IP. A link address is an IPv4 address followed by a port.
//!
//! This file owns the socket and the list of those to whom frames to all go, one by one. It must never send
//! to a broadcast address: clouds do not carry that.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
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
    /// Whom frames to all go to; `None` if nobody was named.
    everybody: Option<Vec<LinkAddress>>,
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
        Ok(Self::of(socket))
    }

    /// A socket that another process has bound and handed over.
    pub fn adopt(socket: OwnedFd) -> Self {
        Self::of(socket.into())
    }

    fn of(socket: UdpSocket) -> Self {
        Self { socket, buffer: vec![0; FRAME_BYTES_MAX], frame: Vec::new(), everybody: None }
    }

    /// Names those to whom frames to all go. Before, nothing can be sent to all (EDESTADDRREQ).
    pub fn name_everybody(&mut self, everybody: Vec<LinkAddress>) {
        self.everybody = Some(everybody);
    }

    /// The socket, for another process.
    ///
    /// # Errors
    /// EMFILE.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.socket.try_clone()?.into())
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
        let Self { socket, frame, everybody, .. } = self;
        let mut bytes = transmit.bytes;
        if !transmit.head.is_empty() {
            frame.clear();
            frame.extend_from_slice(transmit.head);
            frame.extend_from_slice(transmit.bytes);
            bytes = frame;
        }
        match everybody {
            _ if transmit.path != LinkAddress::EVERYBODY => send_to(socket, bytes, transmit.path),
            Some(everybody) => send_to_all(everybody, |link| send_to(socket, bytes, link)),
            None => Err(Errno::DESTADDRREQ.into()),
        }
    }
}

fn send_to(socket: &UdpSocket, bytes: &[u8], link: LinkAddress) -> io::Result<()> {
    let [a, b, c, d, high, low] = link.0;
    let to = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
    socket.send_to(bytes, to).map(|_| ())
}

/// Sends to each of them. That the frame was refused for some is no error, as long as it left for another.
/// Where there is no room nobody behind gets it: the next try begins with the first again.
fn send_to_all(
    everybody: &[LinkAddress],
    mut send: impl FnMut(LinkAddress) -> io::Result<()>,
) -> io::Result<()> {
    let (mut left, mut refused) = (everybody.is_empty(), Ok(()));
    for link in everybody {
        match send(*link) {
            Ok(()) => left = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
            Err(error) => refused = Err(error),
        }
    }
    if left { Ok(()) } else { refused }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a frame to three links comes to, and to how many it was handed, where they say this.
    fn outcome(said: [Result<(), Errno>; 3]) -> (Option<i32>, usize) {
        let links = [1, 2, 3].map(|last| LinkAddress([10, 0, 0, last, 20, 168]));
        let mut tried = 0;
        let sent = send_to_all(&links, |link| {
            assert_eq!(link, links[tried]);
            tried += 1;
            said[tried - 1].map_err(io::Error::from)
        });
        (sent.err().and_then(|error| error.raw_os_error()), tried)
    }

    #[test]
    fn a_frame_to_all_is_refused_only_if_nobody_gets_it() {
        const NO_WAY: Result<(), Errno> = Err(Errno::NETUNREACH);
        assert_eq!(outcome([Ok(()); 3]), (None, 3));
        assert_eq!(outcome([NO_WAY, Ok(()), NO_WAY]), (None, 3));
        assert_eq!(outcome([NO_WAY; 3]), (Some(Errno::NETUNREACH.raw_os_error()), 3));
        assert_eq!(outcome([Ok(()), Err(Errno::AGAIN), Ok(())]), (Some(Errno::AGAIN.raw_os_error()), 2));
        assert!(send_to_all(&[], |_| NO_WAY.map_err(io::Error::from)).is_ok());
    }

    #[test]
    fn nothing_goes_to_all_before_they_are_named() {
        let mut one = LinkUdp::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut other = LinkUdp::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to_all = Transmit {
            path: LinkAddress::EVERYBODY,
            head: b"fr",
            bytes: b"ame",
            segment_bytes: None,
            ecn: None,
        };
        let sent = one.send_batch(&[to_all, to_all]).unwrap();
        assert_eq!(sent, BatchSent { done: 1, refused: 1, errno: Errno::DESTADDRREQ.raw_os_error() });
        let port = other.local_port().unwrap();
        one.name_everybody(vec![LinkUdp::link(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))]);
        assert_eq!(one.send_batch(&[to_all]).unwrap(), BatchSent { done: 1, refused: 0, errno: 0 });
        let mut heard = Vec::new();
        while heard.is_empty() {
            other.receive_batch(9, &mut |datagram| heard.push(datagram.bytes.to_vec())).unwrap();
        }
        assert_eq!(heard, [b"frame"]);
    }
}
