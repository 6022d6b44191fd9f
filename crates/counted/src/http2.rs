//! Reads one GET of a browser again and again, by connections whose tables know its fields, and answers with
//! a prepared block: what callgrind counts as instructions per request of HTTP/2.
//!
//! It must never do input or output while it counts.

use std::hint::black_box;

use staunch_protocol::http2::{
    Event, HeadFields, Opening, PREFACE, PreparedFields, ResponseHead, Session, WorkerMemory,
};
use staunch_protocol::{Fields, Status};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const BODY_BYTES: u64 = 5000;

/// What Chromium sends for a page, but for pseudo-fields.
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

/// Answers so many requests.
pub(crate) fn run(count: u32) -> Result<(), String> {
    let mut memory = WorkerMemory::new([1, 2]);
    let opening = Opening::new(DATE);
    let prepared = PreparedFields::new(Fields::new(
        b"Content-Type: text/html; charset=utf-8\r\nContent-Length: 5000\r\nETag: \"0123456789abcdef\"\r\n\
          Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\n",
    ));
    let mut out = Vec::with_capacity(4096);
    let mut session = Session::new(0, &mut out);
    let first = [&PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0], &headers(1, &first_block())].concat();
    answer_all(&mut session, &mut memory, &first, &opening, &prepared, &mut out);
    // Windows that never shut: what is counted is the way of an answer that fits.
    let wide = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xf0, 0, 0];
    answer_all(&mut session, &mut memory, &wide, &opening, &prepared, &mut out);
    let again = again_block();
    for number in 1..=count {
        let request = headers(2 * number + 1, &again);
        out.clear();
        let answered =
            answer_all(&mut session, &mut memory, black_box(&request), &opening, &prepared, &mut out);
        if answered != 1 {
            return Err(format!("request {number} was not answered"));
        }
    }
    assert_eq!(session.wasted_us(), 0);
    println!("{} bytes held beside {} of the session", session.held_bytes(), size_of::<Session>());
    session.release(&mut memory);
    Ok(())
}

/// Gives a delivery to the session as the engine does; how many requests were answered.
#[inline(never)]
fn answer_all(
    session: &mut Session,
    memory: &mut WorkerMemory,
    bytes: &[u8],
    opening: &Opening,
    prepared: &PreparedFields,
    out: &mut Vec<u8>,
) -> u32 {
    let joined = session.take_kept(bytes);
    let mut input = &joined[..];
    let mut answered = 0;
    loop {
        match session.poll_event(memory, &mut input, 0, opening, out) {
            Event::Request { stream, request } => {
                assert_eq!(request.path, b"/page.html");
                let fields = HeadFields::Prepared(prepared);
                let head = ResponseHead { status: Status::OK, fields, has_body: true };
                session.begin_response(stream, head, 0, opening, out);
                assert_eq!(session.begin_data(stream, BODY_BYTES, true, 0, out), BODY_BYTES);
                answered += 1;
            }
            Event::NeedInput => break,
            event => panic!("{event:?}"),
        }
    }
    session.keep(input, 0);
    assert_eq!(session.next_to_send(out), None);
    answered
}

fn headers(stream: u32, block: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (block.len() as u32).to_be_bytes();
    let head = [high, middle, low, 1, 5];
    [&head[..], &stream.to_be_bytes(), block].concat()
}

fn text(text: &str) -> Vec<u8> {
    let length = text.len();
    if length < 127 { [&[length as u8], text.as_bytes()].concat() } else { panic!("too long: {text}") }
}

/// Everything is spelled out and added to the table.
fn first_block() -> Vec<u8> {
    let mut block = vec![0x82, 0x41];
    block.extend(text("www.example.org"));
    block.extend([0x87, 0x04]);
    block.extend(text("/page.html"));
    for (name, value) in FIELDS {
        block.push(0x40);
        block.extend(text(name));
        block.extend(text(value));
    }
    block
}

/// The fields of [`first_block`] by their numbers in the table, but for the path.
fn again_block() -> Vec<u8> {
    let newest = 62;
    let authority = newest + FIELDS.len() as u8;
    let mut block = vec![0x82, 0x80 | authority, 0x87, 0x04];
    block.extend(text("/page.html"));
    block.extend((0..FIELDS.len() as u8).map(|place| 0x80 | (authority - 1 - place)));
    block
}
