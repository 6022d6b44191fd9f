//! A small server of live data whose faults are known: it loses, repeats and exchanges updates, and cuts
//! readers off, exactly as it is told.
//!
//! It owns its threads, which end with the test's process. It must never do by chance what it was not told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use staunch_protocol::websocket::{Opcode, accept_key, append_frame};

/// What the server does wrong at the update of a number, counted from 1 in the order of publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Sends it to nobody.
    Lose(usize),
    /// Sends it twice to everybody.
    Repeat(usize),
    /// Sends it behind the next one.
    Exchange(usize),
    /// Sends half of the event and cuts everybody off. Who comes back gets what is behind its last id.
    CutWithin(usize),
    /// As `CutWithin`, and who comes back gets nothing of what was before.
    CutAndForget(usize),
    /// Answers its publication by 503, and does not publish it.
    Refuse(usize),
    /// Publishes it, and closes the publisher's connection without an answer.
    Swallow(usize),
}

/// How a stream is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// In chunks.
    Chunked,
    /// Until the connection ends.
    Plain,
    /// Messages of a WebSocket, of which the first is a welcome.
    Socket,
}

/// A server of live data that does as it is told.
#[derive(Debug, Clone)]
pub(crate) struct LiveServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    framing: Framing,
    wrongs: Vec<Wrong>,
    /// Publications that came, refused ones included.
    came: usize,
    /// What was published: id and data.
    log: Vec<(usize, String)>,
    readers: Vec<TcpStream>,
    /// Events that are sent behind the next one.
    held: Vec<Vec<u8>>,
    forgets: bool,
    /// The `Last-Event-ID` of each stream that was asked for.
    resumed_from: Vec<Option<usize>>,
}

