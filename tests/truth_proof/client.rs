//! The plainest client there is: writes bytes, reads bytes.
//!
//! It must never understand more of HTTP than where a head ends.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use staunch_tests::truth::{Address, Truth};

/// Longer than any answer takes; no test waits for it unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(50);

/// A connection of either kind.
pub(crate) enum Client {
    /// To a port.
    Tcp(TcpStream),
    /// To a path.
    Unix(UnixStream),
}

impl Client {
    /// Connects.
    pub(crate) fn to(truth: &Truth) -> Self {
        let client = match truth.address() {
            Address::Internet(address) => Self::Tcp(TcpStream::connect(address).unwrap()),
            Address::Unix(path) => Self::Unix(UnixStream::connect(path).unwrap()),
        };
        client.set_patience(PATIENCE);
        client
    }

    /// Connects and asks for a path.
    pub(crate) fn asking(truth: &Truth, path: &str) -> Self {
        let mut client = Self::to(truth);
        client.ask(path);
        client
    }

    /// Sends a GET.
    pub(crate) fn ask(&mut self, path: &str) {
        self.write(format!("GET {path} HTTP/1.1\r\nHost: truth\r\n\r\n").as_bytes());
    }

    /// Sends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).unwrap(),
            Self::Unix(stream) => stream.write_all(bytes).unwrap(),
        }
    }

    /// Reads once.
    pub(crate) fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }

    /// Reads an answer with a Content-Length: head and body.
    pub(crate) fn read_answer(&mut self) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(self.read_byte());
        }
        let head = String::from_utf8(bytes).unwrap();
        let (_, length) = head.split_once("Content-Length: ").expect("a length");
        let length: usize = length.split_once("\r\n").unwrap().0.parse().unwrap();
        let body = (0..length).map(|_| self.read_byte()).collect();
        (head, body)
    }

    fn read_byte(&mut self) -> u8 {
        let mut byte = [0];
        let count = self.read_some(&mut byte).expect("a byte");
        assert_eq!(count, 1, "the connection ended");
        byte[0]
    }

    /// Reads to the end: what came, and how it ended (`Ok`: in order).
    pub(crate) fn read_to_end(&mut self) -> (Vec<u8>, io::Result<()>) {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            match self.read_some(&mut piece) {
                Ok(0) => return (bytes, Ok(())),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) => return (bytes, Err(error)),
            }
        }
    }

    /// Fails when anything comes, the end included.
    pub(crate) fn expect_silence(&mut self) {
        self.set_patience(SILENCE);
        let error = self.read_some(&mut [0]).expect_err("silence was expected");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        self.set_patience(PATIENCE);
    }

    fn set_patience(&self, patience: Duration) {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(patience)).unwrap(),
            Self::Unix(stream) => stream.set_read_timeout(Some(patience)).unwrap(),
        }
    }
}

/// The whole of what a path answers on a connection that the server or the request ends.
pub(crate) fn everything(truth: &Truth, request: &str) -> String {
    let mut client = Client::to(truth);
    client.write(request.as_bytes());
    let (bytes, end) = client.read_to_end();
    end.expect("an orderly end");
    String::from_utf8(bytes).unwrap()
}
