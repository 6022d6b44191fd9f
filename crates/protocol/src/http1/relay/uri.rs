//! Bytes of a target, as they are written.
//!
//! It owns what may not stand in a URI. Clients send it, and the reader of this server takes it; others
//! refuse it, or take a backslash for a slash.

/// Bytes that RFC 3986 has no place for: they stand for nothing but themselves, so encoded they are the same.
static ALIEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x80;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    // A percent sign may stand there, but only with its two digits behind it.
    let marks = b"%\"<>\\^`{|}";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// Appends a path or a query, its alien bytes percent-encoded.
pub(super) fn push_encoded(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(place) = bytes.iter().position(|byte| ALIEN[usize::from(*byte)]) {
        let (plain, rest) = bytes.split_at(place);
        out.extend_from_slice(plain);
        let encoded_bytes = push_alien(rest, out);
        bytes = &rest[encoded_bytes..];
    }
    out.extend_from_slice(bytes);
}

/// Appends what begins with an alien byte, and says how many bytes it took.
fn push_alien(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    match bytes {
        [b'%', first, second, ..] if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() => {
            out.extend_from_slice(&bytes[..3]);
            3
        }
        [byte, ..] => {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            1
        }
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_a_uri_and_means_the_same() {
        for (sent, written) in [
            ("/a", "/a"),
            ("/%41%2f", "/%41%2f"),
            ("/100%", "/100%25"),
            ("/%4", "/%254"),
            ("/%zz%%41", "/%25zz%25%41"),
            ("/a\"\u{e4}", "/a%22%C3%A4"),
            ("/%\u{e4}", "/%25%C3%A4"),
        ] {
            let mut out = b"x".to_vec();
            push_encoded(sent.as_bytes(), &mut out);
            assert_eq!(out.escape_ascii().to_string(), format!("x{written}"), "{sent}");
        }
    }
}
