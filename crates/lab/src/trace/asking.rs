//! A client that asks one thing after the other, so that a server is never asked two at once.
//!
//! It must never measure: it only asks, and sees that the answer is whole.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::results::Protocol;

/// For what hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of one reading.
const READ_BYTES: usize = 64 * 1024;

/// What is asked, and how.
pub(super) struct Question {
    pub(super) address: SocketAddr,
    pub(super) protocol: Protocol,
    pub(super) bytes: usize,
}

impl Question {
    /// Asks so many times.
    ///
    /// # Errors
    /// What failed, in a sentence.
    pub(super) fn ask(&self, times: u32) -> Result<(), String> {
        let mut stream = None;
        for _ in 0..times {
            let connection = match stream.take() {
                Some(connection) => connection,
                None => self.connect().map_err(|error| format!("no connection to the model: {error}"))?,
            };
            let connection = self.converse(connection)?;
            stream = (self.protocol == Protocol::KeepAlive).then_some(connection);
        }
        Ok(())
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Asks once, takes the answer, and without keep-alive sees the end of the connection.
    fn converse(&self, mut stream: TcpStream) -> Result<TcpStream, String> {
        stream.write_all(self.request().as_bytes()).map_err(|error| format!("a request: {error}"))?;
        let (mut buffer, mut received, mut head) = (vec![0; READ_BYTES], 0, Vec::new());
        let mut wanted = (self.protocol == Protocol::Paper).then_some(self.bytes);
        while self.protocol != Protocol::KeepAlive || wanted.is_none_or(|wanted| received < wanted) {
            let count = stream.read(&mut buffer).map_err(|error| format!("an answer: {error}"))?;
            if count == 0 {
                break;
            }
            received += count;
            if wanted.is_none() {
                head.extend_from_slice(&buffer[..count]);
                let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n");
                wanted = end.map(|end| end + 4 + self.bytes);
            }
        }
        if wanted != Some(received) {
            return Err(format!("an answer has {received} bytes, head and all; not those asked for"));
        }
        Ok(stream)
    }

    fn request(&self) -> String {
        let bytes = self.bytes;
        match self.protocol {
            Protocol::Paper => format!("{bytes}\n"),
            Protocol::Http => format!("GET /{bytes} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n"),
            Protocol::KeepAlive => format!("GET /{bytes} HTTP/1.1\r\nHost: lab\r\n\r\n"),
        }
    }
}
