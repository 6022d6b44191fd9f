//! What comes on secured connections: handshakes are led, records opened, and the content given to the
//! session.
//!
//! It must never give a session a byte that was not opened, nor answer in plain text on a connection that is
//! secured but to who spoke plain HTTP himself.

use staunch_netio::{FileReader, Input, Io, Slot};
use staunch_protocol::Deadline;
use staunch_tls::{Agreed, Alert, CertificateFault, Fault};

use super::Worker;
use crate::connection::Phase;
use crate::exchange::open::Ended;
use crate::handler::Handler;
use crate::limits::{ASLEEP_A_TURN_MAX, OWED_BYTES_MAX, TURNED_AWAY_MS};
use crate::secured::{OpenedContent, TlsSettings};
use crate::stats::{TlsHandshake, TlsRefusal};

impl<I: Io, H: Handler> Worker<I, H> {
    /// Secured listeners are secured by this. To be called before connections come.
    pub fn set_tls(&mut self, settings: TlsSettings, reader: FileReader) {
        self.secured.set(settings, reader);
    }

    /// Every listener that there is speaks TLS, for a simulation whose listeners have no addresses.
    pub fn secure_listeners(&mut self) {
        self.listening.secure_all();
    }

    /// A connection came to a secured listener. Where others need its slot it has little time. `false`: there
    /// is nothing to secure it with, and it ends.
    pub(super) fn await_hello(&mut self, slot: Slot) -> bool {
        let most_ms = if self.overload.capacity.is_full() { TURNED_AWAY_MS } else { u32::MAX };
        let is_awaited = self.secured.await_hello(slot, self.time.now_ms, most_ms);
        if !is_awaited {
            self.connections[slot as usize].phase = Phase::Ending { linger: false };
        }
        is_awaited
    }

    /// Bytes came.
    pub(super) fn received_sealed(&mut self, slot: Slot, input: Input) {
        match self.connections[slot as usize].phase {
            Phase::Open if self.secured.has_keys(slot) => self.open(slot, input),
            Phase::Open => {
                let bytes = self.io.input(&input).to_vec();
                self.io.release(input);
                self.shake(slot, &bytes);
            }
            Phase::Introducing => {
                let bytes = self.io.input(&input).to_vec();
                self.io.release(input);
                let (connection, mut turn, _) = self.lend(slot);
                match connection.be_introduced(&bytes, &mut turn) {
                    Some(rest) if !rest.is_empty() => self.shake(slot, &rest),
                    _ => self.flush(slot),
                }
            }
            Phase::Free | Phase::Ending { .. } | Phase::Lingering | Phase::Closing => self.io.release(input),
        }
    }

