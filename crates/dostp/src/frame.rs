//! A frame as a whole: header, payload, trailer.
//!
//! It owns the nine faults of bytes. It must never know who receives, or whether a trailer is true.

use crate::fault::Fault;
use crate::greeting::Greeting;
use crate::header::{Flags, Header, Kind};
use crate::limits::{GREETING_BYTES, HEADER_BYTES, SUM_BYTES};

/// Bytes of the counter word, which begins the trailer where AUTH is set.
const COUNTER_BYTES: usize = 8;

/// A frame whose bytes have no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What its header says.
    pub header: Header,
    /// The payload; ciphertext if it is encrypted.
    pub payload: &'a [u8],
    /// Checksum, or counter word and tag, or nothing.
    pub trailer: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame. What follows its end is padding.
    ///
    /// # Errors
    /// The first of the nine faults of bytes, in the order of `docs/dostp.md`.
    #[inline]
    pub fn decode(bytes: &'a [u8], cluster: u8) -> Result<Self, Fault> {
        if let Some(header) = Header::decode_whole(bytes, cluster)
            && let Some(payload) = bytes[HEADER_BYTES..].get(..usize::from(header.length))
        {
            return Ok(Self { header, payload, trailer: &[] });
        }
        Self::decode_any(bytes, cluster)
    }

    /// A frame that was found sound, again from its header and its bytes, which end with the trailer.
    #[inline]
    pub(crate) fn of(header: Header, bytes: &'a [u8]) -> Self {
        let (payload, trailer) = bytes[HEADER_BYTES..].split_at(usize::from(header.length));
        Self { header, payload, trailer }
    }

    /// Any frame, and its first fault.
    #[inline(never)]
    fn decode_any(bytes: &'a [u8], cluster: u8) -> Result<Self, Fault> {
        let header = match Header::decode_joined(bytes, cluster) {
            Some(header) => header,
            None => Header::decode_any(bytes, cluster)?,
        };
        let behind = &bytes[HEADER_BYTES..];
        let (payload, rest) = behind.split_at_checked(usize::from(header.length)).ok_or(Fault::Length)?;
        let trailer = if header.flags.has(Flags::AUTH) {
            rest.get(..auth_bytes(*rest.first().ok_or(Fault::Length)?))
        } else if header.flags.has(Flags::SUM) {
            rest.get(..SUM_BYTES)
        } else {
            Some(&[][..])
        };
        let frame = Self { header, payload, trailer: trailer.ok_or(Fault::Length)? };
        if frame.is_length_right() { Ok(frame) } else { Err(Fault::Length) }
    }

    /// Whether the checksum is right, or there is none.
    #[inline]
    pub fn is_sum_right(&self, cluster: u8) -> bool {
        !self.header.flags.has(Flags::SUM) || self.trailer == sum(&self.header.encode(cluster), self.payload)
    }

    /// The greeting of a control frame.
    pub fn greeting(&self) -> Option<Greeting> {
        if self.header.kind.is_control() { Greeting::decode(self.payload) } else { None }
    }

    fn is_length_right(&self) -> bool {
        match self.header.kind {
            Kind::Data | Kind::Request | Kind::Reply => true,
            Kind::Ack => self.payload.is_empty(),
            Kind::Probe => self.greeting().is_some(),
            _ => self.payload.len() == GREETING_BYTES && self.greeting().is_some(),
        }
    }
}

/// The trailer of a frame with SUM: CRC-32C of header and payload.
pub fn sum(header: &[u8; HEADER_BYTES], payload: &[u8]) -> [u8; SUM_BYTES] {
    crc32c::crc32c_append(crc32c::crc32c(header), payload).to_be_bytes()
}

/// Bytes of counter word and tag, as the key byte says.
pub(crate) fn auth_bytes(key: u8) -> usize {
    COUNTER_BYTES + if key & 0x80 == 0 { 8 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, flags: Flags, length: u16) -> Header {
        let (destination, port) = match kind {
            Kind::Hello | Kind::Bye => (0xffff, 0),
            _ if kind.is_control() => (8, 0),
            _ => (8, 9),
        };
        Header {
            kind,
            flags: flags.with(Flags::WHOLE),
            source: 7,
            destination,
            source_port: port,
            destination_port: port,
            message_id: 0,
            length,
            sequence: 0,
        }
    }

    #[test]
    fn a_frame_ends_where_its_length_says() {
        let mut bytes = header(Kind::Data, Flags::default(), 3).encode(0).to_vec();
        bytes.extend_from_slice(b"abcpadding");
        let frame = Frame::decode(&bytes, 0).unwrap();
        assert_eq!((frame.payload, frame.trailer), (&b"abc"[..], &b""[..]));
        assert_eq!(Frame::decode(&bytes[..18], 0), Err(Fault::Length));
    }

    #[test]
    fn trailers_are_found_and_a_wrong_sum_is_seen() {
        let head = header(Kind::Data, Flags::SUM, 3);
        let mut bytes = head.encode(0).to_vec();
        bytes.extend_from_slice(b"abc");
        bytes.extend(sum(&head.encode(0), b"abc"));
        assert!(Frame::decode(&bytes, 0).unwrap().is_sum_right(0));
        assert_eq!(Frame::decode(&bytes[..22], 0), Err(Fault::Length));
        bytes[17] ^= 1;
        assert!(!Frame::decode(&bytes, 0).unwrap().is_sum_right(0));
        for (key, trailer_bytes) in [(0, 16), (1, 16), (0x80, 24)] {
            let mut bytes = header(Kind::Data, Flags::AUTH, 0).encode(0).to_vec();
            assert_eq!(Frame::decode(&bytes, 0), Err(Fault::Length));
            bytes.push(key);
            bytes.resize(HEADER_BYTES + trailer_bytes, 0);
            assert_eq!(Frame::decode(&bytes, 0).unwrap().trailer.len(), trailer_bytes);
            assert_eq!(Frame::decode(&bytes[..HEADER_BYTES + trailer_bytes - 1], 0), Err(Fault::Length));
        }
    }

    #[test]
    fn control_frames_bear_a_greeting_of_the_right_length() {
        let greeting = [1; GREETING_BYTES];
        let mut longer = greeting.to_vec();
        longer.resize(100, 0);
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_control()) {
            let frame = |payload: &[u8]| {
                let header = header(kind, Flags::default(), payload.len() as u16);
                [&header.encode(0)[..], payload].concat()
            };
            assert!(Frame::decode(&frame(&greeting), 0).is_ok());
            assert_eq!(Frame::decode(&frame(&longer), 0).is_ok(), kind == Kind::Probe);
            assert_eq!(Frame::decode(&frame(&greeting[..31]), 0), Err(Fault::Length));
            assert_eq!(Frame::decode(&frame(&[0; GREETING_BYTES]), 0), Err(Fault::Length));
        }
        let ack = |length| header(Kind::Ack, Flags::default(), length).encode(0);
        assert!(Frame::decode(&ack(0), 0).is_ok());
        assert_eq!(Frame::decode(&[&ack(1)[..], b"a"].concat(), 0), Err(Fault::Length));
    }
}
