//! The letters of a head: tokens, optional white space, lists.
//!
//! It owns RFC 9110, section 5.6. It must never know what a field means.

/// Which bytes may stand in a token (RFC 9110, section 5.6.2).
static TOKEN: [bool; 256] = byte_table(b"!#$%&'*+-.^_`|~");

/// True for letters, digits and the marks given.
pub(super) const fn byte_table(marks: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
}

/// Whether a byte may stand in a token.
#[inline]
pub(super) fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// How many bytes at the start of `bytes` belong to a token.
#[inline]
pub(super) fn token_bytes(bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(&byte) = bytes.get(count)
        && is_token(byte)
    {
        count += 1;
    }
    count
}

/// Without optional white space (spaces and tabs, RFC 9110, section 5.6.3) at both ends.
#[inline]
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The members of a list (RFC 9110, section 5.6.1), empty ones left out.
pub(super) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        assert_eq!(token_bytes(b"Content-Length: 5"), 14);
        assert_eq!(token_bytes(b": 5"), 0);
        assert_eq!(token_bytes(b"!#$%&'*+-.^_`|~09azAZ"), 21);
        for byte in b"\"(),/:;<=>?@[\\]{} \t\r\n\0\x7f\x80\xff" {
            assert_eq!(token_bytes(&[b'a', *byte]), 1, "{byte}");
        }
    }

    #[test]
    fn lists() {
        let members = |value: &'static str| list_members(value.as_bytes()).collect::<Vec<_>>();
        assert_eq!(members(""), Vec::<&[u8]>::new());
        assert_eq!(members(" , ,\t"), Vec::<&[u8]>::new());
        assert_eq!(members("a"), [b"a"]);
        assert_eq!(members(" a ,,\tb c,"), [&b"a"[..], b"b c"]);
        assert_eq!(trim(b" \t "), b"");
    }
}
