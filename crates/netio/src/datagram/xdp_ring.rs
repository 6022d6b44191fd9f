//! Ethernet frames of one type and port, received before the kernel's stack sees them (AF_XDP).
//!
//! It owns a socket, the memory its frames stand in, and the program that picks them. It must never look into
//! a frame beyond its Ethernet header, nor give a place back to the kernel while its bytes are lent. Frames
//! are copied between that memory and the driver's; handing over the driver's own was not tried, for want of
//! a card.

mod program;
mod queue;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use self::program::Attached;
pub use self::program::XdpMode;
use self::queue::{Giving, Taking};
use super::mapping::Mapping;
use super::{
    BatchSent, Datagram, DatagramLimits, Datagrams, ETHERNET_BYTES, LinkAddress, Readiness, Transmit,
};

/// Bytes the kernel keeps free before each frame (XDP_PACKET_HEADROOM).
const HEADROOM_BYTES: usize = 256;

/// Bytes of a place for a frame, the sizes the kernel knows: the lesser one for an ordinary Ethernet.
const PLACE_BYTES: [usize; 2] = [2048, 4096];

/// Places for frames that come, a power of two: as many as a packet ring of 4 MiB has.
const RECEIVE_PLACES: u32 = 2048;

/// Entries of the ring by which those places are given to the kernel. The kernel shows frames that came
/// before it says that it took their entries: a place may stand in an old entry and in a new one at once.
const FILL_ENTRIES: u32 = 2 * RECEIVE_PLACES;

/// Places for frames that leave, a power of two: two of the longest messages.
const SEND_PLACES: u32 = 512;

/// The longest MTU whose frames fit a place.
pub const XDP_MTU_MAX: u32 = (PLACE_BYTES[1] - HEADROOM_BYTES - ETHERNET_BYTES) as u32;

/// An AF_XDP socket on the first queue of an interface.
#[derive(Debug)]
pub struct XdpRing {
    // Goes first, so that no frame is handed to a socket that is closing.
    _attached: Attached,
    socket: OwnedFd,
    memory: Mapping,
    place_bytes: usize,
    /// Places the kernel may write frames to.
    fill: Giving<u64>,
    received: Taking<XdpDesc>,
    sending: Giving<XdpDesc>,
    /// Places whose frames have left.
    sent: Taking<u64>,
    /// Places for frames that leave, as far as they are free.
    free: Vec<u64>,
    link: [u8; 6],
    ether_type: [u8; 2],
    mtu: usize,
    told_dropped: u64,
}

