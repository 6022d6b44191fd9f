//! The smallest HTTP/2 client that can check an answer: one connection, one request at a time.
//!
//! It owns one connection. Its fields are those of Chromium, and it adds them to the server's table as
//! Chromium does (RFC 7541, section 6.2.1). It must never be used to measure load.

use std::io::{Read, Write};

/// What a browser sends for a page, but for pseudo-fields.
const FIELDS: [(&str, &str); 11] = [
    ("sec-ch-ua", "\"Chromium\";v=\"156\", \"Not_A Brand\";v=\"24\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("sec-fetch-site", "none"),
    ("sec-fetch-mode", "navigate"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-US,en;q=0.9"),
    ("priority", "u=0, i"),
];

/// Chromium's settings: table of 64 KiB, no push, windows of 6 MiB, heads of 256 KiB; and its window of a
/// connection.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \0\0\x18\x04\0\0\0\0\0\0\x01\0\x01\0\0\0\x02\0\0\0\0\0\x04\0\x60\0\0\0\x06\0\x04\0\0\
    \0\0\x04\x08\0\0\0\0\0\0\xef\0\x01";
const SETTINGS_ACKNOWLEDGED: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";

/// Types of frames (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Flags: END_STREAM, ACK of settings, PADDED.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const PADDED: u8 = 8;
const FRAME_HEAD_BYTES: usize = 9;

/// A connection on which nothing was asked for yet.
#[derive(Debug)]
pub(super) struct Http2Client<S> {
    stream: S,
    received: Vec<u8>,
}

impl<S: Read + Write> Http2Client<S> {
    /// Begins HTTP/2 on an open connection.
    pub(super) fn over(stream: S) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// Sends the first request and waits for the whole answer: its body.
    ///
    /// # Errors
    /// A failed connection, or an answer whose status is not 200.
    pub(super) fn get(&mut self, path: &str, cookie: Option<&str>) -> Result<Vec<u8>, String> {
        let block = block(path, cookie);
        let [_, high, middle, low] = (block.len() as u32).to_be_bytes();
        // END_STREAM and END_HEADERS, stream 1.
        let head = [high, middle, low, HEADERS, 5, 0, 0, 0, 1];
        let request = [BEGIN, &head, &block].concat();
        self.stream.write_all(&request).map_err(|error| format!("send: {error}"))?;
        let mut body = Vec::new();
        loop {
            let (kind, flags, payload) = self.next_frame()?;
            match kind {
                HEADERS if !is_200(&payload) => return Err("another status than 200".to_owned()),
                DATA => body.extend_from_slice(without_padding(flags, &payload)?),
                SETTINGS if flags & ACK == 0 => {
                    self.stream.write_all(SETTINGS_ACKNOWLEDGED).map_err(|error| error.to_string())?;
                }
                RESET | GOAWAY => return Err(format!("the server ends it by a frame of type {kind}")),
                _ => {}
            }
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                return Ok(body);
            }
        }
    }

    /// What it stands on.
    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Type, flags and payload of the next frame.
    fn next_frame(&mut self) -> Result<(u8, u8, Vec<u8>), String> {
        loop {
            if let Some(frame) = take_frame(&mut self.received) {
                return Ok(frame);
            }
            let mut part = [0; 8 * 1024];
            let length = self.stream.read(&mut part).map_err(|error| format!("receive: {error}"))?;
            if length == 0 {
                return Err("the connection ended before the answer did".to_owned());
            }
            self.received.extend_from_slice(&part[..length]);
        }
    }
}

/// The first frame of the bytes, if it is whole.
fn take_frame(bytes: &mut Vec<u8>) -> Option<(u8, u8, Vec<u8>)> {
    let head = *bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let payload = bytes.get(FRAME_HEAD_BYTES..FRAME_HEAD_BYTES + length)?.to_vec();
    bytes.drain(..FRAME_HEAD_BYTES + length);
    Some((head[3], head[4], payload))
}

fn without_padding(flags: u8, payload: &[u8]) -> Result<&[u8], String> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let content = payload
        .split_first()
        .and_then(|(padding, rest)| rest.get(..rest.len().checked_sub(usize::from(*padding))?));
    content.ok_or_else(|| "a frame with more padding than it has bytes".to_owned())
}