    /// Bytes of a handshake came.
    fn shake(&mut self, slot: Slot, bytes: &[u8]) {
        let now_ms = self.time.now_ms;
        let unix_s = now_ms.wrapping_sub(self.time.epoch_ms) / 1_000;
        if let Some(oldest) = self.secured.begin(slot, now_ms, unix_s) {
            self.stats.count_refusal(TlsRefusal::Crowded);
            self.secured.tear_down(oldest);
            self.close(oldest);
            self.count(oldest);
        }
        match self.secured.shake(slot, bytes, now_ms) {
            Ok(None) => self.flush(slot),
            Ok(Some(agreed)) => {
                self.stats.count_handshake(how(&agreed));
                self.stats.tls_hybrid.add(u64::from(agreed.is_hybrid()));
                self.speak_first(slot, &agreed);
                self.open_rest(slot);
            }
            Err(Fault::PlainHttp) => self.refuse_plain(slot, bytes),
            Err(fault) => {
                self.stats.count_refusal(why(fault));
                match fault {
                    Fault::Certificate(_) | Fault::Refused(..) => self.turn_away(slot),
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
        connection.leave_line(turn.now_ms, connection.late);
        if agreed.is_challenge() {
            // An authority has seen what it came for, and nothing else is spoken (RFC 8737, section 3).
            connection.phase = Phase::Ending { linger: false };
        } else if agreed.speaks_http2() {
            connection.open_http2(&mut turn);
        }
    }

    /// A client whose handshake was refused is told why. It may have sent more by then, or in TLS 1.3 asked
    /// already, and that must not cost it the alert.
    fn turn_away(&mut self, slot: Slot) {
        self.connections[slot as usize].phase = Phase::Ending { linger: true };
        self.flush(slot);
    }

    /// Tells a client that speaks plain HTTP so, in plain text.
    #[cold]
    fn refuse_plain(&mut self, slot: Slot, bytes: &[u8]) {
        self.stats.count_refusal(TlsRefusal::PlainHttp);
        self.secured.tear_down(slot);
        let (connection, mut turn, _) = self.lend(slot);
        connection.refuse_plain(bytes, &mut turn);
        self.flush(slot);
    }

    /// Opens records where they were received.
    fn open(&mut self, slot: Slot, input: Input) {
        let opened = self.secured.open(slot, self.io.input_mut(&input), self.time.now_ms);
        let opened = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.io.release(input),
            Err(_) => {
                self.io.release(input);
                self.stats.tls_faults.add(1);
                return self.part(slot);
            }
        };
        self.stats.tls_oddities.add(u64::from(opened.oddities));
        let (connection, mut turn, io) = self.lend(slot);
        match opened.content {
            OpenedContent::Input(place) if !place.is_empty() => {
                connection.receive(&io.input(&input)[place], &mut turn);
                connection.late = false;
            }
            OpenedContent::Joined(bytes, place) if !place.is_empty() => {
                connection.receive(&bytes[place], &mut turn);
                connection.late = false;
            }
            OpenedContent::Input(_) | OpenedContent::Joined(..) => {}
        }
        self.io.release(input);
        self.go_on_opened(slot, opened.is_end);
    }

    /// Opens what came behind the last message of a handshake.
    fn open_rest(&mut self, slot: Slot) {
        match self.secured.open(slot, &mut [], self.time.now_ms) {
            Ok(Some(opened)) => {
                self.stats.tls_oddities.add(u64::from(opened.oddities));
                let (connection, mut turn, _) = self.lend(slot);
                if let OpenedContent::Joined(bytes, place) = opened.content
                    && !place.is_empty()
                {
                    connection.receive(&bytes[place], &mut turn);
                    connection.late = false;
                }
                self.go_on_opened(slot, opened.is_end);
            }
            Ok(None) => {}
            Err(_) => {
                self.stats.tls_faults.add(1);
                self.part(slot);
            }
        }
    }

    /// The session has what came. `is_end`: the peer has said that it will send no more.
    fn go_on_opened(&mut self, slot: Slot, is_end: bool) {
        if is_end && !self.connections[slot as usize].has_ended() {
            let (connection, mut turn, _) = self.lend(slot);
            connection.end(&mut turn);
        }
        let owed_bytes = self.secured.active(slot).map_or(0, |wall| wall.owed.len());
        if owed_bytes > OWED_BYTES_MAX {
            self.stats.tls_faults.add(1);
            return self.close(slot);
        }
        self.flush(slot);
    }

    /// The peer of a secured connection sends no more. `false`: it is dealt with as on a plain one.
    pub(super) fn ended_sealed(&mut self, slot: Slot, errno: i32) -> bool {
        let connection = &self.connections[slot as usize];
        if matches!(connection.phase, Phase::Free | Phase::Closing) {
            return false;
        }
        if !self.secured.has_keys(slot) {
            // A last word is on its way.
            if errno == 0 && matches!(connection.phase, Phase::Ending { .. }) {
                return false;
            }
            if self.secured.handshake_until_ms(slot).is_some() {
                self.stats.count_refusal(TlsRefusal::Left);
            }
            self.close(slot);
            return true;
        }
        // The peer announced its end by an alert before, and the session knows.
        if errno == 0 && connection.has_ended() && connection.phase != Phase::Lingering {
            return true;
        }
        let is_cut = errno == 0 && !connection.has_ended() && connection.phase != Phase::Lingering;
        self.stats.tls_truncated.add(u64::from(is_cut));
        false
    }

    /// The deadline that is running on a connection, secured or not, and when it ends.
    pub(super) fn due(&self, slot: Slot) -> Option<(u64, Deadline)> {
        let due = self.connections[slot as usize].due(&self.overload.timeouts);
        match self.secured.handshake_until_ms(slot) {
            Some(until_ms) if due.is_some() => Some((until_ms, Deadline::Header)),
            _ => due,
        }
    }

    /// A deadline has passed. `true`: it was a handshake's.
    pub(super) fn time_out_handshake(&mut self, slot: Slot) -> bool {
        let is_shaking = self.secured.handshake_until_ms(slot).is_some();
        if is_shaking {
            self.stats.count_refusal(TlsRefusal::TimedOut);
            self.close(slot);
        }
        is_shaking
    }

    /// A fault has ended the connection: the peer is told why, if that was not said already, and nothing else
    /// is sent.
    fn part(&mut self, slot: Slot) {
        if self.connections[slot as usize].has_exchanges() {
            let (connection, mut turn, _) = self.lend(slot);
            connection.break_exchanges(Ended::Gone, &mut turn);
        }
        let Some(wall) = self.secured.active(slot) else { return self.close(slot) };
        let undrawn = wall.take_drawing();
        let has_something = wall.has_something();
        if let Some(outgoing) = undrawn {
            self.reused.spare.put(outgoing);
        }
        if !has_something {
            return self.close(slot);
        }
        // What it has sent meanwhile must not cost it the word.
        self.connections[slot as usize].phase = Phase::Ending { linger: true };
        self.flush_sealed(slot);
    }

    /// Lays connections to sleep whose time has come.
    #[cold]
    pub(super) fn lay_to_sleep(&mut self) {
        for _ in 0..ASLEEP_A_TURN_MAX {
            let is_tight = self.overload.memory.is_tight();
            match self.secured.lay_to_sleep(self.time.now_ms, is_tight) {
                Some(slot) => self.count_sealed(slot),
                None => break,
            }
        }
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
