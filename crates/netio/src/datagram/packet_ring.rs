//! Ethernet frames of one type, received in place from a ring shared with the kernel (packet(7), TPACKET_V2).
//!
//! It owns a packet socket and its mapping. It must never look into a frame beyond its Ethernet header, nor
//! give a slot back to the kernel while its bytes are lent. Needs CAP_NET_RAW to open, and nothing
//! afterwards.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::mapping::Mapping;
use super::{
    BatchSent, Datagram, DatagramLimits, Datagrams, ETHERNET_BYTES, LinkAddress, Readiness, Transmit,
};

/// Bytes the kernel writes before a frame: its header, a socket address, and alignment.
const SLOT_HEAD_BYTES: usize = 128;

/// Where in a slot the kernel writes from where a frame came: its header is aligned to 16 bytes.
const FROM_OFFSET: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);

/// The bits of a VLAN tag that are the VLAN's number (VLAN_VID_MASK).
const VLAN_NUMBER: u16 = 0x0fff;

/// Frames handed to the kernel in one call.
const BATCH_COUNT: usize = 64;

/// Offset of the DOSTP destination port in a frame: the kernel's filter compares it.
const PORT_OFFSET: u32 = 22;

/// Which frames of the type a socket gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketFilter {
    /// All of them.
    Everything,
    /// Those with this number at bytes 8 and 9 behind the Ethernet header.
    Port(u16),
}

/// What the kernel counted since it was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounts {
    /// Frames that passed the filter.
    pub received: u64,
    /// Frames that found no free slot.
    pub dropped: u64,
}

/// A packet socket with a ring of received frames.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    ring: Mapping,
    slot_bytes: usize,
    slots: usize,
    next: usize,
    /// Whether it is not known where the kernel goes on: another process may have read.
    is_lost: bool,
    link: [u8; 6],
    /// The interface's number.
    index: i32,
    ether_type: [u8; 2],
    mtu: usize,
}

/// How a ring is laid out in memory.
struct Shape {
    slot_bytes: usize,
    block_bytes: usize,
    blocks: usize,
}

impl Shape {
    /// For frames of this MTU, in about so many bytes.
    fn of(mtu: usize, ring_bytes: usize) -> Self {
        let slot_bytes = (SLOT_HEAD_BYTES + ETHERNET_BYTES + mtu).next_power_of_two().max(2048);
        let block_bytes = slot_bytes.max(page_bytes());
        Self { slot_bytes, block_bytes, blocks: (ring_bytes / block_bytes).max(1) }
    }

    fn slots(&self) -> usize {
        self.blocks * (self.block_bytes / self.slot_bytes)
    }
}

impl PacketRing {
    /// Receives frames of that type on the interface of this number, whose hardware address and MTU are
    /// given. All slots together have about `ring_bytes`.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; ENOMEM; ENETDOWN where the interface is not up.
    pub fn open(
        index: u32,
        link: LinkAddress,
        mtu: usize,
        ether_type: u16,
        filter: PacketFilter,
        ring_bytes: usize,
    ) -> io::Result<Self> {
        let socket = Self::prepare(index, mtu, ether_type, filter, ring_bytes)?;
        Self::adopt(socket, link, mtu, ether_type, ring_bytes)
    }

