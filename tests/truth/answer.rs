//! The bytes of a truth server's answers.
//!
//! It owns what is right and what is wrong on purpose. It must never write to a socket.

use std::fmt::Write as _;

/// Bytes that are not HTTP.
pub const GARBAGE: &[u8] = b"\x16\x03\x01 this is not HTTP\r\n\r\n";
/// What comes before the answer of `/1xx`.
pub(crate) const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A right body of this length: the letters of the alphabet again and again.
pub fn body(bytes: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(bytes).collect()
}

/// The body of `/wrong-body`: as [`body`], but for one byte in the middle.
pub fn wrong_body(bytes: usize) -> Vec<u8> {
    let mut body = body(bytes);
    if let Some(byte) = body.get_mut(bytes / 2) {
        *byte = b'!';
    }
    body
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After `Content-Length` bytes.
    Length(usize),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    Close,
    /// There is none, and none is possible (RFC 9110, section 6.4.1).
    Nothing,
}

/// Status line and fields.
pub(crate) fn head(status: u16, framing: Framing, announces_close: bool) -> Vec<u8> {
    let reason = if status == 200 { "OK" } else { "As asked for" };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\n");
    match framing {
        Framing::Length(bytes) => write!(head, "Content-Length: {bytes}\r\n").expect("room in a string"),
        Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
        Framing::Close | Framing::Nothing => {}
    }
    if announces_close {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// The body in chunks of this size, with the last one.
pub(crate) fn chunked(body: &[u8], chunk: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + body.len() / chunk * 8 + 16);
    for piece in body.chunks(chunk) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_body_differs_in_one_byte() {
        for bytes in [1, 2, 100, 5001] {
            let (right, wrong) = (body(bytes), wrong_body(bytes));
            assert_eq!(right.len(), wrong.len());
            assert_eq!(right.iter().zip(&wrong).filter(|(right, wrong)| right != wrong).count(), 1);
        }
    }

    #[test]
    fn chunks() {
        assert_eq!(chunked(b"abcde", 2), b"2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n");
        assert_eq!(chunked(b"", 7), b"0\r\n\r\n");
    }
}
