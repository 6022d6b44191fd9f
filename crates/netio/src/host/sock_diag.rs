//! Accept queues of listening sockets, what these dropped, and connections nobody has read from, asked by
//! netlink (sock_diag(7)).
//!
//! It owns one netlink socket. It sees the sockets of its own network namespace, whosever they are. Listeners
//! cost by their own number and not by that of connections (unlike `/proc/net/tcp`). It must never wait: the
//! kernel answers while it is being asked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// The kernel answers in pieces of at most 32 KiB (`netlink_dump`, af_netlink.c).
const ANSWER_BYTES: usize = 32 * 1024;
/// `struct nlmsghdr`: length, type, flags, sequence, port (netlink(7)).
const HEADER_BYTES: usize = 16;
/// `struct inet_diag_req` (linux/inet_diag.h): four bytes, a socket's identity of 48, states, a filter.
const REQUEST_BYTES: usize = 60;
/// `TCPDIAG_GETSOCK`: sockets of TCP, of both families at once. The newer question `SOCK_DIAG_BY_FAMILY` has
/// to be asked twice, and each time the kernel looks through all of its table.
const SOCKETS_OF_TCP: u16 = 18;
/// `NLMSG_ERROR`: an errno, negative, follows the header.
const ERROR: u16 = 2;
/// `NLMSG_DONE`: the last of the answers; an errno may follow as well.
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH`: everything that matches.
const DUMP: u16 = 0x001 | 0x100 | 0x200;
/// `1 << TCP_LISTEN`.
const LISTENING: u32 = 1 << 10;
/// `1 << (INET_DIAG_SKMEMINFO - 1)`, the question's fourth byte: the socket's memory and drops as well.
const WITH_MEMORY: u8 = 1 << 6;
/// `1 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT`: connections whose client may still wait.
const CONNECTED: u32 = 1 << 1 | 1 << CLOSE_WAIT;
/// `TCP_CLOSE_WAIT`: the client has said that it sends no more.
const CLOSE_WAIT: u8 = 8;
/// `1 << (INET_DIAG_INFO - 1)`: the connection's `struct tcp_info` as well.
const WITH_INFO: u8 = 1 << 1;
/// `INET_DIAG_INFO`, and where `struct tcp_info` has `tcpi_bytes_received`.
const INFO: u16 = 2;
const RECEIVED_AT: usize = 4 + 128;
/// `INET_DIAG_SKMEMINFO`, the attribute that tells them, and where it has `SK_MEMINFO_DROPS`.
const MEMORY: u16 = 7;
const DROPS_AT: usize = 4 + 8 * 4;
/// `struct inet_diag_msg`; attributes (`struct rtattr`: length, kind) follow.
const MESSAGE_BYTES: usize = 72;
/// Where `struct inet_diag_msg` has the family, and its number for IPv6 (`AF_INET6`).
const FAMILY_AT: usize = HEADER_BYTES;
const FAMILY_IPV6: u8 = 10;
/// Where it has the socket's own address: four bytes, or sixteen.
const ADDRESS_AT: usize = HEADER_BYTES + 8;
/// Where `struct inet_diag_msg` has the state.
const STATE_AT: usize = HEADER_BYTES + 1;
/// Where it has the port, in the order of the network.
const PORT_AT: usize = HEADER_BYTES + 4;
/// Where it has `idiag_rqueue`: of a listener, how many connections wait; of a connection, how many bytes.
const WAITING_AT: usize = HEADER_BYTES + 56;
/// Where it has `idiag_wqueue`: of a listener, how many may wait.
const LIMIT_AT: usize = HEADER_BYTES + 60;

/// The accept queues of all TCP listeners of a port together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AcceptQueue {
    /// How many sockets listen: several with SO_REUSEPORT, addresses and families counted apart.
    pub listeners: u32,
    /// Connections that are established and not accepted yet.
    pub waiting: u64,
    /// How many may wait: the sum of the backlogs.
    pub limit: u64,
    /// Connections that wait in the fullest queue.
    pub waiting_max: u32,
    /// The largest part of its backlog that any queue is full to; above one when the kernel let one more in.
    pub fullest_share: f64,
    /// What these sockets dropped since they began to listen: SYN and connections, as there was no place or a
    /// filter keeps newcomers out, and RST of connections that are gone. Each socket counts to 2^32.
    pub drops: u64,
}

/// An open way to ask.
#[derive(Debug)]
pub struct SockDiag {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl SockDiag {
    /// Opens it, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Those of socket(2): EPROTONOSUPPORT when the kernel has no sock_diag.
    pub fn open() -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        Ok(Self { socket, sequence: 0, answer: vec![0; ANSWER_BYTES] })
    }

    /// The queues of everyone who listens on a TCP port; no listeners if nobody does.
    ///
    /// # Errors
    /// ENOENT when the kernel has no tcp_diag, else those of send(2) and recv(2).
    pub fn accept_queue(&mut self, port: u16) -> io::Result<AcceptQueue> {
        let mut queues = [AcceptQueue::default()];
        self.ask(port, LISTENING, WITH_MEMORY, |message| add(message, &[port], &mut queues))?;
        Ok(queues[0])
    }

    /// The queues of each of these ports, in their order, by one question.
    ///
    /// # Errors
    /// As for one port.
    pub fn accept_queues(&mut self, ports: &[u16]) -> io::Result<Vec<AcceptQueue>> {
        let mut queues = vec![AcceptQueue::default(); ports.len()];
        // Of several ports the kernel tells all listeners: a few more than were asked for, on most hosts.
        let port = if let [port] = ports { *port } else { 0 };
        self.ask(port, LISTENING, WITH_MEMORY, |message| add(message, ports, &mut queues))?;
        Ok(queues)
    }

    /// Everyone who listens on a TCP port here: at which address, and how many connections may wait.
    ///
    /// # Errors
    /// As for one port.
    pub fn listeners(&mut self) -> io::Result<Vec<(SocketAddr, u32)>> {
        let mut listeners = Vec::new();
        self.ask(0, LISTENING, 0, |message| {
            listeners.push((address(message)?, number(message, LIMIT_AT)?));
            Ok(())
        })?;
        Ok(listeners)
    }

    /// How many connections to a port have sent something of which nothing was read yet. The kernel looks
    /// through all connections of the host for it.
    ///
    /// # Errors
    /// As for accept queues.
    pub fn unread(&mut self, port: u16) -> io::Result<u64> {
        let mut count = 0;
        self.ask(port, CONNECTED, WITH_INFO, |message| {
            count += u64::from(is_unread(message)?);
            Ok(())
        })?;
        Ok(count)
    }

    /// Asks for sockets of a port (0: of any) in these states, and takes in one answer after another.
    fn ask(
        &mut self,
        port: u16,
        states: u32,
        with: u8,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(port, states, with, self.sequence);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        loop {
            let (bytes, _) = recv(&self.socket, &mut self.answer[..], RecvFlags::DONTWAIT)?;
            if take_answers(&self.answer[..bytes], self.sequence, &mut take)? {
                return Ok(());
            }
        }
    }
}

fn request(port: u16, states: u32, with: u8, sequence: u32) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes = [0; HEADER_BYTES + REQUEST_BYTES];
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCKETS_OF_TCP.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    let body = &mut bytes[HEADER_BYTES..];
    body[3] = with;
    body[4..6].copy_from_slice(&port.to_be_bytes());
    body[52..56].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Takes the sockets in one piece of the answer. True when nothing follows. Answers to a question that was
/// given up are passed over.
fn take_answers(
    mut bytes: &[u8],
    sequence: u32,
    take: &mut impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    while bytes.len() >= HEADER_BYTES {
        let length = number(bytes, 0)? as usize;
        if length < HEADER_BYTES || length > bytes.len() {
            return Err(Errno::BADMSG.into());
        }
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let message = &bytes[..length];
        if number(bytes, 8)? == sequence {
            match kind {
                ERROR => return Err(errno(message)?.unwrap_or(Errno::BADMSG).into()),
                DONE => return errno(message)?.map_or(Ok(true), |errno| Err(errno.into())),
                _ => take(message)?,
            }
        }
        // Messages begin at multiples of four (NLMSG_ALIGN).
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

/// Adds a listener to the queue of its port, if it is one of those.
fn add(message: &[u8], ports: &[u16], queues: &mut [AcceptQueue]) -> io::Result<()> {
    let (waiting, limit) = (number(message, WAITING_AT)?, number(message, LIMIT_AT)?);
    let port = u16::from_be_bytes([message[PORT_AT], message[PORT_AT + 1]]);
    let Some((_, queue)) = ports.iter().zip(queues).find(|(one, _)| **one == port) else { return Ok(()) };
    queue.fullest_share = queue.fullest_share.max(f64::from(waiting) / f64::from(limit.max(1)));
    queue.listeners += 1;
    queue.waiting += u64::from(waiting);
    queue.limit += u64::from(limit);
    queue.waiting_max = queue.waiting_max.max(waiting);
    queue.drops += drops(message)?;
    Ok(())
}

/// The socket's own address.
fn address(message: &[u8]) -> io::Result<SocketAddr> {
    let family = message.get(FAMILY_AT);
    let bytes: [u8; 16] = bytes_at(message, ADDRESS_AT)?;
    let ip = match family {
        Some(&FAMILY_IPV6) => IpAddr::from(Ipv6Addr::from(bytes)),
        _ => IpAddr::from(Ipv4Addr::from([bytes[0], bytes[1], bytes[2], bytes[3]])),
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(bytes_at(message, PORT_AT)?)))
}

/// Whether something has come of which nothing was read. The end of what a client sends counts as a byte.
fn is_unread(message: &[u8]) -> io::Result<bool> {
    let waiting = u64::from(number(message, WAITING_AT)?);
    let attribute = attribute(message, INFO)?.filter(|info| info.len() >= RECEIVED_AT + 8);
    let Some(info) = attribute else { return Ok(false) };
    let received = info[RECEIVED_AT..RECEIVED_AT + 8].try_into().map_or(0, u64::from_ne_bytes);
    Ok(waiting == received && received > u64::from(message[STATE_AT] == CLOSE_WAIT))
}

/// What a socket dropped, by its attributes; 0 where the kernel is too old to tell it.
fn drops(message: &[u8]) -> io::Result<u64> {
    let memory = attribute(message, MEMORY)?.filter(|memory| memory.len() >= DROPS_AT + 4);
    memory.map_or(Ok(0), |memory| number(memory, DROPS_AT).map(u64::from))
}

/// An attribute behind the message, with its header.
fn attribute(message: &[u8], wanted: u16) -> io::Result<Option<&[u8]>> {
    let mut attributes = message.get(HEADER_BYTES + MESSAGE_BYTES..).unwrap_or_default();
    while let [low, high, kind_low, kind_high, ..] = *attributes {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        if length < 4 || length > attributes.len() {
            return Err(Errno::BADMSG.into());
        }
        if u16::from_ne_bytes([kind_low, kind_high]) == wanted {
            return Ok(Some(&attributes[..length]));
        }
        // Attributes begin at multiples of four (RTA_ALIGN).
        attributes = &attributes[length.next_multiple_of(4).min(attributes.len())..];
    }
    Ok(None)
}

/// The errno behind the header, if it is one.
fn errno(message: &[u8]) -> io::Result<Option<Errno>> {
    let code = number(message, HEADER_BYTES)?.cast_signed();
    Ok((code != 0).then(|| Errno::from_raw_os_error(-code)))
}

fn number(bytes: &[u8], at: usize) -> io::Result<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

fn bytes_at<const COUNT: usize>(bytes: &[u8], at: usize) -> io::Result<[u8; COUNT]> {
    let bytes = bytes.get(at..at + COUNT).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or(Errno::BADMSG.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{listen, local_address};
    use std::net::TcpStream;
    use std::os::fd::AsFd;

    #[test]
    fn the_queues_of_all_listeners_are_seen() {
        let mut diag = SockDiag::open().unwrap();
        let first = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 16).unwrap();
        let address = local_address(&first).unwrap();
        let port = address.port();
        let empty = AcceptQueue { listeners: 1, limit: 16, ..AcceptQueue::default() };
        assert_eq!(diag.accept_queue(port).unwrap(), empty);
        let waiting: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
        let five = AcceptQueue { waiting: 5, waiting_max: 5, fullest_share: 5.0 / 16.0, ..empty };
        // A connection may stand in the queue a moment after its peer knows of it.
        while diag.accept_queue(port).unwrap().waiting < 5 {
            std::thread::yield_now();
        }
        assert_eq!(diag.accept_queue(port).unwrap(), five);
        let second = listen(address, 7).unwrap();
        let two = AcceptQueue { listeners: 2, limit: 23, ..five };
        assert_eq!(diag.accept_queue(port).unwrap(), two);
        if let Ok(_six) = listen(SocketAddr::from((Ipv6Addr::LOCALHOST, port)), 3) {
            let three = AcceptQueue { listeners: 3, limit: 26, ..two };
            assert_eq!(diag.accept_queue(port).unwrap(), three);
        }
        // A port that is asked for with another, and one that is not.
        let other = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 9).unwrap();
        let other_port = local_address(&other).unwrap().port();
        let alone = AcceptQueue { listeners: 1, limit: 9, ..AcceptQueue::default() };
        assert_eq!(diag.accept_queues(&[other_port]).unwrap(), [alone]);
        let now = diag.accept_queue(port).unwrap();
        assert_eq!(diag.accept_queues(&[port, other_port]).unwrap(), [now, alone]);
        drop((first, second, waiting));
        assert_eq!(diag.accept_queue(port).unwrap(), AcceptQueue::default());
    }

    #[test]
    fn everyone_who_listens_is_named_with_the_places() {
        let mut diag = SockDiag::open().unwrap();
        let ours: [SocketAddr; 2] = [(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()];
        for (address, places) in ours.into_iter().zip([5, 7]) {
            let Ok(socket) = listen(address, places) else { continue };
            let address = local_address(&socket).unwrap();
            let found: Vec<u32> = diag
                .listeners()
                .unwrap()
                .into_iter()
                .filter_map(|(one, places)| (one == address).then_some(places))
                .collect();
            assert_eq!(found, [places.cast_unsigned()], "{address}");
        }
    }

    #[test]
    fn what_a_listener_drops_is_counted() {
        let mut diag = SockDiag::open().unwrap();
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 16).unwrap();
        let address = local_address(&listener).unwrap();
        assert_eq!(diag.accept_queue(address.port()).unwrap().drops, 0);
        crate::socket::drop_syn(listener.as_fd()).unwrap();
        let wait = std::time::Duration::from_millis(50);
        assert!(TcpStream::connect_timeout(&address, wait).is_err());
        assert_eq!(diag.accept_queue(address.port()).unwrap().drops, 1);
    }

    #[test]
    fn connections_nobody_has_read_from_are_counted() {
        use std::io::{Read as _, Write as _};
        let mut diag = SockDiag::open().unwrap();
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 16).unwrap();
        let address = local_address(&listener).unwrap();
        let mut until = |expected: u64| {
            while diag.unread(address.port()).unwrap() != expected {
                std::thread::yield_now();
            }
        };
        let connect = || TcpStream::connect(address).unwrap();
        let (silent, closing) = (connect(), connect());
        closing.shutdown(std::net::Shutdown::Write).unwrap();
        until(0);
        let mut asking = [connect(), connect()];
        asking.iter_mut().for_each(|stream| stream.write_all(b"two").unwrap());
        until(2);
        // The server reads from one of the two connections, whose client then sends more.
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(false).unwrap();
        let mut accepted: Vec<TcpStream> = (0..4).map(|_| listener.accept().unwrap().0).collect();
        let ours = asking[0].local_addr().unwrap();
        let other = accepted.iter_mut().find(|stream| stream.peer_addr().unwrap() == ours).unwrap();
        other.read_exact(&mut [0]).unwrap();
        asking[0].write_all(b"more").unwrap();
        until(1);
        drop((silent, closing));
    }

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + body.len()) as u32;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(body);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<bool, Option<i32>> {
        let mut queues = [AcceptQueue::default()];
        let mut take = |message: &[u8]| add(message, &[80], &mut queues);
        take_answers(bytes, 7, &mut take).map_err(|error| error.raw_os_error())
    }

    #[test]
    fn ends_and_errors_are_told_apart() {
        let refused = (-libc::ENOENT).to_ne_bytes();
        assert_eq!(read(&message(DONE, 7, &[0; 4])), Ok(true));
        assert_eq!(read(&message(DONE, 7, &refused)), Err(Some(libc::ENOENT)));
        assert_eq!(read(&message(ERROR, 7, &refused)), Err(Some(libc::ENOENT)));
        assert_eq!(read(&message(SOCKETS_OF_TCP, 7, &[0; 72])), Ok(false));
        // An answer to an older question is passed over.
        assert_eq!(read(&message(DONE, 6, &[0; 4])), Ok(false));
    }

    #[test]
    fn a_broken_answer_is_an_error() {
        let mut endless = message(SOCKETS_OF_TCP, 7, &[0; 72]);
        endless[..4].copy_from_slice(&1000_u32.to_ne_bytes());
        let mut empty = message(SOCKETS_OF_TCP, 7, &[0; 72]);
        empty[..4].copy_from_slice(&0_u32.to_ne_bytes());
        let short = message(SOCKETS_OF_TCP, 7, &[0; 8]);
        let mut listener = [0; MESSAGE_BYTES + 4];
        (listener[5], listener[MESSAGE_BYTES]) = (80, 200);
        let attribute = message(SOCKETS_OF_TCP, 7, &listener);
        for bytes in [endless, empty, short, attribute] {
            assert_eq!(read(&bytes), Err(Some(libc::EBADMSG)));
        }
    }
}
