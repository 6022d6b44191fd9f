//! Clients that read or send 1 000 bytes a second, from one thread.
//!
//! This module owns the clients' sockets. Each has its turn once a second. A reader begins when its answer
//! does; one that is refused is replaced. It must never measure.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Turns a second; clients have theirs in as many groups.
const TURNS_PER_S: u32 = 30;
const BYTES_PER_S: usize = 1_000;
/// The kernel keeps little of an answer for a reader.
const RECEIVE_BUFFER_BYTES: usize = 4096;

/// So many readers and senders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Clients that read an answer.
    pub(super) readers: usize,
    /// Length of the answer.
    pub(super) answer_bytes: usize,
    /// Clients that send a body, once they are called.
    pub(super) senders: usize,
    /// Length of the body.
    pub(super) body_bytes: usize,
}

/// Slow clients at work.
#[derive(Debug)]
pub(super) struct SlowClients {
    shared: Arc<Shared>,
    wanted: Wanted,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    has_ended: AtomicBool,
    senders_called: AtomicBool,
    reading: AtomicUsize,
    sending: AtomicUsize,
    refused: AtomicUsize,
    fault: Mutex<Option<String>>,
}

impl SlowClients {
    /// Readers begin to come: at most 30 a second, so that the application can answer all of them.
    pub(super) fn start(address: SocketAddr, wanted: Wanted) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            if let Err(error) = work(address, wanted, &own) {
                *own.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        });
        Self { shared, wanted, thread: Some(thread) }
    }

    /// Waits until every reader reads.
    ///
    /// # Errors
    /// Some do not within `patience`, or a connection fails.
    pub(super) fn await_readers(&self, patience: Duration) -> Result<(), String> {
        self.wait(patience, "readers", self.wanted.readers, |shared| &shared.reading)
    }

    /// Calls the senders, and waits until each has begun.
    ///
    /// # Errors
    /// Some do not within `patience`, or a connection fails.
    pub(super) fn call_senders(&self, patience: Duration) -> Result<(), String> {
        self.shared.senders_called.store(true, SeqCst);
        self.wait(patience, "senders", self.wanted.senders, |shared| &shared.sending)
    }

    /// Readers that are reading now, senders that are sending now, and readers that were refused so far.
    pub(super) fn standing(&self) -> (usize, usize, usize) {
        let Shared { reading, sending, refused, .. } = &*self.shared;
        (reading.load(SeqCst), sending.load(SeqCst), refused.load(SeqCst))
    }

    fn wait(
        &self,
        patience: Duration,
        who: &str,
        wanted: usize,
        count: impl Fn(&Shared) -> &AtomicUsize,
    ) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let standing = count(&self.shared).load(SeqCst);
            if standing >= wanted {
                return Ok(());
            }
            if let Some(fault) = &*self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) {
                return Err(format!("slow {who}: {fault}"));
            }
            if began.elapsed() > patience {
                let (_, _, refused) = self.standing();
                return Err(format!("only {standing} of {wanted} slow {who} stand; {refused} were refused"));
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for SlowClients {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

/// A client, and what it has read or sent.
struct Client {
    stream: TcpStream,
    done_bytes: usize,
}

/// State of a client after its turn.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The client goes on, or waits for its answer.
    On,
    /// The answer has another status than 200.
    Refused,
    /// All is done, or the connection is gone.
    Over,
}

fn work(address: SocketAddr, wanted: Wanted, shared: &Shared) -> Result<(), String> {
    let get = format!("GET /ok?bytes={} HTTP/1.1\r\nHost: localhost\r\n\r\n", wanted.answer_bytes);
    let post =
        format!("POST /ok HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", wanted.body_bytes);
    let (mut readers, mut senders): (Vec<Client>, Vec<Client>) = (Vec::new(), Vec::new());
    let (began, mut has_read) = (Instant::now(), 0);
    for turn in 0_u32.. {
        if shared.has_ended.load(SeqCst) {
            break;
        }
        if has_read < wanted.readers && readers.len() < wanted.readers {
            readers.push(open(address, &get)?);
        }
        if shared.senders_called.load(SeqCst) && senders.is_empty() && wanted.senders > 0 {
            senders = (0..wanted.senders).map(|_| open(address, &post)).collect::<Result<_, _>>()?;
        }
        let group = (turn % TURNS_PER_S) as usize;
        take_turns(&mut readers, group, |reader| read_some(reader, shared));
        take_turns(&mut senders, group, |sender| send_some(sender, wanted.body_bytes));
        let reading = readers.iter().filter(|reader| reader.done_bytes > 0).count();
        has_read = has_read.max(reading);
        shared.reading.store(reading, SeqCst);
        shared.sending.store(senders.iter().filter(|sender| sender.done_bytes > 0).count(), SeqCst);
        let due = Duration::from_secs(1) * (turn + 1) / TURNS_PER_S;
        sleep(due.saturating_sub(began.elapsed()));
    }
    Ok(())
}

/// The turn of each client of a group; those that are through or refused are dropped.
fn take_turns(clients: &mut Vec<Client>, group: usize, turn: impl Fn(&mut Client) -> Turn) {
    let mut number = 0;
    clients.retain_mut(|client| {
        let is_due = number % TURNS_PER_S as usize == group;
        number += 1;
        !is_due || turn(client) == Turn::On
    });
}

fn open(address: SocketAddr, head: &str) -> Result<Client, String> {
    let text = |error: std::io::Error| format!("connect to {address}: {error}");
    let mut stream = connect(address).map_err(|error| text(error.into()))?;
    stream.write_all(head.as_bytes()).and_then(|()| stream.set_nonblocking(true)).map_err(text)?;
    Ok(Client { stream, done_bytes: 0 })
}

/// The buffer has to be small before the first window is offered: what was offered cannot be taken back.
fn connect(address: SocketAddr) -> rustix::io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES)?;
    rustix::net::connect(&socket, &address)?;
    Ok(TcpStream::from(socket))
}

