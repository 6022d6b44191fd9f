//! Requests as a truth server reads them: whole, with their own bytes kept for the echo.
//!
//! It owns what came and was not served yet. It must never be lenient where a generator could be wrong:
//! what it does not understand is refused with a sentence.

use std::io;

use super::stream::Stream;

/// A longer head is refused: no generator's own is longer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// A longer body is refused: bodies are held whole.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A complete request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET` and the like.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The peer wants the connection to end with the answer.
    pub(crate) wants_close: bool,
    /// All its bytes as they came.
    pub(crate) bytes: Vec<u8>,
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum Nothing {
    /// The peer ended where a request could have begun.
    End,
    /// The peer ended, or the connection failed, in the middle of one.
    Incomplete,
    /// The request breaks a rule: the status it deserves and a sentence.
    Bad(u16, String),
}

/// What came on one connection and was not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Waits for the next complete request.
    pub(crate) fn next(&mut self, stream: &Stream) -> Result<Request, Nothing> {
        let mut piece = [0; 16 * 1024];
        loop {
            if let Some(request) = self.take_request()? {
                return Ok(request);
            }
            match stream.read(&mut piece) {
                Ok(0) if self.bytes.is_empty() => return Err(Nothing::End),
                Ok(0) => return Err(Nothing::Incomplete),
                Ok(count) => self.bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if self.bytes.is_empty() => return Err(Nothing::End),
                Err(_) => return Err(Nothing::Incomplete),
            }
        }
    }

    fn take_request(&mut self) -> Result<Option<Request>, Nothing> {
        let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            if self.bytes.len() > HEAD_BYTES_MAX {
                return Err(Nothing::Bad(431, format!("a head of more than {HEAD_BYTES_MAX} bytes")));
            }
            return Ok(None);
        };
        let head = read_head(&self.bytes[..end]).map_err(|(status, why)| Nothing::Bad(status, why))?;
        let length = end + 4 + head.body_bytes;
        if self.bytes.len() < length {
            return Ok(None);
        }
        let bytes = self.bytes.drain(..length).collect();
        let Head { method, target, wants_close, .. } = head;
        Ok(Some(Request { method, target, wants_close, bytes }))
    }
}

#[derive(Debug)]
struct Head {
    method: String,
    target: String,
    wants_close: bool,
    body_bytes: usize,
}

/// Reads request line and fields, without the empty line.
fn read_head(bytes: &[u8]) -> Result<Head, (u16, String)> {
    let text = std::str::from_utf8(bytes).map_err(|_| (400, "the head is not UTF-8".to_owned()))?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else {
        return Err((400, format!("not METHOD TARGET VERSION: {line:?}")));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || !target.starts_with('/') || method.is_empty() {
        return Err((400, format!("not a request line of HTTP/1: {line:?}")));
    }
    let (mut closes, mut keeps, mut body_bytes) = (version == "HTTP/1.0", false, 0);
    for field in lines {
        let Some((name, value)) = field.split_once(':') else {
            return Err((400, format!("a field without a colon: {field:?}")));
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("connection") {
            closes |= value.eq_ignore_ascii_case("close");
            keeps |= value.eq_ignore_ascii_case("keep-alive");
        } else if name.eq_ignore_ascii_case("content-length") {
            body_bytes = value.parse().map_err(|_| (400, format!("no length: {field:?}")))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err((411, "a body is read by its Content-Length only".to_owned()));
        }
    }
    if body_bytes > BODY_BYTES_MAX {
        return Err((413, format!("a body of more than {BODY_BYTES_MAX} bytes")));
    }
    let wants_close = closes && !(keeps && version == "HTTP/1.0");
    Ok(Head { method: method.to_owned(), target: target.to_owned(), wants_close, body_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(text: &str) -> Inbox {
        Inbox { bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn pipelined_requests_come_one_by_one() {
        let mut inbox = inbox("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.0\r\n\r\nGET");
        let first = inbox.take_request().unwrap().unwrap();
        assert_eq!((&first.method[..], &first.target[..], first.wants_close), ("POST", "/a", false));
        assert!(first.bytes.ends_with(b"\r\n\r\nabc"));
        let second = inbox.take_request().unwrap().unwrap();
        assert_eq!((&second.target[..], second.wants_close), ("/b", true));
        assert_eq!(inbox.take_request().unwrap(), None);
        assert_eq!(inbox.bytes, b"GET");
    }

    #[test]
    fn the_connection_field_is_obeyed() {
        let cases = [
            ("GET / HTTP/1.1", false),
            ("GET / HTTP/1.1\r\nConnection: close", true),
            ("GET / HTTP/1.1\r\nconnection:CLOSE", true),
            ("GET / HTTP/1.0", true),
            ("GET / HTTP/1.0\r\nConnection: keep-alive", false),
        ];
        for (head, expected) in cases {
            assert_eq!(read_head(head.as_bytes()).unwrap().wants_close, expected, "{head}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let cases = [
            ("GET /", 400),
            ("GET / HTTP/2", 400),
            ("GET  / HTTP/1.1", 400),
            ("GET http://a/ HTTP/1.1", 400),
            ("GET / HTTP/1.1\r\nno colon", 400),
            ("GET / HTTP/1.1\r\nContent-Length: many", 400),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
            ("GET / HTTP/1.1\r\nContent-Length: 99999999999", 413),
        ];
        for (head, expected) in cases {
            assert_eq!(read_head(head.as_bytes()).unwrap_err().0, expected, "{head}");
        }
        let endless = inbox(&"a".repeat(HEAD_BYTES_MAX + 1)).take_request();
        assert!(matches!(endless, Err(Nothing::Bad(431, _))));
    }
}