    /// A socket that receives already, for [`PacketRing::adopt`] in this process or, handed over, in another
    /// one, which then needs no right.
    ///
    /// # Errors
    /// Those of [`PacketRing::open`].
    pub fn prepare(
        index: u32,
        mtu: usize,
        ether_type: u16,
        filter: PacketFilter,
        ring_bytes: usize,
    ) -> io::Result<OwnedFd> {
        // Protocol 0: nothing is received before everything is set up.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
        )?;
        option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)?;
        attach(&socket, filter)?;
        let shape = Shape::of(mtu, ring_bytes);
        let request = libc::tpacket_req {
            tp_block_size: shape.block_bytes as u32,
            tp_block_nr: shape.blocks as u32,
            tp_frame_size: shape.slot_bytes as u32,
            tp_frame_nr: shape.slots() as u32,
        };
        option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let mut address = socket_address(index);
        address.sll_protocol = ether_type.to_be();
        bind(&socket, &address)?;
        Ok(socket)
    }

    /// Takes over a socket that was prepared with these words. Nobody else may read from its ring.
    ///
    /// # Errors
    /// EINVAL: it was prepared with others, or is no such socket; ENOMEM.
    pub fn adopt(
        socket: OwnedFd,
        link: LinkAddress,
        mtu: usize,
        ether_type: u16,
        ring_bytes: usize,
    ) -> io::Result<Self> {
        let shape = Shape::of(mtu, ring_bytes);
        let ring = Mapping::of_descriptor(socket.as_fd(), 0, shape.blocks * shape.block_bytes)?;
        let (slot_bytes, slots) = (shape.slot_bytes, shape.slots());
        let ether_type = ether_type.to_be_bytes();
        let index = bound_to(&socket)?;
        let link = link.0;
        Ok(Self { socket, ring, slot_bytes, slots, next: 0, is_lost: false, link, index, ether_type, mtu })
    }

    /// A copy of the socket, for [`PacketRing::adopt`] and [`PacketRing::seek`] in another process, which
    /// reads instead of this one from then on.
    ///
    /// # Errors
    /// EMFILE.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Another process has read from this ring, or may have: the slot that the kernel fills next is not
    /// known, and is found by the first frame that comes.
    pub fn seek(&mut self) {
        self.is_lost = true;
    }

    /// Looks for the oldest frame: a slot that is full, behind one that is not. The slot before is looked at
    /// last, for the kernel fills them in order.
    fn find(&mut self) {
        let is_full = |slot: usize| self.status(slot).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0;
        let before = |slot: usize| if slot == 0 { self.slots - 1 } else { slot - 1 };
        let oldest = (0..self.slots).find(|slot| is_full(*slot) && !is_full(before(*slot)));
        if let Some(slot) = oldest.or_else(|| is_full(0).then_some(0)) {
            (self.next, self.is_lost) = (slot, false);
        }
    }

    /// What the kernel counted since it was asked last (PACKET_STATISTICS).
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn counts(&self) -> io::Result<RingCounts> {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the descriptor is open for the length of the call, and the struct is as long as is said.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        };
        check(result)?;
        // The kernel counts dropped frames among the packets.
        let received = u64::from(counts.tp_packets.saturating_sub(counts.tp_drops));
        Ok(RingCounts { received, dropped: u64::from(counts.tp_drops) })
    }

    /// The status word of a slot, which the kernel and this side hand to each other.
    fn status(&self, slot: usize) -> &AtomicU32 {
        let at = self.ring.at(slot * self.slot_bytes, size_of::<libc::tpacket2_hdr>());
        // SAFETY: the slot lies within the mapping and is aligned to its size; the first field of its header
        // is a u32, which the kernel reads and writes as an atomic.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    /// Where the frame of a slot stands, and how long it is. `None` for one that is not for this interface.
    fn frame(&self, slot: usize) -> Option<&'static mut [u8]> {
        let start = slot * self.slot_bytes;
        // SAFETY: the slot lies within the mapping, and the kernel has handed it over: nobody writes to it.
        // Behind the header it has written from where the frame came (TPACKET2_HDRLEN).
        let (head, from) = unsafe {
            let head = self.ring.at(start, FROM_OFFSET + size_of::<libc::sockaddr_ll>());
            (
                head.cast::<libc::tpacket2_hdr>().read(),
                head.add(FROM_OFFSET).cast::<libc::sockaddr_ll>().read(),
            )
        };
        if !self.is_for_this(&head, &from) {
            return None;
        }
        let (offset, length) = (usize::from(head.tp_mac), head.tp_snaplen as usize);
        if head.tp_snaplen != head.tp_len || length < ETHERNET_BYTES || offset + length > self.slot_bytes {
            return None;
        }
        let bytes = self.ring.at(start + offset, length);
        // SAFETY: the bytes lie within the slot, which is this side's until its status is given back, and
        // `receive_batch` lends them only until then.
        Some(unsafe { std::slice::from_raw_parts_mut(bytes, length) })
    }
}

