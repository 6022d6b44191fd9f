//! Reads one plain answer again and again: what callgrind counts as instructions per answer, `parsed` or
//! `remembered`.
//!
//! It must never do input or output while it counts.

use std::hint::black_box;

use staunch_protocol::answer::{AnswerReader, HeadMemory, Step};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Content-Type: text/html\r\nContent-Length: 64\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Connection: keep-alive\r\nETag: \"0123456789abcdef\"\r\nAccept-Ranges: bytes\r\n\r\n\
    0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The first argument says how, the second how many answers.
fn main() {
    let remembered = std::env::args().nth(1).as_deref() == Some("remembered");
    let count: u64 = std::env::args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(1000);
    let (mut reader, mut memory) = (AnswerReader::new(), HeadMemory::new());
    let mut body_bytes = 0;
    let mut take = |bytes: &[u8]| body_bytes += bytes.len() as u64;
    for _ in 0..count {
        reader.begin(false);
        let step = if remembered {
            reader.read_with(&mut memory, black_box(ANSWER), &mut take)
        } else {
            reader.read(black_box(ANSWER), &mut take)
        };
        assert!(matches!(step, Ok(Step::Complete { consumed, .. }) if consumed == ANSWER.len()));
    }
    assert_eq!(body_bytes, count * 64);
}
