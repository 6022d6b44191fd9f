//! The bare session with a file server of a few lines behind it, driven exactly as its contract says.
//!
//! It must never use a clock, a socket or a thread: time passes only when a conversation waits. Every second
//! answer is given late, so that waiting and resuming are part of every conversation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use staunch_protocol::http1::{Event, Session};
use staunch_protocol::limits::SPILL_BYTES_MAX;
use staunch_protocol::{BodyRule, KeptRequest, Method, Request};
use staunch_protocol::{Status, Timeouts};

use super::End;

const DATE: &[u8; 29] = b"Tue, 02 Jan 2024 03:04:05 GMT";

/// The folder that is served, and how long deadlines are.
#[derive(Debug)]
pub struct SessionBody {
    root: PathBuf,
    timeouts: Timeouts,
}

impl SessionBody {
    /// Serves a folder. Of the options only those about deadlines have a meaning here.
    pub fn new(root: &Path, options: &[String]) -> Self {
        let timeouts = timeouts(options);
        Self { root: root.to_owned(), timeouts }
    }

    /// A new connection.
    pub fn connect(&self) -> SessionLink {
        SessionLink {
            session: Session::new(0),
            root: self.root.clone(),
            timeouts: self.timeouts,
            now_ms: 0,
            inbox: Vec::new(),
            closed: false,
            requests: 0,
            put_off: None,
        }
    }
}

/// A connection to a session.
#[derive(Debug)]
pub struct SessionLink {
    session: Session,
    root: PathBuf,
    timeouts: Timeouts,
    now_ms: u64,
    inbox: Vec<u8>,
    closed: bool,
    requests: u64,
    /// A request that is answered in the next round.
    put_off: Option<KeptRequest>,
}

impl SessionLink {
    /// Delivers bytes, and answers what is asked.
    pub fn send(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while self.round(bytes) {
            if let Some(request) = self.put_off.take() {
                answer(&mut self.session, &request.get(), &self.root, &mut self.inbox);
            }
            bytes = &[];
        }
    }

    /// Sends no more.
    pub fn half_close(&mut self) {
        self.session.handle_end();
        self.send(&[]);
    }

    /// Lets time pass; deadlines that end meanwhile take effect.
    pub fn pass(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while let Some(deadline_ms) = self.deadline_ms().filter(|&deadline_ms| deadline_ms <= until_ms) {
            self.time_out(deadline_ms);
        }
        self.now_ms = until_ms;
    }

    /// Nothing comes by itself but what deadlines bring, if they end within our patience.
    pub fn fill(&mut self, patience: Duration) -> bool {
        let until_ms = self.now_ms + patience.as_millis() as u64;
        match self.deadline_ms() {
            _ if self.closed => true,
            Some(deadline_ms) if deadline_ms <= until_ms => {
                self.time_out(deadline_ms);
                true
            }
            _ => false,
        }
    }

    /// The bytes that came and were not taken.
    pub fn received(&self) -> &[u8] {
        &self.inbox
    }

    /// Takes bytes from the front.
    pub fn take(&mut self, bytes: usize) {
        self.inbox.drain(..bytes);
    }

    /// The end, if it came.
    pub fn end(&self) -> Option<End> {
        self.closed.then_some(End::Orderly)
    }

    fn deadline_ms(&self) -> Option<u64> {
        if self.closed {
            return None;
        }
        self.session.poll_timeout(&self.timeouts).map(|(deadline_ms, _)| deadline_ms)
    }

    fn time_out(&mut self, deadline_ms: u64) {
        self.now_ms = self.now_ms.max(deadline_ms);
        self.session.handle_timeout(DATE, &mut self.inbox);
        self.send(&[]);
    }

    /// Polls the session in one round of its contract. Returns whether an answer was put off.
    fn round(&mut self, bytes: &[u8]) -> bool {
        if self.closed {
            return false;
        }
        let joined = self.session.take_kept(bytes);
        let mut input = &joined[..];
        let mut put_off = false;
        loop {
            match self.session.poll_event(&mut input, self.now_ms, DATE, &mut self.inbox) {
                Event::Request(request) => {
                    self.requests += 1;
                    if self.requests.is_multiple_of(2) {
                        answer(&mut self.session, &request, &self.root, &mut self.inbox);
                    } else {
                        self.put_off = Some(KeptRequest::of(&request));
                        put_off = true;
                        break;
                    }
                }
                Event::Body(_) | Event::BodyEnd => unreachable!("nobody asked for a body"),
                Event::Preface => {
                    self.session.refuse_preface(DATE, &mut self.inbox);
                    self.closed = true;
                    break;
                }
                Event::NeedInput => break,
                Event::Close { .. } => {
                    self.closed = true;
                    break;
                }
            }
        }
        self.session.keep(input);
        let bound = SPILL_BYTES_MAX.max(joined.len());
        assert!(self.session.kept_bytes() <= bound, "{} bytes are kept", self.session.kept_bytes());
        put_off
    }
}

/// The file server of a few lines: GET and HEAD of plain files, nothing else of HTTP.
fn answer(session: &mut Session, request: &Request<'_>, root: &Path, out: &mut Vec<u8>) {
    let (code, fields, body) = match request.method {
        Method::Options => (204, "Allow: GET, HEAD, OPTIONS\r\n", None),
        Method::Unknown => (501, "", Some(b"501\n".to_vec())),
        Method::Get | Method::Head => match read(root, request.path) {
            Some(body) => (200, "", Some(body)),
            None => (404, "", Some(b"404\n".to_vec())),
        },
        _ => (405, "Allow: GET, HEAD, OPTIONS\r\n", Some(b"405\n".to_vec())),
    };
    let rule = session.begin_response(status(code), DATE, out);
    out.extend_from_slice(fields.as_bytes());
    if let Some(body) = &body {
        out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    if rule == BodyRule::Send {
        out.extend_from_slice(&body.unwrap_or_default());
    }
}

fn read(root: &Path, path: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(path).ok()?.strip_prefix('/')?;
    let name = if name.is_empty() { "index.html" } else { name };
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-_".contains(&byte));
    if !plain || name.split('/').any(|segment| segment.starts_with('.')) {
        return None;
    }
    std::fs::read(root.join(name)).ok()
}

fn status(code: u16) -> Status {
    match code {
        200 => Status::OK,
        204 => Status::NO_CONTENT,
        404 => Status::NOT_FOUND,
        405 => Status::METHOD_NOT_ALLOWED,
        _ => Status::NOT_IMPLEMENTED,
    }
}

/// The deadlines among the arguments of `staunch serve`.
pub(super) fn timeouts(options: &[String]) -> Timeouts {
    let mut timeouts = Timeouts::default();
    for pair in options.windows(2) {
        let Some(ms) = duration_ms(&pair[1]) else { continue };
        match pair[0].as_str() {
            "--header-timeout" => timeouts.header_ms = ms,
            "--body-timeout" => timeouts.body_ms = ms,
            "--keep-alive" => timeouts.keep_alive_ms = ms,
            _ => {}
        }
    }
    timeouts
}

fn duration_ms(text: &str) -> Option<u32> {
    match text.strip_suffix("ms") {
        Some(ms) => ms.parse().ok(),
        None => text.strip_suffix('s')?.parse::<u32>().ok()?.checked_mul(1000),
    }
}
