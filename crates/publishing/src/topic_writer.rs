//! A publisher's connection: one request after the other.
//!
//! It must never lose a value, nor publish it twice: one whose answer did not come is sent again on a new
//! connection, with the same key.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use staunch_program::output::printable;

use super::link::{LinkTarget, ServerLink};

/// Longest head of an answer that is read.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// Longest answer that is read: a sentence.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// Settings that a server names when it is as full as it may be.
const LIMITS: [&str; 2] = ["`live_topics`", "`live_memory`"];

/// A value, what it is said to be, and the key by which a server knows that it has got it already.
#[derive(Debug)]
pub(super) struct TopicValue {
    kind: &'static str,
    value: Vec<u8>,
    key: String,
}

impl TopicValue {
    /// Bytes as they are: JSON if they are an object or a list, else text or bytes.
    pub(super) fn of(value: Vec<u8>) -> Self {
        let is_json = matches!(value.first(), Some(b'{' | b'['))
            && serde_json::from_slice::<serde::de::IgnoredAny>(&value).is_ok();
        Self { kind: if is_json { "application/json" } else { "text/plain" }, value, key: new_key() }
    }
}

/// A key that no other publication has: two drawn numbers, and a count.
fn new_key() -> String {
    static DRAWN: OnceLock<[u64; 2]> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let [high, low] = DRAWN.get_or_init(|| [(); 2].map(|()| RandomState::new().hash_one(std::process::id())));
    format!("{high:016x}{low:016x}-{}", COUNT.fetch_add(1, Relaxed))
}

/// Why the server did not take a value, each with the sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PutFault {
    /// No answer, 408, 429 or 5xx: the same value may be taken later.
    Later(String),
    /// This value is refused (400, 409, 413, 422); another one may be taken.
    Value(String),
    /// 503 that names a limit, which time alone does not change: another value may still be taken.
    Full(String),
    /// Any other status: every value of this publisher, or at this address, would be refused.
    Publisher(String),
}

impl PutFault {
    fn of(status: u16, said: String) -> Self {
        match status {
            503 if LIMITS.iter().any(|limit| said.contains(limit)) => Self::Full(said),
            408 | 429 | 500.. => Self::Later(said),
            400 | 409 | 413 | 422 => Self::Value(said),
            _ => Self::Publisher(said),
        }
    }
}

impl std::fmt::Display for PutFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Later(said) | Self::Value(said) | Self::Full(said) | Self::Publisher(said)) = self;
        f.write_str(said)
    }
}

/// A publisher's connection to one server.
#[derive(Debug)]
pub(super) struct TopicWriter {
    target: LinkTarget,
    token: String,
    stream: Option<BufReader<ServerLink>>,
}

impl TopicWriter {
    /// For a server, of which nothing is asked yet.
    pub(super) fn new(target: LinkTarget, token: String) -> Self {
        Self { target, token, stream: None }
    }

    /// Sets the value of a topic.
    ///
    /// # Errors
    /// The server does not answer, or does not take the value: what it said.
    pub(super) fn put(&mut self, topic: &str, content: &TopicValue) -> Result<(), PutFault> {
        let TopicValue { kind, value, key } = content;
        let length = value.len();
        let lines = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\nIdempotency-Key: {key}\r\n");
        match self.change("PUT", topic, &lines, value)? {
            (200..300, _) => Ok(()),
            (status, said) => Err(PutFault::of(status, said)),
        }
    }

    /// Ends the value of a topic, if it has one.
    ///
    /// # Errors
    /// As those of `put`.
    pub(super) fn delete(&mut self, topic: &str) -> Result<(), PutFault> {
        // The condition keeps a topic from beginning by its end.
        match self.change("DELETE", topic, "If-Match: *\r\n", b"")? {
            (200..300 | 412, _) => Ok(()),
            (status, said) => Err(PutFault::of(status, said)),
        }
    }

    /// Asks for a change of a topic; gives the status and what was said.
    fn change(
        &mut self,
        method: &str,
        topic: &str,
        lines: &str,
        body: &[u8],
    ) -> Result<(u16, String), PutFault> {
        let (authority, token) = (&self.target.authority, &self.token);
        let path: String = topic.bytes().map(encoded).collect();
        let head = format!(
            "{method} /topics/{path} HTTP/1.1\r\nHost: {authority}\r\n\
             Authorization: Bearer {token}\r\n{lines}\r\n"
        );
        let request = [head.as_bytes(), body].concat();
        let is_kept = self.stream.is_some();
        let answer = match self.ask(&request) {
            // A connection that was kept may have ended meanwhile.
            Err(_) if is_kept => self.ask(&request),
            answer => answer,
        };
        let (status, said) = answer.map_err(|error| {
            let said = format!("{}: {error}", self.target.authority);
            // A server that is not believed now is not believed later.
            if error.kind() == ErrorKind::InvalidData {
                PutFault::Publisher(said)
            } else {
                PutFault::Later(said)
            }
        })?;
        Ok((status, format!("{}: {}", printable(topic), printable(said.trim()))))
    }

