//! A server that can do little, and a crowd that wants more.
//!
//! Both are threads in the namespaces of a world. The crowd goes on until it is dropped.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::world::{SERVER, World};

/// What one connection takes of the slow server: 500 a second.
const WORK: Duration = Duration::from_millis(2);
/// So many clients, each with one connection after another: a line of 600 ms if nobody stops them.
const CLIENTS_COUNT: usize = 300;
pub(crate) const ADDRESS: &str = "10.0.0.1:8000";
/// Its port, for the gate.
pub(crate) const PORT: &str = "8000";

/// The server: one connection at a time, in order.
pub(crate) fn serve_slowly(world: &World) {
    serve(world, WORK);
}

/// The server with other work.
pub(crate) fn serve(world: &World, work: Duration) {
    // The backlog of the standard library is 128, which would keep the line short.
    serve_from(listen(world, 4096), work);
}

/// The server with other work and a listener that is there.
pub(crate) fn serve_from(listener: TcpListener, work: Duration) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 64];
            let _ = stream.read(&mut request);
            thread::sleep(work);
            let _ = stream.write_all(b"done");
        }
    });
}

/// A listener of the server's namespace, with so many places in its accept queue.
pub(crate) fn listen(world: &World, places: i32) -> TcpListener {
    listen_at(world, ADDRESS, places)
}

/// A listener of the server's namespace at another address.
pub(crate) fn listen_at(world: &World, address: &'static str, places: i32) -> TcpListener {
    let listener = world.server(move || {
        let address: SocketAddr = address.parse().expect("an address");
        TcpListener::from(staunch_netio::socket::listen(address, places).expect("a listener"))
    });
    let listener = listener.join().expect("a listener");
    listener.set_nonblocking(false).expect("a socket");
    listener
}

/// A server with one thread and an event loop, as node is: it accepts all who come, reads from whoever has
/// sent something, one at a time, and stands still for as long as it is told to.
pub(crate) fn serve_by_events(world: &World, stands_still: Arc<AtomicBool>) {
    let listener = listen(world, 511);
    thread::spawn(move || {
        let mut streams: Vec<TcpStream> = Vec::new();
        loop {
            let fds = std::iter::once(listener.as_fd()).chain(streams.iter().map(TcpStream::as_fd));
            let mut polled: Vec<PollFd<'_>> =
                fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            poll(&mut polled, None).expect("poll");
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            while stands_still.load(Relaxed) {
                thread::sleep(WORK);
            }
            let (ours, mut theirs) = (ready[0], ready[1..].iter());
            streams.retain_mut(|stream| {
                let is_ready = theirs.next().copied().unwrap_or(false);
                if is_ready && stream.read(&mut [0; 64]).unwrap_or(0) > 0 {
                    thread::sleep(WORK);
                    let _ = stream.write_all(b"done");
                }
                !is_ready
            });
            if ours {
                streams.push(listener.accept().expect("a connection").0);
            }
        }
    });
}

/// The crowd. Dropping it ends it.
pub(crate) struct Crowd {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    pub(crate) fn new(world: &World) -> Self {
        Self::of(world, CLIENTS_COUNT)
    }

    /// So many clients.
    pub(crate) fn of(world: &World, count: usize) -> Self {
        Self::at(world, ADDRESS, count)
    }

    /// So many clients of another address.
    pub(crate) fn at(world: &World, address: &'static str, count: usize) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |_| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            world.client(move || {
                while !stop.load(Relaxed) {
                    answered.fetch_add(u64::from(ask(address).is_ok()), Relaxed);
                }
            })
        };
        let clients = (0..count).map(client).collect();
        Self { stop, answered, clients }
    }

    /// How many answers came.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

/// Makes a connection, asks, and takes the answer.
fn ask(address: &str) -> std::io::Result<Vec<u8>> {
    let address: SocketAddr = address.parse().expect("an address");
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"please")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// A request over HTTP from a client's namespace: the first line of the answer.
pub(crate) fn get(world: &World, port: u16) -> String {
    get_at(world, SERVER, port)
}

/// A request over HTTP from a client's namespace to another address: the first line of the answer.
pub(crate) fn get_at(world: &World, host: &'static str, port: u16) -> String {
    let work = move || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((host, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream
            .write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    };
    world.client(work).join().expect("a client").unwrap_or_else(|error| format!("no answer: {error}"))
}