impl PacketRing {
    /// Whether a frame is one of this interface for this host. Others come as well: those of a VLAN, whether
    /// it has an interface here or not, and, while somebody listens to all, those for other hosts.
    fn is_for_this(&self, head: &libc::tpacket2_hdr, from: &libc::sockaddr_ll) -> bool {
        // Number 0 is none: the tag tells a priority alone.
        let is_tagged =
            head.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && head.tp_vlan_tci & VLAN_NUMBER != 0;
        let for_this_host = [libc::PACKET_HOST, libc::PACKET_BROADCAST, libc::PACKET_MULTICAST];
        from.sll_ifindex == self.index && for_this_host.contains(&from.sll_pkttype) && !is_tagged
    }
}

impl Datagrams for PacketRing {
    type Path = LinkAddress;

    fn limits(&self) -> DatagramLimits {
        DatagramLimits { datagram_bytes_max: self.mtu, segments_max: 1, ecn: false }
    }

    fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::Descriptor(self.socket.try_clone()?))
    }

    fn receive_batch(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, LinkAddress>),
    ) -> io::Result<usize> {
        if self.is_lost {
            self.find();
        }
        for count in 0..count_max {
            let slot = self.next;
            if self.status(slot).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return Ok(count);
            }
            if let Some(datagram) = self.frame(slot).and_then(Datagram::of_frame) {
                take(datagram);
            }
            self.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = if slot + 1 == self.slots { 0 } else { slot + 1 };
        }
        Ok(count_max)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<BatchSent> {
        send_in_calls(batch.len(), |first| {
            let next = (first + BATCH_COUNT).min(batch.len());
            self.send_some(&batch[first..next])
        })
    }
}

/// Sends a batch of so many frames by calls. `send_some` begins at the frame of this number, and says how
/// many the kernel took. An error behind frames that are done with ends the batch and is not told: the caller
/// has to learn how many left, and meets the error at its next call.
fn send_in_calls(
    count: usize,
    mut send_some: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<BatchSent> {
    let mut sent = BatchSent::default();
    while sent.done < count {
        match send_some(sent.done) {
            Ok(taken) => sent.done += taken,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS) => break,
                Some(libc::EINTR) => {}
                Some(errno @ libc::EMSGSIZE) => {
                    (sent.done, sent.refused, sent.errno) = (sent.done + 1, 1, errno);
                    break;
                }
                _ if sent.done > 0 => break,
                _ => return Err(error),
            },
        }
    }
    Ok(sent)
}

