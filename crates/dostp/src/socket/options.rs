//! What a socket is told when it is opened.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::keys::Secrets;
use crate::reassembly::Bounds;

/// IEEE 802 local experimental EtherType 1.
pub const ETHER_TYPE: u16 = 0x88b5;

/// The port of frames in UDP.
pub const UDP_PORT: u16 = 5288;

/// How frames travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A packet socket with a ring: CAP_NET_RAW to open.
    Ring,
    /// AF_XDP in the kernel's stack, right after the driver. One socket an interface.
    XdpGeneric,
    /// AF_XDP in the driver. One socket an interface.
    XdpNative,
    /// Packet sockets that a node of this host has opened and gives: no privilege.
    Given,
    /// In UDP: no privilege, for networks that carry only IP.
    Udp,
}

impl Backend {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ring, Self::XdpGeneric, Self::XdpNative, Self::Given, Self::Udp];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::XdpGeneric => "xdp-generic",
            Self::XdpNative => "xdp-native",
            Self::Given => "given",
            Self::Udp => "udp",
        }
    }

    /// What is needed to open it.
    pub fn needs(self) -> &'static str {
        match self {
            Self::Ring => "CAP_NET_RAW",
            Self::XdpGeneric | Self::XdpNative => "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
            Self::Given => "a node that gives rings (`staunch dostp serve --give-to GROUP`), and its group",
            Self::Udp => "nothing",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|backend| backend.name() == name);
        found.ok_or_else(|| format!("no backend is called `{name}`; there are {known}"))
    }
}

/// How a blocking call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// The call looks again and again: the shortest way, and a processor for itself.
    Spin,
    /// The call looks again and again for 20 us after traffic, then it sleeps.
    #[default]
    Adaptive,
    /// The call sleeps at once.
    Sleep,
}

/// What a socket is told when it is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interface, by name.
    pub interface: String,
    /// This node's address; the interface's first one if it is not told.
    pub address: Option<Ipv4Addr>,
    /// The backend that is demanded; `None` tries the preferred one and then the others in order.
    pub backend: Option<Backend>,
    /// The backend that is tried first where none is demanded.
    pub preferred: Option<Backend>,
    /// Those that are tried next, in this order: by default ring, given and UDP. AF_XDP has one owner an
    /// interface, so it is taken where it was measured to be the fastest, or demanded.
    pub automatic: Vec<Backend>,
    /// The control socket of the node that gives rings; [`super::node_path_to_ask`] if it is not told.
    pub node: Option<PathBuf>,
    /// How a blocking call waits.
    pub wait: Wait,
    /// The number of the cluster.
    pub cluster: u8,
    /// The EtherType.
    pub ether_type: u16,
    /// The port of frames in UDP.
    pub udp_port: u16,
    /// With frames in UDP: the nodes that messages to all go to, which this node greets. Its own address may
    /// stand among them. `None`: nothing can be sent to all.
    pub udp_peers: Option<Vec<Ipv4Addr>>,
    /// Whether frames bear a checksum.
    pub sum: bool,
    /// Whether the node says that it is there, and may be refused its address. A tool that only asks is
    /// quiet.
    pub is_quiet: bool,
    /// Whether this socket gets the frames of all ports, to watch over them. Not by AF_XDP, which would take
    /// them from whom they are for.
    pub takes_all_ports: bool,
    /// Whether [`super::Socket::keep`] starts the thread beside the socket: for a process that gives rights
    /// up between opening and its first thread.
    pub is_kept_later: bool,
    /// Bounds of incomplete messages.
    pub bounds: Bounds,
    /// The secrets of the cluster; without, frames bear no tag.
    pub secrets: Option<Secrets>,
}

impl Options {
    /// The defaults, on this interface.
    pub fn on(interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            address: None,
            backend: None,
            preferred: None,
            automatic: vec![Backend::Ring, Backend::Given, Backend::Udp],
            node: None,
            wait: Wait::default(),
            cluster: 0,
            ether_type: ETHER_TYPE,
            udp_port: UDP_PORT,
            udp_peers: None,
            sum: false,
            is_quiet: false,
            takes_all_ports: false,
            is_kept_later: false,
            bounds: Bounds::default(),
            secrets: None,
        }
    }
}
