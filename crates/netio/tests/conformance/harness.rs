//! Drives one backend from a test: completions become plain events, and each is held against the contract of
//! `Io`.
//!
//! It must never judge a time. The only clock is a watchdog, so that a lost completion is a failure and not a
//! hang.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{self, AddressFamily, SocketType, sockopt};
use staunch_netio::{Address, Capacity, Completion, Io, Outgoing, Slot, Taken, Target, Waker, clock, socket};

use super::Make;

/// Without any completion for so long, one was lost.
const WATCHDOG: Duration = Duration::from_secs(20);

/// A completion without what cannot be compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Accepted(Slot),
    AcceptStopped(i32),
    Received(Slot, Vec<u8>),
    Ended(Slot, i32),
    Progress(Slot),
    Sent(Slot, i32),
    Connected(Slot, i32),
    Inspected(Slot, u32),
    Closed(Slot),
    Ready(u32),
    Woken,
}

/// A target that refuses. Its port is bound and not listened on, so that no test beside this one gets it.
pub(crate) fn nobody() -> (OwnedFd, Target) {
    let bound = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    net::bind(&bound, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let target = Target::new(Address::Internet(socket::local_address(&bound).unwrap()));
    (bound, target)
}

/// What the contract lets happen to a slot.
#[derive(Debug, Default, Clone, Copy)]
struct State {
    open: bool,
    closing: bool,
    in_flight: bool,
    connecting: bool,
    inspecting: bool,
}

/// A backend under test.
pub(crate) struct Harness<I> {
    pub(crate) io: I,
    pub(crate) address: SocketAddr,
    pub(crate) waker: Waker,
    /// Listener of the last `Accepted`.
    pub(crate) listener: u16,
    /// What was known of its peer then.
    pub(crate) peer: Option<SocketAddr>,
    /// What the last `Inspected` told.
    pub(crate) taken: Option<Taken>,
    states: Vec<State>,
}

impl<I: Io> Harness<I> {
    /// A backend with one listener, accepting.
    pub(crate) fn new(make: Make<I>, capacity: impl Into<Capacity>) -> Self {
        let listener = listener();
        let address = socket::local_address(&listener).unwrap();
        let mut harness = Self::with_listeners(make, vec![listener], capacity);
        harness.address = address;
        harness.io.accept(0);
        harness
    }

    /// A backend that does not accept yet.
    pub(crate) fn with_listeners(
        make: Make<I>,
        listeners: Vec<OwnedFd>,
        capacity: impl Into<Capacity>,
    ) -> Self {
        let capacity = capacity.into();
        let waker = Waker::new().unwrap();
        let address = socket::local_address(&listeners[0]).unwrap();
        let io = make(listeners, waker.clone(), capacity);
        assert_eq!(io.capacity(), capacity);
        Self::around(io, waker, address)
    }

    /// A backend that connects.
    pub(crate) fn client(make: Make<I>, capacity: u32) -> Self {
        let waker = Waker::new().unwrap();
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let io = make(Vec::new(), waker.clone(), Capacity::connecting(capacity));
        assert_eq!(io.capacity(), Capacity::connecting(capacity));
        Self::around(io, waker, address)
    }

    /// A backend that was made elsewhere.
    pub(crate) fn around(io: I, waker: Waker, address: SocketAddr) -> Self {
        Self { io, address, waker, listener: 0, peer: None, taken: None, states: Vec::new() }
    }

    /// The next event, however many turns it takes.
    pub(crate) fn next(&mut self) -> Event {
        self.next_within(WATCHDOG).expect("a completion was lost")
    }

    /// The next event, if one comes before a wait of this length is over.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Option<Event> {
        if let Some(event) = self.poll() {
            return Some(event);
        }
        // A wait may end early without a completion: the backend did something of its own.
        let end_ns = clock::now_ns() + wait.as_nanos() as u64;
        loop {
            let left_ns = end_ns.saturating_sub(clock::now_ns());
            self.io.submit_and_wait(Some(Duration::from_nanos(left_ns))).unwrap();
            let event = self.poll();
            if event.is_some() || left_ns == 0 {
                return event;
            }
        }
    }

    /// The next event of this turn.
    pub(crate) fn poll(&mut self) -> Option<Event> {
        let completion = self.io.next_completion()?;
        let event = self.translate(completion);
        self.check(&event);
        if matches!(event, Event::Closed(_)) {
            // Only now the peer is sure to see it.
            self.io.submit_and_wait(Some(Duration::ZERO)).unwrap();
        }
        Some(event)
    }

    /// The next event, which has to be this one.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &Event) {
        assert_eq!(&self.next(), expected);
    }

    /// Events up to the first for which `is` says yes, that one last.
    pub(crate) fn until(&mut self, is: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            events.push(self.next());
            if is(events.last().unwrap()) {
                return events;
            }
        }
    }

    /// A few short waits bring nothing.
    #[track_caller]
    pub(crate) fn expect_quiet(&mut self) {
        for _ in 0..3 {
            assert_eq!(self.next_within(Duration::from_millis(5)), None);
        }
    }

    /// Events until a short wait brings none.
    pub(crate) fn settle(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next_within(Duration::from_millis(20))).collect()
    }

    /// A new client and its slot.
    #[track_caller]
    pub(crate) fn connect(&mut self) -> (TcpStream, Slot) {
        let client = TcpStream::connect(self.address).unwrap();
        match self.next() {
            Event::Accepted(slot) => (client, slot),
            other => panic!("{other:?} instead of a new connection"),
        }
    }

    /// A new client whose receive buffer is small, so that sends to it stop short.
    pub(crate) fn connect_narrow(&mut self) -> (TcpStream, Slot) {
        let client = narrow_client(self.address);
        match self.next() {
            Event::Accepted(slot) => (client, slot),
            other => panic!("{other:?} instead of a new connection"),
        }
    }

    /// Begins to connect; the harness notes that its outcome may come.
    pub(crate) fn begin(&mut self, target: &Target) -> std::io::Result<Slot> {
        let slot = self.io.connect(target)?;
        assert!(self.io.capacity().is_connected(slot), "slots are told apart");
        let state = self.state(slot);
        assert!(!state.open, "slot {slot} is in use until its end was reported");
        *state = State { open: true, connecting: true, ..State::default() };
        Ok(slot)
    }

    /// Connects, whatever else happens meanwhile.
    #[track_caller]
    pub(crate) fn connect_to(&mut self, target: &Target) -> Slot {
        let slot = self.begin(target).unwrap();
        let events =
            self.until(|event| matches!(event, Event::Connected(connected, _) if *connected == slot));
        assert_eq!(events.last(), Some(&Event::Connected(slot, 0)));
        slot
    }

    /// Asks how often segments were sent again.
    pub(crate) fn inspect(&mut self, slot: Slot) {
        self.state(slot).inspecting = true;
        self.io.inspect(slot);
    }

    /// Sends; the harness notes that something is in flight.
    pub(crate) fn send(&mut self, slot: Slot, outgoing: Outgoing, last: bool) {
        self.states[slot as usize].in_flight = true;
        self.io.send(slot, Box::new(outgoing), last);
    }

    /// Sends own bytes.
    pub(crate) fn send_bytes(&mut self, slot: Slot, bytes: &[u8], last: bool) {
        let mut outgoing = Outgoing::default();
        outgoing.bytes().extend_from_slice(bytes);
        self.send(slot, outgoing, last);
    }

    /// Sends, if nothing is in flight.
    pub(crate) fn send_once(&mut self, slot: Slot, bytes: &[u8]) {
        if !self.state(slot).in_flight {
            self.send_bytes(slot, bytes, false);
        }
    }

    /// Inspects, if that is not under way.
    pub(crate) fn inspect_once(&mut self, slot: Slot) {
        if !self.state(slot).inspecting {
            self.inspect(slot);
        }
    }

    /// Closes; the harness notes that nothing but the end may come now.
    pub(crate) fn close(&mut self, slot: Slot) {
        self.states[slot as usize].closing = true;
        self.io.close(slot);
    }

    /// Asks for the end after all, and at once for the end before all.
    pub(crate) fn shutdown_and_close(&mut self, slot: Slot) {
        self.io.shutdown(slot);
        self.close(slot);
    }

    /// Closes and waits for it, whatever else comes for the slot in between.
    pub(crate) fn close_and_wait(&mut self, slot: Slot) {
        self.close(slot);
        self.until(|event| *event == Event::Closed(slot));
    }

    /// A test has driven the connection of a slot to its end by itself.
    pub(crate) fn forget(&mut self, slot: Slot) {
        *self.state(slot) = State::default();
    }

    fn translate(&mut self, completion: Completion) -> Event {
        match completion {
            Completion::Accepted { slot, listener } => {
                self.listener = listener;
                self.peer = self.io.peer_address(slot);
                assert_eq!(self.io.peer_address(slot + 1), None, "only of the last one");
                Event::Accepted(slot)
            }
            Completion::AcceptStopped { errno, .. } => Event::AcceptStopped(errno),
            Completion::Received { slot, input } => {
                let bytes = self.io.input(&input).to_vec();
                assert_eq!(bytes.len(), input.length as usize);
                assert!(!bytes.is_empty());
                // Bytes may be changed where they stand, and what comes later knows nothing of it.
                self.io.input_mut(&input).iter_mut().for_each(|byte| *byte = !*byte);
                assert!(bytes.iter().zip(self.io.input(&input)).all(|(before, after)| *before == !*after));
                self.io.release(input);
                Event::Received(slot, bytes)
            }
            Completion::Ended { slot, errno } => Event::Ended(slot, errno),
            Completion::Progress { slot, bytes } => {
                assert!(bytes > 0);
                Event::Progress(slot)
            }
            Completion::Sent { slot, outgoing, errno } => {
                assert!(outgoing.is_empty(), "a container comes back empty");
                assert_eq!(outgoing.length_bytes(), 0);
                Event::Sent(slot, errno)
            }
            Completion::Connected { slot, errno } => Event::Connected(slot, errno),
            Completion::Inspected { slot, retransmitted, taken } => {
                self.taken = taken;
                Event::Inspected(slot, retransmitted)
            }
            Completion::Closed { slot } => Event::Closed(slot),
            Completion::Ready { watch } => Event::Ready(watch),
            Completion::Woken => Event::Woken,
        }
    }

    fn state(&mut self, slot: Slot) -> &mut State {
        let length = self.states.len().max(slot as usize + 1);
        self.states.resize(length, State::default());
        &mut self.states[slot as usize]
    }

    /// Holds an event against the contract.
    fn check(&mut self, event: &Event) {
        let slot = match event {
            Event::Accepted(slot) | Event::Ended(slot, _) | Event::Progress(slot) => *slot,
            Event::Received(slot, _) | Event::Sent(slot, _) | Event::Closed(slot) => *slot,
            Event::Connected(slot, _) | Event::Inspected(slot, _) => *slot,
            Event::AcceptStopped(_) | Event::Ready(_) | Event::Woken => return,
        };
        let capacity = self.io.capacity();
        assert!(slot < capacity.slots(), "slots are dense");
        let state = self.state(slot);
        let lawful = match event {
            Event::Accepted(_) => !state.open && !capacity.is_connected(slot),
            Event::Connected(..) => state.open && state.connecting,
            Event::Inspected(..) => state.open && state.inspecting,
            Event::Received(..) | Event::Ended(..) => state.open && !state.closing && !state.connecting,
            Event::Progress(_) => state.open && !state.closing && state.in_flight,
            Event::Sent(..) => state.open && state.in_flight,
            _ => state.open && !state.in_flight && !state.inspecting,
        };
        assert!(lawful, "{event:?} in {state:?}");
        match event {
            Event::Accepted(_) => *state = State { open: true, ..State::default() },
            Event::Connected(..) => state.connecting = false,
            Event::Inspected(..) => state.inspecting = false,
            Event::Sent(..) => state.in_flight = false,
            Event::Closed(_) => state.open = false,
            _ => {}
        }
    }
}

/// A listener of this machine alone, at a free port.
pub(crate) fn listener() -> OwnedFd {
    socket::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1024).unwrap()
}

/// A client with a receive buffer of a few KiB.
pub(crate) fn narrow_client(address: SocketAddr) -> TcpStream {
    let client = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&client, 8 * 1024).unwrap();
    net::connect(&client, &address).unwrap();
    TcpStream::from(client)
}

/// Makes the client's close a reset.
pub(crate) fn reset(client: TcpStream) {
    sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
}

/// Numbers that look random and are the same for the same seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, not including, `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The byte that stands at an offset in every test body: no short period, so a shift shows.
pub(crate) fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A stretch of the pattern.
pub(crate) fn pattern_bytes(start: u64, length: usize) -> Vec<u8> {
    (start..start + length as u64).map(pattern).collect()
}
