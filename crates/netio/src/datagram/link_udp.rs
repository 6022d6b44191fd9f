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

/// A UDP socket that carries frames.
#[derive(Debug)]
pub struct LinkUdp {
    socket: UdpSocket,
    buffer: Vec<u8>,
    frame: Vec<u8>,
    /// Whom frames to all go to; `None` if nobody was named.
    everybody: Option<Vec<LinkAddress>>,
    /// The place in `everybody` of the node that gets the next frames to all first.
    first: usize,
    /// Frames of nodes that are not in `everybody`, until it is asked for them.
    strangers: u64,
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
        Self {
            socket,
            buffer: vec![0; FRAME_BYTES_MAX],
            frame: Vec::new(),
            everybody: None,
            first: 0,
            strangers: 0,
        }
    }

    /// Names those to whom frames to all go, and nobody else is heard from then on. Before, nothing can be
    /// sent to all (EDESTADDRREQ), and whoever sends is heard.
    pub fn name_everybody(&mut self, everybody: Vec<LinkAddress>) {
        self.everybody = Some(everybody);
        self.first = 0;
    }

    /// Frames of nodes that are not named, dropped since it was asked last.
    pub fn take_strangers(&mut self) -> u64 {
        std::mem::take(&mut self.strangers)
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

    /// Sends a frame. Notes in `missed` the place of the first of all that found no room.
    fn send(&mut self, transmit: &Transmit<'_, LinkAddress>, missed: &mut Option<usize>) -> io::Result<()> {
        let Self { socket, frame, everybody, first, .. } = self;
        let mut bytes = transmit.bytes;
        if !transmit.head.is_empty() {
            frame.clear();
            frame.extend_from_slice(transmit.head);
            frame.extend_from_slice(transmit.bytes);
            bytes = frame;
        }
        match everybody {
            _ if transmit.path != LinkAddress::EVERYBODY => send_to(socket, bytes, transmit.path),
            Some(everybody) => send_to_all(everybody, *first, missed, |link| send_to(socket, bytes, link)),
            None => Err(Errno::DESTADDRREQ.into()),
        }
    }
}

fn send_to(socket: &UdpSocket, bytes: &[u8], link: LinkAddress) -> io::Result<()> {
    let [a, b, c, d, high, low] = link.0;
    let to = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
    socket.send_to(bytes, to).map(|_| ())
}

