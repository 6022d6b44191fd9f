//! UDP on io_uring: one receive of many shots, whose datagrams come with their addresses in provided buffers.
//!
//! It owns a ring of its own, whose event tells a worker's backend that something has come, so that it may be
//! watched by any of them; sending goes by sendmmsg(2) as without a ring. It must never wait, and never give
//! up a buffer that the kernel may write to. Datagrams longer than a buffer are dropped.
//!
//! A turn costs one call that enters the ring, whatever came since the last. Whether the kernel knows such
//! receives is found out at the beginning, by making one.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::time::Duration;

use io_uring::types::Fd;
use io_uring::{cqueue, opcode};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrStorage;

use super::buffers::{BUFFER_GROUP, BUFFER_SIZE_BYTES};
use super::features::Features;
use super::placement::TableSize;
use super::ring::{Ring, RingLimits};
use crate::datagram::{
    BatchSent, CONTROL_BYTES_MAX, Datagram, DatagramLimits, Datagrams, Readiness, Transmit, Udp, UdpPath,
    is_of_one_datagram, path_of,
};

/// Receive buffers at most: 1 MiB, of which only as much is touched as was needed at once.
const BUFFERS_MAX: u16 = 256;

/// Completions copied out of the ring at once.
const BATCH_MAX: usize = 64;

/// How often the ring is entered for nothing though it is marked as having work: see turn.rs.
const FRUITLESS_MAX: u32 = 16;

/// A table that no descriptor is put into.
const TABLE: TableSize = TableSize { accepted: 1, connected_first: 1, connected: 0 };

/// What the kernel writes in front of a datagram (`struct io_uring_recvmsg_out`): four words, then room for
/// an address and for control data as long as asked for, then the datagram.
const WORDS_BYTES: usize = 16;
const NAME_BYTES: usize = size_of::<libc::sockaddr_in6>();
const DATAGRAM_START: usize = WORDS_BYTES + NAME_BYTES + CONTROL_BYTES_MAX;

/// A UDP socket with a ring to receive by.
pub struct UdpRing {
    udp: Udp,
    ring: ManuallyDrop<Ring>,
    /// Signalled when the ring has work.
    event: OwnedFd,
    /// What the receive asks for.
    header: Box<libc::msghdr>,
    batch: Vec<cqueue::Entry>,
    batch_next: usize,
}

impl UdpRing {
    /// Takes a bound UDP socket (see [`Udp::new`]). To be called on the thread that will use it.
    ///
    /// # Errors
    /// Those of making a ring; EOPNOTSUPP: the kernel knows no such receives.
    pub fn new(socket: OwnedFd, features: &Features) -> io::Result<Self> {
        let udp = Udp::unjoined(socket)?;
        let limits = RingLimits { table: TABLE, buffers: BUFFERS_MAX, watched: true };
        let ring = Ring::new(features, limits)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        ring.signal_work(&event)?;
        // SAFETY: all zeroes are a valid header without name, pieces and control data.
        let mut header: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        header.msg_namelen = NAME_BYTES as _;
        header.msg_controllen = CONTROL_BYTES_MAX as _;
        let batch = Vec::with_capacity(BATCH_MAX);
        let mut made = Self { udp, ring: ManuallyDrop::new(ring), event, header, batch, batch_next: 0 };
        made.arm();
        made.refill()?;
        match made.batch.first() {
            Some(refused) if refused.result() == -libc::EINVAL => Err(Errno::OPNOTSUPP.into()),
            _ => Ok(made),
        }
    }

    fn arm(&mut self) {
        let socket = Fd(self.udp.descriptor());
        let receive = opcode::RecvMsgMulti::new(socket, &raw const *self.header, BUFFER_GROUP);
        self.ring.push(&receive.build());
    }

    /// Enters the ring and copies out what has come. Returns whether there is any.
    fn refill(&mut self) -> io::Result<bool> {
        self.batch.clear();
        self.batch_next = 0;
        self.ring.enter(Some(Duration::ZERO))?;
        self.ring.take_completions(&mut self.batch);
        Ok(!self.batch.is_empty())
    }

