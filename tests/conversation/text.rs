//! Escapes: how bytes are written in a `.wire` file and shown in a failure.
//!
//! `\r \n \t \0 \\ \"` and `\xNN` are bytes, `\{5000:ab}` is `ab` five thousand times, `\{name}` is a value
//! saved from an earlier response. It must never guess: what is not an escape is an error.

use std::fmt::Write as _;

use super::Saved;

/// A piece of a text: bytes, or the value saved under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fragment {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The saved value of this name.
    Saved(String),
}

/// Reads the escapes of a text.
///
/// # Errors
/// A sentence that names the wrong escape.
pub fn unescape(text: &str) -> Result<Vec<Fragment>, String> {
    let mut fragments = Vec::new();
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let kind = rest.chars().next().ok_or("a backslash ends the line")?;
        rest = &rest[kind.len_utf8()..];
        match kind {
            'r' => bytes.push(b'\r'),
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            '0' => bytes.push(0),
            '\\' | '"' => bytes.push(kind as u8),
            'x' => {
                let digits = rest.get(..2).ok_or("\\x needs two digits")?;
                bytes.push(u8::from_str_radix(digits, 16).map_err(|_| format!("\\x{digits} is no byte"))?);
                rest = &rest[2..];
            }
            '{' => {
                let end = rest.find('}').ok_or("\\{ without }")?;
                match rest[..end].split_once(':') {
                    Some((count, repeated)) => bytes.extend_from_slice(&repeat(count, repeated)?),
                    None => {
                        fragments.push(Fragment::Bytes(std::mem::take(&mut bytes)));
                        fragments.push(Fragment::Saved(rest[..end].to_owned()));
                    }
                }
                rest = &rest[end + 1..];
            }
            other => return Err(format!("\\{other} is no escape")),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    fragments.push(Fragment::Bytes(bytes));
    Ok(fragments)
}

/// Puts the pieces together, with the saved values in their places.
///
/// # Errors
/// A sentence that names a value nothing has saved.
pub fn join(fragments: &[Fragment], saved: &Saved) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for fragment in fragments {
        match fragment {
            Fragment::Bytes(more) => bytes.extend_from_slice(more),
            Fragment::Saved(name) => {
                bytes
                    .extend_from_slice(saved.get(name).ok_or_else(|| format!("nothing is saved as {name}"))?);
            }
        }
    }
    Ok(bytes)
}

/// Shows bytes in one line, cut in the middle beyond 1000 bytes.
pub fn escape(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 1000;
    let mut shown = String::new();
    let (start, end): (&[u8], &[u8]) = if bytes.len() > SHOWN_BYTES_MAX {
        (&bytes[..SHOWN_BYTES_MAX / 2], &bytes[bytes.len() - SHOWN_BYTES_MAX / 2..])
    } else {
        (bytes, &[])
    };
    push_escaped(&mut shown, start);
    if !end.is_empty() {
        let _ = write!(shown, " [{} bytes not shown] ", bytes.len() - start.len() - end.len());
        push_escaped(&mut shown, end);
    }
    shown
}

fn push_escaped(shown: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'\r' => shown.push_str("\\r"),
            b'\n' => shown.push_str("\\n"),
            b'\t' => shown.push_str("\\t"),
            b'\\' => shown.push_str("\\\\"),
            0x20..0x7f => shown.push(byte as char),
            _ => {
                let _ = write!(shown, "\\x{byte:02x}");
            }
        }
    }
}

fn repeat(count: &str, text: &str) -> Result<Vec<u8>, String> {
    let count: usize = count.parse().map_err(|_| format!("{count} is no count"))?;
    Ok(text.as_bytes().repeat(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_bytes() {
        let fragments = unescape(r"a\r\n\x00\0\{3:xy}\\é").expect("right escapes");
        assert_eq!(fragments, [Fragment::Bytes("a\r\n\0\0xyxyxy\\é".into())]);
    }

    #[test]
    fn saved_values_are_put_in() {
        let fragments = unescape(r"If-Match: \{etag}").expect("right escapes");
        let saved = Saved::from([("etag".to_owned(), b"\"1\"".to_vec())]);
        assert_eq!(join(&fragments, &saved), Ok(b"If-Match: \"1\"".to_vec()));
        assert!(join(&fragments, &Saved::new()).is_err());
    }

    #[test]
    fn wrong_escapes_are_errors() {
        for wrong in [r"\q", r"\x4", r"\xzz", r"\{3:a", "\\"] {
            assert!(unescape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shown_bytes_are_printable() {
        assert_eq!(escape(b"a\r\n\x80"), r"a\r\n\x80");
        assert!(escape(&[b'a'; 5000]).contains("[4000 bytes not shown]"));
    }
}
