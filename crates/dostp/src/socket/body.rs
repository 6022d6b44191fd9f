//! The ways frames travel behind one face, and how one is chosen: by trying, never by version.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use staunch_netio::clock;
use staunch_netio::datagram::{
    BatchSent, Datagram, Datagrams, LinkAddress, LinkUdp, PacketFilter, PacketRing, Readiness, Transmit,
    XdpMode, XdpRing,
};
use staunch_netio::host::interface::{self, Interface};

use super::claim::Claim;
use super::given;
use super::node_socket::node_path_to_ask;
use super::options::{Backend, Options};
use crate::greeting::Link;
use crate::limits::MTU_MIN;

/// Bytes of a ring of messages: 2 048 frames of an ordinary Ethernet, what comes in a few milliseconds.
pub(super) const RING_BYTES: usize = 4 << 20;

/// Bytes of a ring of control frames: 128 of them, more than a node is asked in the time of a wake-up.
pub(super) const CONTROL_RING_BYTES: usize = 256 << 10;

/// Bytes that IP and UDP headers take of an Ethernet's MTU.
const UDP_OVERHEAD_BYTES: u32 = 28;

/// How long AF_XDP is tried again while its queue or its interface has an owner: the kernel lets go of both a
/// while after the owner ended.
const OWNED_TRIES: u32 = 50;
const OWNED_PAUSE: Duration = Duration::from_millis(20);

