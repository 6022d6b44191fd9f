//! A check of a server: a connection, a request, the head of its answer.
//!
//! It must never wait: whoever has it polls, and ends it in time. A connection of a check serves no request.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with, sockopt,
};
use staunch_protocol::Status;
use staunch_protocol::http1::relay::{RelayReader, RelayStep};
use staunch_tls::OutgoingSession;

use crate::config::ProxyWire;
use crate::proxy::application::ServerName;
use crate::proxy::config::ProxyServer;
use crate::proxy::shared::ProxyShared;
use crate::proxy::verdict::Checked;

/// Bytes of an answer that are read before its connection is closed: a page that says how a server is has
/// fewer, and a connection closed with bytes unread looks like a fault to it.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes read at a time.
const PIECE_BYTES: usize = 8 * 1024;

/// Errors of a host that has no descriptor, port or memory left, and of a socket file whose queue is full:
/// its server is at work.
const SHORTAGES: [Errno; 6] =
    [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM, Errno::AGAIN];

/// A check under way.
pub(super) struct ServerCheck {
    socket: OwnedFd,
    is_connected: bool,
    /// The rest of the request.
    unsent: Vec<u8>,
    reader: RelayReader,
    /// The session of TLS, if that is spoken.
    secured: Option<Box<OutgoingSession>>,
    read_bytes: usize,
    /// The judgement of the head, once it is there.
    checked: Option<Checked>,
}

impl ServerCheck {
    /// Begins a check.
    ///
    /// # Errors
    /// The check has failed already; or this host has nothing left to ask with, which says nothing of the
    /// server.
    pub(super) fn begin(
        server: &ServerName,
        path: &str,
        shared: &ProxyShared,
    ) -> Result<Self, Option<Checked>> {
        let (address, wire) = (&server.get().address, server.application.wire);
        let blame = |errno| {
            let is_ours = SHORTAGES.contains(&errno);
            (!is_ours).then(|| failed(&io::Error::from(errno).to_string()))
        };
        let socket = open(address).map_err(blame)?;
        let host = match address {
            ProxyServer::Internet(address) | ProxyServer::Secured(address, _) => address.to_string(),
            ProxyServer::Unix(_) => "localhost".to_owned(),
        };
        let mut reader = RelayReader::new();
        reader.begin(false);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Staunch-check\r\nAccept: */*\r\n\
             Connection: close\r\n\r\n"
        );
        let (mut unsent, mut secured) = (Vec::new(), None);
        match (address, wire) {
            // A page of an application by FastCGI is a script's: that it takes connections has to do.
            (_, ProxyWire::FastCgi) => {}
            (ProxyServer::Secured(_, name), ProxyWire::Http) => {
                let tls = shared.tls().ok_or(None)?;
                let session = tls.connect(name, unix_s(), &mut unsent);
                let mut session = session.map_err(|fault| Some(failed(&format!("TLS: {fault}"))))?;
                session.send(request.as_bytes(), &mut unsent);
                secured = Some(Box::new(session));
            }
            (_, ProxyWire::Http) => unsent = request.into_bytes(),
        }
        Ok(Self { socket, is_connected: false, unsent, reader, secured, read_bytes: 0, checked: None })
    }

    /// The events it waits for.
    pub(super) fn awaits(&self) -> PollFlags {
        if self.is_connected && self.unsent.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Goes on as far as it can. Gives the outcome once it is known.
    pub(super) fn go_on(&mut self) -> Option<Checked> {
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(checked)) => return Some(checked),
                Err(Errno::AGAIN) => return None,
                Err(Errno::INTR) => {}
                Err(errno) => return Some(self.end_with(&io::Error::from(errno).to_string())),
            }
        }
    }

    /// The time of the check is over.
    pub(super) fn time_out(&mut self) -> Checked {
        self.end_with("no answer in time (proxy_check_interval)")
    }

    fn step(&mut self) -> Result<Option<Checked>, Errno> {
        if !self.is_connected {
            sockopt::socket_error(&self.socket)??;
            self.is_connected = true;
            if self.unsent.is_empty() {
                let words = "takes connections".to_owned();
                return Ok(Some(Checked { has_passed: true, words }));
            }
        }
        if !self.unsent.is_empty() {
            let count = send(&self.socket, &self.unsent, SendFlags::NOSIGNAL)?;
            self.unsent.drain(..count);
            return Ok(None);
        }
        let mut piece = [0; PIECE_BYTES];
        let count = rustix::io::read(&self.socket, &mut piece)?;
        self.read_bytes += count;
        if count == 0 || self.read_bytes > ANSWER_BYTES_MAX {
            return Ok(Some(self.end_with("no answer")));
        }
        let Some(session) = &mut self.secured else { return Ok(self.take(&piece[..count])) };
        let mut plain = Vec::new();
        let received = session.receive(&piece[..count], &mut plain, &mut self.unsent);
        Ok(match received {
            Err(fault) => Some(self.end_with(&format!("TLS: {fault}"))),
            Ok(()) => self.take(&plain),
        })
    }

    fn take(&mut self, mut bytes: &[u8]) -> Option<Checked> {
        loop {
            match self.reader.next(&mut bytes) {
                Ok(RelayStep::More) => return None,
                Ok(RelayStep::Head(head)) => self.checked = Some(judge(head.status)),
                Ok(RelayStep::Interim(_) | RelayStep::Piece(_)) => {}
                Ok(RelayStep::End { .. }) => return Some(self.end_with("no answer")),
                Err(fault) => {
                    let words = fault.to_string();
                    return Some(self.end_with(&words));
                }
            }
        }
    }

    /// The end of the check: the head has been judged, or there is none, for this reason.
    fn end_with(&mut self, reason: &str) -> Checked {
        self.checked.take().unwrap_or_else(|| failed(reason))
    }
}

impl AsFd for ServerCheck {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn judge(status: Status) -> Checked {
    let code = status.code();
    Checked { has_passed: (200..400).contains(&code), words: format!("answers {code}") }
}

fn failed(reason: &str) -> Checked {
    Checked { has_passed: false, words: reason.to_owned() }
}

/// Seconds since 1970, by which certificates are judged.
fn unix_s() -> u64 {
    let since = staunch_engine::unix_time().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A socket that begins to connect.
fn open(server: &ProxyServer) -> Result<OwnedFd, Errno> {
    let family = match server {
        ProxyServer::Internet(address) | ProxyServer::Secured(address, _) if address.is_ipv4() => {
            AddressFamily::INET
        }
        ProxyServer::Internet(_) | ProxyServer::Secured(..) => AddressFamily::INET6,
        ProxyServer::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    let begun = match server {
        ProxyServer::Internet(address) | ProxyServer::Secured(address, _) => connect(&socket, address),
        ProxyServer::Unix(file) => connect(&socket, &SocketAddrUnix::new(file)?),
    };
    match begun {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}
