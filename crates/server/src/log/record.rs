//! A request on its way from a worker to the log: a header of fixed size, the pieces behind it, what is told
//! of a certificate if the client showed one, and of its way to an application if it was passed on.
//!
//! It owns the form in which they lie in the ring. It must never look into a piece.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length, status, family, marks, time, length of the body, address, the lengths of the pieces, and the
/// wait.
const HEADER_BYTES: usize = 56;
const PIECES_COUNT: usize = 6;
/// Where the wait stands: behind the lengths of the pieces.
const WAIT_AT: usize = HEADER_BYTES - 4;
/// Of a request line or a field's value no more is kept: as much as a request line may have.
const PIECE_BYTES_MAX: usize = 8 * 1024;
const FINGERPRINT_BYTES: usize = 32;
/// Marks.
const IS_HTTP2: u8 = 1;
const HAS_CERTIFICATE: u8 = 2;
const WAS_PASSED_ON: u8 = 4;

/// What the log is told of a request. A piece that did not come, or is not wanted, is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Record<'a> {
    pub(super) unix_ms: u64,
    pub(super) client: Option<IpAddr>,
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    pub(super) waited_ms: u32,
    /// As HTTP/1.1 would have sent it.
    pub(super) request_line: &'a [u8],
    /// The request came by HTTP/2.
    pub(super) is_http2: bool,
    pub(super) host: &'a [u8],
    pub(super) referer: &'a [u8],
    pub(super) user_agent: &'a [u8],
    pub(super) forwarded_for: &'a [u8],
    /// The Authorization field, where a rule asked for it: a name is in it, and what nobody may see.
    pub(super) credentials: &'a [u8],
    /// The certificate that the client showed.
    pub(super) certificate: Option<ShownCertificate<'a>>,
    /// A request that was passed on, as `Passed` writes it; empty if it was not.
    pub(super) passed: &'a [u8],
}

/// What the log is told of a client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShownCertificate<'a> {
    pub(super) subject: &'a [u8],
    /// Its SHA-256.
    pub(super) fingerprint: &'a [u8; FINGERPRINT_BYTES],
}

impl<'a> Record<'a> {
    /// Replaces what stands in `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let pieces = [
            self.request_line,
            self.host,
            self.referer,
            self.user_agent,
            self.forwarded_for,
            self.credentials,
        ]
        .map(|piece| &piece[..piece.len().min(PIECE_BYTES_MAX)]);
        let length = HEADER_BYTES + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let (family, address) = match self.client {
            None => (0, [0; 16]),
            Some(IpAddr::V4(address)) => (4, address.to_ipv6_mapped().octets()),
            Some(IpAddr::V6(address)) => (6, address.octets()),
        };
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(length as u32).to_le_bytes());
        header[4..6].copy_from_slice(&self.status.to_le_bytes());
        (header[6], header[7]) = (family, if self.is_http2 { IS_HTTP2 } else { 0 });
        header[8..16].copy_from_slice(&self.unix_ms.to_le_bytes());
        header[16..24].copy_from_slice(&self.body_bytes.to_le_bytes());
        header[24..40].copy_from_slice(&address);
        for (index, piece) in pieces.iter().enumerate() {
            header[40 + 2 * index..42 + 2 * index].copy_from_slice(&(piece.len() as u16).to_le_bytes());
        }
        header[WAIT_AT..].copy_from_slice(&self.waited_ms.to_le_bytes());
        out.clear();
        out.extend_from_slice(&header);
        for piece in pieces {
            out.extend_from_slice(piece);
        }
        if let Some(certificate) = &self.certificate {
            certificate.append(out);
        }
        if !self.passed.is_empty() {
            append_passed(self.passed, out);
        }
    }

    /// The first record, and what is behind it. `None` at the end.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| header[at + index]));
        let address = Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|index| header[24 + index]));
        let client = match header[6] {
            0 => None,
            4 => Some(IpAddr::V4(address.to_ipv4_mapped().unwrap_or(Ipv4Addr::UNSPECIFIED))),
            _ => Some(IpAddr::V6(address)),
        };
        let mut rest = &bytes[HEADER_BYTES..];
        let mut pieces: [&[u8]; PIECES_COUNT] = [&[]; PIECES_COUNT];
        for (index, piece) in pieces.iter_mut().enumerate() {
            (*piece, rest) = rest.split_at_checked(usize::from(word(40 + 2 * index)))?;
        }
        let [request_line, host, referer, user_agent, forwarded_for, credentials] = pieces;
        let mut certificate = None;
        if header[7] & HAS_CERTIFICATE != 0 {
            let (shown, behind) = ShownCertificate::decode(rest)?;
            (certificate, rest) = (Some(shown), behind);
        }
        let mut passed: &[u8] = &[];
        if header[7] & WAS_PASSED_ON != 0 {
            let (length, behind) = rest.split_first_chunk()?;
            (passed, rest) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        }
        let (unix_ms, status, body_bytes) = (long(8), word(4), long(16));
        let waited_ms = u32::from(word(WAIT_AT)) | u32::from(word(WAIT_AT + 2)) << 16;
        let record = Self {
            unix_ms,
            client,
            status,
            body_bytes,
            waited_ms,
            request_line,
            is_http2: header[7] & IS_HTTP2 != 0,
            host,
            referer,
            user_agent,
            forwarded_for,
            credentials,
            certificate,
            passed,
        };
        Some((record, rest))
    }
}