impl XdpRing {
    /// Receives frames to the interface or to a group, of that type and with this number at bytes 8 and 9
    /// behind the Ethernet header, on the interface of this number, whose hardware address and MTU are given.
    /// All others go their way.
    ///
    /// # Errors
    /// The step that failed, and why: a right is missing (CAP_NET_RAW for the socket; CAP_BPF and
    /// CAP_NET_ADMIN for the program), the queue or the interface has an owner already (EBUSY, EEXIST), the
    /// driver refuses the program, or not enough memory may be locked (ENOBUFS).
    pub fn open(
        index: u32,
        link: LinkAddress,
        mtu: usize,
        ether_type: u16,
        port: u16,
        mode: XdpMode,
    ) -> io::Result<Self> {
        let place_bytes = place_bytes(mtu)?;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(|errno| during("socket", errno.into()))?;
        let places = u64::from(RECEIVE_PLACES + SEND_PLACES);
        let memory = Mapping::anonymous(places as usize * place_bytes)?;
        let region = XdpUmemReg {
            addr: memory.at(0, 0) as u64,
            len: places * place_bytes as u64,
            chunk_size: place_bytes as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, region).map_err(|errno| during("its memory", errno.into()))?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, FILL_ENTRIES)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, SEND_PLACES)?;
        sockopt::set_xdp_rx_ring_size(&socket, RECEIVE_PLACES)?;
        sockopt::set_xdp_tx_ring_size(&socket, SEND_PLACES)?;
        let at = sockopt::xdp_mmap_offsets(&socket)?;
        let mut fill = Giving::map(socket.as_fd(), XDP_UMEM_PGOFF_FILL_RING, at.fr, FILL_ENTRIES)?;
        let received = Taking::map(socket.as_fd(), XDP_PGOFF_RX_RING, at.rx, RECEIVE_PLACES)?;
        let sending = Giving::map(socket.as_fd(), XDP_PGOFF_TX_RING, at.tx, SEND_PLACES)?;
        let sent = Taking::map(socket.as_fd(), XDP_UMEM_PGOFF_COMPLETION_RING, at.cr, SEND_PLACES)?;
        let place = |number: u32| u64::from(number) * place_bytes as u64;
        (0..RECEIVE_PLACES).for_each(|number| fill.put(place(number)));
        fill.publish();
        let free = (RECEIVE_PLACES..RECEIVE_PLACES + SEND_PLACES).map(place).collect();
        bind(&socket, &SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, index, 0))
            .map_err(|errno| during("its queue", errno.into()))?;
        let attached = Attached::to(socket.as_fd(), (index, link.0), ether_type, port, mode)
            .map_err(|error| during("its program", error))?;
        Ok(Self {
            _attached: attached,
            socket,
            memory,
            place_bytes,
            fill,
            received,
            sending,
            sent,
            free,
            link: link.0,
            ether_type: ether_type.to_be_bytes(),
            mtu,
            told_dropped: 0,
        })
    }

    /// Frames that the kernel dropped for want of a place, since it was asked last.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn dropped(&mut self) -> io::Result<u64> {
        let statistics = sockopt::xdp_statistics(&self.socket)?;
        let all = statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0);
        let dropped = all - self.told_dropped;
        self.told_dropped = all;
        Ok(dropped)
    }

    /// The bytes of a frame that is this side's.
    fn frame(&self, address: u64, length: usize) -> &'static mut [u8] {
        let bytes = self.memory.at(address as usize, length);
        // SAFETY: the bytes lie within the memory. Their place is in no ring that the kernel reads: it was
        // taken from the received frames or from the free places, each of which names a place once, and it
        // is given away only after the last use of the bytes.
        unsafe { std::slice::from_raw_parts_mut(bytes, length) }
    }

    /// Takes back places whose frames have left; says whether there were any.
    fn reclaim(&mut self) -> bool {
        let count = self.sent.waiting();
        for _ in 0..count {
            self.free.push(self.sent.take());
        }
        self.sent.release();
        count > 0
    }

    /// Writes frames of a batch behind each other as long as there are places.
    fn write(&mut self, batch: &[Transmit<'_, LinkAddress>], sent: &mut BatchSent) {
        while let Some(transmit) = batch.get(sent.done) {
            let (head, bytes) = (transmit.head.len(), transmit.bytes.len());
            if head + bytes > self.mtu {
                (sent.done, sent.refused, sent.errno) = (sent.done + 1, 1, libc::EMSGSIZE);
                return;
            }
            let Some(address) = self.free.pop() else { return };
            let length = ETHERNET_BYTES + head + bytes;
            let frame = self.frame(address, length);
            frame[..6].copy_from_slice(&transmit.path.0);
            frame[6..12].copy_from_slice(&self.link);
            frame[12..ETHERNET_BYTES].copy_from_slice(&self.ether_type);
            frame[ETHERNET_BYTES..ETHERNET_BYTES + head].copy_from_slice(transmit.head);
            frame[ETHERNET_BYTES + head..].copy_from_slice(transmit.bytes);
            let options = XdpDescOptions::empty();
            self.sending.put(XdpDesc { addr: address, len: length as u32, options });
            sent.done += 1;
        }
    }

    /// Lets the kernel send what waits, as much as it takes just now.
    fn push(&mut self) -> io::Result<()> {
        loop {
            let before = self.sending.untaken();
            if before == 0 {
                return Ok(());
            }
            // SAFETY: the descriptor is open for the length of the call, which reads no byte of ours but
            // those in the rings.
            let result = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            if result < 0 {
                let error = io::Error::last_os_error();
                // The kernel takes so many frames a call, or its queue is full.
                let goes_on = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS, libc::EINTR];
                if !error.raw_os_error().is_some_and(|errno| goes_on.contains(&errno)) {
                    return Err(error);
                }
            }
            if self.sending.untaken() == before {
                return Ok(());
            }
        }
    }
}

impl Datagrams for XdpRing {
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
        let count = (self.received.waiting() as usize).min(count_max);
        for _ in 0..count {
            let entry = self.received.take();
            let frame = self.frame(entry.addr, entry.len as usize);
            if let Some(datagram) = Datagram::of_frame(frame) {
                take(datagram);
            }
            self.fill.put(entry.addr - entry.addr % self.place_bytes as u64);
        }
        if count > 0 {
            self.received.release();
            self.fill.publish();
        }
        // What found the kernel's queue full goes now, if it can.
        self.push()?;
        Ok(count)
    }

    fn send_batch(&mut self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<BatchSent> {
        let mut sent = BatchSent::default();
        loop {
            self.reclaim();
            self.write(batch, &mut sent);
            self.sending.publish();
            self.push()?;
            if sent.done == batch.len() || sent.refused > 0 || self.sent.waiting() == 0 {
                return Ok(sent);
            }
        }
    }
}

/// Bytes of a place in which frames of this MTU fit.
fn place_bytes(mtu: usize) -> io::Result<usize> {
    let fits = |bytes: &usize| HEADROOM_BYTES + ETHERNET_BYTES + mtu <= *bytes;
    PLACE_BYTES.into_iter().find(fits).ok_or_else(|| {
        let message = format!("AF_XDP takes an MTU of at most {XDP_MTU_MAX}, and this one is {mtu}");
        io::Error::new(io::ErrorKind::Unsupported, message)
    })
}

/// The error with the name of what it concerns.
fn during(step: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{step}: {error}"))
}
