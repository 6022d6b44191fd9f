//! How the fabric's socket is opened, and what a person is told when it is not.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use staunch_config::Config;
use staunch_config::syntax::choice::{FabricBackend, FabricMode};
use staunch_dostp::{Backend, Lent, Mode, Options, SECRET_BYTES, Secrets, Socket, Wait, read_secret};
use staunch_engine::Notice;
use staunch_live::{Grants, Pattern, TopicName};
use staunch_program::Failure;
use staunch_server::metrics::{FabricFigures, FabricLoad};

/// The port of the fabric, on every node.
pub(super) const PORT: u16 = 5290;

/// Topics whose updates have a deadline between servers, and which.
#[derive(Debug)]
pub(crate) struct RealtimeTopics {
    pub(super) topics: Grants,
    pub(super) deadline_ms: u32,
}

/// Topics with a deadline, as the settings say.
///
/// # Errors
/// A text that names no topics.
pub(crate) fn realtime_topics(config: &Config) -> Result<RealtimeTopics, Failure> {
    let (mut names, mut patterns) = (Vec::new(), Vec::new());
    for text in &config.fabric.fabric_realtime {
        let read = match Pattern::is_pattern(text) {
            true => Pattern::new(text).map(|pattern| patterns.push(pattern)),
            false => TopicName::new(text).map(|name| names.push(name)),
        };
        read.map_err(|fault| Failure::configuration(format!("fabric_realtime: {text:?}: {fault}")))?;
    }
    let deadline_ms = u32::try_from(config.fabric.fabric_deadline.as_millis()).unwrap_or(u32::MAX);
    Ok(RealtimeTopics { topics: Grants::new(names, patterns), deadline_ms })
}

/// A socket that nobody reads from yet.
pub(crate) struct OpenFabric {
    pub(super) socket: Socket,
    pub(super) interface: String,
    pub(super) address: Ipv4Addr,
    pub(super) protection: &'static str,
    /// For a process that takes over and may not read their file.
    pub(super) secrets: Option<Secrets>,
    pub(super) realtime: RealtimeTopics,
    pub(super) wake: UnixStream,
    pub(super) woken: UnixStream,
}

impl OpenFabric {
    /// Opens the socket, if a fabric is asked for; or goes on with that of the process before, which is left
    /// by a line (`handed`).
    ///
    /// # Errors
    /// In one line: the right is missing (exit code 77); the interface cannot be used, or the key file (78).
    pub(crate) fn open(
        config: &Config,
        handed: Option<OwnedFd>,
        takes_over: bool,
        say: &Notice,
    ) -> Result<Option<Self>, Failure> {
        let Some(interface) = &config.fabric.fabric else { return Ok(None) };
        let interface = interface.to_string();
        let realtime = realtime_topics(config)?;
        let lent = handed.map(|line| Lent::receive(&UnixStream::from(line))).transpose();
        let lent = lent.map_err(|error| format!("fabric: {error}"))?;
        let is_in_udp = config.fabric.fabric_backend == FabricBackend::Udp;
        let lent = lent.filter(|lent| lent.place() == (&interface, PORT) && lent.is_in_udp() == is_in_udp);
        let options = options(config, &interface, lent.as_ref().and_then(Lent::secrets))?;
        let protection = match &options.secrets {
            Some(_) => config.fabric.fabric_mode.name(),
            None => "none",
        };
        if options.secrets.is_none() {
            let who = match is_in_udp {
                true => "who can forge an address of fabric_peers".to_owned(),
                false => format!("on the network of {interface}"),
            };
            say(&format!(
                "warning: fabric: without fabric_key_file anybody {who} can publish to every topic"
            ));
        }
        let opened = match lent {
            Some(lent) => Socket::inherit(lent, &options).and_then(prepared),
            None => bind(&options),
        };
        let socket = match opened {
            Ok(socket) => socket,
            Err(error) if takes_over => {
                // This process was born confined: the server is worth more than the fabric.
                let why = failure(&options, &error).text;
                say(&format!("{why}; an upgrade goes on without: only a restart can open it"));
                return Ok(None);
            }
            Err(error) => return Err(failure(&options, &error)),
        };
        let of_pair = |error: io::Error| Failure::from(format!("fabric: {error}"));
        let address = *socket.local_addr().map_err(of_pair)?.ip();
        let (wake, woken) = UnixStream::pair().map_err(of_pair)?;
        wake.set_nonblocking(true).and_then(|()| woken.set_nonblocking(true)).map_err(of_pair)?;
        let secrets = options.secrets;
        Ok(Some(Self { socket, secrets, realtime, interface, address, protection, wake, woken }))
    }

