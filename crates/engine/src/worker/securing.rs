//! What comes on secured connections: handshakes are led, records opened, and the content given to the
//! session.
//!
//! It must never give a session a byte that was not opened, nor answer in plain text on a connection that is
//! secured but to who spoke plain HTTP himself.

use staunch_netio::{FileReader, Input, Io, Slot};
use staunch_tls::{Agreed, Alert, CertificateFault, Fault};

use super::Worker;
use crate::connection::Phase;
use crate::handler::Handler;
use crate::limits::OWED_BYTES_MAX;
use crate::pressure::Waited;
use crate::secured::{OpenedContent, OpenedInput, TlsSettings};
use crate::stats::{TlsHandshake, TlsRefusal};

impl<I: Io, H: Handler> Worker<I, H> {
    /// Secured listeners are secured by this. To be called before connections come.
    pub fn set_tls(&mut self, settings: TlsSettings, reader: FileReader) {
        self.transport.secured.set(settings, reader);
    }

    /// Every listener that there is speaks TLS, for a simulation whose listeners have no addresses.
    pub fn secure_listeners(&mut self) {
        self.listening.secure_all();
    }

    /// Bytes came.
    pub(super) fn received_sealed(&mut self, slot: Slot, input: Input) {
        match self.transport.connections[slot as usize].phase {
            Phase::Open if self.transport.secured.has_keys(slot) => self.open(slot, input),
            Phase::Open => {
                let bytes = self.transport.io.input(&input).to_vec();
                self.transport.io.release(input);
                self.shake(slot, &bytes);
            }
            Phase::Introducing => {
                let bytes = self.transport.io.input(&input).to_vec();
                self.transport.io.release(input);
                let (connection, mut turn, _) = self.lend(slot);
                match connection.be_introduced(&bytes, &mut turn) {
                    Some(rest) if !rest.is_empty() => self.shake(slot, &rest),
                    _ => self.flush(slot),
                }
            }
            Phase::Free | Phase::Ending { .. } | Phase::Lingering | Phase::Closing => {
                self.transport.io.release(input)
            }
        }
    }

    /// Bytes of a handshake came.
    fn shake(&mut self, slot: Slot, bytes: &[u8]) {
        let now_ms = self.transport.time.now_ms;
        let unix_s = now_ms.wrapping_sub(self.transport.time.epoch_ms) / 1_000;
        if let Some(oldest) = self.transport.secured.begin(slot, now_ms, unix_s) {
            self.transport.stats.tls.count_refusal(TlsRefusal::Crowded);
            self.transport.secured.tear_down(oldest);
            self.close(oldest);
            self.count(oldest);
        }
        match self.transport.secured.shake(slot, bytes, now_ms) {
            Ok(None) => self.flush(slot),
            Ok(Some(agreed)) => {
                self.transport.stats.tls.count_handshake(how(&agreed));
                self.transport.stats.tls.hybrid.add(u64::from(agreed.is_hybrid()));
                self.speak_first(slot, &agreed);
                // Bytes that came behind the last message of the handshake.
                let rest = self.transport.secured.open(slot, &mut [], now_ms);
                self.give(slot, rest, None);
            }
            Err(Fault::PlainHttp) => self.refuse_plain(slot, bytes),
            Err(fault) => {
                self.transport.stats.tls.count_refusal(why(fault));
                match fault {
                    // A client that is told why may have sent more by then, or in TLS 1.3 asked already, and
                    // that must not cost it the alert.
                    Fault::Certificate(_) | Fault::Refused(..) => {
                        self.transport.connections[slot as usize].phase = Phase::Ending { linger: true };
                        self.flush(slot);
                    }
                    _ => self.part(slot),
                }
            }
        }
    }

    /// A handshake is over. What the server says first goes out at once, together with tickets, whatever the
    /// client does: one that waits for an acknowledgement before it sends its request (Nagle's algorithm) has
    /// it then, and one that speaks HTTP/2 knows how much it may send.
    fn speak_first(&mut self, slot: Slot, agreed: &Agreed) {
        let (connection, mut turn, _) = self.lend(slot);
        // The time for the first request begins here.
        connection.leave_line(turn.now_ms, connection.waited);
        if agreed.is_challenge() {
            // An authority has seen what it came for, and nothing else is spoken (RFC 8737, section 3).
            connection.phase = Phase::Ending { linger: false };
        } else if agreed.speaks_http2() {
            connection.open_http2(&mut turn);
        }
    }