/// Whether a block begins with `:status: 200` of the static table, behind changes of the table's size.
fn is_200(block: &[u8]) -> bool {
    let mut rest = block;
    while let [first, behind @ ..] = rest
        && first & 0xe0 == 0x20
    {
        // A size of 31 or more goes on in the bytes behind, all but the last of which have the highest bit.
        let more = behind.iter().position(|byte| byte & 0x80 == 0).map_or(0, |place| place + 1);
        rest = if first & 0x1f == 0x1f { &behind[more..] } else { behind };
    }
    rest.first() == Some(&0x88)
}

/// The fields of a request, each spelled out and added to the server's table, but for the path.
fn block(path: &str, cookie: Option<&str>) -> Vec<u8> {
    let mut block = vec![0x82, 0x41];
    push_text("localhost", &mut block);
    block.extend([0x87, 0x04]);
    push_text(path, &mut block);
    for (name, value) in FIELDS.into_iter().chain(cookie.map(|value| ("cookie", value))) {
        block.push(0x40);
        push_text(name, &mut block);
        push_text(value, &mut block);
    }
    block
}

/// A text without Huffman's code (RFC 7541, section 5.2), shorter than 254 bytes.
fn push_text(text: &str, block: &mut Vec<u8>) {
    match text.len() {
        length @ 0..127 => block.push(length as u8),
        length => block.extend([127, (length - 127) as u8]),
    }
    block.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that has written this, and whatever the client says.
    struct Said {
        answer: &'static [u8],
        asked: Vec<u8>,
    }

    impl Read for Said {
        fn read(&mut self, part: &mut [u8]) -> std::io::Result<usize> {
            self.answer.read(&mut part[..1])
        }
    }

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.asked.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn ask(answer: &'static [u8]) -> (Result<Vec<u8>, String>, Vec<u8>) {
        let mut client = Http2Client::over(Said { answer, asked: Vec::new() });
        let got = client.get("/a.txt", Some("a=b"));
        (got, client.stream.asked)
    }

    #[test]
    fn an_answer_is_read_frame_by_frame() {
        let (got, asked) = ask(b"\0\0\0\x04\0\0\0\0\0\0\0\x02\x01\x04\0\0\0\x01\x20\x88\
            \0\0\x02\0\0\0\0\0\x01ab\0\0\x03\0\x09\0\0\0\x01\x01c\0");
        assert_eq!(got, Ok(b"abc".to_vec()));
        assert!(
            asked.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") && asked.ends_with(SETTINGS_ACKNOWLEDGED)
        );
        assert!(asked.windows(12).any(|bytes| bytes == b"\x40\x06cookie\x03a=b"));
    }

    #[test]
    fn other_answers_are_refused() {
        assert!(ask(b"\0\0\x01\x01\x05\0\0\0\x01\x8d").0.is_err(), "404");
        assert!(ask(b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x01").0.is_err(), "a reset");
        assert!(ask(b"\0\0\x01\x01\x04\0\0\0\x01\x88").0.is_err(), "an end without an answer's");
        assert!(ask(b"\0\0\x01\0\x09\0\0\0\x01\x05").0.is_err(), "padding without end");
    }

    #[test]
    fn changes_of_the_tables_size_stand_before_the_status() {
        assert!(is_200(&[0x88]) && is_200(&[0x20, 0x3f, 0xe1, 0x1f, 0x88]));
        assert!(!is_200(&[0x3f, 0xe1, 0x1f, 0x8d]) && !is_200(&[]));
    }
}
