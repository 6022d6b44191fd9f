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
    let marks = b"\"<>\\^`{|}";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

/// Appends a path or a query, its alien bytes percent-encoded.
pub(super) fn push_encoded(bytes: &[u8], out: &mut Vec<u8>) {
    let is_alien = |byte: &u8| ALIEN[usize::from(*byte)];
    if !bytes.iter().any(is_alien) {
        out.extend_from_slice(bytes);
        return;
    }
    for byte in bytes {
        if is_alien(byte) {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.push(*byte);
        }
    }
}
