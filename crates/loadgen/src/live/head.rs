//! Heads of answers, as far as a reader has to know them before the body is over: status and some fields.
//!
//! It must never decide where a body ends: `AnswerReader` does.

use staunch_protocol::limits::ANSWER_HEAD_BYTES_MAX;

/// A head whose end has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerHead<'a> {
    /// The status code.
    pub(crate) status: u16,
    fields: &'a [u8],
}

/// Why bytes are no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadFault {
    /// They do not begin as an answer of HTTP/1 does.
    NotHttp,
    /// The end did not come within the limit.
    TooLong,
}

impl<'a> AnswerHead<'a> {
    /// The head at the beginning of these bytes and its length; `None` while its end is to come.
    ///
    /// # Errors
    /// The bytes are no head, or have no end.
    pub(crate) fn find(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, HeadFault> {
        let begin = &bytes[..bytes.len().min(7)];
        if !b"HTTP/1.".starts_with(begin) {
            return Err(HeadFault::NotHttp);
        }
        let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
            let is_too_long = bytes.len() > ANSWER_HEAD_BYTES_MAX;
            return if is_too_long { Err(HeadFault::TooLong) } else { Ok(None) };
        };
        let head = &bytes[..end + 2];
        let line_end = memchr::memchr(b'\n', head).map_or(head.len(), |at| at + 1);
        let (line, fields) = head.split_at(line_end);
        let digits = line.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
        let status = digits.and_then(|digits| digits.parse().ok()).ok_or(HeadFault::NotHttp)?;
        Ok(Some((Self { status, fields }, end + 4)))
    }

    /// The value of the first field of this name, which is given in small letters.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        self.fields.split(|byte| *byte == b'\n').find_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            let (own, value) = line.split_at(colon);
            let value = own.eq_ignore_ascii_case(name.as_bytes()).then_some(&value[1..])?;
            std::str::from_utf8(value).ok().map(str::trim)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] =
        b"HTTP/1.1 204 No Content\r\nContent-Type: text/event-stream; a=b\r\nETag:\"x\"\r\n\r\n";

    #[test]
    fn a_head_is_found_at_its_end_and_not_before() {
        for length in 0..HEAD.len() {
            assert!(matches!(AnswerHead::find(&HEAD[..length]), Ok(None)), "{length} bytes");
        }
        let mut bytes = HEAD.to_vec();
        bytes.extend_from_slice(b"rest");
        let (head, length) = AnswerHead::find(&bytes).unwrap().unwrap();
        assert_eq!((head.status, length), (204, HEAD.len()));
        assert_eq!(head.field("content-type"), Some("text/event-stream; a=b"));
        assert_eq!((head.field("etag"), head.field("content")), (Some("\"x\""), None));
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for bytes in [&b"SSH-2.0"[..], b"HTTP/2", b"HTTP/1.1 2x4 No\r\n\r\n", b"HTTP/1.1\r\n\r\n"] {
            let fault = AnswerHead::find(bytes).unwrap_err();
            assert_eq!(fault, HeadFault::NotHttp, "{}", bytes.escape_ascii());
        }
        let mut endless = b"HTTP/1.1 200 OK\r\nA: ".to_vec();
        endless.resize(ANSWER_HEAD_BYTES_MAX + 1, b'x');
        assert_eq!(AnswerHead::find(&endless).unwrap_err(), HeadFault::TooLong);
    }
}
