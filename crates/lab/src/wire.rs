//! What the bytes of a connection mean, in the two languages every model speaks on one port.
//!
//! - The paper's: the client sends a number and a newline, the server so many bytes, and closes.
//! - HTTP/1.1 with keep-alive: `GET /N` asks for N bytes, `GET /` for 4000.
//!
//! The first byte tells them apart: a digit, or anything else. It owns no socket and must never make a system
//! call: a model reads and writes, and asks here what for. Order of calls: send [`Talk::piece`] until it is
//! empty, ask [`Talk::next_step`], do what it says, begin again.

use std::cell::Cell;
use std::time::UNIX_EPOCH;

use staunch_netio::clock;
use staunch_protocol::Status;
use staunch_protocol::http1::{Event, Session};
use staunch_protocol::{BodyRule, Method, Request};

/// Most bytes a model reads at once: a request of the paper has six, one of a browser some hundred.
pub const READ_BYTES: usize = 4096;
/// Most bytes that may be asked for: a thousand times more than the paper does, and no danger to memory.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What `GET /` asks for: the paper's size.
const DEFAULT_ANSWER_BYTES: usize = 4_000;
/// Most digits of a number asked for: eight suffice for 16 MiB.
const DIGITS_MAX: usize = 8;
/// Up to so many bytes of a body are sent in one call with the fields before it: above, a copy costs more
/// than a second call.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// What every answer is made of. Long answers are this many times over.
static BODY: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// What a model is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read, and say what came: `hear`.
    Listen,
    /// Send what `piece` gives: a request was whole, and this is its answer.
    Answer,
    /// Close the connection.
    Close,
    /// Say that nothing more is sent (`shutdown`), and go on: read until the peer closes. Said once, when the
    /// peer is still sending what nobody wants: to close now would reset the connection, and take the refusal
    /// back that is on its way.
    HalfClose,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Talk {
    /// Of the model.
    name: &'static str,
    language: Language,
    /// Came, and not yet understood.
    heard: Vec<u8>,
    /// To be sent first: an HTTP head and the beginning of its body.
    head: Vec<u8>,
    /// So much of it is sent.
    head_sent: usize,
    /// Bytes of a body to be sent behind it.
    body_left: usize,
    end: End,
}

#[derive(Debug)]
enum Language {
    Unknown,
    Paper,
    Http(Session),
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closing,
    HalfClosing,
    HalfClosed,
}

impl Talk {
    /// A connection on which nothing was said, to the model of this name.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            language: Language::Unknown,
            heard: Vec::new(),
            head: Vec::new(),
            head_sent: 0,
            body_left: 0,
            end: End::Open,
        }
    }

    /// Bytes came.
    pub fn hear(&mut self, bytes: &[u8]) {
        if self.end == End::Open {
            self.heard.extend_from_slice(bytes);
        }
    }

    /// The bytes to send now; empty if there are none.
    pub fn piece(&self) -> &[u8] {
        match &self.head[self.head_sent..] {
            [] => &BODY[..self.body_left.min(BODY.len())],
            head => head,
        }
    }

    /// So many bytes of the piece were sent.
    pub fn sent(&mut self, bytes: usize) {
        if self.head_sent == self.head.len() {
            self.body_left -= bytes;
            return;
        }
        self.head_sent += bytes;
        if self.head_sent == self.head.len() {
            self.head.clear();
            self.head_sent = 0;
        }
    }

    /// What to do, now that there is nothing more to send.
    pub fn next_step(&mut self) -> Next {
        match self.end {
            End::Closing => return Next::Close,
            End::HalfClosing => {
                self.end = End::HalfClosed;
                return Next::HalfClose;
            }
            End::HalfClosed => return Next::Listen,
            End::Open => {}
        }
        if matches!(self.language, Language::Unknown) {
            match self.heard.first() {
                None => return Next::Listen,
                Some(byte) if byte.is_ascii_digit() => self.language = Language::Paper,
                Some(_) => self.language = Language::Http(Session::new(0)),
            }
        }
        match &mut self.language {
            Language::Http(session) => {
                let (heard, head) = (&mut self.heard, &mut self.head);
                let (next, end) = http(self.name, session, heard, head, &mut self.body_left);
                self.end = end;
                // An end without words needs no answer.
                if self.end != End::Open && self.piece().is_empty() { self.next_step() } else { next }
            }
            _ => self.paper(),
        }
    }

    fn paper(&mut self) -> Next {
        let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') else {
            if self.heard.len() <= DIGITS_MAX {
                return Next::Listen;
            }
            self.end = End::HalfClosing;
            return self.next_step();
        };
        let line = self.heard[..end].strip_suffix(b"\r").unwrap_or(&self.heard[..end]);
        match number(line) {
            Some(bytes) => {
                self.body_left = bytes;
                self.end = End::Closing;
                Next::Answer
            }
            None => Next::Close,
        }
    }
}

