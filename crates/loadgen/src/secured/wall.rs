//! A connection's part of TLS: a handshake at work, then keys.
//!
//! It must never hold plain bytes back: what a record held is given at once, and what is to be sent is sealed
//! at once. A server can make it hold one record, or one message of a handshake.

use std::fmt;
use std::io::{Read, Write};

use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use staunch_netio::{Outgoing, Part};

use super::base::TlsClient;
use super::reason;

/// TLS between a connection and its bytes: the handshake, then the keys.
pub(crate) struct ClientWall {
    connection: ClientConnection,
    began_ns: u64,
    /// The server said that nothing follows.
    ended: bool,
}

impl fmt::Debug for ClientWall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientWall").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// Result of a handshake that succeeded.
pub(crate) struct Agreement {
    /// Version and cipher suite.
    pub(crate) suite: String,
    /// Whether a session was resumed.
    pub(crate) resumed: bool,
    /// When it began.
    pub(crate) began_ns: u64,
}

impl ClientWall {
    /// Begins a handshake; its first bytes are to be sent.
    ///
    /// # Errors
    /// The reason, in words.
    pub(crate) fn new(client: &TlsClient, now_ns: u64) -> Result<Self, String> {
        let made = ClientConnection::new(client.config.clone(), client.server.clone());
        let mut connection = made.map_err(|error| reason::words(&error))?;
        // What is sealed goes to the kernel at once, so nothing gathers that would need a limit.
        connection.set_buffer_limit(None);
        Ok(Self { connection, began_ns: now_ns, ended: false })
    }

    /// Whether the handshake is still at work.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether there are records to be sent.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether the server has said that nothing follows. An end without that may be anybody's.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The handshake's result, once it is over.
    pub(crate) fn agreement(&self) -> Option<Agreement> {
        if self.connection.is_handshaking() {
            return None;
        }
        let version = match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_3 => "TLS 1.3",
            _ => "TLS 1.2",
        };
        let suite =
            self.connection.negotiated_cipher_suite()?.suite().as_str().unwrap_or("a suite without a name");
        // The name that IANA has it by.
        let suite = suite.replacen("TLS13_", "TLS_", 1);
        let resumed = self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
        Some(Agreement { suite: format!("{version} {suite}"), resumed, began_ns: self.began_ns })
    }

    /// Appends the records to be sent to `sealed`: those of TLS itself, then those of `plain`.
    pub(crate) fn seal(&mut self, plain: &Outgoing, sealed: &mut Vec<u8>) {
        let (own, parts) = plain.contents();
        let mut rest = own;
        for part in parts {
            match part {
                Part::Own(length) => {
                    let (bytes, behind) = rest.split_at(*length);
                    rest = behind;
                    self.put(bytes);
                }
                Part::Shared(slice) => self.put(slice.as_bytes()),
                // No request is sent from a file.
                Part::File(_) => {}
            }
        }
        self.put(rest);
        while self.connection.wants_write() {
            // Memory takes every byte.
            let _ = self.connection.write_tls(sealed);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        // Without a limit every byte is taken.
        let _ = self.connection.writer().write_all(bytes);
    }

    /// Opens the records that have come, as far as they are whole, and appends what they hold to `plain`.
    ///
    /// # Errors
    /// The reason for which the connection is lost, in words.
    pub(crate) fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) -> Result<(), String> {
        while !sealed.is_empty() && !self.ended {
            let taken = self.connection.read_tls(&mut sealed).map_err(|error| error.to_string())?;
            let state = self.connection.process_new_packets();
            // Ends by "would block" when everything was given.
            let _ = self.connection.reader().read_to_end(plain);
            let state = state.map_err(|error| reason::words(&error))?;
            self.ended = state.peer_has_closed();
            if taken == 0 {
                break;
            }
        }
        Ok(())
    }
}