/// A way that was opened.
#[derive(Debug)]
pub(super) enum Carrier {
    Ring(PacketRing),
    Xdp(Box<XdpRing>),
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

/// Opens the backend that is demanded, or the preferred one, or the first that opens. `claim` is that of
/// the port whose frames are wanted; a node that gives rings may have a better one.
///
/// # Errors
/// Why the one demanded, or the last, does not open.
pub(super) fn choose(
    interface: &Interface,
    own: Ipv4Addr,
    options: &Options,
    (claim, port): (&mut Claim, u16),
) -> io::Result<Chosen> {
    let mut refused = Vec::new();
    for backend in candidates(options) {
        match open(backend, interface, own, options, (&mut *claim, port)) {
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

/// The backends to be tried, in order.
fn candidates(options: &Options) -> Vec<Backend> {
    if let Some(demanded) = options.backend {
        return vec![demanded];
    }
    let others = options.automatic.iter().copied().filter(|backend| options.preferred != Some(*backend));
    options.preferred.into_iter().chain(others).collect()
}

/// A way for messages, one for control frames where they come apart, the link address and the MTU.
pub(super) type Ways = (Carrier, Option<Carrier>, Link, u16);

fn open(
    backend: Backend,
    interface: &Interface,
    own: Ipv4Addr,
    options: &Options,
    (claim, port): (&mut Claim, u16),
) -> io::Result<Ways> {
    match backend {
        Backend::Ring => open_ring(interface, options, port),
        Backend::XdpGeneric => open_xdp(XdpMode::Generic, interface, options, port),
        Backend::XdpNative => open_xdp(XdpMode::Native, interface, options, port),
        Backend::Given => open_given(interface, options, (claim, port)),
        Backend::Udp => {
            let address = SocketAddrV4::new(own, options.udp_port);
            let bound = LinkUdp::bind(address)
                .map_err(|error| io::Error::new(error.kind(), format!("UDP {address}: {error}")));
            in_udp(bound?, interface, own, options)
        }
    }
}

/// Frames by this socket of UDP.
pub(super) fn in_udp(
    mut udp: LinkUdp,
    interface: &Interface,
    own: Ipv4Addr,
    options: &Options,
) -> io::Result<Ways> {
    let link = Link(LinkUdp::link(SocketAddrV4::new(own, udp.local_port()?)).0);
    let mtu = interface.mtu.saturating_sub(UDP_OVERHEAD_BYTES).clamp(u32::from(MTU_MIN), 65_507) as u16;
    if let Some(peers) = &options.udp_peers {
        let others = peers.iter().filter(|peer| **peer != own);
        let links = others.map(|peer| LinkUdp::link(SocketAddrV4::new(*peer, options.udp_port)));
        udp.name_everybody(links.collect());
    }
    Ok((Carrier::Udp(udp), None, link, mtu))
}

fn open_ring(interface: &Interface, options: &Options, port: u16) -> io::Result<Ways> {
    let (link, mtu) = (Link(interface.link), frame_mtu(interface)?);
    if options.takes_all_ports {
        let all = ring(interface, options, PacketFilter::Everything, RING_BYTES)?;
        return Ok((all, None, link, mtu));
    }
    let control = ring(interface, options, PacketFilter::Port(0), CONTROL_RING_BYTES)?;
    let messages = ring(interface, options, PacketFilter::Port(port), RING_BYTES)?;
    Ok((messages, Some(control), link, mtu))
}

/// Both rings from the node of this host that may open them.
fn open_given(
    interface: &Interface,
    options: &Options,
    (claim, port): (&mut Claim, u16),
) -> io::Result<Ways> {
    let path = options.node.clone().unwrap_or_else(|| node_path_to_ask(&interface.name));
    let given = given::ask(&path, (claim, port))?;
    if let Some(better) = given.claim {
        *claim = better;
    }
    let (link, ether_type) = (LinkAddress(interface.link), options.ether_type);
    let adopt = |socket, ring_bytes| {
        PacketRing::adopt(socket, link, usize::from(given.mtu), ether_type, ring_bytes).map(Carrier::Ring)
    };
    let messages = adopt(given.messages, RING_BYTES)?;
    let control = adopt(given.control, CONTROL_RING_BYTES)?;
    Ok((messages, Some(control), Link(interface.link), given.mtu))
}

/// Messages by AF_XDP, which takes those to this port alone; control frames by a packet ring, so that every
/// process of this host hears them.
fn open_xdp(mode: XdpMode, interface: &Interface, options: &Options, port: u16) -> io::Result<Ways> {
    let mtu = frame_mtu(interface)?;
    let queues = interface::receive_queues(&interface.name)?;
    if queues > 1 {
        let name = &interface.name;
        let message =
            format!("{name} has {queues} receive queues, and AF_XDP takes one: ethtool -L {name} combined 1");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let control = ring(interface, options, PacketFilter::Port(0), CONTROL_RING_BYTES)?;
    let (index, link) = (interface.index, LinkAddress(interface.link));
    let mut tries = OWNED_TRIES;
    loop {
        match XdpRing::open(index, link, usize::from(mtu), options.ether_type, port, mode) {
            Ok(xdp) => return Ok((Carrier::Xdp(Box::new(xdp)), Some(control), Link(link.0), mtu)),
            Err(error) if is_owned(&error) && tries > 1 => {
                tries -= 1;
                clock::pause(OWNED_PAUSE);
            }
            Err(error) if is_owned(&error) => {
                let message = format!("{error}; another program has it (ip link show {})", interface.name);
                return Err(io::Error::new(error.kind(), message));
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_owned(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists)
}

fn ring(
    interface: &Interface,
    options: &Options,
    filter: PacketFilter,
    ring_bytes: usize,
) -> io::Result<Carrier> {
    let (index, link) = (interface.index, LinkAddress(interface.link));
    let mtu = usize::from(frame_mtu(interface)?);
    PacketRing::open(index, link, mtu, options.ether_type, filter, ring_bytes).map(Carrier::Ring)
}

/// The longest frame on this interface, if it is one that carries frames.
pub(super) fn frame_mtu(interface: &Interface) -> io::Result<u16> {
    if !interface.is_ethernet {
        let message = format!("{} is no Ethernet", interface.name);
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(interface.mtu.min(u32::from(u16::MAX)) as u16)
}

impl Carrier {
    /// Whether polling its descriptor tells that the interface went down.
    pub(super) fn tells_errors(&self) -> bool {
        !matches!(self, Self::Xdp(_))
    }

    /// A descriptor that can be polled.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        let readiness = match self {
            Self::Ring(ring) => ring.readiness(),
            Self::Xdp(xdp) => xdp.readiness(),
            Self::Udp(udp) => udp.readiness(),
        }?;
        match readiness {
            Readiness::Descriptor(descriptor) => Ok(descriptor),
            Readiness::Flag(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The socket, for another process. Not that of AF_XDP, whose places for frames are this process's.
    pub(super) fn socket(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Ring(ring) => ring.descriptor(),
            Self::Udp(udp) => udp.descriptor(),
            Self::Xdp(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Another process may have read from a packet ring: the place to go on at is looked for.
    pub(super) fn seek(&mut self) {
        if let Self::Ring(ring) = self {
            ring.seek();
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
            Self::Xdp(xdp) => xdp.receive_batch(count_max, take),
            Self::Udp(udp) => udp.receive_batch(count_max, take),
        }
    }

    /// Sends in order, without waiting.
    #[inline]
    pub(super) fn send(&mut self, batch: &[Transmit<'_, LinkAddress>]) -> io::Result<BatchSent> {
        match self {
            Self::Ring(ring) => ring.send_batch(batch),
            Self::Xdp(xdp) => xdp.send_batch(batch),
            Self::Udp(udp) => udp.send_batch(batch),
        }
    }

    /// Frames of nodes that are not named, where some are, dropped since it was asked last.
    #[inline]
    pub(super) fn take_strangers(&mut self) -> u64 {
        match self {
            Self::Udp(udp) => udp.take_strangers(),
            Self::Ring(_) | Self::Xdp(_) => 0,
        }
    }

    /// Frames the kernel dropped before they could be received, since it was asked last.
    pub(super) fn overrun(&mut self) -> u64 {
        match self {
            Self::Ring(ring) => ring.counts().map_or(0, |counts| counts.dropped),
            Self::Xdp(xdp) => xdp.dropped().unwrap_or(0),
            Self::Udp(_) => 0,
        }
    }
}

/// What goes to this link address: a header that need not be copied, and the rest.
#[inline]
pub(super) fn transmit<'a>(link: Link, head: &'a [u8], bytes: &'a [u8]) -> Transmit<'a, LinkAddress> {
    Transmit { path: LinkAddress(link.0), head, bytes, segment_bytes: None, ecn: None }
}
