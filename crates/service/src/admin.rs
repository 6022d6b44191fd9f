//! The admin address: a listener of its own, answered by a thread of its own, so that it answers when the
//! workers have no time.
//!
//! The thread waits for all its peers at once, so that none waits for another. Each has a deadline, there is
//! a bound on how many there are, and beyond it the one that has been silent longest goes. While nobody asks
//! nothing wakes up. It must never wait for one peer.

mod entrance;

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_config::syntax::text::AdminAddress;
use staunch_confine::Identity;
use staunch_netio::{clock, socket};
use staunch_protocol::http1::Session;
use staunch_server::{Admin, Now};

use entrance::{AdminStream, Entrance};

/// Peers at a time: monitors, balancers and people are a handful, and each is answered within a millisecond.
const PEERS_MAX: usize = 64;
/// How long a peer has for its request and for taking the answer.
const DEADLINE_MS: u64 = 2_000;
/// How long accepting rests when there is no descriptor for it.
const REST_MS: u64 = 100;
/// What is read at once: a request of a monitor is a tenth of it.
const READ_BYTES: usize = 4096;

/// A listener without a thread yet.
pub struct Listener(Entrance);

impl Listener {
    /// Listens. `takes_over`: another process of this user listens there, and will end.
    ///
    /// # Errors
    /// An address that is taken, not ours, or needs a privilege.
    pub fn bind(address: &AdminAddress, takes_over: bool) -> Result<Self, String> {
        let opened = Entrance::open(address, takes_over).map(Self);
        opened.map_err(|error| format!("cannot listen on the admin address {address}: {error}"))
    }

    /// Lets another process of this user listen beside this one, to take over from it.
    ///
    /// # Errors
    /// Those of chown(2).
    pub fn give(&self, user: &Identity) -> Result<(), String> {
        let fault = |error| format!("cannot give the admin address {} to {user}: {error}", self.address());
        self.0.give(user).map_err(fault)
    }

    /// Where, with the port taken.
    pub fn address(&self) -> AdminAddress {
        self.0.address()
    }

    /// Answers until the door is closed.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn serve(self, admin: Admin) -> Result<AdminDoor, String> {
        let (listener, closed) = (Arc::new(self.0), Arc::new(AtomicBool::new(false)));
        let desk = Desk {
            door: AdminDoor { listener: Arc::clone(&listener), closed: Arc::clone(&closed) },
            admin,
            peers: Vec::with_capacity(PEERS_MAX),
            rest_until_ms: 0,
        };
        thread::Builder::new()
            .name("admin".into())
            .spawn(move || desk.run())
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(AdminDoor { listener, closed })
    }
}

/// A listener with a thread behind it.
pub struct AdminDoor {
    listener: Arc<Entrance>,
    closed: Arc<AtomicBool>,
}

impl AdminDoor {
    /// Accepts no more. What is being answered is answered.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
        // The call fails only for what is no socket; the thread wakes up by it.
        let _ = socket::stop_listening(&self.listener);
    }

    /// Takes the place of the process before this one, where places are names of files.
    ///
    /// # Errors
    /// Those of rename(2).
    pub fn take_name(&self) -> io::Result<()> {
        self.listener.take_name()
    }

    /// Leaves no socket file behind, unless it is another process's.
    pub fn leave_name(&self) {
        self.listener.leave_name();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

/// The thread's own.
struct Desk {
    door: AdminDoor,
    admin: Admin,
    /// The oldest first.
    peers: Vec<Peer>,
    /// Until then no connection is accepted.
    rest_until_ms: u64,
}

/// A connection that asks.
struct Peer {
    stream: AdminStream,
    session: Session,
    until_ms: u64,
    /// Bytes have come.
    heard: bool,
    /// Whether it is to be answered or sent away.
    asked: bool,
    /// What it is to be sent, and how much of it was taken.
    out: Vec<u8>,
    taken: usize,
}

impl Desk {
    fn run(mut self) {
        while !self.door.is_closed() || !self.peers.is_empty() {
            self.wait();
            let now_ms = clock::now_ms();
            let admin = &self.admin;
            self.peers.retain_mut(|peer| peer.until_ms > now_ms && peer.goes_on(admin));
            if now_ms >= self.rest_until_ms && !self.door.is_closed() {
                self.accept(now_ms);
            }
        }
    }

    /// Waits for a peer that can go on, for a new one, or for the next deadline.
    fn wait(&self) {
        let now_ms = clock::now_ms();
        let resting = self.rest_until_ms > now_ms;
        let next_ms =
            self.peers.iter().map(|peer| peer.until_ms).chain(resting.then_some(self.rest_until_ms));
        let timeout = next_ms.min().map(|next_ms| {
            let left_ms = next_ms.saturating_sub(now_ms);
            Timespec { tv_sec: (left_ms / 1000) as i64, tv_nsec: (left_ms % 1000) as i64 * 1_000_000 }
        });
        let mut awaited: Vec<PollFd<'_>> = self.peers.iter().map(Peer::awaited).collect();
        if !resting && !self.door.is_closed() {
            awaited.push(PollFd::new(&self.door.listener, PollFlags::IN));
        }
        // EINTR and ENOMEM: everybody is looked at, and waiting begins anew.
        let _ = poll(&mut awaited, timeout.as_ref());
    }

    /// Takes whoever waits, and answers at once who has spoken already.
    fn accept(&mut self, now_ms: u64) {
        for _ in 0..PEERS_MAX {
            match self.door.listener.accept() {
                Ok(stream) => {
                    let mut peer = Peer::new(stream, now_ms);
                    if peer.goes_on(&self.admin) {
                        self.make_room();
                        self.peers.push(peer);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.rest_until_ms = now_ms + REST_MS;
                    return;
                }
            }
        }
    }

    /// Sends somebody away when there are too many: the oldest of those who have said nothing, else of those
    /// who have not asked, else the oldest.
    fn make_room(&mut self) {
        if self.peers.len() < PEERS_MAX {
            return;
        }
        let claim = |(_, peer): &(usize, &Peer)| (peer.asked, peer.heard);
        if let Some((place, _)) = self.peers.iter().enumerate().min_by_key(claim) {
            self.peers.remove(place);
        }
    }
}

impl Peer {
    fn new(stream: AdminStream, now_ms: u64) -> Self {
        let (session, until_ms) = (Session::new(0), now_ms + DEADLINE_MS);
        Self { stream, session, until_ms, heard: false, asked: false, out: Vec::new(), taken: 0 }
    }

    fn awaited(&self) -> PollFd<'_> {
        let flags = if self.asked { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.stream, flags)
    }

    /// Reads and writes what can be. False when it is over: a peer that goes away has no further claim.
    fn goes_on(&mut self, admin: &Admin) -> bool {
        match self.try_to_go_on(admin) {
            Ok(()) => false,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    fn try_to_go_on(&mut self, admin: &Admin) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        while !self.asked {
            let length = read(&mut self.stream, &mut buffer)?;
            self.heard = true;
            let now = Now { ms: clock::now_ms(), wall: clock::unix_time() };
            self.asked =
                length == 0 || admin.converse(&mut self.session, &buffer[..length], now, &mut self.out);
        }
        while self.taken < self.out.len() {
            self.taken += self.stream.write(&self.out[self.taken..])?;
        }
        self.stream.end_sending()
    }
}

fn read(stream: &mut AdminStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
