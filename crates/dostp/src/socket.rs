//! A datagram socket with the interface of `std::net::UdpSocket`, over DOSTP.
//!
//! It owns waiting and time; everything else is the node's and the body's. Beside each socket a thread sleeps
//! that answers for the node while its program does something else. It must never make a message wait for
//! that thread.

mod about;
mod alarm;
mod batch;
mod body;
mod choice;
mod claim;
mod endpoint;
mod given;
mod giving;
mod handover;
mod joining;
mod keeper;
mod keeper_wait;
mod module;
mod node_of_host;
mod node_socket;
mod options;
mod tending;
mod transactions;
mod transmitting;

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_netio::clock;
use staunch_netio::host::interface::Interface;

use self::alarm::Alarm;
pub use self::choice::choice_file;
pub use self::endpoint::Received;
use self::endpoint::{Endpoint, Opening};
pub use self::given::Asked;
pub use self::handover::Lent;
use self::keeper::Keeper;
pub use self::module::ModuleSocket;
pub use self::node_socket::{node_path, node_path_to_ask};
pub use self::options::{Backend, ETHER_TYPE, Options, UDP_PORT, Wait};
pub use self::transactions::{TransactionCaller, TransactionService, TransactionSocket};
use crate::header::{EVERYBODY, Kind};
use crate::keys::Secrets;

/// How long [`Wait::Adaptive`] looks again after traffic: longer than an answer takes, shorter than a sleep
/// and a wake-up together.
pub const SPIN_NS: u64 = 20_000;

/// How long a send that found no room waits at most before it is tried again.
const LOOK_AGAIN_NS: u64 = 2_000_000;

/// How often a socket that waits looks whether its address was refused, in the first second.
const TRIAL_LOOK_NS: u64 = 50_000_000;

/// A datagram socket. Clones share one port and one queue.
#[derive(Debug)]
pub struct Socket {
    endpoint: Arc<Mutex<Endpoint>>,
    descriptor: Arc<OwnedFd>,
    settings: Arc<Mutex<Shared>>,
    opened: Arc<Opened>,
    keeper: Option<Arc<Keeper>>,
    /// Tells of control frames, until the thread that answers them is started.
    unkept: Option<Arc<OwnedFd>>,
    /// Where the descriptor does not tell that the interface went down.
    alarm: Option<Arc<Alarm>>,
}

/// What can be set later.
#[derive(Debug, Clone, Copy, Default)]
struct Shared {
    connected: Option<(u16, SocketAddrV4)>,
    read_timeout: Option<Duration>,
    nonblocking: bool,
    broadcast: bool,
    wait: Wait,
    last_traffic_ns: u64,
}

/// How a socket was opened.
#[derive(Debug)]
pub struct Opened {
    /// The backend that is used.
    pub backend: Backend,
    /// Why the ones before it were not.
    pub refused: Vec<(Backend, io::Error)>,
    /// The interface that frames go through.
    pub interface: Interface,
    /// What the host's administrator should know, in words.
    pub remarks: Vec<String>,
}

impl Socket {
    /// Binds a socket: 0.0.0.0 stands for the interface's address, and port 0 for a free one.
    ///
    /// # Errors
    /// ENODEV and the like name the interface; EPERM says which right is missing for the backend; EADDRINUSE:
    /// another socket of this host has the port; EADDRNOTAVAIL: the interface has no such address, or none.
    pub fn bind(address: SocketAddrV4, options: &Options) -> io::Result<Self> {
        let interface = node_of_host::usable(&options.interface)?;
        let own = node_of_host::own_address(*address.ip(), &interface, options)?;
        let seed = node_of_host::random()?;
        let (mut claim, port) =
            node_of_host::claim(interface.index, options.ether_type, address.port(), seed)?;
        let chosen = body::choose(&interface, own, options, (&mut claim, port))?;
        let boot = node_of_host::boot_number(chosen.link.0, options.ether_type)?;
        let opening = Opening {
            interface,
            own,
            body: chosen.body,
            control: chosen.control,
            backend: chosen.backend,
            refused: chosen.refused,
            link: chosen.link,
            mtu: chosen.mtu,
            port,
            claim,
        };
        Self::of(opening, options, (seed, boot))
    }

