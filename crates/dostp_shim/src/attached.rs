//! The program's UDP sockets, and what stands beside each: a DOSTP socket once it is needed.
//!
//! It owns the table of both. A process that was forked begins with an empty table: threads do not survive a
//! fork, so what was opened before goes on by UDP there. It must never hold its lock while a call waits.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError, RwLock};

use libc::epoll_event;
use staunch_dostp::Socket;

use crate::settings::{Settings, remark};
use crate::{memory, real};

/// Descriptors that are looked up; those with higher numbers go by UDP. More than programs have by default
/// (RLIMIT_NOFILE, 1 024), and 256 KiB of the table.
const DESCRIPTORS_MAX: usize = 65_536;

/// Senders by UDP that one socket remembers: some 32 KiB. Beyond, one of them is answered by DOSTP, and by
/// UDP once that finds nobody.
const UDP_SENDERS_MAX: usize = 1_024;

/// The generation in which each descriptor was attached, or 0: most calls need to look no further.
static KNOWN: [AtomicU32; DESCRIPTORS_MAX] = [const { AtomicU32::new(0) }; DESCRIPTORS_MAX];

/// Counts forks, from 1.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Every attached socket, with its generation.
static TABLE: RwLock<BTreeMap<c_int, (u32, Arc<Attached>)>> = RwLock::new(BTreeMap::new());

/// How many watches of epoll there are, of all sockets.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// Whom a socket is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The socket is not connected.
    Nobody,
    /// A node; the kernel's UDP socket is connected to it as well.
    Node(SocketAddrV4),
    /// An address outside of the network; the kernel's UDP socket knows which.
    Elsewhere,
}

thread_local! {
    /// Whether this thread is opening a DOSTP socket: what it opens meanwhile is that socket's own.
    static OPENING: Cell<bool> = const { Cell::new(false) };
}

/// What an epoll descriptor wants to know of a socket.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) epoll: c_int,
    pub(crate) event: epoll_event,
}

/// What stands beside a UDP socket.
pub(crate) struct Attached {
    pub(crate) settings: Arc<Settings>,
    socket: OnceLock<Option<Socket>>,
    peer: Mutex<Peer>,
    watches: Mutex<Vec<Watch>>,
    /// Those of the network who have spoken by UDP last: they are answered so.
    by_udp: Mutex<BTreeSet<SocketAddrV4>>,
    has_by_udp: AtomicBool,
    /// Whether the program has said that it sends no more, and that it receives no more.
    sends_no_more: AtomicBool,
    receives_no_more: AtomicBool,
    pub(crate) last_traffic_ns: AtomicU64,
}

impl Attached {
    /// The DOSTP socket, if there is one already.
    pub(crate) fn opened(&self) -> Option<&Socket> {
        self.socket.get()?.as_ref()
    }

    /// The DOSTP socket on the port of the UDP socket; opened at the first call. `None`: it cannot be, which
    /// was told.
    pub(crate) fn open(&self, fd: c_int) -> Option<&Socket> {
        if let Some(opened) = self.socket.get() {
            return opened.as_ref();
        }
        let opened = self.socket.get_or_init(|| {
            OPENING.set(true);
            let opened = open_beside(fd, &self.settings);
            OPENING.set(false);
            opened.inspect_err(|error| remark(&format!("a socket stays with UDP: {error}"))).ok()
        });
        let socket = opened.as_ref()?;
        for watch in &*self.watches() {
            watch_too(watch.epoll, libc::EPOLL_CTL_ADD, socket, watch.event);
        }
        Some(socket)
    }

