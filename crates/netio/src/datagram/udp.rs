//! UDP by recvmmsg(2) and sendmmsg(2), with what the kernel joins and divides (GRO, GSO), the two bits of
//! ECN, and the address of this machine that a datagram came to.
//!
//! It owns one socket and the buffers of one batch. It must never wait. Whether the kernel divides is asked
//! at the beginning, and found out again at each send: an interface may refuse what the kernel offers (EIO).

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::net::SocketAddrAny;
use rustix::net::addr::{SocketAddrArg, SocketAddrStorage};

use super::control::{Control, Controls, controls_in};
use super::{BatchSent, Datagram, DatagramLimits, Datagrams, Ecn, Readiness, Transmit};
use crate::socket::set_option;

/// Datagrams, or joined runs of them, taken in one call: enough to share its cost, few enough that the
/// buffers of one worker stay small.
const BATCH_MAX: usize = 16;

/// Bytes of one buffer: what the kernel joins at most.
const BUFFER_BYTES: usize = 65_535;

/// What a datagram over IPv4 may carry at most: 65 535 bytes less the headers of IP and UDP.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Datagrams that the kernel divides at most (`UDP_MAX_SEGMENTS` of Linux before 6.9).
const SEGMENTS_MAX: usize = 64;

const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// Bytes of control data that come with a datagram at most.
pub(crate) const CONTROL_BYTES_MAX: usize = Controls::BYTES;

/// Between whom a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UdpPath {
    /// The other end.
    pub peer: SocketAddr,
    /// The address of this machine; `None` leaves it to the kernel when sending.
    pub local: Option<IpAddr>,
}

/// A UDP socket that sends and receives in batches.
pub struct Udp {
    socket: OwnedFd,
    segments_max: usize,
    /// The buffers of a batch, one after the other; only those that were filled have memory.
    buffers: Box<[u8]>,
}

