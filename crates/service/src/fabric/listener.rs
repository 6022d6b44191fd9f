//! How `staunch dostp peers` finds the fabric of a server on this host: an abstract Unix socket by the
//! interface's name, which belongs to the network namespace and needs neither file nor right.
//!
//! It must never wait for whoever asks.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::process::geteuid;
use staunch_server::metrics::FabricFigures;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Askers that are answered before everything else has its turn.
const ANSWERS_MAX: usize = 16;

/// Longest answer that is read: any user of this host may listen by that name where no server does.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The listener, once no other process listens: in an upgrade the process before this one does for a while.
pub(super) struct FabricListener {
    name: String,
    listener: Option<UnixListener>,
}

impl FabricListener {
    pub(super) fn new(interface: &str) -> Self {
        Self { name: name(interface), listener: None }
    }

    /// Listens, if that is not so yet and nobody else does.
    pub(super) fn listen(&mut self) {
        if self.listener.is_none() {
            let bind = || {
                let address = SocketAddr::from_abstract_name(&self.name)?;
                let listener = UnixListener::bind_addr(&address)?;
                listener.set_nonblocking(true)?;
                io::Result::Ok(listener)
            };
            self.listener = bind().ok();
        }
    }

    /// Leaves the name to the next process.
    pub(super) fn close(&mut self) {
        self.listener = None;
    }

    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// Answers whoever has come: root, and the user that this process is. The answer fits the buffer of a
    /// socket, or the asker does without.
    pub(super) fn answer(&self, figures: &FabricFigures) {
        let Some(listener) = &self.listener else { return };
        // Later askers are answered in the next turn: any user may come here, and often.
        for _ in 0..ANSWERS_MAX {
            let Ok((mut client, _)) = listener.accept() else { return };
            let may_know = sockopt::socket_peercred(&client)
                .is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid());
            if may_know && client.set_nonblocking(true).is_ok() {
                client.write_all(serde_json::to_string(figures).unwrap_or_default().as_bytes()).ok();
            }
        }
    }
}

/// What the server on this host with a fabric on that interface knows; nothing if there is none, or it is
/// another user's.
pub fn ask(interface: &str) -> Option<FabricFigures> {
    let address = SocketAddr::from_abstract_name(name(interface)).ok()?;
    let server = UnixStream::connect_addr(&address).ok()?;
    server.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = String::new();
    server.take(ANSWER_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn name(interface: &str) -> String {
    format!("staunch-fabric/{interface}")
}