    /// The number by which the others know this node.
    pub(crate) fn node(&self) -> u16 {
        low_bits(self.address)
    }

    /// The waker of the fabric's thread, for when live data has letters for it.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn waker(&self) -> Result<Arc<dyn Fn() + Send + Sync>, Failure> {
        let wake = self.wake.try_clone().map_err(|error| format!("fabric: {error}"))?;
        // What finds no room wakes the thread all the same: it has not read what is there.
        Ok(Arc::new(move || drop((&wake).write(&[0]))))
    }

    /// What is known before anybody was heard.
    pub(super) fn figures(&self) -> FabricFigures {
        FabricFigures {
            address: self.address,
            interface: self.interface.clone(),
            protection: self.protection.to_owned(),
            trouble: String::new(),
            load: FabricLoad::default(),
            topics: 0,
            marks: 0,
            nodes: Vec::new(),
            counts: BTreeMap::new(),
        }
    }
}

/// The low 16 bits of an IPv4 address: they name a node on the wire.
pub(super) fn low_bits(address: Ipv4Addr) -> u16 {
    (address.to_bits() & 0xffff) as u16
}

fn options(
    config: &Config,
    interface: &str,
    inherited: Option<[Option<[u8; SECRET_BYTES]>; 2]>,
) -> Result<Options, Failure> {
    let fabric = &config.fabric;
    let mut options = Options::on(interface);
    options.cluster = fabric.fabric_cluster;
    options.wait = Wait::Sleep;
    options.is_kept_later = true;
    options.backend = match fabric.fabric_backend {
        FabricBackend::Auto => None,
        FabricBackend::Ring => Some(Backend::Ring),
        FabricBackend::Given => Some(Backend::Given),
        FabricBackend::Udp => Some(Backend::Udp),
    };
    options.udp_peers = (options.backend == Some(Backend::Udp)).then(|| fabric.fabric_peers.clone());
    if let Some(file) = &fabric.fabric_key_file {
        let fault = |error: io::Error| Failure::configuration(format!("fabric_key_file: {error}"));
        let mode = match fabric.fabric_mode {
            FabricMode::Mac => Mode::Mac,
            FabricMode::Aead => Mode::Aead,
        };
        // The user that the server has become may not be allowed to read it.
        let slots = match (read_secret(file), inherited) {
            (Ok(secret), _) => [Some(secret), None],
            (Err(_), Some(slots)) => slots,
            (Err(error), None) => return Err(fault(error)),
        };
        options.secrets = Some(Secrets { slots, sends_by: 0, mode });
    }
    Ok(options)
}

/// Opens the backend that is demanded; else a packet ring, or one that the node of this host gives. Frames in
/// UDP reach nobody who is not named, so they are never taken unasked.
fn bind(options: &Options) -> io::Result<Socket> {
    let open = |backend| {
        let options = Options { backend: Some(backend), ..options.clone() };
        Socket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT), &options).and_then(prepared)
    };
    if let Some(demanded) = options.backend {
        return open(demanded);
    }
    match open(Backend::Ring) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => open(Backend::Given).map_err(|_| error),
        opened => opened,
    }
}

fn prepared(socket: Socket) -> io::Result<Socket> {
    socket.set_transactions(true);
    socket.set_broadcast(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn failure(options: &Options, error: &io::Error) -> Failure {
    let interface = &options.interface;
    if error.kind() == ErrorKind::PermissionDenied {
        let needs = match options.backend {
            None => format!("{} at the start, or `staunch dostp serve --give-to`", Backend::Ring.needs()),
            Some(backend) => format!("{} at the start", backend.needs()),
        };
        return Failure::no_right(format!("fabric: {interface}: {error}: it needs {needs}"));
    }
    if error.kind() == ErrorKind::AddrInUse {
        let whom = match options.backend {
            Some(Backend::Udp) => "another server of this host, or a node by udp,",
            _ => "another server of this host",
        };
        return Failure::configuration(format!("fabric: {whom} has {interface} already: {error}"));
    }
    let text = format!("fabric: {interface}: {error}");
    if is_of_interface(error) { Failure::configuration(text) } else { text.into() }
}

/// Whether the interface is to blame, and may be usable later.
pub fn is_of_interface(error: &io::Error) -> bool {
    const NO_DEVICE: i32 = 19;
    const NO_SUCH_DEVICE_OR_ADDRESS: i32 = 6;
    matches!(
        error.kind(),
        ErrorKind::NetworkDown | ErrorKind::AddrNotAvailable | ErrorKind::Unsupported | ErrorKind::NotFound
    ) || matches!(error.raw_os_error(), Some(NO_DEVICE | NO_SUCH_DEVICE_OR_ADDRESS))
}