    /// Another handle to the same socket.
    ///
    /// # Errors
    /// None; the result is that of `std::net::UdpSocket`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            endpoint: Arc::clone(&self.endpoint),
            descriptor: Arc::clone(&self.descriptor),
            settings: Arc::clone(&self.settings),
            opened: Arc::clone(&self.opened),
            keeper: self.keeper.clone(),
            unkept: self.unkept.clone(),
            alarm: self.alarm.clone(),
        })
    }

    /// How it was opened.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// None; the result is that of `std::net::UdpSocket`.
    pub fn local_addr(&self) -> io::Result<SocketAddrV4> {
        let endpoint = self.endpoint();
        Ok(SocketAddrV4::new(endpoint.own(), endpoint.port))
    }

    /// Whom it is connected to.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn peer_addr(&self) -> io::Result<SocketAddrV4> {
        let connected = self.shared().connected;
        connected.map(|(_, address)| address).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Sends to this address by [`Socket::send`], and receives from it alone.
    ///
    /// # Errors
    /// EADDRNOTAVAIL: it is no address of a node, or one with the same low 16 bits was named before.
    pub fn connect(&self, address: SocketAddrV4) -> io::Result<()> {
        let low = self.endpoint().destination(*address.ip())?;
        self.shared().connected = Some((low, address));
        Ok(())
    }

    /// Sends a message to whom the socket is connected to.
    ///
    /// # Errors
    /// ENOTCONN, and those of [`Socket::send_to`].
    pub fn send(&self, payload: &[u8]) -> io::Result<usize> {
        let Some((low, address)) = self.shared().connected else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        self.send_message((Kind::Data, None), (low, address.port()), false, payload)
    }

    /// Sends a message to this address.
    ///
    /// # Errors
    /// EMSGSIZE: it is too long; EHOSTUNREACH: no node answers there; ENOBUFS: too much waits for that node;
    /// EACCES: it is for all, and [`Socket::set_broadcast`] was not called; EADDRINUSE: another node has this
    /// node's address; EAGAIN where it must not wait; ENETDOWN.
    pub fn send_to(&self, payload: &[u8], address: SocketAddrV4) -> io::Result<usize> {
        let low = self.endpoint().destination(*address.ip())?;
        self.send_message((Kind::Data, None), (low, address.port()), false, payload)
    }

    /// Sends a message to this address, whose frames bear PRIORITY: for what has to be there in time.
    ///
    /// # Errors
    /// The errors are those of [`Socket::send_to`].
    pub fn send_with_priority(&self, payload: &[u8], address: SocketAddrV4) -> io::Result<usize> {
        let low = self.endpoint().destination(*address.ip())?;
        self.send_message((Kind::Data, None), (low, address.port()), true, payload)
    }

    /// Sends a frame of a transaction with this id.
    ///
    /// # Errors
    /// The errors are those of [`Socket::send_to`].
    pub fn send_transaction(
        &self,
        kind: Kind,
        message_id: u16,
        payload: &[u8],
        address: SocketAddrV4,
    ) -> io::Result<usize> {
        let low = self.endpoint().destination(*address.ip())?;
        self.send_message((kind, Some(message_id)), (low, address.port()), false, payload)
    }

    /// Waits for a message and copies as much of it as fits; the rest is lost. Says how much and from whom.
    ///
    /// # Errors
    /// EAGAIN where it must not wait or the time is up; EADDRINUSE: another node has this node's address;
    /// ENETDOWN.
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
        let received = self.receive()?;
        Ok((copy(&received.payload, buffer), received.from))
    }

    /// Waits for a message from whom the socket is connected to.
    ///
    /// # Errors
    /// Those of [`Socket::recv_from`].
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv_from(buffer).map(|(length, _)| length)
    }

    /// As [`Socket::recv_from`], but the message stays to be received.
    ///
    /// # Errors
    /// Those of [`Socket::recv_from`].
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
        let received = self.receive()?;
        let result = (copy(&received.payload, buffer), received.from);
        self.endpoint().put_back(received);
        Ok(result)
    }

    /// Waits for a message and hands it over whole.
    ///
    /// # Errors
    /// Those of [`Socket::recv_from`].
    pub fn receive(&self) -> io::Result<Received> {
        let mut deadline_ns = None;
        loop {
            if let Some(received) = self.look()? {
                return Ok(received);
            }
            let shared = *self.shared();
            let now_ns = clock::now_ns();
            if deadline_ns.is_none() {
                deadline_ns = shared.read_timeout.map(|timeout| now_ns + nanoseconds(timeout));
            }
            if shared.nonblocking || deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let spins = match shared.wait {
                Wait::Spin => true,
                Wait::Adaptive => now_ns < shared.last_traffic_ns + SPIN_NS,
                Wait::Sleep => false,
            };
            if spins {
                std::hint::spin_loop();
            } else {
                self.sleep(PollFlags::IN, deadline_ns, now_ns)?;
            }
        }
    }

    /// Whether a message waits to be received, without waiting for one.
    ///
    /// # Errors
    /// Those of [`Socket::recv_from`].
    pub fn is_ready(&self) -> io::Result<bool> {
        let Some(received) = self.look()? else { return Ok(false) };
        self.put_back(received);
        Ok(true)
    }

    /// Puts a message back, to be the next that is received.
    pub fn put_back(&self, received: Received) {
        self.endpoint().put_back(received);
    }

    /// The next message that is there, without waiting.
    fn look(&self) -> io::Result<Option<Received>> {
        self.heed_alarm()?;
        let connected = self.shared().connected;
        let mut endpoint = self.endpoint();
        let is_wanted = |received: &Received| connected.is_none_or(|(_, address)| address == received.from);
        loop {
            if let Some(received) = endpoint.pop() {
                if is_wanted(&received) {
                    return Ok(Some(received));
                }
                continue;
            }
            let mut first = None;
            let now_ns = clock::now_ns();
            let frames = endpoint.receive(now_ns / 1_000_000, &mut |received| first = Some(received))?;
            if endpoint.node.peers().refused_by().is_some() {
                return Err(endpoint.conflict());
            }
            if frames == 0 {
                return Ok(None);
            }
            self.shared().last_traffic_ns = now_ns;
            if let Some(received) = first.filter(is_wanted) {
                return Ok(Some(received));
            }
        }
    }

    fn send_message(
        &self,
        (kind, message_id): (Kind, Option<u16>),
        to: (u16, u16),
        priority: bool,
        payload: &[u8],
    ) -> io::Result<usize> {
        if to.0 == EVERYBODY && !self.shared().broadcast {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut drawn = message_id;
        loop {
            let sent = {
                let mut endpoint = self.endpoint();
                let message_id = *drawn.get_or_insert_with(|| endpoint.draw_id());
                endpoint.send(kind, to, message_id, priority, payload, clock::now_ms())
            };
            match sent {
                Ok(true) => return Ok(payload.len()),
                Ok(false) => self.wait_for_room(io::ErrorKind::WouldBlock.into())?,
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }

    /// Waits for what stands in the way of a message that was not taken.
    ///
    /// # Errors
    /// That error, if no waiting helps or the socket must not wait; ENETDOWN.
    fn wait_for_room(&self, error: io::Error) -> io::Result<()> {
        let flags = match error.kind() {
            io::ErrorKind::WouldBlock => PollFlags::OUT,
            // The address is asked for, and enough waits for the answer already.
            _ if is_crowded(&error) => PollFlags::empty(),
            _ => return Err(error),
        };
        if self.shared().nonblocking {
            return Err(error);
        }
        let now_ns = clock::now_ns();
        self.sleep(flags, Some(now_ns + LOOK_AGAIN_NS), now_ns)
    }

    /// Waits until the descriptor is ready, something is due, or the time is up.
    fn sleep(&self, flags: PollFlags, deadline_ns: Option<u64>, now_ns: u64) -> io::Result<()> {
        let (due_ms, in_trial) = {
            let endpoint = self.endpoint();
            (endpoint.node.due_ms(), endpoint.node.peers().is_in_trial(now_ns / 1_000_000))
        };
        // That another node has the address may be heard by the thread beside this one.
        let trial_ns = in_trial.then_some(now_ns + TRIAL_LOOK_NS);
        let due_ns = due_ms.map(|due_ms| due_ms * 1_000_000).into_iter().chain(trial_ns).min();
        let until_ns = deadline_ns.into_iter().chain(due_ns).min();
        let left = until_ns.map(|until_ns| {
            let left_ns = until_ns.saturating_sub(now_ns);
            Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as _ }
        });
        let mut descriptors = [PollFd::new(&*self.descriptor, flags)];
        match poll(&mut descriptors, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if descriptors[0].revents().contains(PollFlags::ERR) {
            // The interface went down (ENETDOWN), for instance; it is told once.
            rustix::net::sockopt::socket_error(&*self.descriptor)??;
        }
        self.endpoint().tend(clock::now_ms())
    }

    /// How long receiving waits; `None` for ever.
    ///
    /// # Errors
    /// EINVAL for no time at all.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.shared().read_timeout = timeout;
        Ok(())
    }

    /// Whether calls return EAGAIN instead of waiting.
    ///
    /// # Errors
    /// None; the result is that of `std::net::UdpSocket`.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.shared().nonblocking = nonblocking;
        Ok(())
    }

    /// Whether messages to all may be sent.
    ///
    /// # Errors
    /// None; the result is that of `std::net::UdpSocket`.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.shared().broadcast = broadcast;
        Ok(())
    }

    /// Whether this port takes requests, replies and acknowledgements as well.
    pub fn set_transactions(&self, transactions: bool) {
        let mut endpoint = self.endpoint();
        let port = endpoint.port;
        if transactions {
            endpoint.node.ports_mut().open_for_transactions(port);
        } else {
            endpoint.node.ports_mut().close(port);
            endpoint.node.ports_mut().open(port);
        }
    }

    /// Other secrets, or another slot to send by: a rotation. A socket that was opened without stays so.
    pub fn set_secrets(&self, secrets: Secrets) {
        self.endpoint().node.set_secrets(secrets);
    }

    fn heed_alarm(&self) -> io::Result<()> {
        match &self.alarm {
            Some(alarm) if alarm.take() => Err(rustix::io::Errno::NETDOWN.into()),
            _ => Ok(()),
        }
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn is_crowded(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let length = from.len().min(to.len());
    to[..length].copy_from_slice(&from[..length]);
    length
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX / 2)
}
