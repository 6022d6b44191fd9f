//! The record layer of an open connection: records in, plain bytes out, and back.
//!
//! It owns the rules of RFC 8446, sections 5 and 6, and RFC 5246, sections 6 and 7.2, for what comes after a
//! handshake. It must never keep a byte of content: records are opened in the caller's buffer and sealed into
//! the caller's output. Order of calls: [`Awake::open`] with what was received and [`Awake::seal`] with what
//! is to be sent, as often as wanted; [`Awake::close`] at the end; [`Awake::sleep`] while nothing happens.
use std::ops::Range;

use crate::alert::{Alert, Fault};
use crate::asleep::Asleep;
use crate::direction::Direction;
use crate::limits::{
    EXPANSION_12_BYTES_MAX, EXPANSION_13_BYTES_MAX, FLIGHT_BYTES, ODDITIES_IN_A_ROW_MAX, RECORD_HEAD_BYTES,
    RECORD_OVERHEAD_BYTES_MAX, RECORD_PLAIN_BYTES_MAX, RECORDS_BEFORE_UPDATE_MAX, SMALL_RECORD_BYTES,
    SMALL_RECORDS_COUNT,
};
use crate::suite::Suite;

/// Types of content (RFC 8446, section 5.1).
pub(crate) mod content {
    pub(crate) const ALERT: u8 = 21;
    pub(crate) const HANDSHAKE: u8 = 22;
    pub(crate) const DATA: u8 = 23;
}
const KEY_UPDATE: u8 = 24;
const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
/// Bytes of a KeyUpdate: type, length of three bytes, whether it is asked for one in return.
const KEY_UPDATE_BYTES: usize = 5;

/// What [`Awake::open`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenedRecords {
    /// Where in the given bytes the content of all opened records stands, without a gap.
    pub plain: Range<usize>,
    /// How many of the given bytes are done with. What follows is the beginning of a record.
    pub taken: usize,
    /// The peer said that it will send no more. Without this, the end of the bytes is a truncation.
    pub is_end: bool,
    /// Empty records, warnings and key updates: for the account of what a peer does that is allowed but odd.
    pub oddities: u32,
}

/// A connection with its keys.
pub struct Awake {
    reading: Direction,
    writing: Direction,
    /// The beginning of a KeyUpdate whose record was cut.
    update: [u8; KEY_UPDATE_BYTES],
    update_length: usize,
    oddities_in_a_row: u8,
    has_asked_for_update: bool,
    has_refused_renegotiation: bool,
    small_records_left: u32,
}

impl Awake {
    pub(crate) fn new(reading: Direction, writing: Direction) -> Self {
        Self {
            reading,
            writing,
            update: [0; KEY_UPDATE_BYTES],
            update_length: 0,
            oddities_in_a_row: 0,
            has_asked_for_update: false,
            has_refused_renegotiation: false,
            small_records_left: SMALL_RECORDS_COUNT,
        }
    }