impl Udp {
    /// Takes a bound UDP socket. It becomes a non-blocking one that tells ECN and the address it is reached
    /// at, joins what it receives, and never lets what it sends be divided on the way.
    ///
    /// # Errors
    /// Those of setsockopt(2). What the kernel does not know of ECN, addresses or joining is left out.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let udp = Self::unjoined(socket)?;
        let _ = set_option(udp.socket.as_fd(), libc::SOL_UDP, UDP_GRO, 1);
        Ok(udp)
    }

    /// A socket like [`Udp::new`] makes, but the kernel does not join datagrams: each comes by itself.
    pub(crate) fn unjoined(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let six = matches!(rustix::net::getsockname(&socket)?.try_into(), Ok(SocketAddr::V6(_)));
        let set = |level, name, value| set_option(socket.as_fd(), level, name, value);
        if six {
            set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
        }
        // On a socket for IPv6 these are for IPv4 peers, whom it may not serve at all.
        let four =
            [(libc::IP_PKTINFO, 1), (libc::IP_RECVTOS, 1), (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)];
        for (name, value) in four {
            let outcome = set(libc::IPPROTO_IP, name, value);
            if !six {
                outcome?;
            }
        }
        let divides = set(libc::SOL_UDP, UDP_SEGMENT, 0).is_ok();
        let segments_max = if divides { SEGMENTS_MAX } else { 1 };
        let buffers = vec![0; BATCH_MAX * BUFFER_BYTES].into_boxed_slice();
        Ok(Self { socket, segments_max, buffers })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        crate::socket::local_address(&self.socket)
    }

    /// The number of its socket.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Receives a batch. After an error that belongs to one datagram it tries the next.
    fn receive_some(&mut self, names: &mut Names, wanted: usize) -> io::Result<usize> {
        // SAFETY: all zeroes are a valid header: no name, no pieces, no control data.
        let mut headers: [libc::mmsghdr; BATCH_MAX] = unsafe { std::mem::zeroed() };
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_MAX];
        let rooms = self.buffers.chunks_exact_mut(BUFFER_BYTES);
        let parts = headers.iter_mut().zip(&mut pieces).zip(&mut names.rooms).zip(rooms);
        for (((header, piece), name), buffer) in parts.take(wanted) {
            *piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            header.msg_hdr.msg_name = name.address.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = size_of::<SocketAddrStorage>() as _;
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = name.control.as_mut_ptr();
            header.msg_hdr.msg_controllen = Controls::BYTES as _;
        }
        loop {
            // SAFETY: each header names memory of its own that lives through the call, of the length it says.
            let count = unsafe {
                libc::recvmmsg(
                    self.socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    wanted as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            if let Ok(count) = usize::try_from(count) {
                for (name, header) in names.rooms.iter_mut().zip(&headers).take(count) {
                    name.note(header);
                }
                return Ok(count);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(0),
                Some(libc::EINTR) => {}
                Some(errno) if is_of_one_datagram(errno) => {}
                _ => return Err(error),
            }
        }
    }

    /// Sends up to `BATCH_MAX` of them. Returns how many were taken; an error is that of the first.
    fn send_some(&self, batch: &[Transmit<'_, UdpPath>]) -> Result<usize, i32> {
        // SAFETY: all zeroes are a valid header, as above.
        let mut headers: [libc::mmsghdr; BATCH_MAX] = unsafe { std::mem::zeroed() };
        let mut pieces = [[libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2]; BATCH_MAX];
        let mut addresses: [Option<SocketAddrAny>; BATCH_MAX] = [const { None }; BATCH_MAX];
        let mut controls = [const { Controls::new() }; BATCH_MAX];
        let parts = headers.iter_mut().zip(&mut pieces).zip(&mut addresses).zip(&mut controls).zip(batch);
        for ((((header, pieces), address), controls), transmit) in parts {
            for (piece, bytes) in pieces.iter_mut().zip([transmit.head, transmit.bytes]) {
                *piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            }
            let address = address.insert(transmit.path.peer.as_any());
            header.msg_hdr.msg_name = address.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = address.addr_len();
            header.msg_hdr.msg_iov = pieces.as_mut_ptr();
            header.msg_hdr.msg_iovlen = 2;
            write_controls(controls, transmit);
            if !controls.is_empty() {
                header.msg_hdr.msg_control = controls.as_mut_ptr();
                header.msg_hdr.msg_controllen = controls.length() as _;
            }
        }
        let count = batch.len().min(BATCH_MAX);
        // SAFETY: each header names an address, two pieces and control data that live through the call and
        // are only read by it.
        let taken = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        usize::try_from(taken).map_err(|_| errno())
    }

    /// Sends a run of datagrams one by one, where the kernel or the interface does not divide. Returns the
    /// `errno` of the last one refused; those after one that found no room are lost like it.
    fn send_apart(&self, transmit: &Transmit<'_, UdpPath>, segment_bytes: usize) -> Result<(), i32> {
        let mut outcome = Ok(());
        for bytes in transmit.bytes.chunks(segment_bytes.max(1)) {
            let one = Transmit { bytes, segment_bytes: None, ..*transmit };
            if let Err(errno) = self.send_some(&[one]) {
                outcome = Err(errno);
            }
        }
        outcome
    }
}

impl Datagrams for Udp {
    type Path = UdpPath;

    fn limits(&self) -> DatagramLimits {
        let segments_max = self.segments_max;
        DatagramLimits { datagram_bytes_max: DATAGRAM_BYTES_MAX, segments_max, ecn: true }
    }

    fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::Descriptor(self.socket.try_clone()?))
    }

    fn receive_batch(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, UdpPath>),
    ) -> io::Result<usize> {
        let mut names = Names::default();
        let mut taken = 0;
        while taken < count_max {
            let wanted = (count_max - taken).min(BATCH_MAX);
            let count = self.receive_some(&mut names, wanted)?;
            let buffers = self.buffers.chunks_exact_mut(BUFFER_BYTES);
            for (name, buffer) in names.rooms.iter().zip(buffers).take(count) {
                if let Some(datagram) = name.datagram(buffer) {
                    take(datagram);
                }
            }
            taken += count;
            if count < wanted {
                break;
            }
        }
        Ok(taken)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, UdpPath>]) -> io::Result<BatchSent> {
        let mut sent = BatchSent::default();
        while let Some(first) = batch.get(sent.done) {
            let outcome = match first.segment_bytes {
                Some(segment_bytes) if self.segments_max == 1 => {
                    self.send_apart(first, segment_bytes).map(|()| 1)
                }
                _ => self.send_some(&batch[sent.done..]),
            };
            match outcome {
                Ok(count) => sent.done += count,
                Err(libc::EAGAIN | libc::ENOBUFS) => break,
                Err(libc::EINTR) => {}
                // The interface does not divide (udp(7): its checksums are not computed by hardware).
                Err(libc::EIO) if first.segment_bytes.is_some() && self.segments_max > 1 => {
                    self.segments_max = 1;
                }
                Err(errno) if errno == libc::EBADF => return Err(io::Error::from_raw_os_error(errno)),
                Err(errno) => {
                    (sent.done, sent.refused, sent.errno) = (sent.done + 1, sent.refused + 1, errno);
                }
            }
        }
        Ok(sent)
    }
}