    /// Hands over what one completion brings. Returns how many datagrams that is.
    ///
    /// # Errors
    /// What cannot be gone on after.
    fn take(
        &mut self,
        entry: &cqueue::Entry,
        take: &mut dyn FnMut(Datagram<'_, UdpPath>),
    ) -> io::Result<usize> {
        if !cqueue::more(entry.flags()) {
            if entry.result() == -libc::ENOBUFS {
                self.ring.buffers.grow();
            }
            self.arm();
        }
        let Some(buffer) = cqueue::buffer_select(entry.flags()) else {
            return match -entry.result() {
                libc::ENOBUFS | libc::EINTR | ..=0 => Ok(0),
                errno if is_of_one_datagram(errno) => Ok(0),
                errno => Err(io::Error::from_raw_os_error(errno)),
            };
        };
        self.ring.buffers.take();
        let length = usize::try_from(entry.result()).unwrap_or(0).min(BUFFER_SIZE_BYTES);
        let datagram = parse(self.ring.buffers.bytes_mut(buffer, length));
        let count = datagram.map(take).map_or(0, |()| 1);
        self.ring.buffers.give_back(buffer);
        Ok(count)
    }
}

impl Drop for UdpRing {
    fn drop(&mut self) {
        if self.ring.cancel_all() {
            // SAFETY: it is dropped nowhere else, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
        }
        // Else the kernel may still write into the ring's buffers: they are leaked with it.
    }
}

impl Datagrams for UdpRing {
    type Path = UdpPath;

    fn limits(&self) -> DatagramLimits {
        let datagram_bytes_max = BUFFER_SIZE_BYTES - DATAGRAM_START;
        DatagramLimits { datagram_bytes_max, ..self.udp.limits() }
    }

    fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::Descriptor(self.event.try_clone()?))
    }

    fn receive_batch(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, UdpPath>),
    ) -> io::Result<usize> {
        let (mut taken, mut fruitless) = (0, 0);
        while taken < count_max {
            if let Some(entry) = self.batch.get(self.batch_next).cloned() {
                self.batch_next += 1;
                taken += self.take(&entry, take)?;
            } else if !self.refill()? {
                fruitless += 1;
                if !self.ring.has_work() || fruitless == FRUITLESS_MAX {
                    break;
                }
            }
        }
        Ok(taken)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, UdpPath>]) -> io::Result<BatchSent> {
        self.udp.send_batch(batch)
    }
}

/// The datagram in a buffer, if it came whole and from an address.
fn parse(bytes: &mut [u8]) -> Option<Datagram<'_, UdpPath>> {
    let (before, bytes) = bytes.split_at_mut_checked(DATAGRAM_START)?;
    let word = |index: usize| {
        let word = before[index * 4..index * 4 + 4].first_chunk().copied().unwrap_or_default();
        u32::from_ne_bytes(word)
    };
    let (name_bytes, control_bytes) = (word(0) as usize, word(1) as usize);
    if word(2) as usize > bytes.len() || word(3) as libc::c_int & libc::MSG_TRUNC != 0 {
        return None;
    }
    let name = before.get(WORDS_BYTES..WORDS_BYTES + name_bytes.min(NAME_BYTES))?;
    let controls_start = WORDS_BYTES + NAME_BYTES;
    let controls = before.get(controls_start..controls_start + control_bytes.min(CONTROL_BYTES_MAX))?;
    // SAFETY: a sockaddr_storage is made of integers, for which all zeroes are valid.
    let mut address: SocketAddrStorage = unsafe { std::mem::zeroed() };
    // SAFETY: an address of IPv6 is shorter than the room for any address, and the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(name.as_ptr(), (&raw mut address).cast::<u8>(), name.len());
    }
    let (path, ecn, _) = path_of(&address, name.len(), controls)?;
    let bytes = &mut bytes[..word(2) as usize];
    let segment_bytes = bytes.len();
    Some(Datagram { path, bytes, segment_bytes, ecn })
}