    /// Whom it is connected to.
    pub(crate) fn peer(&self) -> Peer {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_peer(&self, peer: Peer) {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = peer;
    }

    /// The program has shut the socket down, in this way of shutdown(2): UDP says what that means.
    pub(crate) fn shut_down(&self, how: c_int) {
        if how != libc::SHUT_RD {
            self.sends_no_more.store(true, Ordering::Relaxed);
        }
        if how != libc::SHUT_WR {
            self.receives_no_more.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the program still receives.
    pub(crate) fn may_receive(&self) -> bool {
        !self.receives_no_more.load(Ordering::Relaxed)
    }

    /// Whether the program may still send.
    pub(crate) fn may_send(&self) -> bool {
        !self.sends_no_more.load(Ordering::Relaxed)
    }

    /// Whether this address has spoken by UDP last.
    pub(crate) fn speaks_udp(&self, address: SocketAddrV4) -> bool {
        self.has_by_udp.load(Ordering::Relaxed) && self.by_udp().contains(&address)
    }

    /// A datagram of UDP came from there.
    pub(crate) fn heard_by_udp(&self, sender: SocketAddrV4) {
        if self.settings.contains(*sender.ip()) {
            let mut senders = self.by_udp();
            if senders.len() >= UDP_SENDERS_MAX {
                senders.pop_first();
            }
            senders.insert(sender);
            self.has_by_udp.store(true, Ordering::Relaxed);
        }
    }

    /// A message of DOSTP came from there.
    pub(crate) fn heard_by_dostp(&self, sender: SocketAddrV4) {
        if self.has_by_udp.load(Ordering::Relaxed) {
            self.by_udp().remove(&sender);
        }
    }

    fn by_udp(&self) -> MutexGuard<'_, BTreeSet<SocketAddrV4>> {
        self.by_udp.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoll descriptors that watch it.
    pub(crate) fn watches(&self) -> MutexGuard<'_, Vec<Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An epoll descriptor watches the UDP socket, in another way than before, or not any more (`None`).
    pub(crate) fn set_watch(&self, epoll: c_int, event: Option<epoll_event>) {
        let mut watches = self.watches();
        let before = watches.len();
        watches.retain(|watch| watch.epoll != epoll);
        let was_watched = watches.len() < before;
        WATCHES.fetch_sub(before - watches.len(), Ordering::Relaxed);
        if let Some(event) = event {
            watches.push(Watch { epoll, event });
            WATCHES.fetch_add(1, Ordering::Relaxed);
        }
        let Some(socket) = self.opened() else { return };
        match event {
            Some(event) if was_watched => watch_too(epoll, libc::EPOLL_CTL_MOD, socket, event),
            Some(event) => watch_too(epoll, libc::EPOLL_CTL_ADD, socket, event),
            None if was_watched => watch_too(epoll, libc::EPOLL_CTL_DEL, socket, NOTHING),
            None => {}
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        WATCHES.fetch_sub(self.watches().len(), Ordering::Relaxed);
    }
}

const NOTHING: epoll_event = epoll_event { events: 0, u64: 0 };

/// Lets an epoll descriptor tell of messages by the words of the program's own watch.
fn watch_too(epoll: c_int, operation: c_int, socket: &Socket, event: epoll_event) {
    let mut event = event;
    event.events &= !(libc::EPOLLOUT as u32 | libc::EPOLLEXCLUSIVE as u32);
    // SAFETY: the event lives for the length of the call. What fails concerns this watch alone: the epoll
    // descriptor is closed, or has it already.
    unsafe { real::epoll_ctl(epoll, operation, socket.as_fd().as_raw_fd(), &raw mut event) };
}

/// What stands beside this descriptor. `None` for those that are no UDP socket of ours.
#[inline]
pub(crate) fn find(fd: c_int) -> Option<Arc<Attached>> {
    let known = KNOWN.get(usize::try_from(fd).ok()?)?.load(Ordering::Acquire);
    if known == 0 || known != GENERATION.load(Ordering::Relaxed) {
        return None;
    }
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.get(&fd).map(|(_, attached)| Arc::clone(attached))
}

/// All sockets that this epoll descriptor watches.
pub(crate) fn watched_by(epoll: c_int) -> Vec<(Watch, Arc<Attached>)> {
    if WATCHES.load(Ordering::Relaxed) == 0 {
        return Vec::new();
    }
    let generation = GENERATION.load(Ordering::Relaxed);
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let living = table.values().filter(|(born, _)| *born == generation);
    living
        .filter_map(|(_, attached)| {
            let watch = attached.watches().iter().find(|watch| watch.epoll == epoll).copied()?;
            Some((watch, Arc::clone(attached)))
        })
        .collect()
}

/// Attaches to a new UDP socket of the program.
pub(crate) fn insert(fd: c_int, settings: Arc<Settings>) {
    if OPENING.get() {
        return;
    }
    static AT_FORK: Once = Once::new();
    // SAFETY: the function may be called in a child at any time: it only counts.
    AT_FORK.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    });
    let Some(known) = usize::try_from(fd).ok().and_then(|fd| KNOWN.get(fd)) else { return };
    // In a child the lock may be held by a thread that is not there.
    let Ok(mut table) = TABLE.try_write() else { return };
    let generation = GENERATION.load(Ordering::Relaxed);
    let attached = Attached {
        settings,
        socket: OnceLock::new(),
        peer: Mutex::new(Peer::Nobody),
        watches: Mutex::new(Vec::new()),
        by_udp: Mutex::new(BTreeSet::new()),
        has_by_udp: AtomicBool::new(false),
        sends_no_more: AtomicBool::new(false),
        receives_no_more: AtomicBool::new(false),
        last_traffic_ns: AtomicU64::new(0),
    };
    let before = table.insert(fd, (generation, Arc::new(attached)));
    drop(table);
    known.store(generation, Ordering::Release);
    if let Some((born, before)) = before
        && born != generation
    {
        // Its thread is not here to be waited for.
        std::mem::forget(before);
    }
}

/// The descriptor is about to be closed.
pub(crate) fn remove(fd: c_int) {
    if WATCHES.load(Ordering::Relaxed) > 0 {
        for (_, attached) in watched_by(fd) {
            attached.set_watch(fd, None);
        }
    }
    if find(fd).is_none() {
        return;
    }
    if let Some(known) = usize::try_from(fd).ok().and_then(|fd| KNOWN.get(fd)) {
        known.store(0, Ordering::Release);
    }
    let gone = TABLE.write().unwrap_or_else(PoisonError::into_inner).remove(&fd);
    drop(gone);
}

extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Opens a DOSTP socket on the port of a UDP socket, which gets one if it has none.
fn open_beside(fd: c_int, settings: &Settings) -> io::Result<Socket> {
    let mut local = memory::local(fd)?;
    if local.port() == 0 {
        memory::bind(fd, SocketAddrV4::new(*local.ip(), 0))?;
        local = memory::local(fd)?;
    }
    if !local.ip().is_unspecified() && !settings.contains(*local.ip()) {
        let message = format!("{local} is not of the network");
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
    }
    let address = if settings.contains(*local.ip()) { *local.ip() } else { Ipv4Addr::UNSPECIFIED };
    let socket = Socket::bind(SocketAddrV4::new(address, local.port()), &settings.options)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
