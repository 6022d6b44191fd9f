//! An application that sends any bytes, and keeps what it was sent.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};

use crate::world::PATIENCE;

/// The play of a scripted application on a connection: `number` counts them from 0.
pub(crate) type Script = fn(&mut Scripted, number: usize);

/// A connection of a scripted application.
pub(crate) struct Scripted {
    pub(crate) stream: TcpStream,
    got: Sender<Vec<u8>>,
}

impl Scripted {
    /// Reads until the end of a head, and what came behind it so far. Empty when the peer has closed.
    pub(crate) fn head(&mut self) -> Vec<u8> {
        self.until(|bytes| bytes.windows(4).any(|four| four == b"\r\n\r\n"))
    }

    /// Reads until what came is as wanted, or the peer has closed, and keeps it for the test.
    pub(crate) fn until(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut all = Vec::new();
        let mut bytes = [0; 65_536];
        while !wanted(&all) {
            match self.stream.read(&mut bytes) {
                Ok(count) if count > 0 => all.extend_from_slice(&bytes[..count]),
                _ => break,
            }
        }
        let _ = self.got.send(all.clone());
        all
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }
}

/// Begins to listen, and plays the script on each connection. Gives the address, and what was sent there in
/// the order it was read.
pub(crate) fn play(script: Script) -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (address, play_at(listener, script))
}

/// Plays a script that has a memory, at a socket that listens already. Gives what was sent there.
pub(crate) fn play_at(
    listener: TcpListener,
    script: impl Fn(&mut Scripted, usize) + Clone + Send + 'static,
) -> Receiver<Vec<u8>> {
    let (got, all) = mpsc::channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
            let (mut scripted, script) = (Scripted { stream, got: got.clone() }, script.clone());
            std::thread::spawn(move || script(&mut scripted, number));
        }
    });
    all
}
