//! Transactions on sockets: a caller that waits for its reply, and a service that does its work once.
//!
//! It owns waiting and repeating; what is promised stands in [`crate::kinds::transact`]. It must never do
//! work twice, or wait beyond the caller's patience.

use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::time::Duration;

use staunch_netio::clock;

use super::endpoint::{Received, low_bits};
use super::node_of_host::random;
use super::{Options, Socket};
use crate::header::Kind;
use crate::kinds::Sender;
use crate::kinds::transact::{Asked, Caller, Concluded, Service};

/// A socket by which transactions go.
pub trait TransactionSocket {
    /// Sends a message of this kind with this id.
    ///
    /// # Errors
    /// Those of [`Socket::send_to`].
    fn send_transaction(&self, kind: Kind, id: u16, payload: &[u8], to: SocketAddrV4) -> io::Result<usize>;

    /// Waits for a message of any kind.
    ///
    /// # Errors
    /// Those of [`Socket::receive`].
    fn receive(&self) -> io::Result<Received>;

    /// How long receiving waits; `None` for ever.
    ///
    /// # Errors
    /// EINVAL for no time at all.
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl TransactionSocket for Socket {
    fn send_transaction(&self, kind: Kind, id: u16, payload: &[u8], to: SocketAddrV4) -> io::Result<usize> {
        Self::send_transaction(self, kind, id, payload, to)
    }

    fn receive(&self) -> io::Result<Received> {
        Self::receive(self)
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Self::set_read_timeout(self, timeout)
    }
}

/// The calling side, on a socket of its own.
#[derive(Debug)]
pub struct TransactionCaller<S = Socket> {
    socket: S,
    caller: Caller,
}

impl TransactionCaller {
    /// Opens a socket on a free port.
    ///
    /// # Errors
    /// Those of [`Socket::bind`].
    pub fn bind(address: SocketAddrV4, options: &Options) -> io::Result<Self> {
        Self::over(bound(address, options)?)
    }
}

impl<S: TransactionSocket> TransactionCaller<S> {
    /// Calls by this socket.
    ///
    /// # Errors
    /// There is no random number to begin with.
    pub fn over(socket: S) -> io::Result<Self> {
        let seed = random()?;
        let first = seed.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok(Self { socket, caller: Caller::new(first) })
    }

    /// Asks a service and waits for its reply, repeating what may be lost.
    ///
    /// # Errors
    /// Those of sending and receiving; EHOSTUNREACH: no node has the address. A reply that does not come in
    /// time is none: it is [`Concluded::Unknown`].
    pub fn call(&mut self, to: SocketAddrV4, request: &[u8], patience: Duration) -> io::Result<Concluded> {
        let Self { socket, caller } = self;
        let patience_us = u64::try_from(patience.as_micros()).unwrap_or(u64::MAX / 2);
        let begun = caller.begin(sender(to), request, patience_us, now_us());
        let (number, payload) = begun.ok_or(ErrorKind::WouldBlock)?;
        socket.send_transaction(Kind::Request, number as u16, &payload, to)?;
        loop {
            let due_us = caller.due_us().unwrap_or_default();
            // A timeout of nothing at all would be refused.
            let left_us = due_us.saturating_sub(now_us()).max(1);
            socket.set_read_timeout(Some(Duration::from_micros(left_us)))?;
            match socket.receive() {
                Ok(received) if received.kind == Kind::Reply => {
                    let concluded = caller.take(sender(received.from), &received.payload, now_us());
                    // A lost ACK is sent again when the next REPLY comes.
                    socket.send_transaction(Kind::Ack, received.message_id, &[], received.from).ok();
                    if let Some((_, reply)) = concluded.filter(|(concluded, _)| *concluded == number) {
                        return Ok(reply);
                    }
                }
                Ok(_) => {}
                // A signal ends a wait of the module's sockets, and not a transaction.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
            let mut repeated = Ok(0);
            let ended = caller.due(now_us(), &mut |_, number, request| {
                repeated = socket.send_transaction(Kind::Request, number as u16, request, to);
            });
            if let Some((_, outcome)) = ended.into_iter().find(|(ended, _)| *ended == number) {
                return Ok(outcome);
            }
            repeated?;
        }
    }

    /// Requests that were sent again.
    pub fn repeated(&self) -> u64 {
        self.caller.repeated
    }
}

/// The serving side, on a port.
#[derive(Debug)]
pub struct TransactionService<S = Socket> {
    socket: S,
    service: Service,
}

impl TransactionService {
    /// Opens a socket there.
    ///
    /// # Errors
    /// Those of [`Socket::bind`].
    pub fn bind(address: SocketAddrV4, options: &Options) -> io::Result<Self> {
        Ok(Self::over(bound(address, options)?))
    }
}

impl<S: TransactionSocket> TransactionService<S> {
    /// Serves by this socket.
    pub fn over(socket: S) -> Self {
        Self { socket, service: Service::default() }
    }

