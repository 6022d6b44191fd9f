//! How the body of an answer goes over the wire, piece by piece.
//!
//! It owns the framing of a body that goes on (RFC 9112, sections 6 and 7.1). It must never hold a byte of
//! the body.

use crate::message::Fields;

/// The framing of a body under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyOut {
    /// None is sent: the request was HEAD, or the status has no body.
    Nothing,
    /// So many bytes are left of the announced length.
    Length(u64),
    /// The chunked transfer coding.
    Chunked,
    /// The end of the connection ends the body.
    UntilClose,
}

/// The chunk that ends a body, without trailer fields.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

impl BodyOut {
    /// Begins a piece of `wanted_bytes`: appends what stands before it, and gives how many of its bytes may
    /// be sent. Fewer only where the announced length, or the lack of any body, allows no more.
    pub fn begin_piece(&mut self, wanted_bytes: u64, out: &mut Vec<u8>) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Length(left_bytes) => {
                let count = wanted_bytes.min(*left_bytes);
                *left_bytes -= count;
                count
            }
            Self::Chunked if wanted_bytes > 0 => {
                let mut digits = [0; 16];
                let mut at = digits.len();
                let mut rest = wanted_bytes;
                while rest > 0 {
                    at -= 1;
                    digits[at] = b"0123456789abcdef"[(rest % 16) as usize];
                    rest /= 16;
                }
                out.extend_from_slice(&digits[at..]);
                out.extend_from_slice(b"\r\n");
                wanted_bytes
            }
            Self::Chunked | Self::UntilClose => wanted_bytes,
        }
    }

    /// Ends a piece that was begun with more than no bytes.
    pub fn end_piece(&self, out: &mut Vec<u8>) {
        if *self == Self::Chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Ends the body with trailer fields, if its end can carry any. Gives the framing that is left, which
    /// [`BodyOut::end`] ends.
    #[must_use]
    pub fn end_with(self, trailers: Fields<'_>, out: &mut Vec<u8>) -> Self {
        if self != Self::Chunked {
            return self;
        }
        [b"0\r\n", trailers.lines(), b"\r\n"].iter().for_each(|part| out.extend_from_slice(part));
        // Nothing more has to be written, as at the end of a body that the connection ends.
        Self::UntilClose
    }

    /// Ends the body. Whether it is whole: a body shorter than announced is not.
    pub fn end(self, out: &mut Vec<u8>) -> bool {
        if self == Self::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
        !matches!(self, Self::Length(1..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(mut body: BodyOut, pieces: &[&[u8]]) -> (String, bool) {
        let mut out = Vec::new();
        for piece in pieces {
            let count = body.begin_piece(piece.len() as u64, &mut out) as usize;
            if count > 0 {
                out.extend_from_slice(&piece[..count]);
                body.end_piece(&mut out);
            }
        }
        let whole = body.end(&mut out);
        (String::from_utf8(out).unwrap(), whole)
    }

    #[test]
    fn framings() {
        let long = [b'x'; 300];
        let pieces: &[&[u8]] = &[b"abc", b"", b"d"];
        assert_eq!(write(BodyOut::Chunked, pieces), ("3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n".into(), true));
        assert!(write(BodyOut::Chunked, &[&long]).0.starts_with("12c\r\nx"));
        assert_eq!(write(BodyOut::Length(4), pieces), ("abcd".into(), true));
        assert_eq!(write(BodyOut::Length(3), pieces), ("abc".into(), true));
        assert_eq!(write(BodyOut::Length(5), pieces), ("abcd".into(), false));
        assert_eq!(write(BodyOut::UntilClose, pieces), ("abcd".into(), true));
        assert_eq!(write(BodyOut::Nothing, pieces), (String::new(), true));
    }

    #[test]
    fn trailers_stand_in_the_last_chunk() {
        let trailers = Fields::new(b"A: b\r\nC: d\r\n");
        let cases: [(BodyOut, &[u8]); 4] = [
            (BodyOut::Chunked, b"0\r\nA: b\r\nC: d\r\n\r\n"),
            (BodyOut::Length(0), b""),
            (BodyOut::UntilClose, b""),
            (BodyOut::Nothing, b""),
        ];
        for (body, expected) in cases {
            let mut out = Vec::new();
            assert!(body.end_with(trailers, &mut out).end(&mut out));
            assert_eq!(out, expected, "{body:?}");
        }
    }
}