    /// Version and cipher.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.writing.suite()
    }

    /// Opens every whole record at the beginning of `bytes` in place. Answers that the protocol owes (a key
    /// update, an alert) are appended to `output`, and are to be sent whatever the result is.
    ///
    /// # Errors
    /// The connection is to be closed; nothing that was in `bytes` may be used.
    pub fn open(&mut self, bytes: &mut [u8], output: &mut Vec<u8>) -> Result<OpenedRecords, Fault> {
        let result = self.open_records(bytes, output);
        if let Err(fault) = &result
            && let Some(alert) = fault.alert()
        {
            self.tell(alert, output);
        }
        result
    }

    /// Seals the pieces, one behind the other, into as many records as they need, and appends these to
    /// `output`. A long answer begins with records of one segment each; see [`FLIGHT_BYTES`].
    ///
    /// # Errors
    /// [`Fault::Exhausted`]: the key may seal no more, and TLS 1.2 has no way to change it.
    pub fn seal(&mut self, pieces: &[&[u8]], output: &mut Vec<u8>) -> Result<(), Fault> {
        let mut pieces = Pieces { pieces, offset: 0 };
        let mut left = pieces.length();
        let is_long = left > FLIGHT_BYTES;
        output.reserve(left + (left / SMALL_RECORD_BYTES + 1).min(64) * RECORD_OVERHEAD_BYTES_MAX);
        while left > 0 {
            if self.suite().is_tls13() && self.writing.sequence() >= RECORDS_BEFORE_UPDATE_MAX {
                self.change_key(false, output)?;
            }
            let length = left.min(self.record_length(is_long));
            let start = self.writing.begin(content::DATA, length, output);
            pieces.take(length, output);
            self.writing.seal(content::DATA, start, output)?;
            left -= length;
        }
        Ok(())
    }

    /// Says that we will send no more (RFC 8446, section 6.1).
    pub fn close(&mut self, output: &mut Vec<u8>) {
        self.tell(Alert::CloseNotify, output);
    }

    /// Seals an alert. A key that is worn out cannot, and says nothing.
    pub fn tell(&mut self, alert: Alert, output: &mut Vec<u8>) {
        // The caller ends the connection whether the peer could be told or not.
        let _ = self.seal_message(content::ALERT, &alert.bytes(), output);
    }

    /// Goes on with a new key of ours, and asks for one of the peer's if told to (RFC 8446, section 4.6.3).
    /// TLS 1.2 has no such message, and nothing happens.
    ///
    /// # Errors
    /// [`Fault::Exhausted`]: the key may seal no more, not even this.
    pub fn change_key(&mut self, asks_peer: bool, output: &mut Vec<u8>) -> Result<(), Fault> {
        if !self.suite().is_tls13() {
            return Ok(());
        }
        self.seal_message(content::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, u8::from(asks_peer)], output)?;
        self.has_asked_for_update |= asks_peer;
        self.writing.update();
        Ok(())
    }

    /// The connection has rested: the next long answer begins with small records again.
    pub fn rest(&mut self) {
        self.small_records_left = SMALL_RECORDS_COUNT;
    }

    /// What is kept of this connection while nothing happens; `None` in the middle of a message. The caller
    /// drops this one, and keeps the beginning of a record that came, if there is one.
    #[must_use]
    pub fn sleep(&self) -> Option<Asleep> {
        (self.update_length == 0).then(|| Asleep {
            reading: self.reading.secret().twin(),
            writing: self.writing.secret().twin(),
            records_read: self.reading.sequence(),
            records_written: self.writing.sequence(),
            suite: self.suite(),
            oddities_in_a_row: self.oddities_in_a_row,
            has_asked_for_update: self.has_asked_for_update,
            has_refused_renegotiation: self.has_refused_renegotiation,
        })
    }

    /// The connection that fell asleep, with its keys made again.
    #[must_use]
    pub fn wake(asleep: &Asleep) -> Self {
        let suite = asleep.suite;
        let mut awake = Self::new(
            Direction::new(suite, asleep.reading.twin(), asleep.records_read),
            Direction::new(suite, asleep.writing.twin(), asleep.records_written),
        );
        awake.oddities_in_a_row = asleep.oddities_in_a_row;
        awake.has_asked_for_update = asleep.has_asked_for_update;
        awake.has_refused_renegotiation = asleep.has_refused_renegotiation;
        awake
    }

    fn open_records(&mut self, bytes: &mut [u8], output: &mut Vec<u8>) -> Result<OpenedRecords, Fault> {
        let mut opened = OpenedRecords::default();
        let mut owes_update = false;
        while !opened.is_end {
            let Some(&head) = bytes[opened.taken..].first_chunk::<RECORD_HEAD_BYTES>() else { break };
            let length = self.length_of(head)?;
            let start = opened.taken + RECORD_HEAD_BYTES;
            let Some(body) = bytes.get_mut(start..start + length) else { break };
            let place = self.reading.open(head, body)?;
            let (kind, place) = self.kind_and_content(head[0], body, place)?;
            opened.taken = start + length;
            if self.update_length > 0 && kind != content::HANDSHAKE {
                return Err(unexpected("a record in the middle of a handshake message"));
            }
            let body = &bytes[start + place.start..start + place.end];
            match kind {
                content::DATA if !body.is_empty() => {
                    self.oddities_in_a_row = 0;
                    append(bytes, &mut opened.plain, start + place.start..start + place.end);
                    continue;
                }
                content::DATA => {}
                content::ALERT => opened.is_end = self.hear(body)?,
                content::HANDSHAKE => owes_update |= self.handshake(body, output)?,
                _ => return Err(unexpected("a record of a type that must not come now")),
            }
            opened.oddities += u32::from(!opened.is_end);
            self.count_oddity(opened.is_end)?;
        }
        if opened.is_end {
            opened.taken = bytes.len();
            return Ok(opened);
        }
        self.renew_keys(owes_update, output)?;
        Ok(opened)
    }

    /// Checks the head of a record and gives the length of its body.
    fn length_of(&self, head: [u8; RECORD_HEAD_BYTES]) -> Result<usize, Fault> {
        let is_tls13 = self.suite().is_tls13();
        let is_expected = if is_tls13 {
            head[0] == content::DATA
        } else {
            matches!(head[0], content::ALERT | content::HANDSHAKE | content::DATA)
        };
        if !is_expected {
            return Err(unexpected("a record of a type that must not come now"));
        }
        if head[1] != 3 || !(is_tls13 || head[2] == 3) {
            return Err(Fault::Refused(Alert::ProtocolVersion, "a record of another version"));
        }
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        let expansion = if is_tls13 { EXPANSION_13_BYTES_MAX } else { EXPANSION_12_BYTES_MAX };
        if length > RECORD_PLAIN_BYTES_MAX + expansion {
            return Err(overflow());
        }
        Ok(length)
    }

    /// The type of an opened record, and where its content is without padding (RFC 8446, section 5.4).
    fn kind_and_content(
        &self,
        outer: u8,
        body: &[u8],
        place: Range<usize>,
    ) -> Result<(u8, Range<usize>), Fault> {
        if !self.suite().is_tls13() {
            return if place.len() > RECORD_PLAIN_BYTES_MAX { Err(overflow()) } else { Ok((outer, place)) };
        }
        if place.len() > RECORD_PLAIN_BYTES_MAX + 1 {
            return Err(overflow());
        }
        let Some(last) = body[place.clone()].iter().rposition(|&byte| byte != 0) else {
            return Err(unexpected("a record of padding alone"));
        };
        let end = place.start + last;
        Ok((body[end], place.start..end))
    }

    /// Understands an alert. `true`: the peer will send no more.
    fn hear(&self, alert: &[u8]) -> Result<bool, Fault> {
        let &[level, description] = alert else {
            return Err(Fault::Refused(Alert::DecodeError, "an alert that is not two bytes long"));
        };
        let is_warning =
            if self.suite().is_tls13() { description == Alert::UserCanceled as u8 } else { level == 1 };
        match description {
            0 => Ok(true),
            _ if is_warning => Ok(false),
            number => Err(Fault::PeerAlert(number)),
        }
    }

    /// Understands what a peer may say of handshakes once one is over. `true`: it asks for a new key of ours.
    fn handshake(&mut self, message: &[u8], output: &mut Vec<u8>) -> Result<bool, Fault> {
        if !self.suite().is_tls13() {
            return self.refuse_renegotiation(message, output).map(|()| false);
        }
        if message.is_empty() {
            return Err(unexpected("an empty handshake record"));
        }
        let length = self.update_length + message.len();
        let Some(place) = self.update.get_mut(self.update_length..length) else {
            return Err(unexpected("a handshake message that is no key update, or more behind one"));
        };
        place.copy_from_slice(message);
        self.update_length = length;
        let expected = [KEY_UPDATE, 0, 0, 1];
        if self.update[0] != KEY_UPDATE {
            return Err(unexpected("a handshake message that is no key update"));
        }
        if self.update[..length.min(4)] != expected[..length.min(4)] {
            return Err(Fault::Refused(Alert::DecodeError, "a key update of a wrong length"));
        }
        if length < KEY_UPDATE_BYTES {
            return Ok(false);
        }
        self.update_length = 0;
        let asks = match self.update[KEY_UPDATE_BYTES - 1] {
            0 => false,
            1 => true,
            _ => return Err(Fault::Refused(Alert::IllegalParameter, "a key update of an unknown kind")),
        };
        self.reading.update();
        self.has_asked_for_update = false;
        Ok(asks)
    }

    /// TLS 1.2: a second handshake is refused once by a warning, then the connection ends.
    fn refuse_renegotiation(&mut self, message: &[u8], output: &mut Vec<u8>) -> Result<(), Fault> {
        let begins = matches!(message.first(), Some(&(CLIENT_HELLO | HELLO_REQUEST)));
        if self.has_refused_renegotiation || !begins {
            return Err(unexpected("a handshake message after the handshake"));
        }
        self.has_refused_renegotiation = true;
        self.seal_message(content::ALERT, &Alert::NoRenegotiation.bytes(), output)
    }

    fn count_oddity(&mut self, is_end: bool) -> Result<(), Fault> {
        self.oddities_in_a_row += u8::from(!is_end);
        if self.oddities_in_a_row > ODDITIES_IN_A_ROW_MAX {
            return Err(unexpected("too many records without content"));
        }
        Ok(())
    }

    /// Answers a key update, however often it was asked for, and asks for one before the peer's key is worn
    /// out.
    fn renew_keys(&mut self, owes_update: bool, output: &mut Vec<u8>) -> Result<(), Fault> {
        let is_worn = self.reading.sequence() >= RECORDS_BEFORE_UPDATE_MAX;
        let asks = is_worn && !self.has_asked_for_update;
        if owes_update || asks { self.change_key(asks, output) } else { Ok(()) }
    }

    fn record_length(&mut self, is_long: bool) -> usize {
        if !is_long || self.small_records_left == 0 {
            return RECORD_PLAIN_BYTES_MAX;
        }
        self.small_records_left -= 1;
        SMALL_RECORD_BYTES
    }

    fn seal_message(&mut self, kind: u8, message: &[u8], output: &mut Vec<u8>) -> Result<(), Fault> {
        let start = self.writing.begin(kind, message.len(), output);
        output.extend_from_slice(message);
        self.writing.seal(kind, start, output)
    }
}

