//! The server: one connection, driven by the contract of the session, a socket below it.
//!
//! It owns what a caller of a session has to keep: what is left of answers. It must never read a clock, so
//! nothing here ends by time but by the peer.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use staunch_protocol::http2::{Event, HeadFields, Opening, ResponseHead, Session, WorkerMemory};
use staunch_protocol::{BodyIn, BodyRule, Fields, Status};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const NOW_MS: u64 = 0;
/// What is written at most before the socket is.
const OUT_BYTES_MAX: usize = 64 * 1024;

/// Serves connections, each by a thread of its own.
pub(crate) fn serve(listener: &TcpListener) -> io::Result<()> {
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || {
            // A peer that leaves early is no error of the server.
            let _ = Connection::new(stream).run();
        });
    }
    Ok(())
}

/// What is kept of a request.
#[derive(Debug, Default)]
struct Exchange {
    body: Vec<u8>,
    begun: bool,
}

struct Connection {
    socket: TcpStream,
    session: Session,
    memory: WorkerMemory,
    opening: Opening,
    exchanges: BTreeMap<u32, Exchange>,
    out: Vec<u8>,
}

impl Connection {
    fn new(socket: TcpStream) -> Self {
        let mut out = Vec::new();
        Self {
            socket,
            session: Session::new(NOW_MS, &mut out),
            memory: WorkerMemory::new([0, 0]),
            opening: Opening::new(DATE),
            exchanges: BTreeMap::new(),
            out,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            self.flush()?;
            let count = self.socket.read(&mut buffer)?;
            if count == 0 {
                self.session.handle_end();
            }
            let closed = self.deliver(&buffer[..count]);
            while let Some(stream) = self.session.next_to_send(&mut self.out) {
                self.send(stream);
                if self.out.len() >= OUT_BYTES_MAX {
                    self.flush()?;
                }
            }
            if closed || count == 0 {
                self.flush()?;
                self.session.release(&mut self.memory);
                self.socket.shutdown(std::net::Shutdown::Write)?;
                // Read until the peer closes: unread bytes would turn our close into a reset.
                while self.socket.read(&mut buffer)? > 0 {}
                return Ok(());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Gives the session one delivery of bytes. Returns whether the session has closed.
    fn deliver(&mut self, bytes: &[u8]) -> bool {
        let joined = self.session.take_kept(bytes).into_owned();
        let mut input = &joined[..];
        let mut closed = false;
        loop {
            let Self { session, memory, opening, out, .. } = self;
            match session.poll_event(memory, &mut input, NOW_MS, opening, out) {
                Event::Request { stream, request } if request.content == BodyIn::None => {
                    let size = request.path.get(1..).and_then(|size| std::str::from_utf8(size).ok());
                    let size = size.and_then(|size| size.parse().ok()).unwrap_or(0);
                    self.exchanges.insert(stream, Exchange { body: vec![b'x'; size], begun: false });
                    self.answer(stream);
                }
                Event::Request { stream, .. } => {
                    session.read_body(stream, NOW_MS, out);
                    self.exchanges.insert(stream, Exchange::default());
                }
                Event::Body { stream, piece } => {
                    self.exchanges.entry(stream).or_default().body.extend_from_slice(piece);
                    session.taken(stream, piece.len(), NOW_MS, out);
                }
                Event::BodyEnd { stream } => self.answer(stream),
                Event::Reset { stream, .. } => _ = self.exchanges.remove(&stream),
                Event::Refused { .. } => {}
                Event::NeedInput => break,
                Event::Close { .. } => {
                    closed = true;
                    break;
                }
            }
        }
        self.session.keep(input, NOW_MS);
        closed
    }

    fn answer(&mut self, stream: u32) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        exchange.begun = true;
        let length = format!("Content-Type: text/plain\r\nContent-Length: {}\r\n", exchange.body.len());
        let head = ResponseHead {
            status: Status::OK,
            fields: HeadFields::Lines(Fields::new(length.as_bytes())),
            has_body: !exchange.body.is_empty(),
        };
        match self.session.begin_response(stream, head, NOW_MS, &self.opening, &mut self.out) {
            BodyRule::Send => self.send(stream),
            BodyRule::Omit => _ = self.exchanges.remove(&stream),
        }
    }

    fn send(&mut self, stream: u32) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        let wanted = exchange.body.len() as u64;
        let granted = self.session.begin_data(stream, wanted, true, NOW_MS, &mut self.out) as usize;
        self.out.extend(exchange.body.drain(..granted));
        if exchange.body.is_empty() {
            self.exchanges.remove(&stream);
        }
    }
}
