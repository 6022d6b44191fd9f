//! Both ends of WebSockets through a proxy: an application that takes every upgrade, and its clients.
//!
//! This module owns both ends; one thread accepts. No frame is written: a proxy passes bytes on as they are.
//! This module must never measure.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const HEAD_BYTES_MAX: usize = 8192;
/// The key and its answer are those of RFC 6455.
const ASKED: &str = "GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const OTHERWISE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// An application whose ends of WebSockets are held.
#[derive(Debug)]
pub(super) struct Upgrading {
    /// Where it listens.
    pub(super) address: SocketAddr,
    ends: Arc<Mutex<Vec<TcpStream>>>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Upgrading {
    /// Starts it.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn start() -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (ends, has_ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (kept, ended) = (Arc::clone(&ends), Arc::clone(&has_ended));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(SeqCst) {
                    return;
                }
                // A client that asks for anything else, or for nothing, is gone then.
                if let Ok(Some(end)) = answer(stream) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(end);
                }
            }
        });
        Ok(Self { address, ends, has_ended, thread: Some(thread) })
    }

    /// Opens so many WebSockets through a proxy, one after the other, and sends a byte each way on each.
    ///
    /// # Errors
    /// A WebSocket is not taken, or does not carry a byte.
    pub(super) fn open(&self, proxy: SocketAddr, count: usize) -> Result<Vec<TcpStream>, String> {
        let mut clients = Vec::new();
        for number in 0..count {
            let client = ask(proxy).map_err(|error| format!("WebSocket {number}: {error}"))?;
            clients.push(client);
        }
        self.carry(&clients)?;
        Ok(clients)
    }

    /// Sends a byte each way on each of these WebSockets.
    ///
    /// # Errors
    /// A WebSocket does not carry the byte.
    pub(super) fn carry(&self, clients: &[TcpStream]) -> Result<(), String> {
        self.await_ends(clients.len())?;
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut byte = [0];
        for (number, mut client) in clients.iter().enumerate() {
            client.write_all(b"c").map_err(|error| format!("WebSocket {number}: {error}"))?;
        }
        for (number, end) in ends.iter_mut().enumerate().take(clients.len()) {
            let carried = end.read_exact(&mut byte).and_then(|()| end.write_all(b"a"));
            carried.map_err(|error| format!("the application's end of WebSocket {number}: {error}"))?;
        }
        for (number, mut client) in clients.iter().enumerate() {
            client.read_exact(&mut byte).map_err(|error| format!("WebSocket {number}, back: {error}"))?;
        }
        Ok(())
    }

    /// An end is held a moment after its client was answered.
    fn await_ends(&self, count: usize) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let held = self.ends.lock().unwrap_or_else(PoisonError::into_inner).len();
            if held >= count {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("only {held} of {count} WebSockets stand at the application"));
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the proxy has ended every one, and forgets them.
    ///
    /// # Errors
    /// A WebSocket stays open.
    pub(super) fn part(&self) -> Result<(), String> {
        let began = Instant::now();
        for end in self.ends.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            while !matches!((&end).read(&mut [0]), Ok(0)) {
                if began.elapsed() > PATIENCE {
                    return Err("a WebSocket that its client closed stays at the application".to_owned());
                }
                sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }
}

impl Drop for Upgrading {
    fn drop(&mut self) {
        self.has_ended.store(true, SeqCst);
        // Wakes the thread; if nobody listens any more it has ended.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

/// The application's end of a WebSocket, if the client asks for one.
fn answer(mut stream: TcpStream) -> std::io::Result<Option<TcpStream>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let head = read_head(&mut stream)?;
    let wanted = head.to_ascii_lowercase().contains("upgrade: websocket");
    stream.write_all(if wanted { SWITCHED } else { OTHERWISE }.as_bytes())?;
    Ok(wanted.then_some(stream))
}

fn ask(proxy: SocketAddr) -> Result<TcpStream, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut client = TcpStream::connect(proxy).map_err(text)?;
    client.set_read_timeout(Some(PATIENCE)).and_then(|()| client.set_nodelay(true)).map_err(text)?;
    client.write_all(ASKED.as_bytes()).map_err(text)?;
    let head = read_head(&mut client).map_err(text)?;
    if head.starts_with("HTTP/1.1 101 ") {
        Ok(client)
    } else {
        Err(format!("it is answered '{}'", head.lines().next().unwrap_or_default()))
    }
}

/// A head, byte by byte: nothing may be read of what follows it.
fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_meet_without_a_proxy() {
        let application = Upgrading::start().expect("started");
        let clients = application.open(application.address, 3).expect("opened");
        application.carry(&clients).expect("carried");
        drop(clients);
        application.part().expect("parted");
        assert!(application.carry(&[]).is_ok());
    }
}
