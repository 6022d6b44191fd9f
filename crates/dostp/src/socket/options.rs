//! What a socket is told when it is opened.

use std::fmt;
use std::net::Ipv4Addr;
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
    /// In UDP: no privilege, for networks that carry only IP.
    Udp,
}

impl Backend {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 2] = [Self::Ring, Self::Udp];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Udp => "udp",
        }
    }

    /// What is needed to open it.
    pub fn needs(self) -> &'static str {
        match self {
            Self::Ring => "CAP_NET_RAW",
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
    /// It looks again and again: the shortest way, and a processor for itself.
    Spin,
    /// It looks again and again for 20 us after traffic, then it sleeps.
    #[default]
    Adaptive,
    /// It sleeps at once.
    Sleep,
}

/// What a socket is told when it is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The interface, by name.
    pub interface: String,
    /// This node's address; the interface's first one if it is not told.
    pub address: Option<Ipv4Addr>,
    /// The backend; `None` tries them in order.
    pub backend: Option<Backend>,
    /// How a blocking call waits.
    pub wait: Wait,
    /// The number of the cluster.
    pub cluster: u8,
    /// The EtherType.
    pub ether_type: u16,
    /// The port of frames in UDP.
    pub udp_port: u16,
    /// Whether frames bear a checksum.
    pub sum: bool,
    /// Whether the node says that it is there, and may be refused its address. A tool that only asks is
    /// quiet.
    pub is_quiet: bool,
    /// Whether this socket gets the frames of all ports, to watch over them.
    pub takes_all_ports: bool,
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
            wait: Wait::default(),
            cluster: 0,
            ether_type: ETHER_TYPE,
            udp_port: UDP_PORT,
            sum: false,
            is_quiet: false,
            takes_all_ports: false,
            bounds: Bounds::default(),
            secrets: None,
        }
    }
}