impl LiveServer {
    /// Starts a server that listens at a port of its own.
    pub(crate) fn start(framing: Framing, wrongs: &[Wrong]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = State {
            framing,
            wrongs: wrongs.to_vec(),
            came: 0,
            log: Vec::new(),
            readers: Vec::new(),
            held: Vec::new(),
            forgets: false,
            resumed_from: Vec::new(),
        };
        let server = Self { address, state: Arc::new(Mutex::new(state)) };
        let own = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || own.serve(stream));
            }
        });
        server
    }

    /// A URL of it.
    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// The `Last-Event-ID` of each stream that was asked for.
    pub(crate) fn resumed_from(&self) -> Vec<Option<usize>> {
        self.state().resumed_from.clone()
    }

    /// What was published: the values, in their order.
    pub(crate) fn values(&self) -> Vec<String> {
        self.state().log.iter().map(|(_, data)| data.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the state")
    }

    /// Answers the requests of a connection. A client that goes away ends it.
    fn serve(&self, stream: TcpStream) {
        let mut input = BufReader::new(stream.try_clone().expect("a second handle"));
        while let Some(request) = Request::read(&mut input) {
            let goes_on = match request.target.split('?').next().unwrap_or_default() {
                "/events" => return self.join(stream, &request),
                "/publish" => self.publish(&stream, &request),
                "/html" => return drop(answer(&stream, "200 OK", "<p>hello")),
                _ => return drop(answer(&stream, "404 Not Found", "nothing here")),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn join(&self, mut stream: TcpStream, request: &Request) {
        let last_id = request.field("last-event-id").and_then(|id| id.parse::<usize>().ok());
        let mut state = self.state();
        state.resumed_from.push(last_id);
        let framing = match state.framing {
            Framing::Chunked => "Transfer-Encoding: chunked\r\n",
            Framing::Plain => "Connection: close\r\n",
            Framing::Socket => "",
        };
        let (head, first) = match state.framing {
            Framing::Socket => (upgrade(request), &b"{}\nwelcome"[..]),
            _ => (
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}\r\n"),
                &b"retry: 10\n: hello\n\n"[..],
            ),
        };
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&state.framed(first));
        if let Some(last_id) = last_id.filter(|_| !state.forgets) {
            for (_, data) in state.log.iter().filter(|(id, _)| *id > last_id) {
                bytes.extend_from_slice(&state.framed(data.as_bytes()));
            }
        }
        if stream.write_all(&bytes).is_ok() {
            state.readers.push(stream);
        }
    }

    /// Publishes, and does what is to go wrong. Returns whether the connection goes on.
    fn publish(&self, stream: &TcpStream, request: &Request) -> bool {
        let mut state = self.state();
        state.came += 1;
        let number = state.came;
        if state.wrongs.contains(&Wrong::Refuse(number)) {
            return answer(stream, "503 Service Unavailable", "not now").is_ok();
        }
        let event = match state.framing {
            Framing::Socket => request.body.clone(),
            _ => format!("id: {number}\ndata: {}\n\n", request.body),
        };
        let frame = state.framed(event.as_bytes());
        state.log.push((number, event));
        let held = std::mem::take(&mut state.held);
        let wrong = state.wrongs.iter().copied().find(|wrong| wrong.number() == number);
        match wrong {
            Some(Wrong::Lose(_)) => {}
            Some(Wrong::Repeat(_)) => state.send(&[&frame[..], &frame].concat()),
            Some(Wrong::Exchange(_)) => state.held.push(frame),
            Some(Wrong::CutWithin(_)) => state.cut(&frame),
            Some(Wrong::CutAndForget(_)) => {
                state.forgets = true;
                state.cut(&frame);
            }
            Some(Wrong::Refuse(_) | Wrong::Swallow(_)) | None => state.send(&frame),
        }
        held.iter().for_each(|frame| state.send(frame));
        drop(state);
        if wrong == Some(Wrong::Swallow(number)) {
            return false;
        }
        answer(stream, "200 OK", "{}").is_ok()
    }
}

impl State {
    fn framed(&self, payload: &[u8]) -> Vec<u8> {
        match self.framing {
            Framing::Plain => payload.to_vec(),
            Framing::Socket => {
                let mut frame = Vec::new();
                append_frame(Opcode::Text, false, None, payload, &mut frame);
                frame
            }
            Framing::Chunked => {
                let begin = format!("{:x}\r\n", payload.len()).into_bytes();
                [&begin[..], payload, b"\r\n"].concat()
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.readers.retain_mut(|reader| reader.write_all(bytes).is_ok());
    }

    fn cut(&mut self, frame: &[u8]) {
        self.send(&frame[..frame.len() / 2]);
        for reader in self.readers.drain(..) {
            let _ = reader.shutdown(Shutdown::Write);
        }
    }
}

impl Wrong {
    fn number(self) -> usize {
        match self {
            Self::Lose(number)
            | Self::Repeat(number)
            | Self::Exchange(number)
            | Self::CutWithin(number)
            | Self::CutAndForget(number)
            | Self::Refuse(number)
            | Self::Swallow(number) => number,
        }
    }
}

/// A request with its body.
struct Request {
    target: String,
    fields: Vec<(String, String)>,
    body: String,
}

impl Request {
    /// Reads a request; `None` when the client has gone.
    fn read(input: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" if lines.is_empty() => {}
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let target = lines.first()?.split(' ').nth(1)?.to_owned();
        let field = |line: &String| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let fields: Vec<_> = lines.iter().skip(1).filter_map(field).collect();
        let length = fields.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
        input.read_exact(&mut body).ok()?;
        Some(Self { target, fields, body: String::from_utf8(body).ok()? })
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The answer to a WebSocket's handshake.
fn upgrade(request: &Request) -> String {
    let key = request.field("sec-websocket-key").unwrap_or_default();
    let accept = accept_key(key.as_bytes()).expect("a key of a WebSocket");
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    format!("HTTP/1.1 101 Switching Protocols\r\n{fields}Sec-WebSocket-Accept: {accept}\r\n\r\n")
}

fn answer(mut stream: &TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes())
}
