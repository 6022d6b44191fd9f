//! A connection over a TCP socket, for conversations and for the black-box tests.
//!
//! It must never block in a write: a server that answers while it is still being sent to is read from
//! meanwhile.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::End;

/// How long a write may make no progress before it is given up.
const WRITE_PATIENCE: Duration = Duration::from_secs(120);

/// A connection to a real server.
#[derive(Debug)]
pub struct SocketLink {
    stream: TcpStream,
    inbox: Vec<u8>,
    end: Option<End>,
    pieces: u32,
}

impl SocketLink {
    /// Opens a connection.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::of(TcpStream::connect_timeout(&address, Duration::from_secs(10))?)
    }

    /// A connection that there is.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, inbox: Vec::new(), end: None, pieces: 0 })
    }

    /// Sends bytes and keeps what comes meanwhile.
    pub fn send(&mut self, mut bytes: &[u8]) {
        let mut moved = Instant::now();
        while !bytes.is_empty() && self.end.is_none() && moved.elapsed() < WRITE_PATIENCE {
            match self.stream.write(bytes) {
                Ok(written) => {
                    bytes = &bytes[written..];
                    moved = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.await_flags(PollFlags::IN | PollFlags::OUT, Duration::from_millis(100));
                    self.read_available();
                }
                // The reader will find out what the peer said before.
                Err(_) => return,
            }
        }
    }

    /// A short rest after some of the pieces, so that the server reads them apart.
    pub fn pause_between_pieces(&mut self) {
        self.pieces += 1;
        if self.pieces <= 8 || self.pieces.is_multiple_of(256) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends no more.
    pub fn half_close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Breaks off with a reset.
    pub fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Waits until something comes.
    pub fn fill(&mut self, patience: Duration) -> bool {
        let start = Instant::now();
        let before = self.inbox.len();
        while self.inbox.len() == before && self.end.is_none() {
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            self.await_flags(PollFlags::IN, left);
            self.read_available();
        }
        true
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
        self.end
    }

    fn await_flags(&self, flags: PollFlags, patience: Duration) {
        let timeout = rustix::event::Timespec {
            tv_sec: patience.as_secs() as _,
            tv_nsec: patience.subsec_nanos() as _,
        };
        // A signal or an early return only makes the caller look again.
        let _ = poll(&mut [PollFd::new(&self.stream, flags)], Some(&timeout));
    }

    fn read_available(&mut self) {
        let mut buffer = [0; 64 * 1024];
        while self.end.is_none() {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.end = Some(End::Orderly),
                Ok(length) => self.inbox.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.end = Some(End::Failed(error.raw_os_error().unwrap_or(0))),
            }
        }
    }
}