    /// Tells a client that speaks plain HTTP so, in plain text.
    #[cold]
    fn refuse_plain(&mut self, slot: Slot, bytes: &[u8]) {
        self.transport.stats.tls.count_refusal(TlsRefusal::PlainHttp);
        self.transport.secured.tear_down(slot);
        let (connection, mut turn, _) = self.lend(slot);
        connection.refuse_plain(bytes, &mut turn);
        self.flush(slot);
    }

    /// Opens records where they were received.
    fn open(&mut self, slot: Slot, input: Input) {
        let bytes = self.transport.io.input_mut(&input);
        let opened = self.transport.secured.open(slot, bytes, self.transport.time.now_ms);
        self.give(slot, opened, Some(input));
    }

    /// Gives the session what was opened, of this input or of what was kept before.
    fn give(&mut self, slot: Slot, opened: Result<Option<OpenedInput>, Fault>, input: Option<Input>) {
        let is_end = match opened {
            Ok(Some(OpenedInput { content, is_end, oddities })) => {
                self.transport.stats.tls.oddities.add(u64::from(oddities));
                let (connection, mut turn, io) = self.lend(slot);
                let bytes: &[u8] = match (&content, &input) {
                    (OpenedContent::Input(place), Some(input)) => &io.input(input)[place.clone()],
                    (OpenedContent::Input(_), None) => &[],
                    (OpenedContent::Joined(bytes, place), _) => &bytes[place.clone()],
                };
                if !bytes.is_empty() {
                    connection.receive(bytes, &mut turn);
                    connection.waited = Waited::SHORT;
                }
                Some(is_end)
            }
            Ok(None) => None,
            Err(_) => {
                input.into_iter().for_each(|input| self.transport.io.release(input));
                self.transport.stats.tls.faults.add(1);
                return self.part(slot);
            }
        };
        input.into_iter().for_each(|input| self.transport.io.release(input));
        if let Some(is_end) = is_end {
            self.go_on_opened(slot, is_end);
        }
    }

    /// The session has what came. `is_end`: the peer has said that it will send no more.
    fn go_on_opened(&mut self, slot: Slot, is_end: bool) {
        if is_end && !self.transport.connections[slot as usize].marks.has_ended() {
            let (connection, mut turn, _) = self.lend(slot);
            connection.end(&mut turn);
        }
        let owed_bytes = self.transport.secured.active(slot).map_or(0, |wall| wall.owed.len());
        if owed_bytes > OWED_BYTES_MAX {
            self.transport.stats.tls.faults.add(1);
            return self.close(slot);
        }
        self.flush(slot);
    }

    /// A fault has ended the connection: the peer is told why, if that was not said already, and nothing else
    /// is sent.
    fn part(&mut self, slot: Slot) {
        self.break_exchanges(slot);
        let Some(wall) = self.transport.secured.active(slot) else { return self.close(slot) };
        let undrawn = wall.take_drawing();
        let has_something = wall.has_something();
        if let Some(outgoing) = undrawn {
            self.transport.spare.put(outgoing);
        }
        if !has_something {
            return self.close(slot);
        }
        // What it has sent meanwhile must not cost it the word.
        self.transport.connections[slot as usize].phase = Phase::Ending { linger: true };
        self.flush(slot);
    }
}

/// How a handshake went, for who counts.
fn how(agreed: &Agreed) -> TlsHandshake {
    match (agreed.suite.is_tls13(), agreed.is_resumed) {
        (true, false) => TlsHandshake::Full13,
        (true, true) => TlsHandshake::Resumed13,
        (false, false) => TlsHandshake::Full12,
        (false, true) => TlsHandshake::Resumed12,
    }
}

/// Why a handshake came to nothing, for who counts.
fn why(fault: Fault) -> TlsRefusal {
    match fault {
        Fault::Refused(Alert::UnrecognizedName, _) => TlsRefusal::UnknownName,
        Fault::PeerAlert(_) => TlsRefusal::Left,
        Fault::Certificate(CertificateFault::Missing) => TlsRefusal::CertificateMissing,
        Fault::Certificate(CertificateFault::Expired) => TlsRefusal::CertificateExpired,
        Fault::Certificate(CertificateFault::Revoked) => TlsRefusal::CertificateRevoked,
        Fault::Certificate(CertificateFault::UnknownIssuer) => TlsRefusal::CertificateUnknown,
        Fault::Certificate(CertificateFault::UnknownStatus) => TlsRefusal::RevocationUnknown,
        Fault::Certificate(CertificateFault::Bad) => TlsRefusal::CertificateBad,
        Fault::Refused(..) | Fault::PlainHttp | Fault::Exhausted => TlsRefusal::Refused,
    }
}
