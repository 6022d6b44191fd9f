//! Datagrams, sent and received in batches: the one interface for UDP (HTTP/3), packet rings and DOSTP.
//!
//! It owns the words only; each body stands in a file of its own. It must never parse what a datagram holds,
//! wait, or keep what was refused: whoever sends datagrams has to bear that they are lost.
//!
//! Order of calls: [`crate::Io::watch`] with [`Datagrams::readiness`] once; at each
//! [`crate::Completion::Ready`] `receive_batch` until it returns less than was asked for (the report comes
//! again only for what came after it). `send_batch` at any time; where it took less than all,
//! [`crate::Io::watch_room`] reports once there is room.

mod control;
mod family;
mod link_udp;
mod mapping;
mod packet_ring;
mod simulated;
mod udp;
mod xdp_ring;

pub use family::{FamilyName, FamilySocket};
pub use link_udp::LinkUdp;
pub use packet_ring::{PacketFilter, PacketRing, RingCounts};
pub use simulated::{Network, NetworkFaults, SimulatedDatagrams};
pub(crate) use udp::{CONTROL_BYTES_MAX, is_of_one_datagram, path_of};
pub use udp::{Udp, UdpPath};
pub use xdp_ring::{XDP_MTU_MAX, XdpMode, XdpRing};

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The two bits of explicit congestion notification in a packet's header (RFC 3168, section 5). A packet
/// without them has no value of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// ECT(1).
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The value of two bits; `None` for 0 (not capable). Higher bits are ignored.
    pub fn from_bits(bits: u8) -> Option<Self> {
        [None, Some(Self::Ect1), Some(Self::Ect0), Some(Self::Ce)][usize::from(bits & 3)]
    }

    /// The two bits.
    pub fn bits(self) -> u8 {
        self as u8
    }
}

/// A link address, as a path: a MAC address, or an IPv4 address followed by a port where frames travel in
/// UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkAddress(pub [u8; 6]);

impl LinkAddress {
    /// All stations of a segment.
    pub const EVERYBODY: Self = Self([0xff; 6]);
}

/// What came: one datagram, or several of one sender that the kernel has joined (UDP GRO).
#[derive(Debug)]
pub struct Datagram<'a, P> {
    /// Between whom.
    pub path: P,
    /// The bytes, which may be changed in place. They are lent until the call returns.
    pub bytes: &'a mut [u8],
    /// Length of each joined datagram but the last, which may be shorter. As long as `bytes` if there is one.
    pub segment_bytes: usize,
    /// What the network said of congestion, where the body can tell.
    pub ecn: Option<Ecn>,
}

/// How long the head of an Ethernet frame is: two link addresses and an EtherType.
const ETHERNET_BYTES: usize = 14;

impl<'a> Datagram<'a, LinkAddress> {
    /// What an Ethernet frame carries, from the link address that sent it; `None` if its head is not whole.
    #[inline]
    fn of_frame(frame: &'a mut [u8]) -> Option<Self> {
        let (ethernet, bytes) = frame.split_at_mut_checked(ETHERNET_BYTES)?;
        let link = ethernet[6..12].try_into().ok()?;
        Some(Self { path: LinkAddress(link), segment_bytes: bytes.len(), bytes, ecn: None })
    }
}

/// What is to be sent: one datagram, or several of equal length to one receiver.
#[derive(Debug, Clone, Copy)]
pub struct Transmit<'a, P> {
    /// Between whom.
    pub path: P,
    /// Stands before `bytes` in the same datagram, so that a header need not be copied before its payload.
    /// Empty where there are several datagrams.
    pub head: &'a [u8],
    /// The rest.
    pub bytes: &'a [u8],
    /// Length of each datagram but the last, where there are several; at most
    /// [`DatagramLimits::segments_max`] of them.
    pub segment_bytes: Option<usize>,
    /// To be written into the header, where the body can.
    pub ecn: Option<Ecn>,
}

/// What a body can do here, as found by trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramLimits {
    /// The longest datagram in bytes, `head` included.
    pub datagram_bytes_max: usize,
    /// How many datagrams one [`Transmit`] may hold; 1 where the kernel does not divide (UDP GSO).
    pub segments_max: usize,
    /// Whether `ecn` is written and read.
    pub ecn: bool,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchSent {
    /// So many of the batch, from its beginning, are done with: taken by the kernel, or refused. The others
    /// found no room, or stand behind a frame that a link has refused, and were not looked at.
    pub done: usize,
    /// So many of those were refused and are lost.
    pub refused: usize,
    /// The `errno` of the last one refused (EMSGSIZE, ENETUNREACH, EPERM, ECONNREFUSED, ...), or 0.
    pub errno: i32,
}

/// Number of what one [`crate::Io`] watches, used again after `unwatch`.
pub type Watch = u32;

/// How a worker learns that something has come.
#[derive(Debug)]
pub enum Readiness {
    /// A descriptor that can be polled: a duplicate, owned by who watches it.
    Descriptor(OwnedFd),
    /// Set when something has come: bodies without a kernel.
    Flag(Arc<AtomicBool>),
}

/// A socket that sends and receives datagrams, owned by one thread.
pub trait Datagrams {
    /// What tells between whom a datagram goes: addresses for UDP, a hardware address for a link.
    type Path: Copy + Debug + PartialEq;

    /// What this body can do here.
    fn limits(&self) -> DatagramLimits;

    /// What [`crate::Io::watch`] wants.
    ///
    /// # Errors
    /// EMFILE, ENFILE: no descriptor is left for the duplicate.
    fn readiness(&self) -> io::Result<Readiness>;

    /// Hands each datagram that has come to `take`, in order of arrival, at most `count_max` of them, without
    /// waiting. Returns how many; less than `count_max` means that there are no more.
    ///
    /// # Errors
    /// What cannot be gone on after. An error that concerns one datagram (ICMP, ECONNREFUSED) is none.
    fn receive_batch(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, Self::Path>),
    ) -> io::Result<usize>;

    /// Sends a batch in order, without waiting. A link (packet ring, AF_XDP, frames in UDP) ends the batch at
    /// a frame that it refuses: those behind that may be parts of the same message.
    ///
    /// # Errors
    /// What cannot be gone on after (EBADF, ENETDOWN of a bound interface). A packet ring tells it only where
    /// nothing of the batch is done with; else the next call meets it.
    fn send_batch(&mut self, batch: &[Transmit<'_, Self::Path>]) -> io::Result<BatchSent>;
}
