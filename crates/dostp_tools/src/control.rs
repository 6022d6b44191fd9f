//! How other processes find the node that runs on this host: a Unix socket, one word in, an answer out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use staunch_dostp::{Asked, Socket};
use staunch_netio::clock;
use staunch_program::{CODE_NO_RIGHT, Failure};

/// No node runs here.
const CODE_NOBODY: u8 = 3;

/// The table of peers of the kernel's module, where that is the node.
const PEERS_OF_MODULE: &str = "/proc/net/dostp/peers";

/// How long a client may take to say its word, or to take its answer: the node does nothing else meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);

/// A node as it is told to people.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) address: Ipv4Addr,
    pub(super) interface: String,
    pub(super) backend: String,
    pub(super) link: String,
    pub(super) mtu: u16,
    pub(super) peers: Vec<PeerStatus>,
    pub(super) frames_received: u64,
    pub(super) control_frames_received: u64,
    pub(super) messages_received: u64,
    pub(super) messages_sent: u64,
    pub(super) control_frames_sent: u64,
    pub(super) overrun: u64,
    pub(super) dropped: BTreeMap<String, u64>,
}

/// A peer as it is told to people.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PeerStatus {
    pub(super) address: Ipv4Addr,
    pub(super) link: String,
    pub(super) boot: String,
    pub(super) mtu: u16,
    pub(super) heard_seconds_ago: f64,
    pub(super) stale: bool,
}

impl Status {
    /// Of the node that this socket is a part of.
    pub(super) fn of(socket: &Socket) -> io::Result<Self> {
        let now_ms = clock::now_ms();
        let (passed, drops, overrun) = socket.counts();
        let own = socket.own();
        let peers = socket.peers().into_iter().map(|(address, peer)| PeerStatus {
            address,
            link: peer.link.to_string(),
            boot: format!("{:016x}", peer.boot),
            mtu: peer.mtu,
            heard_seconds_ago: now_ms.saturating_sub(peer.heard_ms) as f64 / 1e3,
            stale: peer.is_stale,
        });
        Ok(Self {
            address: *socket.local_addr()?.ip(),
            interface: socket.opened().interface.name.clone(),
            backend: socket.opened().backend.to_string(),
            link: own.link.to_string(),
            mtu: own.mtu,
            peers: peers.collect(),
            frames_received: passed.frames_received,
            control_frames_received: passed.control_received,
            messages_received: passed.messages_received,
            messages_sent: passed.messages_sent,
            control_frames_sent: passed.control_sent,
            overrun,
            dropped: drops.iter().map(|(fault, count)| (fault.name().to_owned(), count)).collect(),
        })
    }
}

/// Listens there, for its own user and for a group if there is one. A socket that a killed node left is
/// removed.
///
/// # Errors
/// Another node listens there, the folder cannot be written, or the socket cannot be given to the group.
pub(super) fn listen(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if UnixStream::connect(path).is_ok() {
        let message = format!("another node answers at {}", path.display());
        return Err(io::Error::new(ErrorKind::AddrInUse, message));
    }
    fs::remove_file(path)
        .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    if let Some(group) = group {
        std::os::unix::fs::chown(path, None, Some(group))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    }
    Ok(listener)
}

/// Answers whoever has come. One who is slow or talks nonsense is left.
pub(super) fn answer(listener: &UnixListener, socket: &Socket) {
    while let Ok((mut client, _)) = listener.accept() {
        let patient = client.set_nonblocking(false).is_ok()
            && client.set_read_timeout(Some(PATIENCE)).is_ok()
            && client.set_write_timeout(Some(PATIENCE)).is_ok();
        if !patient {
            continue;
        }
        let Ok(asked) = Asked::hear(&client) else { continue };
        if let Some(port) = asked.port_of_rings() {
            socket.give_rings(&client, &asked, port).ok();
        } else if asked.word == "status"
            && let Ok(status) = Status::of(socket)
        {
            let text = serde_json::to_string(&status).unwrap_or_default();
            client.write_all(text.as_bytes()).ok();
        }
    }
}

/// Asks the node of an interface, which listens there.
///
/// # Errors
/// No node listens at the path, a right is missing, or what it says cannot be read.
pub(super) fn ask(path: &Path, interface: &str) -> Result<Status, Failure> {
    let failed = |error: io::Error| failure(path, interface, Path::new(PEERS_OF_MODULE), &error);
    let mut node = UnixStream::connect(path).map_err(failed)?;
    node.set_read_timeout(Some(Duration::from_secs(5))).map_err(failed)?;
    node.write_all(b"status\n").map_err(failed)?;
    let mut text = String::new();
    node.read_to_string(&mut text).map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| format!("{} says: {error}", path.display()).into())
}

/// Why no node can be asked. One that is not there is the usual case, and the module is a node without a
/// socket.
fn failure(path: &Path, interface: &str, module: &Path, error: &io::Error) -> Failure {
    let place = path.display();
    let (code, text) = match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused if module.exists() => {
            let module = module.display();
            (CODE_NOBODY, format!("the node here is the module dostp: {module} tells its peers"))
        }
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => (
            CODE_NOBODY,
            format!(
                "no node runs on {interface}: no process listens at {place} (staunch dostp serve --interface \
                 {interface}), and the module dostp is not loaded (modprobe dostp)"
            ),
        ),
        ErrorKind::PermissionDenied => (
            CODE_NO_RIGHT,
            format!("{place}: it is root's and that of the group which `staunch dostp serve` was told"),
        ),
        _ => (CODE_NOBODY, format!("no node answers at {place}: {error}")),
    };
    Failure { code, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentence, and the code, of a node that cannot be asked for this reason.
    fn told(kind: ErrorKind, module: &str) -> (u8, String) {
        let path = Path::new("/run/staunch/dostp-eth1.sock");
        let Failure { code, text } = failure(path, "eth1", Path::new(module), &io::Error::from(kind));
        (code, text)
    }

    #[test]
    fn a_node_that_is_not_there_is_told_with_the_ways_to_have_one() {
        for kind in [ErrorKind::NotFound, ErrorKind::ConnectionRefused] {
            let (code, text) = told(kind, "/nowhere");
            let ways = ["staunch dostp serve --interface eth1", "modprobe dostp"];
            assert!(code == CODE_NOBODY && ways.iter().all(|way| text.contains(way)), "{text}");
            assert_eq!(
                told(kind, "/dev/null").1,
                "the node here is the module dostp: /dev/null tells its peers"
            );
        }
        let (code, text) = told(ErrorKind::PermissionDenied, "/nowhere");
        assert!(code == CODE_NO_RIGHT && text.contains("group"), "{text}");
    }

    #[test]
    fn a_socket_that_nobody_listens_at_is_one_of_those() {
        for path in ["/nowhere/dostp.sock", "/dev/null"] {
            let Err(Failure { text, .. }) = ask(Path::new(path), "eth1") else { panic!("{path} answers") };
            assert!(text.contains("dostp") && !text.contains("os error"), "{text}");
        }
    }
}