/// Understands the next request and writes the head of its answer.
fn http(
    name: &str,
    session: &mut Session,
    heard: &mut Vec<u8>,
    head: &mut Vec<u8>,
    body_left: &mut usize,
) -> (Next, End) {
    let mut input = &heard[..];
    let date = date();
    let result = match session.poll_event(&mut input, 0, &date, head) {
        Event::Request(request) => {
            let answer = WireAnswer::to(&request);
            let rule = session.begin_response(answer.status, &date, head);
            name_server(name, head);
            answer.write_fields(head);
            head.extend_from_slice(b"\r\n");
            *body_left = if rule == BodyRule::Send { answer.bytes } else { 0 };
            if *body_left <= JOINED_BYTES_MAX {
                head.extend_from_slice(&BODY[..*body_left]);
                *body_left = 0;
            }
            (Next::Answer, End::Open)
        }
        Event::Preface => {
            session.refuse_preface(&date, head);
            name_server(name, head);
            (Next::Answer, End::HalfClosing)
        }
        Event::NeedInput if head.is_empty() => (Next::Listen, End::Open),
        // The go-ahead for a body (100 Continue).
        Event::NeedInput | Event::Body(_) | Event::BodyEnd => (Next::Answer, End::Open),
        Event::Close { linger, .. } => {
            name_server(name, head);
            let end = if linger { End::HalfClosing } else { End::Closing };
            (Next::Answer, end)
        }
    };
    let used = heard.len() - input.len();
    heard.drain(..used);
    result
}

/// An answer to a student says which model gave it, if there is one. The session says what made its head.
fn name_server(name: &str, answer: &mut Vec<u8>) {
    const PRODUCT: &[u8] = b"\r\nServer: staunch";
    if let Some(line) = answer.windows(PRODUCT.len()).position(|bytes| bytes == PRODUCT) {
        let at = line + PRODUCT.len();
        answer.splice(at..at, b"-lab/".iter().chain(name.as_bytes()).copied());
    }
}

/// The answer to an HTTP request, the same from every model and from the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireAnswer {
    pub(crate) status: Status,
    pub(crate) bytes: usize,
}

impl WireAnswer {
    pub(crate) fn to(request: &Request<'_>) -> Self {
        let nothing = |status| Self { status, bytes: 0 };
        match (request.method, request.path) {
            (Method::Get | Method::Head, b"/") => Self { status: Status::OK, bytes: DEFAULT_ANSWER_BYTES },
            (Method::Get | Method::Head, path) => match number(&path[1..]) {
                Some(bytes) => Self { status: Status::OK, bytes },
                None => nothing(Status::NOT_FOUND),
            },
            (Method::Options, _) => nothing(Status::NO_CONTENT),
            (Method::Unknown, _) => nothing(Status::NOT_IMPLEMENTED),
            _ => nothing(Status::METHOD_NOT_ALLOWED),
        }
    }

    /// Field lines.
    pub(crate) fn write_fields(self, out: &mut Vec<u8>) {
        if matches!(self.status, Status::METHOD_NOT_ALLOWED | Status::NO_CONTENT) {
            out.extend_from_slice(b"Allow: GET, HEAD, OPTIONS\r\n");
        }
        if self.status != Status::NO_CONTENT {
            out.extend_from_slice(format!("Content-Length: {}\r\n", self.bytes).as_bytes());
        }
        if self.bytes > 0 {
            out.extend_from_slice(b"Content-Type: text/plain\r\n");
        }
    }
}

/// A number of bytes that may be asked for.
fn number(digits: &[u8]) -> Option<usize> {
    if !(1..=DIGITS_MAX).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
    (value <= ANSWER_BYTES_MAX).then_some(value)
}