impl<'a> ShownCertificate<'a> {
    /// Puts it behind the record in `out`, which is that much longer then. Most records have none, and pay
    /// nothing for it.
    #[cold]
    #[inline(never)]
    fn append(&self, out: &mut Vec<u8>) {
        let subject = &self.subject[..self.subject.len().min(PIECE_BYTES_MAX)];
        out.extend_from_slice(&(subject.len() as u16).to_le_bytes());
        out.extend_from_slice(subject);
        out.extend_from_slice(self.fingerprint);
        mark(out, HAS_CERTIFICATE);
    }

    fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (subject, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let (fingerprint, rest) = rest.split_first_chunk()?;
        Some((Self { subject, fingerprint }, rest))
    }
}

/// Puts what is told of a request that was passed on behind the record in `out`. Others pay one look for it.
#[cold]
#[inline(never)]
fn append_passed(passed: &[u8], out: &mut Vec<u8>) {
    let passed = &passed[..passed.len().min(PIECE_BYTES_MAX)];
    out.extend_from_slice(&(passed.len() as u16).to_le_bytes());
    out.extend_from_slice(passed);
    mark(out, WAS_PASSED_ON);
}

/// The record in `out` has become longer, by what this mark tells of.
fn mark(out: &mut [u8], mark: u8) {
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out[7] |= mark;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let whole = Record {
            unix_ms: u64::MAX - 1,
            client: Some("2001:db8::1".parse().unwrap()),
            status: 431,
            body_bytes: 1 << 40,
            waited_ms: 1 << 20 | 5,
            request_line: b"GET / HTTP/1.1",
            is_http2: true,
            host: b"example",
            referer: b"there",
            user_agent: b"",
            forwarded_for: &[0; 300],
            credentials: b"anna",
            certificate: Some(ShownCertificate { subject: b"CN=anna", fingerprint: &[7; 32] }),
            passed: b"",
        };
        let plain = Record { client: Some("192.0.2.1".parse().unwrap()), ..Record::default() };
        let passed = Record { passed: b"there", ..plain };
        let both = Record { passed: b"there", ..whole };
        let records = [whole, plain, passed, both, Record::default()];
        let (mut bytes, mut one) = (Vec::new(), Vec::new());
        for record in records {
            record.encode(&mut one);
            assert_eq!(u32::from_le_bytes(*one.first_chunk().unwrap()) as usize, one.len());
            bytes.extend_from_slice(&one);
        }
        let mut rest = &bytes[..];
        for record in records {
            let (decoded, behind) = Record::decode(rest).unwrap();
            assert_eq!(decoded, record);
            rest = behind;
        }
        assert_eq!(Record::decode(rest), None);
    }

    #[test]
    fn pieces_are_cut() {
        let long = vec![b'x'; 100_000];
        let mut bytes = Vec::new();
        Record { referer: &long, user_agent: b"after", ..Record::default() }.encode(&mut bytes);
        let (record, rest) = Record::decode(&bytes).unwrap();
        assert_eq!((record.referer.len(), record.user_agent), (PIECE_BYTES_MAX, &b"after"[..]));
        assert!(rest.is_empty());
    }
}
