//! A desk at which a test plays both the engine and the peers of a backend.
//!
//! Owns the backend and checks with each completion that the order of calls written at the interface is kept.
//! It must never wait for ever: a test that hangs fails after [`PATIENCE`].

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use staunch_netio::uring::{Limits, Uring, probe};
use staunch_netio::{Completion, Io, Outgoing, Slot, Waker, socket};

/// After this long without the completion it waits for, a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A completion in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Accepted(Slot),
    Stopped(i32),
    Received(Slot, Vec<u8>),
    Ended(Slot, i32),
    Progress(Slot),
    Sent(Slot, i32),
    Closed(Slot),
    Woken,
}

#[derive(Default, Clone)]
struct Checked {
    open: bool,
    sending: bool,
    closing: bool,
}

/// Sizes of a desk.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) capacity: u32,
    pub(crate) ring_capacity: u32,
    pub(crate) buffers_max: u16,
    pub(crate) backlog: i32,
    /// Leave out all that is optional in io_uring, as on an old kernel.
    pub(crate) plain: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { capacity: 1024, ring_capacity: 1024, buffers_max: 256, backlog: 128, plain: false }
    }
}

/// The desk.
pub(crate) struct Desk {
    pub(crate) io: Uring,
    pub(crate) waker: Waker,
    pub(crate) address: SocketAddr,
    checked: Vec<Checked>,
    events: VecDeque<Event>,
}

impl Desk {
    /// `None` where io_uring may not be used.
    pub(crate) fn new(sizes: Sizes) -> Option<Self> {
        let mut features = match probe() {
            Ok(features) => features,
            Err(refusal) => {
                eprintln!("not tested: {refusal}");
                return None;
            }
        };
        if sizes.plain {
            features.submit_all = false;
            features.coop_taskrun = false;
            features.single_issuer = false;
            features.defer_taskrun = false;
            features.no_sqarray = false;
            features.fixed_fd_install = false;
        }
        let listener = socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), sizes.backlog).unwrap();
        let address = socket::local_address(&listener).unwrap();
        let waker = Waker::new().unwrap();
        let limits = Limits { ring_capacity: sizes.ring_capacity, buffers_max: sizes.buffers_max };
        let listeners = vec![listener];
        let mut io = Uring::with_limits(listeners, waker.clone(), sizes.capacity, &features, limits).unwrap();
        io.accept(0);
        Some(Self { io, waker, address, checked: Vec::new(), events: VecDeque::new() })
    }

    /// A peer whose connection has not been accepted yet.
    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// A peer and its slot.
    pub(crate) fn connection(&mut self) -> (TcpStream, Slot) {
        let stream = self.connect();
        let Event::Accepted(slot) = self.wait(|event| matches!(event, Event::Accepted(_))) else {
            unreachable!()
        };
        (stream, slot)
    }

    /// A connection on which receiving is multishot and armed.
    pub(crate) fn receiving_connection(&mut self) -> (TcpStream, Slot) {
        let (mut stream, slot) = self.connection();
        self.io.receive(slot);
        stream.write_all(b"first").unwrap();
        assert_eq!(self.next(), Event::Received(slot, b"first".to_vec()));
        self.turns(2);
        (stream, slot)
    }

    /// Starts a send.
    pub(crate) fn send(&mut self, slot: Slot, outgoing: Outgoing, last: bool) {
        assert!(!self.checked[slot as usize].sending);
        self.checked[slot as usize].sending = true;
        self.io.send(slot, Box::new(outgoing), last);
    }

    /// Starts a send of bytes.
    pub(crate) fn send_bytes(&mut self, slot: Slot, bytes: &[u8], last: bool) {
        let mut outgoing = Outgoing::default();
        outgoing.bytes().extend_from_slice(bytes);
        self.send(slot, outgoing, last);
    }

    /// Closes; only `Sent` and `Closed` may follow.
    pub(crate) fn close(&mut self, slot: Slot) {
        self.checked[slot as usize].closing = true;
        self.io.close(slot);
    }

    /// Closes and waits for the end of the slot.
    pub(crate) fn close_and_wait(&mut self, slot: Slot) {
        self.close(slot);
        self.wait(|event| *event == Event::Closed(slot));
        // `Closed` may come before the descriptor is gone: that is handed over with the next turn.
        self.turns(1);
    }

    /// The next event but `Progress`.
    pub(crate) fn next(&mut self) -> Event {
        self.wait(|event| !matches!(event, Event::Progress(_)))
    }

    /// The first event the condition holds for. Those before it are dropped.
    pub(crate) fn wait(&mut self, mut condition: impl FnMut(&Event) -> bool) -> Event {
        loop {
            while let Some(event) = self.events.pop_front() {
                if condition(&event) {
                    return event;
                }
            }
            self.turn(Some(PATIENCE));
            assert!(!self.events.is_empty(), "nothing happened");
        }
    }

    /// Some turns that do not wait.
    pub(crate) fn turns(&mut self, count: u32) {
        for _ in 0..count {
            self.turn(Some(Duration::ZERO));
        }
    }

    /// All events that came by themselves within some time.
    pub(crate) fn events_within(&mut self, milliseconds: u64) -> Vec<Event> {
        self.turns(2);
        self.turn(Some(Duration::from_millis(milliseconds)));
        self.turns(2);
        self.events.drain(..).collect()
    }

    fn turn(&mut self, timeout: Option<Duration>) {
        // A wait may end without a completion: the kernel has worked something out that concerns nobody.
        for _ in 0..50 {
            self.io.submit_and_wait(timeout).unwrap();
            while let Some(completion) = self.io.next_completion() {
                let event = self.check(completion);
                self.events.push_back(event);
            }
            if !self.events.is_empty() || timeout.is_some_and(|timeout| timeout < PATIENCE) {
                return;
            }
        }
    }

    fn state(&mut self, slot: Slot) -> &mut Checked {
        if self.checked.len() <= slot as usize {
            self.checked.resize(slot as usize + 1, Checked::default());
        }
        &mut self.checked[slot as usize]
    }

    fn check(&mut self, completion: Completion) -> Event {
        match completion {
            Completion::Accepted { listener, slot } => {
                assert_eq!(listener, 0);
                let state = self.state(slot);
                assert!(!state.open, "accepted twice");
                state.open = true;
                Event::Accepted(slot)
            }
            Completion::AcceptStopped { errno, .. } => Event::Stopped(errno),
            Completion::Received { slot, input } => {
                assert!(self.state(slot).open && !self.state(slot).closing);
                let bytes = self.io.input(&input).to_vec();
                assert_eq!(bytes.len(), input.length as usize);
                self.io.release(input);
                Event::Received(slot, bytes)
            }
            Completion::Ended { slot, errno } => {
                assert!(self.state(slot).open && !self.state(slot).closing);
                Event::Ended(slot, errno)
            }
            Completion::Progress { slot } => {
                assert!(self.state(slot).sending);
                Event::Progress(slot)
            }
            Completion::Sent { slot, outgoing, errno } => {
                assert!(outgoing.is_empty());
                assert!(std::mem::take(&mut self.state(slot).sending), "sent twice");
                Event::Sent(slot, errno)
            }
            Completion::Closed { slot } => {
                let state = std::mem::take(self.state(slot));
                assert!(state.open && !state.sending);
                Event::Closed(slot)
            }
            Completion::Woken => Event::Woken,
            other => panic!("{other:?}"),
        }
    }
}

/// A peer.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Closes a peer so that the other side sees a reset.
pub(crate) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

/// Bytes that are easy to tell apart by their place.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position / 251 * 7 + position) as u8).collect()
}