/// Sends a frame to each of these nodes, beginning with the one at `first`. That the frame was refused for
/// some, or found no room, is no error, as long as it left for another: who got it must not get it again,
/// so it is lost for the others. The first of those that found no room is noted: next time it comes first,
/// so that it is not the same ones again and again. EAGAIN: nobody got it, and for one at least there was
/// no room.
fn send_to_all(
    everybody: &[LinkAddress],
    first: usize,
    missed: &mut Option<usize>,
    mut send: impl FnMut(LinkAddress) -> io::Result<()>,
) -> io::Result<()> {
    let (mut left, mut refused, mut no_room) = (everybody.is_empty(), Ok(()), None);
    for place in (first..everybody.len()).chain(0..first) {
        match send(everybody[place]) {
            Ok(()) => left = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                missed.get_or_insert(place);
                no_room = Some(error);
            }
            Err(error) => refused = Err(error),
        }
    }
    if left { Ok(()) } else { no_room.map_or(refused, Err) }
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
            let path = Self::link(from);
            if self.everybody.as_ref().is_some_and(|everybody| !everybody.contains(&path)) {
                self.strangers += 1;
                continue;
            }
            let bytes = &mut self.buffer[..length];
            take(Datagram { path, segment_bytes: length, bytes, ecn: None });
        }
        Ok(count)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<BatchSent> {
        let (mut sent, mut missed) = (BatchSent::default(), None);
        for transmit in batch {
            match self.send(transmit, &mut missed) {
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
        // Behind the batch, so that all frames of a message begin with the same node.
        self.first = missed.unwrap_or(self.first);
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a link that a frame is sent to.
    type Said = Result<(), Errno>;
    const NO_ROOM: Said = Err(Errno::AGAIN);
    const NO_WAY: Said = Err(Errno::NETUNREACH);

    /// Sends to three links that say this, beginning with `first`: the error, and which link found no room
    /// first. Each link is tried once, whatever the others say.
    fn outcome(said: [Said; 3], first: usize) -> (Option<Errno>, Option<usize>) {
        let links = [0, 1, 2].map(|last| LinkAddress([10, 0, 0, last, 20, 168]));
        let (mut tried, mut missed) = (Vec::new(), None);
        let sent = send_to_all(&links, first, &mut missed, |link| {
            tried.push(usize::from(link.0[3]));
            said[usize::from(link.0[3])].map_err(io::Error::from)
        });
        assert_eq!(tried, [first, (first + 1) % 3, (first + 2) % 3]);
        (sent.err().and_then(|error| Errno::from_io_error(&error)), missed)
    }

    #[test]
    fn a_frame_to_all_is_refused_only_if_nobody_gets_it() {
        assert_eq!(outcome([Ok(()); 3], 0), (None, None));
        assert_eq!(outcome([NO_WAY, Ok(()), NO_WAY], 0), (None, None));
        assert_eq!(outcome([NO_WAY; 3], 0), (Some(Errno::NETUNREACH), None));
        assert!(send_to_all(&[], 0, &mut None, |_| NO_WAY.map_err(io::Error::from)).is_ok());
    }

    #[test]
    fn a_frame_to_all_that_one_has_got_is_not_tried_again() {
        for first in 0..3 {
            assert_eq!(outcome([Ok(()), NO_ROOM, Ok(())], first), (None, Some(1)));
        }
        assert_eq!(outcome([Ok(()), NO_ROOM, NO_ROOM], 0), (None, Some(1)));
        assert_eq!(outcome([Ok(()), NO_ROOM, NO_ROOM], 2), (None, Some(2)));
        assert_eq!(outcome([NO_WAY, NO_ROOM, NO_WAY], 0), (Some(Errno::AGAIN), Some(1)));
        assert_eq!(outcome([NO_ROOM; 3], 1), (Some(Errno::AGAIN), Some(1)));
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

    /// Frames that `by` takes until `count` have come; it drops those of strangers.
    fn heard(by: &mut LinkUdp, count: usize) -> Vec<(LinkAddress, Vec<u8>)> {
        let (mut heard, mut came) = (Vec::new(), 0);
        while came < count {
            let mut take =
                |datagram: Datagram<'_, LinkAddress>| heard.push((datagram.path, datagram.bytes.to_vec()));
            came += by.receive_batch(9, &mut take).unwrap();
        }
        heard
    }

    #[test]
    fn where_some_are_named_nobody_else_is_heard() {
        let [mut one, mut named, mut stranger] =
            [(); 3].map(|()| LinkUdp::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap());
        let [path, of_named, of_stranger] = [&one, &named, &stranger].map(|socket| {
            LinkUdp::link(SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.local_port().unwrap()))
        });
        let send = |from: &mut LinkUdp, bytes: &[u8]| {
            let transmit = Transmit { path, head: b"", bytes, segment_bytes: None, ecn: None };
            assert_eq!(from.send_batch(&[transmit]).unwrap().done, 1);
        };
        send(&mut stranger, b"a");
        assert_eq!(heard(&mut one, 1), [(of_stranger, b"a".to_vec())]);
        one.name_everybody(vec![of_named]);
        send(&mut stranger, b"b");
        send(&mut named, b"c");
        assert_eq!(heard(&mut one, 2), [(of_named, b"c".to_vec())]);
        assert_eq!((one.take_strangers(), one.take_strangers()), (1, 0));
    }
}