    fn ask(&mut self, request: &[u8]) -> std::io::Result<(u16, String)> {
        // The connection is kept only if the whole answer came.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(self.target.connect()?),
        };
        let written = stream.get_mut().write_all(request);
        let Answer { status, said, is_last } = match (written, Answer::read(&mut stream)) {
            // A server that refuses a value may say so before it has come, and end the connection.
            (Err(_), Ok(answer)) if answer.status >= 400 => Answer { is_last: true, ..answer },
            (Err(error), _) | (Ok(()), Err(error)) => return Err(error),
            (Ok(()), Ok(answer)) => answer,
        };
        if !is_last {
            self.stream = Some(stream);
        }
        Ok((status, said))
    }
}

/// What a server has answered.
struct Answer {
    status: u16,
    said: String,
    /// The connection ends with it.
    is_last: bool,
}

impl Answer {
    fn read(stream: &mut BufReader<ServerLink>) -> std::io::Result<Self> {
        let broken = || std::io::Error::other("this is no answer of HTTP");
        let mut head = stream.by_ref().take(HEAD_BYTES_MAX);
        let mut line = String::new();
        head.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let (mut length_bytes, mut is_last) = (0, false);
        loop {
            line.clear();
            head.read_line(&mut line)?;
            // The end of the stream, or of what is read of a head.
            if !line.ends_with('\n') {
                return Err(broken());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match &name.to_ascii_lowercase()[..] {
                "content-length" => length_bytes = value.trim().parse().map_err(|_| broken())?,
                "connection" => is_last = value.trim().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        let mut body = Vec::new();
        stream.take(ANSWER_BYTES_MAX.min(length_bytes)).read_to_end(&mut body)?;
        is_last |= body.len() as u64 != length_bytes;
        Ok(Self { status, said: String::from_utf8_lossy(&body).into_owned(), is_last })
    }
}

/// A byte of a topic's name, as it stands in a path.
fn encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn writer(url: &str) -> TopicWriter {
        TopicWriter::new(LinkTarget::new(url, None).unwrap(), "token".to_owned())
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!("a.b/ü".bytes().map(encoded).collect::<String>(), "a.b%2F%C3%BC");
    }

    #[test]
    fn what_is_worth_another_try() {
        let full = "there are as many topics as `live_topics` allows, 2".to_owned();
        assert_eq!(PutFault::of(503, full.clone()), PutFault::Full(full));
        for (status, fault) in [
            (503, PutFault::Later(String::new())),
            (408, PutFault::Later(String::new())),
            (429, PutFault::Later(String::new())),
            (413, PutFault::Value(String::new())),
            (401, PutFault::Publisher(String::new())),
            (404, PutFault::Publisher(String::new())),
        ] {
            assert_eq!(PutFault::of(status, String::new()), fault, "{status}");
        }
    }

    #[test]
    fn each_value_has_a_key_of_its_own() {
        let [one, other] = [(); 2].map(|()| TopicValue::of(b"1".to_vec()).key);
        assert!(one != other && one.len() <= 256 && one.bytes().all(|byte| byte.is_ascii_graphic()));
    }

    /// The value is longer than two sockets hold, and the server ends the connection with it half read.
    #[test]
    fn an_answer_that_comes_before_the_value_was_sent_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 1024]).unwrap();
            let answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long";
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let mut writer = writer(&url);
        let value = TopicValue::of(vec![b'x'; 32 << 20]);
        assert_eq!(writer.put("a", &value), Err(PutFault::Value("a: too long".into())));
        server.join().unwrap();
    }

    /// Gives the answer to whoever connects next.
    fn answering(answer: Vec<u8>) -> (String, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 64]).unwrap();
            // A writer that has read enough of it ends the connection.
            let _ = stream.write_all(&answer);
        });
        (url, server)
    }

    #[test]
    fn a_false_server_is_read_no_further_than_a_head_is_long() {
        let endless = vec![b'x'; 16 << 20];
        for begin in ["", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"] {
            let (url, server) = answering([begin.as_bytes(), &endless].concat());
            let mut writer = writer(&url);
            let fault = writer.put("a", &TopicValue::of(b"1".to_vec())).unwrap_err();
            assert!(
                matches!(&fault, PutFault::Later(said) if said.ends_with("this is no answer of HTTP")),
                "{fault}"
            );
            assert!(writer.stream.is_none());
            server.join().unwrap();
        }
    }

    #[test]
    fn what_a_server_says_steers_no_terminal() {
        let said = "\u{1b}[2Jno\r\u{7}\u{9b}31m\nway ü";
        let answer = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{said}", said.len());
        let (url, server) = answering(answer.into_bytes());
        let mut writer = writer(&url);
        let fault = writer.put("a", &TopicValue::of(b"1".to_vec())).unwrap_err().to_string();
        assert_eq!(fault, "a: \\u{1b}[2Jno\\r\\u{7}\\u{9b}31m\\nway ü");
        server.join().unwrap();
    }

    #[test]
    fn what_looks_like_json_is_said_to_be() {
        for (value, kind) in [
            ("{\"a\":1}", "application/json"),
            ("[1]", "application/json"),
            ("1", "text/plain"),
            ("{", "text/plain"),
        ] {
            assert_eq!(TopicValue::of(value.into()).kind, kind, "{value}");
        }
    }
}