/// The current date (RFC 9110, section 5.6.7), written anew when the second changes.
fn date() -> [u8; 29] {
    thread_local! {
        static LAST: Cell<(u64, [u8; 29])> = const { Cell::new((u64::MAX, [0; 29])) };
    }
    let now = clock::unix_time();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (last, text) = LAST.get();
    if last == second {
        return text;
    }
    let mut text = [b' '; 29];
    let written = httpdate::fmt_http_date(now);
    text[..written.len().min(29)].copy_from_slice(&written.as_bytes()[..written.len().min(29)]);
    LAST.set((second, text));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says these pieces, does what is to be done, and gives what was sent and how it ended.
    fn hold(pieces: &[&[u8]]) -> (Vec<u8>, Vec<Next>) {
        let (mut talk, mut sent, mut steps) = (Talk::new("poll"), Vec::new(), Vec::new());
        let mut pieces = pieces.iter();
        loop {
            while !talk.piece().is_empty() {
                // As a kernel that is nearly full.
                let count = talk.piece().len().min(777);
                sent.extend_from_slice(&talk.piece()[..count]);
                talk.sent(count);
            }
            let next = talk.next_step();
            match next {
                Next::Listen => match pieces.next() {
                    Some(piece) => talk.hear(piece),
                    None => return (sent, steps),
                },
                _ => steps.push(next),
            }
            if next == Next::Close {
                return (sent, steps);
            }
        }
    }

    #[test]
    fn the_papers_requests() {
        use Next::{Answer, Close, HalfClose};
        let table: [(&[u8], usize, &[Next]); 9] = [
            (b"4000\n", 4000, &[Answer, Close]),
            (b"4000\r\n", 4000, &[Answer, Close]),
            (b"0\n", 0, &[Answer, Close]),
            (b"1000000\nmore", 1_000_000, &[Answer, Close]),
            (b"16777216\n", ANSWER_BYTES_MAX, &[Answer, Close]),
            (b"16777217\n", 0, &[Close]),
            (b"4x\n", 0, &[Close]),
            (b"123456789", 0, &[HalfClose]),
            (b"4000", 0, &[]),
        ];
        for (request, bytes, steps) in table {
            let (sent, taken) = hold(&[request]);
            let text = String::from_utf8_lossy(request);
            assert_eq!((sent.len(), &taken[..]), (bytes, steps), "{text:?}");
            assert!(sent.iter().all(|byte| *byte == b'x'));
        }
    }

    #[test]
    fn numbers() {
        let table = [("0", Some(0)), ("0004000", Some(4000)), ("16777216", Some(ANSWER_BYTES_MAX))];
        for (text, value) in table {
            assert_eq!(number(text.as_bytes()), value, "{text}");
        }
        for text in ["", "16777217", "-1", "+1", "1 ", "99999999999999999999999999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn requests_of_http() {
        let (sent, steps) = hold(&[b"GET /5 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n"]);
        let text = String::from_utf8(sent).expect("plain text");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nServer: staunch-lab/poll\r\nDate: "), "{text}");
        assert_eq!(text.matches("Server: ").count(), 2, "{text}");
        let first = "Content-Length: 5\r\nContent-Type: text/plain\r\n\r\nxxxxxHTTP/1.1 200 OK\r\n";
        assert!(text.contains(first), "{text}");
        assert!(text.ends_with(&"x".repeat(DEFAULT_ANSWER_BYTES)));
        assert_eq!(steps, [Next::Answer, Next::Answer, Next::Close]);
        // A refusal is followed by a half-close: the peer may still be sending.
        let (sent, steps) = hold(&[b"garbage\r\n\r\n", b"and more"]);
        assert!(sent.starts_with(b"HTTP/1.1 400 Bad Request\r\nServer: staunch-lab/poll\r\n"));
        assert_eq!(steps, [Next::Answer, Next::HalfClose]);
    }

    /// Where the bytes are cut does not matter.
    #[test]
    fn any_split_gives_the_same() {
        let without_date = |sent: Vec<u8>| {
            let text = String::from_utf8(sent).expect("plain text");
            text.lines().filter(|line| !line.starts_with("Date:")).collect::<Vec<_>>().join("\n")
        };
        let close = "Connection: close\r\n\r\n";
        let texts = [
            "4000\r\n".to_owned(),
            "77x\n".to_owned(),
            format!("GET /40000 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /7 HTTP/1.1\r\nHost: a\r\n{close}"),
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /1 HTTP/1.0\r\n{close}"),
        ];
        for whole in texts.iter().map(String::as_bytes) {
            let (sent, steps) = hold(&[whole]);
            let expected = without_date(sent);
            for cut in 1..whole.len() {
                let (sent, taken) = hold(&[&whole[..cut], &whole[cut..]]);
                assert_eq!((without_date(sent), taken), (expected.clone(), steps.clone()), "cut at {cut}");
            }
            let bytes: Vec<&[u8]> = whole.chunks(1).collect();
            assert_eq!(without_date(hold(&bytes).0), expected, "byte by byte");
        }
    }
}