/// Moves content behind what was opened before, so that it stands without a gap.
fn append(bytes: &mut [u8], plain: &mut Range<usize>, place: Range<usize>) {
    if plain.start == plain.end {
        *plain = place;
        return;
    }
    let length = place.len();
    bytes.copy_within(place, plain.end);
    plain.end += length;
}

fn unexpected(why: &'static str) -> Fault {
    Fault::Refused(Alert::UnexpectedMessage, why)
}

fn overflow() -> Fault {
    Fault::Refused(Alert::RecordOverflow, "a record with more than 2^14 bytes of content")
}

/// Pieces that are not copied yet.
struct Pieces<'a> {
    pieces: &'a [&'a [u8]],
    /// Bytes of the first piece that are copied.
    offset: usize,
}

impl Pieces<'_> {
    fn length(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Copies the next `count` bytes; there are that many.
    fn take(&mut self, mut count: usize, output: &mut Vec<u8>) {
        while let Some((first, others)) = self.pieces.split_first() {
            let left = &first[self.offset..];
            if count < left.len() {
                output.extend_from_slice(&left[..count]);
                self.offset += count;
                return;
            }
            output.extend_from_slice(left);
            count -= left.len();
            self.pieces = others;
            self.offset = 0;
        }
    }
}

#[cfg(test)]
mod tests;