    /// The socket, to set how it waits.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Waits for what comes next, and says whether it was work. `work` gets a request and returns the reply.
    ///
    /// # Errors
    /// Those of [`Socket::receive`].
    pub fn serve_next(&mut self, work: &mut dyn FnMut(SocketAddrV4, &[u8]) -> Vec<u8>) -> io::Result<bool> {
        let received = loop {
            match self.socket.receive() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received?,
            }
        };
        let from = sender(received.from);
        if received.kind == Kind::Ack {
            self.service.acknowledged(from, received.message_id);
        }
        if received.kind != Kind::Request {
            return Ok(false);
        }
        match self.service.take(from, &received.payload, now_us()) {
            Asked::Nothing => Ok(false),
            Asked::Again(reply) => {
                self.reply(&received, &reply);
                Ok(false)
            }
            Asked::Work { number, request } => {
                let reply = work(received.from, request);
                let reply = self.service.answer(from, number, &reply, now_us());
                self.reply(&received, &reply);
                Ok(true)
            }
        }
    }

    /// A reply that cannot be sent is one that is lost: the request comes again.
    fn reply(&self, request: &Received, reply: &[u8]) {
        self.socket.send_transaction(Kind::Reply, request.message_id, reply, request.from).ok();
    }
}

fn bound(address: SocketAddrV4, options: &Options) -> io::Result<Socket> {
    let socket = Socket::bind(address, options)?;
    socket.set_transactions(true);
    Ok(socket)
}

fn sender(address: SocketAddrV4) -> Sender {
    (low_bits(*address.ip()), address.port())
}

fn now_us() -> u64 {
    clock::now_ns() / 1_000
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    use super::*;

    const OTHER: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 7), 5);

    /// A socket whose every other wait is ended by a signal. A request that is sent comes back as the reply.
    #[derive(Default)]
    struct Interrupting {
        calls: Cell<u32>,
        came: RefCell<VecDeque<Received>>,
        service: RefCell<Service>,
    }

    impl TransactionSocket for Interrupting {
        fn send_transaction(
            &self,
            kind: Kind,
            id: u16,
            payload: &[u8],
            _: SocketAddrV4,
        ) -> io::Result<usize> {
            let mut service = self.service.borrow_mut();
            if kind == Kind::Request
                && let Asked::Work { number, request } = service.take(sender(OTHER), payload, now_us())
            {
                let request = request.to_vec();
                let payload = service.answer(sender(OTHER), number, &request, now_us());
                let (from, kind, message_id) = (OTHER, Kind::Reply, id);
                let reply = Received { from, kind, to_all: false, message_id, payload };
                self.came.borrow_mut().push_back(reply);
            }
            Ok(payload.len())
        }

        fn receive(&self) -> io::Result<Received> {
            self.calls.set(self.calls.get() + 1);
            if !self.calls.get().is_multiple_of(2) {
                return Err(ErrorKind::Interrupted.into());
            }
            self.came.borrow_mut().pop_front().ok_or(ErrorKind::WouldBlock.into())
        }

        fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_signal_ends_no_transaction() {
        let mut caller = TransactionCaller::over(Interrupting::default()).unwrap();
        for request in [b"a", b"b"] {
            let outcome = caller.call(OTHER, request, Duration::from_secs(60)).unwrap();
            assert_eq!(outcome, Concluded::Reply(request.to_vec()));
        }
        let asking = Caller::new(7).begin(sender(OTHER), b"c", 60_000_000, now_us());
        let (number, payload) = asking.unwrap();
        let (from, kind, message_id) = (OTHER, Kind::Request, number as u16);
        let socket = Interrupting::default();
        socket.came.borrow_mut().push_back(Received { from, kind, to_all: false, message_id, payload });
        let mut service = TransactionService::over(socket);
        assert!(service.serve_next(&mut |_, request| request.to_vec()).unwrap());
    }
}
