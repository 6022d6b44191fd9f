//! The smallest HTTP client that can check an answer: one connection, one request at a time.
//!
//! It owns one socket. It must never be used to measure load: it is there to see that a server answers with
//! the right bytes, and when.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer as received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Status code.
    pub(super) status: u16,
    /// The body: exactly as many bytes as Content-Length says.
    pub(super) body: Vec<u8>,
    /// Whether the server said that it closes the connection.
    pub(super) close: bool,
}

/// A kept connection, plain or secured.
#[derive(Debug)]
pub(super) struct HttpClient<S = TcpStream> {
    stream: S,
    received: Vec<u8>,
}

impl HttpClient {
    /// Connects.
    ///
    /// # Errors
    /// What the system says, as text.
    pub(super) fn connect(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| format!("connect to {address}: {error}"))?;
        let timeout = Some(Duration::from_secs(20));
        stream
            .set_read_timeout(timeout)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(|error| error.to_string())?;
        Ok(Self::over(stream))
    }

    /// Whether the peer has neither closed nor sent anything more.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let nonblocking = self.stream.set_nonblocking(true).is_ok();
        let received = self.stream.read(&mut byte);
        let blocking = self.stream.set_nonblocking(false).is_ok();
        let nothing = matches!(received, Err(error) if error.kind() == ErrorKind::WouldBlock);
        nonblocking && blocking && nothing
    }
}

impl<S: Read + Write> HttpClient<S> {
    /// A client on an open connection.
    pub(super) fn over(stream: S) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// What it stands on.
    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Asks for a path and waits for the whole answer.
    ///
    /// # Errors
    /// A failed connection or an answer that is not HTTP/1 with a Content-Length.
    pub(super) fn get(&mut self, path: &str) -> Result<Reply, String> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// The last request of the connection: waits for the whole answer, and until the server closes.
    ///
    /// # Errors
    /// As [`HttpClient::get`], or the server sends more or does not close.
    pub(super) fn get_last(mut self, path: &str) -> Result<Reply, String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let reply = self.ask(&request)?;
        match self.stream.read(&mut [0]) {
            Ok(0) => Ok(reply),
            Ok(_) => Err("more bytes than the answer came".to_owned()),
            // Some servers end a secured connection without the alert that says so.
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                Ok(reply)
            }
            Err(error) => Err(format!("the server does not close: {error}")),
        }
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// As [`HttpClient::get`].
    pub(super) fn ask(&mut self, request: &str) -> Result<Reply, String> {
        self.stream.write_all(request.as_bytes()).map_err(|error| format!("send: {error}"))?;
        self.received.clear();
        let mut part = vec![0; 64 * 1024];
        loop {
            let length = self.stream.read(&mut part).map_err(|error| format!("receive: {error}"))?;
            if length == 0 {
                return Err("the connection ended before the answer did".to_owned());
            }
            self.received.extend_from_slice(&part[..length]);
            if let Some(reply) = parse(&self.received)? {
                return Ok(reply);
            }
        }
    }
}

/// A request on a connection of its own.
///
/// # Errors
/// As [`HttpClient::get`].
pub(super) fn fetch(address: SocketAddr, path: &str) -> Result<Reply, String> {
    HttpClient::connect(address)?.get(path)
}

/// The first answer among the bytes, once it is complete. What follows it is ignored: the floor answers a
/// pipelined scenario with several at once.
fn parse(bytes: &[u8]) -> Result<Option<Reply>, String> {
    let Some(head_length) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..head_length]).to_ascii_lowercase();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("http/1.")?.get(2..5)?.parse().ok());
    let status =
        status.ok_or_else(|| format!("not an HTTP answer: {}", head.lines().next().unwrap_or("")))?;
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let field = |name: &str| fields.iter().find(|field| field.0 == name).map(|field| field.1.trim());
    let length: usize = field("content-length")
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("status {status} without Content-Length"))?;
    let body = &bytes[head_length + 4..];
    if body.len() < length {
        return Ok(None);
    }
    Ok(Some(Reply { status, body: body[..length].to_vec(), close: field("connection") == Some("close") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_only_with_its_last_byte() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabcHTTP/1.1 200 OK";
        for length in 0..whole.len() {
            let reply = parse(&whole[..length]).expect("valid");
            assert_eq!(reply.is_some(), length >= whole.len() - 15, "{length}");
        }
        let reply = parse(whole).expect("valid").expect("complete");
        assert_eq!(reply, Reply { status: 200, body: b"abc".to_vec(), close: true });
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(parse(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
