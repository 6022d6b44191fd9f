//! The admin address: a listener of its own, answered by threads of their own, so that it answers when the
//! workers have no time.
//!
//! A few threads accept and answer one connection after another; what is more waits in the kernel. Each
//! connection has a deadline. While nobody asks nothing wakes up.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use staunch_netio::{clock, socket};
use staunch_protocol::http1::Session;
use staunch_server::{Admin, Now};

/// Answers under way at a time: a monitor, a balancer, a person, and one that is slow.
const THREADS_COUNT: usize = 4;
/// Connections that wait for a thread.
const BACKLOG_CONNECTIONS_MAX: i32 = 16;
/// How long a peer has for its request and for taking the answer.
const DEADLINE_MS: u64 = 2_000;
/// How long accepting rests when there is no descriptor for it.
const REST: Duration = Duration::from_millis(100);

/// A listener without threads yet.
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens. `takes_over`: another process of this user listens there, and will end.
    ///
    /// # Errors
    /// An address that is taken, not ours, or needs a privilege.
    pub(crate) fn bind(address: SocketAddr, takes_over: bool) -> Result<Self, String> {
        let bind = || -> io::Result<Self> {
            if !takes_over {
                socket::check_port_free(address)?;
            }
            // Shared by address, so that a new binary can listen before the old one ends.
            let listener = TcpListener::from(socket::listen(address, BACKLOG_CONNECTIONS_MAX)?);
            listener.set_nonblocking(false)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bind().map_err(|error| format!("cannot listen on the admin address {address}: {error}"))
    }

    /// Where, with the port taken.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the door is closed.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn serve(self, admin: Admin) -> Result<Door, String> {
        let (listener, closed) = (Arc::new(self.listener), Arc::new(AtomicBool::new(false)));
        let admin = Arc::new(admin);
        for number in 0..THREADS_COUNT {
            let (door, admin) =
                (Door { listener: Arc::clone(&listener), closed: Arc::clone(&closed) }, Arc::clone(&admin));
            thread::Builder::new()
                .name(format!("admin-{number}"))
                .spawn(move || door.accept(&admin))
                .map_err(|error| format!("cannot start a thread: {error}"))?;
        }
        Ok(Door { listener, closed })
    }
}

/// A listener with threads behind it.
pub(crate) struct Door {
    listener: Arc<TcpListener>,
    closed: Arc<AtomicBool>,
}

impl Door {
    /// Accepts no more. What is being answered is answered.
    pub(crate) fn close(&self) {
        self.closed.store(true, Relaxed);
        // It fails only for what is no socket; the threads wake up by it.
        let _ = socket::stop_listening(&self.listener);
    }

    fn accept(&self, admin: &Admin) {
        while !self.closed.load(Relaxed) {
            match self.listener.accept() {
                // A peer that goes away has no further claim.
                Ok((stream, _)) => _ = converse(stream, admin),
                Err(_) if self.closed.load(Relaxed) => return,
                Err(_) => clock::pause(REST),
            }
        }
    }
}

fn converse(mut stream: TcpStream, admin: &Admin) -> io::Result<()> {
    let until_ms = clock::now_ms() + DEADLINE_MS;
    let mut session = Session::new(0);
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left(until_ms)?))?;
        let length = stream.read(&mut buffer)?;
        let now = Now { ms: clock::now_ms(), wall: clock::unix_time() };
        if length == 0 || admin.converse(&mut session, &buffer[..length], now, &mut out) {
            break;
        }
    }
    let mut rest = &out[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until_ms)?))?;
        let length = stream.write(rest)?;
        rest = &rest[length..];
    }
    stream.shutdown(Shutdown::Write)
}

/// What is left until the deadline.
fn left(until_ms: u64) -> io::Result<Duration> {
    match until_ms.saturating_sub(clock::now_ms()) {
        0 => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(Duration::from_millis(left)),
    }
}