impl PacketRing {
    /// Hands over up to [`BATCH_COUNT`] frames in one call; says how many the kernel took.
    fn send_some(&self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<usize> {
        let mut ethernets = [[0; ETHERNET_BYTES]; BATCH_COUNT];
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut vectors = [[empty; 3]; BATCH_COUNT];
        // SAFETY: all zeros are a valid mmsghdr: no name, no control bytes, no vector.
        let mut messages: [libc::mmsghdr; BATCH_COUNT] = unsafe { std::mem::zeroed() };
        for (place, transmit) in batch.iter().enumerate() {
            let ethernet = &mut ethernets[place];
            ethernet[..6].copy_from_slice(&transmit.path.0);
            ethernet[6..12].copy_from_slice(&self.link);
            ethernet[12..].copy_from_slice(&self.ether_type);
            vectors[place] = [vector(ethernet), vector(transmit.head), vector(transmit.bytes)];
            messages[place].msg_hdr.msg_iov = vectors[place].as_mut_ptr();
            messages[place].msg_hdr.msg_iovlen = 3;
        }
        if let [_] = batch {
            // SAFETY: the one message is initialised; its vectors borrow bytes that live until the call
            // returns and that the kernel only reads.
            let result = unsafe {
                libc::sendmsg(self.socket.as_raw_fd(), &raw const messages[0].msg_hdr, libc::MSG_DONTWAIT)
            };
            return if result < 0 { Err(io::Error::last_os_error()) } else { Ok(1) };
        }
        // SAFETY: as many messages as are said are initialised; their vectors borrow bytes that live until
        // the call returns and that the kernel only reads.
        let result = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                batch.len() as libc::c_uint,
                // The parameter is signed in glibc and unsigned in musl.
                libc::MSG_DONTWAIT as _,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// A filter per socket on the port, so that no process is woken by the frames of another.
fn attach(socket: &OwnedFd, filter: PacketFilter) -> io::Result<()> {
    let PacketFilter::Port(port) = filter else { return Ok(()) };
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, PORT_OFFSET),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::from(port)),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn socket_address(index: u32) -> libc::sockaddr_ll {
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

fn bind(socket: &OwnedFd, address: &libc::sockaddr_ll) -> io::Result<()> {
    // SAFETY: the address is a sockaddr_ll of the size given, and lives for the length of the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(address).cast(),
            size_of_val(address) as libc::socklen_t,
        )
    };
    check(result)
}

/// The number of the interface that a socket is bound to.
fn bound_to(socket: &OwnedFd) -> io::Result<i32> {
    let mut address = socket_address(0);
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address and its length live for the length of the call, and the kernel writes no more than
    // the length says.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    check(result)?;
    if address.sll_family != libc::AF_PACKET as u16 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(address.sll_ifindex)
}

/// Sets an option; the value is one that the kernel takes by that name.
fn option<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call, and the value is as long as is said. What
    // the program of a filter points to lives as long as its value.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result)
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a batch of five comes to where these calls have these outcomes, and where each call began.
    fn outcome(calls: &[Result<usize, i32>]) -> (io::Result<BatchSent>, Vec<usize>) {
        let (mut calls, mut begins) = (calls.iter(), Vec::new());
        let sent = send_in_calls(5, |first| {
            begins.push(first);
            calls.next().expect("a call too many").map_err(io::Error::from_raw_os_error)
        });
        assert_eq!(calls.next(), None, "a call too few");
        (sent, begins)
    }

    #[test]
    fn an_error_in_the_middle_of_a_batch_forgets_nothing_that_left() {
        let done = |done| BatchSent { done, refused: 0, errno: 0 };
        let (sent, begins) = outcome(&[Ok(2), Err(libc::ENETDOWN)]);
        assert_eq!((sent.unwrap(), begins), (done(2), vec![0, 2]));
        // The next call, which begins with what is left, meets it.
        let (sent, begins) = outcome(&[Err(libc::ENETDOWN)]);
        assert_eq!((sent.unwrap_err().raw_os_error(), begins), (Some(libc::ENETDOWN), vec![0]));
    }

    #[test]
    fn a_batch_ends_at_a_frame_that_is_refused_and_where_there_is_no_room() {
        // A frame that was refused is done with as well, and its error stands beside it.
        let (sent, begins) = outcome(&[Ok(1), Err(libc::EINTR), Err(libc::EMSGSIZE)]);
        let refused = BatchSent { done: 2, refused: 1, errno: libc::EMSGSIZE };
        assert_eq!((sent.unwrap(), begins), (refused, vec![0, 1, 1]));
        for full in [libc::EAGAIN, libc::ENOBUFS] {
            let (sent, _) = outcome(&[Ok(3), Err(full)]);
            assert_eq!(sent.unwrap().done, 3);
            assert_eq!(outcome(&[Err(full)]).0.unwrap(), BatchSent::default());
        }
    }
}
