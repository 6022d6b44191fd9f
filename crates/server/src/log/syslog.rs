//! The syslog service of this host: a datagram for each line, to its Unix socket.
//!
//! It owns the socket and the form of a message (RFC 3164, section 4.1, without the name of the host, as the
//! C library writes it). A service that was started anew is found again. It must never leave this host: the
//! service forwards lines, if it is told to.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use super::lines;
use crate::limits::SYSLOG_BYTES_MAX;

/// Facility `daemon` (3) and severity `informational` (6): RFC 3164, section 4.1.1.
const PRIORITY: u8 = 3 * 8 + 6;

/// The connection to the syslog service.
#[derive(Debug)]
pub(super) struct Syslog {
    path: PathBuf,
    socket: UnixDatagram,
    message: Vec<u8>,
}

impl Syslog {
    /// Connects to the service that listens at this path.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), socket: connect(path)?, message: Vec::new() })
    }

    /// Sends a line without its end. One that is too long is cut.
    pub(super) fn send(&mut self, line: &[u8]) -> io::Result<()> {
        // tidy: allow(clock): a message says when it was sent.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = lines::rfc3164(since.map_or(0, |since| since.as_secs()));
        let head = format!("<{PRIORITY}>{time} staunch[{}]: ", std::process::id());
        self.message.clear();
        self.message.extend_from_slice(head.as_bytes());
        self.message.extend_from_slice(line);
        self.message.truncate(SYSLOG_BYTES_MAX);
        match send(&self.socket, &self.message) {
            Err(error) if has_left(&error) => {
                self.socket = connect(&self.path)?;
                send(&self.socket, &self.message)
            }
            result => result,
        }
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

fn send(socket: &UnixDatagram, message: &[u8]) -> io::Result<()> {
    loop {
        match socket.send(message) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// Whether the service has ended: another may listen at the same path.
fn has_left(error: &io::Error) -> bool {
    let left = [Errno::CONNREFUSED, Errno::NOTCONN, Errno::CONNRESET, Errno::PIPE, Errno::DESTADDRREQ];
    left.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::testing::Folder;

    fn received(service: &UnixDatagram) -> String {
        let mut bytes = vec![0; 2 * SYSLOG_BYTES_MAX];
        let length = service.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn a_message_has_priority_time_and_process() {
        let folder = Folder::new();
        let path = folder.path().join("log");
        assert_eq!(Syslog::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let service = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::open(&path).unwrap();
        syslog.send(b"one").unwrap();
        let message = received(&service);
        assert!(message.starts_with("<30>"), "{message}");
        assert!(message.ends_with(&format!(" staunch[{}]: one", std::process::id())), "{message}");
        syslog.send(&vec![b'x'; 3 * SYSLOG_BYTES_MAX]).unwrap();
        assert_eq!(received(&service).len(), SYSLOG_BYTES_MAX);
    }

    #[test]
    fn a_service_that_was_started_anew_is_found_again() {
        let folder = Folder::new();
        let path = folder.path().join("log");
        let service = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::open(&path).unwrap();
        drop(service);
        assert!(syslog.send(b"to nobody").is_err());
        std::fs::remove_file(&path).unwrap();
        let service = UnixDatagram::bind(&path).unwrap();
        syslog.send(b"again").unwrap();
        assert!(received(&service).ends_with(": again"));
    }
}
