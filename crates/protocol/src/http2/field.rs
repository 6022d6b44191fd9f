//! What a field of a request means, judged once: by name and value, before any handler sees it.
//!
//! It owns RFC 9113, section 8.2 and 8.3, as far as one field goes. It must never judge how fields stand to
//! one another.

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A field that goes to the handler as it stands.
    Plain,
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:protocol` (RFC 8441)
    Protocol,
    /// `host`
    Host,
    /// `cookie`, which may come in crumbs (section 8.2.3).
    Cookie,
    /// `expect`
    Expect,
    /// `content-length`
    Length,
    /// `priority` (RFC 9218)
    Priority,
    /// A field that makes its request malformed.
    Malformed,
}

/// A field with its line: `name: value` and CRLF, as HTTP/1.1 writes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldLine<'a> {
    pub(super) line: &'a [u8],
    pub(super) name_bytes: usize,
    pub(super) meaning: Meaning,
}

/// Bytes of a line that are neither name nor value: a colon and a space, CR and LF.
const AROUND_BYTES: usize = 4;
/// What a field counts beside its letters (RFC 7541, section 4.1).
pub(super) const FIELD_OVERHEAD_BYTES: usize = 32;

impl<'a> FieldLine<'a> {
    pub(super) fn name(self) -> &'a [u8] {
        self.line.get(..self.name_bytes).unwrap_or_default()
    }

    pub(super) fn value(self) -> &'a [u8] {
        self.line.get(self.name_bytes + 2..self.line.len().saturating_sub(2)).unwrap_or_default()
    }

    /// Its size as tables and limits count it (RFC 7541, section 4.1; RFC 9113, section 6.5.2).
    pub(super) fn counted_bytes(self) -> usize {
        self.line.len() - AROUND_BYTES + FIELD_OVERHEAD_BYTES
    }
}

/// What may stand in a name: a token (RFC 9110, section 5.6.2) without capitals (RFC 9113, section 8.2.1).
static NAME: [bool; 256] = {
    let mut table = [false; 256];
    let marks = b"!#$%&'*+-.^_`|~";
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_lowercase() || (byte as u8).is_ascii_digit();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// What a name says of its field, whatever the value.
pub(super) fn judge_name(name: &[u8]) -> Meaning {
    match name {
        b":method" => Meaning::Method,
        b":scheme" => Meaning::Scheme,
        b":authority" => Meaning::Authority,
        b":path" => Meaning::Path,
        b":protocol" => Meaning::Protocol,
        b"host" => Meaning::Host,
        b"cookie" => Meaning::Cookie,
        b"expect" => Meaning::Expect,
        b"content-length" => Meaning::Length,
        b"priority" => Meaning::Priority,
        // Section 8.2.2: fields of one connection have no meaning here.
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Meaning::Malformed
        }
        b"" => Meaning::Malformed,
        _ if name.iter().all(|byte| NAME[usize::from(*byte)]) => Meaning::Plain,
        _ => Meaning::Malformed,
    }
}

/// What a field is whose name was judged.
#[inline]
pub(super) fn judge_value(named: Meaning, name: &[u8], value: &[u8]) -> Meaning {
    let control = |byte: u8| byte.is_ascii_control() && byte != b'\t';
    let bad = value.iter().fold(false, |bad, byte| bad | control(*byte));
    // Section 8.2.1: no white space around a value.
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let good = match named {
        _ if bad || blank(value.first()) || blank(value.last()) => false,
        Meaning::Method | Meaning::Path | Meaning::Protocol => {
            !value.is_empty() && !value.iter().any(|byte| blank(Some(byte)))
        }
        Meaning::Scheme => value.eq_ignore_ascii_case(b"https") || value.eq_ignore_ascii_case(b"http"),
        // Section 8.2.2: the only value of TE.
        Meaning::Plain if name == b"te" => value == b"trailers",
        _ => true,
    };
    if good { named } else { Meaning::Malformed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(name: &[u8], value: &[u8]) -> Meaning {
        judge_value(judge_name(name), name, value)
    }

    #[test]
    fn names() {
        assert_eq!(judge(b"accept", b"*/*"), Meaning::Plain);
        assert_eq!(judge(b":path", b"/"), Meaning::Path);
        assert_eq!(judge(b":protocol", b"websocket"), Meaning::Protocol);
        for name in ["Accept", "", ":status", ":protocols", ":", "a b", "a:", "a\r\nb", "\u{e4}", "upgrade"] {
            assert_eq!(judge(name.as_bytes(), b"x"), Meaning::Malformed, "{name:?}");
        }
    }

    #[test]
    fn values() {
        for value in ["a\rb", "a\nb", "a\0b", " a", "a ", "\ta", "a\t", " ", "\x7f"] {
            assert_eq!(judge(b"x-a", value.as_bytes()), Meaning::Malformed, "{value:?}");
        }
        for value in ["", "a b", "a\tb", "\u{e4}"] {
            assert_eq!(judge(b"x-a", value.as_bytes()), Meaning::Plain, "{value:?}");
        }
        for value in ["", "/a b", "/a\tb", "/a HTTP/1.1\r\nx: y"] {
            assert_eq!(judge(b":path", value.as_bytes()), Meaning::Malformed, "{value:?}");
        }
        assert_eq!(judge(b"te", b"trailers"), Meaning::Plain);
        assert_eq!(judge(b"te", b"gzip"), Meaning::Malformed);
        assert_eq!(judge(b":scheme", b"ftp"), Meaning::Malformed);
    }
}