/// Where the kernel writes whom a datagram came from, and what belongs to it.
struct Name {
    address: MaybeUninit<SocketAddrStorage>,
    address_bytes: libc::socklen_t,
    control: Controls,
    length: usize,
    truncated: bool,
}

/// Those of a batch.
struct Names {
    rooms: [Name; BATCH_MAX],
}

impl Default for Names {
    fn default() -> Self {
        let name = || Name {
            address: MaybeUninit::zeroed(),
            address_bytes: 0,
            control: Controls::new(),
            length: 0,
            truncated: false,
        };
        Self { rooms: std::array::from_fn(|_| name()) }
    }
}

impl Name {
    fn note(&mut self, header: &libc::mmsghdr) {
        self.address_bytes = header.msg_hdr.msg_namelen;
        self.control.set_length(header.msg_hdr.msg_controllen as _);
        self.length = header.msg_len as usize;
        self.truncated = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
    }

    /// What came, if it came whole and from an address.
    fn datagram<'a>(&self, buffer: &'a mut [u8]) -> Option<Datagram<'a, UdpPath>> {
        if self.truncated {
            return None;
        }
        // SAFETY: the room was zeroed at first, and the kernel has written an address into it.
        let address = unsafe { self.address.assume_init_ref() };
        let (path, ecn, segment_bytes) = path_of(address, self.address_bytes as usize, self.control.bytes())?;
        let bytes = &mut buffer[..self.length];
        let segment_bytes = segment_bytes.map_or(bytes.len(), |length| length.clamp(1, bytes.len().max(1)));
        Some(Datagram { path, bytes, segment_bytes, ecn })
    }
}

/// Between whom a datagram came, its bits of ECN, and the length of its segments if several were joined;
/// `None` if it came from no address of the Internet.
pub(crate) fn path_of(
    address: &SocketAddrStorage,
    address_bytes: usize,
    controls: &[u8],
) -> Option<(UdpPath, Option<Ecn>, Option<usize>)> {
    // SAFETY: all of the room is initialized, and the length is no longer than it.
    let peer = unsafe { SocketAddrAny::read(address, address_bytes.min(size_of_val(address)) as _) };
    let mut path = UdpPath { peer: peer.try_into().ok()?, local: None };
    let (mut ecn, mut segment_bytes) = (None, None);
    for control in controls_in(controls) {
        match control {
            Control::Ecn(value) => ecn = value,
            Control::Local(address) => path.local = Some(address),
            Control::Segment(length) => segment_bytes = Some(usize::from(length)),
        }
    }
    Some((path, ecn, segment_bytes))
}

fn write_controls(controls: &mut Controls, transmit: &Transmit<'_, UdpPath>) {
    if let Some(local) = transmit.path.local {
        controls.push(Control::Local(mapped_like(local, transmit.path.peer)));
    }
    if transmit.ecn.is_some() {
        controls.push_ecn(transmit.ecn, transmit.path.peer.is_ipv6());
    }
    if let Some(length) = transmit.segment_bytes.filter(|length| *length < transmit.bytes.len()) {
        controls.push(Control::Segment(length as u16));
    }
}

/// A local address in the family of the peer's: a peer of IPv4 may be known by an address of IPv6 that
/// contains it.
fn mapped_like(local: IpAddr, peer: SocketAddr) -> IpAddr {
    match (local, peer) {
        (IpAddr::V4(four), SocketAddr::V6(_)) => IpAddr::V6(four.to_ipv6_mapped()),
        (local, _) => local,
    }
}

/// Errors that ICMP or a filter has left at the socket for a datagram sent before.
pub(crate) fn is_of_one_datagram(errno: i32) -> bool {
    matches!(
        errno,
        libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENETDOWN
            | libc::EMSGSIZE
            | libc::EPROTO
            | libc::ENOPROTOOPT
            | libc::EACCES
            | libc::EPERM
    )
}
