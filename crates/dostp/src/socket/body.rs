//! The ways frames travel behind one face, and how one is chosen: by trying, never by version.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use staunch_netio::datagram::{
    BatchSent, Datagram, Datagrams, LinkAddress, LinkUdp, PacketFilter, PacketRing, Readiness, Transmit,
};
use staunch_netio::host::interface::Interface;

use super::options::{Backend, Options};
use crate::greeting::Link;
use crate::limits::MTU_MIN;

/// Bytes of a ring of messages: 2 048 frames of an ordinary Ethernet, what comes in a few milliseconds.
const RING_BYTES: usize = 4 << 20;

/// Bytes of a ring of control frames: 128 of them, more than a node is asked in the time of a wake-up.
const CONTROL_RING_BYTES: usize = 256 << 10;

/// Bytes that IP and UDP headers take of an Ethernet's MTU.
const UDP_OVERHEAD_BYTES: u32 = 28;

/// A way that was opened.
#[derive(Debug)]
pub(super) enum Carrier {
    Ring(PacketRing),
    Udp(LinkUdp),
}

/// A way, and what came of trying.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) body: Carrier,
    /// Control frames, where they come apart from messages.
    pub(super) control: Option<Carrier>,
    pub(super) backend: Backend,
    pub(super) link: Link,
    pub(super) mtu: u16,
    /// Why backends before it were not taken.
    pub(super) refused: Vec<(Backend, io::Error)>,
}

/// Opens the backend that is demanded, or the first that opens. `port` is the one whose frames are wanted.
///
/// # Errors
/// Why the one demanded, or the last, does not open.
pub(super) fn choose(
    interface: &Interface,
    own: Ipv4Addr,
    options: &Options,
    port: u16,
) -> io::Result<Chosen> {
    let mut refused = Vec::new();
    for backend in Backend::ALL {
        if options.backend.is_some_and(|demanded| demanded != backend) {
            continue;
        }
        match open(backend, interface, own, options, port) {
            Ok((body, control, link, mtu)) => {
                return Ok(Chosen { body, control, backend, link, mtu, refused });
            }
            Err(error) if options.backend.is_some() => return Err(error),
            Err(error) => refused.push((backend, error)),
        }
    }
    let reasons: Vec<String> = refused.iter().map(|(backend, error)| format!("{backend}: {error}")).collect();
    let kind = refused.last().map_or(io::ErrorKind::Unsupported, |(_, error)| error.kind());
    Err(io::Error::new(kind, format!("no backend opens ({})", reasons.join("; "))))
}

fn open(
    backend: Backend,
    interface: &Interface,
    own: Ipv4Addr,
    options: &Options,
    port: u16,
) -> io::Result<(Carrier, Option<Carrier>, Link, u16)> {
    let mtu = interface.mtu.min(u32::from(u16::MAX)) as u16;
    match backend {
        Backend::Ring => {
            if !interface.is_ethernet {
                let message = format!("{} is no Ethernet", interface.name);
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
            let ring = |filter, ring_bytes| {
                let (index, link) = (interface.index, LinkAddress(interface.link));
                PacketRing::open(index, link, usize::from(mtu), options.ether_type, filter, ring_bytes)
            };
            if options.takes_all_ports {
                let all = ring(PacketFilter::Everything, RING_BYTES)?;
                return Ok((Carrier::Ring(all), None, Link(interface.link), mtu));
            }
            let control = ring(PacketFilter::Port(0), CONTROL_RING_BYTES)?;
            let messages = ring(PacketFilter::Port(port), RING_BYTES)?;
            Ok((Carrier::Ring(messages), Some(Carrier::Ring(control)), Link(interface.link), mtu))
        }
        Backend::Udp => {
            let address = SocketAddrV4::new(own, options.udp_port);
            let udp = LinkUdp::bind(address)?;
            let link = Link(LinkUdp::link(SocketAddrV4::new(own, udp.local_port()?)).0);
            let mtu =
                interface.mtu.saturating_sub(UDP_OVERHEAD_BYTES).clamp(u32::from(MTU_MIN), 65_507) as u16;
            Ok((Carrier::Udp(udp), None, link, mtu))
        }
    }
}

impl Carrier {
    /// A descriptor that can be polled.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        let readiness = match self {
            Self::Ring(ring) => ring.readiness(),
            Self::Udp(udp) => udp.readiness(),
        }?;
        match readiness {
            Readiness::Descriptor(descriptor) => Ok(descriptor),
            Readiness::Flag(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Hands on what has come, at most so many frames.
    #[inline]
    pub(super) fn receive(
        &mut self,
        count_max: usize,
        take: &mut dyn FnMut(Datagram<'_, LinkAddress>),
    ) -> io::Result<usize> {
        match self {
            Self::Ring(ring) => ring.receive_batch(count_max, take),
            Self::Udp(udp) => udp.receive_batch(count_max, take),
        }
    }

    /// Sends in order, without waiting.
    #[inline]
    pub(super) fn send(&mut self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<BatchSent> {
        match self {
            Self::Ring(ring) => ring.send_batch(batch),
            Self::Udp(udp) => udp.send_batch(batch),
        }
    }

    /// Frames the kernel dropped before they could be received, since it was asked last.
    pub(super) fn overrun(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.counts().map_or(0, |counts| counts.dropped),
            Self::Udp(_) => 0,
        }
    }
}

/// What goes to this link address: a header that need not be copied, and the rest.
#[inline]
pub(super) fn transmit<'a>(link: Link, head: &'a [u8], bytes: &'a [u8]) -> Transmit<'a, LinkAddress> {
    Transmit { path: LinkAddress(link.0), head, bytes, segment_bytes: None, ecn: None }
}