fn read_some(client: &mut Client, shared: &Shared) -> Turn {
    let mut part = [0; BYTES_PER_S];
    match client.stream.read(&mut part) {
        Ok(0) => Turn::Over,
        Ok(length) if client.done_bytes == 0 && !part[..length].starts_with(b"HTTP/1.1 200 ") => {
            shared.refused.fetch_add(1, SeqCst);
            Turn::Refused
        }
        Ok(length) => {
            client.done_bytes += length;
            Turn::On
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Turn::On,
        Err(_) => Turn::Over,
    }
}

fn send_some(client: &mut Client, body_bytes: usize) -> Turn {
    let length = BYTES_PER_S.min(body_bytes - client.done_bytes);
    if length == 0 {
        return Turn::Over;
    }
    match client.stream.write(&[b'x'; BYTES_PER_S][..length]) {
        Ok(length) => {
            client.done_bytes += length;
            Turn::On
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Turn::On,
        Err(_) => Turn::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_reader_that_is_refused_is_told_from_one_that_reads() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Shared::default();
        for (answer, turn, refused) in
            [("HTTP/1.1 200 OK\r\n", Turn::On, 0), ("HTTP/1.1 503 No\r\n", Turn::Refused, 1)]
        {
            let mut client = open(address, "GET / HTTP/1.1\r\n\r\n").expect("a client");
            assert_eq!(read_some(&mut client, &shared), Turn::On);
            let (mut end, _) = listener.accept().expect("a connection");
            end.write_all(answer.as_bytes()).expect("written");
            client.stream.set_nonblocking(false).expect("waits");
            assert_eq!(read_some(&mut client, &shared), turn);
            assert_eq!(shared.refused.load(SeqCst), refused);
        }
    }

    #[test]
    fn turns_of_a_group_are_those_of_its_clients() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut clients: Vec<Client> = (0..31).map(|_| open(address, "x").expect("a client")).collect();
        take_turns(&mut clients, 0, |client| send_some(client, 1500));
        assert_eq!(clients.iter().filter(|client| client.done_bytes == 1000).count(), 2);
        take_turns(&mut clients, 0, |client| send_some(client, 1500));
        take_turns(&mut clients, 0, |client| send_some(client, 1500));
        assert_eq!(clients.len(), 29);
    }
}
