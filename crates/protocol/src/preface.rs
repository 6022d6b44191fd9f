//! The bytes that a connection of HTTP/2 begins with (RFC 9113, section 3.4).
//!
//! Both versions look for them: a session of HTTP/1.1 to be followed by one of HTTP/2, that one because they
//! have to come. It must never take anything else for them.

/// What a client sends first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether a connection begins as one of HTTP/2 does that was agreed on before; `None` while that cannot be
/// told.
pub fn is_preface(start: &[u8]) -> Option<bool> {
    let count = start.len().min(PREFACE.len());
    if start[..count] != PREFACE[..count] {
        return Some(false);
    }
    (count == PREFACE.len()).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_by_its_last_byte_and_its_first_wrong_one() {
        for count in 0..PREFACE.len() {
            assert_eq!(is_preface(&PREFACE[..count]), None, "{count}");
            let mut wrong = PREFACE[..=count].to_vec();
            wrong[count] ^= 1;
            assert_eq!(is_preface(&wrong), Some(false), "{count}");
        }
        assert_eq!(is_preface(&[&PREFACE[..], b"more"].concat()), Some(true));
    }
}
