//! The fabric's thread, between the socket of DOSTP, live data, and programs that ask for its figures.
//!
//! The thread sleeps until one of the three has something, or a second is over. It must never wait for one of
//! them alone.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Read as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use staunch_dostp::fabric::{
    AheadNotice, Became, Fabric, FabricSettings, FabricSite, HeardMessage, Now, Outgoing, ToldUpdate, Updated,
};
use staunch_dostp::{Backend, Kind, Secrets, Socket};
use staunch_engine::Notice;
use staunch_live::{FollowedValue, Following, Grants, Letter};
use staunch_netio::clock;
use staunch_server::metrics::FabricFigures;
use staunch_server::{LiveFollowed, LiveSites};

use super::listener::FabricListener;
use super::load::LoadMeter;
use super::opening::{OpenFabric, PORT, low_bits};
use super::seen::{self, UNSENT};
use super::words::{self, Handle};

/// Messages taken, and letters followed, before everything else has its turn.
const TURN_MAX: usize = 256;

/// How long it is waited after trouble until the interface is tried again: a link is back within a second.
const RETRY_MS_MIN: u64 = 1_000;

/// The longest such wait: what comes back again and again is told once a minute.
const RETRY_MS_MAX: u64 = 60_000;

/// What is wrong where the interface was removed.
const GONE: &str = "the interface is gone: only a restart opens another one";

/// What the thread is told.
pub(super) enum FabricOrder {
    /// To stop, and to leave the socket to another process by what is handed back.
    Lend(Sender<Option<OwnedFd>>),
    /// To go on, because the other process is gone.
    TakeBack,
    /// To end, because the other process serves.
    HandOver,
    /// To leave, and to end.
    End,
}

/// What the thread works with.
pub(super) struct FabricThread {
    socket: Socket,
    secrets: Option<Secrets>,
    fabric: Fabric<Handle>,
    live: Option<Arc<LiveSites>>,
    followings: Vec<Following>,
    /// Topics whose updates have a deadline.
    realtime: Grants,
    meter: LoadMeter,
    listener: FabricListener,
    /// Whether somebody has come to the listener.
    is_asked: bool,
    ordered: Receiver<FabricOrder>,
    woken: UnixStream,
    seen: Arc<Mutex<FabricFigures>>,
    /// When figures and load are brought up to date next.
    look_ms: u64,
    unsent: u64,
    /// What is wrong with the interface, if anything is.
    trouble: String,
    /// When it is tried again whether that is over, and after how long the time after.
    retry_ms: u64,
    retry_wait_ms: u64,
    notice: Notice,
}

impl FabricThread {
    pub(super) fn new(
        open: OpenFabric,
        live: Option<Arc<LiveSites>>,
        meter: LoadMeter,
        ordered: Receiver<FabricOrder>,
        seen: Arc<Mutex<FabricFigures>>,
        notice: Notice,
    ) -> Self {
        let sites: Vec<FabricSite> = live.iter().flat_map(|live| live.iter()).map(site).collect();
        let settings = FabricSettings {
            address: low_bits(open.address),
            port: PORT,
            epoch: (now().wall_ms / 1_000) as u32,
            seed: RandomState::new().hash_one(std::process::id()),
            sites,
            deadline_ms: open.realtime.deadline_ms,
        };
        let followings = settings.sites.iter().map(|_| Following::new()).collect();
        Self {
            listener: FabricListener::new(&open.interface),
            is_asked: false,
            socket: open.socket,
            secrets: open.secrets,
            fabric: Fabric::new(settings),
            live,
            followings,
            realtime: open.realtime.topics,
            meter,
            ordered,
            woken: open.woken,
            seen,
            look_ms: 0,
            unsent: 0,
            trouble: String::new(),
            retry_ms: 0,
            retry_wait_ms: 0,
            notice,
        }
    }

    /// Works until it is told to end.
    pub(super) fn run(mut self) {
        loop {
            self.rest_from_waking();
            match self.ordered.try_recv() {
                Ok(FabricOrder::Lend(answer)) => {
                    // Live data has stopped, or is about to: what it numbers from now on is told by the
                    // other process, which gets it with everything else.
                    while self.follow() {}
                    self.send();
                    if !self.lend(&answer) {
                        return;
                    }
                }
                Ok(FabricOrder::TakeBack) => {}
                Ok(FabricOrder::HandOver) => return,
                Ok(FabricOrder::End) | Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            let is_behind = self.turn();
            if !is_behind {
                self.wait();
            }
        }
        while self.follow() {}
        self.send();
        self.socket.leave().ok();
    }

    /// Leaves the socket to another process, and waits what becomes of that. Whether to go on.
    fn lend(&mut self, answer: &Sender<Option<OwnedFd>>) -> bool {
        self.listener.close();
        let slots = self.secrets.as_ref().map(|secrets| secrets.slots);
        let lent = self.socket.lend(slots).and_then(|lent| {
            let (own, other) = UnixStream::pair()?;
            lent.send(&own)?;
            Ok(OwnedFd::from(other))
        });
        if let Err(error) = &lent {
            (self.notice)(&format!("fabric: it cannot be left to another process: {error}"));
        }
        // The asking thread waits for the answer.
        answer.send(lent.ok()).ok();
        match self.ordered.recv() {
            Ok(FabricOrder::HandOver | FabricOrder::End) | Err(_) => false,
            Ok(FabricOrder::TakeBack | FabricOrder::Lend(_)) => {
                if let Err(error) = self.socket.take_back() {
                    self.tell_trouble(&error);
                }
                true
            }
        }
    }

    /// Does what there is to do. Whether there is more.
    fn turn(&mut self) -> bool {
        let is_followed = self.follow();
        let is_heard = self.hear();
        let now = now();
        if self.look_ms <= now.ms {
            self.look_ms = now.ms + 1_000;
            self.look(now);
        }
        if self.fabric.due_ms(now) <= now.ms {
            self.fabric.tick(now);
        }
        self.send();
        if let Some(AheadNotice { node, ahead_ms, refused }) = self.fabric.poll_notice() {
            let (address, ahead_s) = (self.socket.full_address(node), ahead_ms / 1_000);
            (self.notice)(&format!(
                "fabric: an update with the stamp of {address} is {ahead_s} s ahead of this clock and was \
                 refused ({refused} so far): are the clocks of both set?"
            ));
        }
        if std::mem::take(&mut self.is_asked) {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.listener.answer(&seen);
        }
        is_followed || is_heard
    }

    /// Takes letters of live data. Whether there may be more.
    fn follow(&mut self) -> bool {
        let Some(live) = self.live.clone() else { return false };
        for _ in 0..TURN_MAX {
            let (site, letter, is_introduction) = match live.next_followed() {
                None => {
                    self.fabric.flush(now());
                    return false;
                }
                Some(LiveFollowed::Letter(site, letter)) => (usize::from(site), letter, false),
                Some(LiveFollowed::Introduction(site, letter)) => (usize::from(site), letter, true),
            };
            if is_introduction {
                self.fabric.begin_anew(site);
                self.followings[site] = Following::new();
            }
            self.take_letter(site, &letter, is_introduction);
            // What was made to be sent is not held longer than that of one letter.
            self.send();
        }
        self.fabric.flush(now());
        true
    }

    fn take_letter(&mut self, site: usize, letter: &Letter, is_introduction: bool) {
        let (now, Self { fabric, followings, realtime, .. }) = (now(), self);
        followings[site].take(letter, &mut |followed| match followed {
            FollowedValue::Updated { update, is_log } => {
                // The server's own topics are each server's own.
                let is_servers = update.topics().any(|topic| topic.as_str().starts_with('$'));
                let Some(stamp) = update.stamp.filter(|_| !is_servers) else { return };
                let updated = Updated {
                    stamp: words::stamp_in(stamp),
                    is_own: !update.is_foreign && !is_introduction,
                    is_gone: update.value == staunch_live::Value::Gone,
                    is_realtime: !realtime.is_empty() && update.topics().all(|topic| realtime.cover(topic)),
                    handle: Handle { update: Arc::clone(update), is_log },
                };
                fabric.updated(site, &updated, now);
            }
            FollowedValue::Forgotten(topic) => fabric.forgotten(site, topic.as_str(), now),
        });
    }

    /// Takes messages. Whether there may be more.
    fn hear(&mut self) -> bool {
        for _ in 0..TURN_MAX {
            let received = match self.socket.receive() {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => {
                    self.tell_trouble(&error);
                    return false;
                }
            };
            let heard = HeardMessage {
                from: (low_bits(*received.from.ip()), received.from.port()),
                kind: received.kind,
                message_id: received.message_id,
                payload: &received.payload,
            };
            let live = self.live.as_deref();
            self.fabric.heard(&heard, now(), &mut |told| apply(live, told));
        }
        true
    }

    /// Sends what is to be sent. What finds no room is lost, and asked for by who misses it.
    fn send(&mut self) {
        while let Some(Outgoing { to, kind, message_id, priority, payload }) = self.fabric.poll_outgoing() {
            let address = to.map_or(Ipv4Addr::BROADCAST, |to| self.socket.full_address(to));
            let address = SocketAddrV4::new(address, PORT);
            let sent = match (kind, message_id) {
                (Kind::Data, _) | (_, None) if priority => self.socket.send_with_priority(&payload, address),
                (Kind::Data, _) | (_, None) => self.socket.send_to(&payload, address),
                (kind, Some(id)) => self.socket.send_transaction(kind, id, &payload, address),
            };
            if let Err(error) = sent {
                self.unsent += 1;
                let is_for_all_in_udp = to.is_none() && self.socket.opened().backend == Backend::Udp;
                if is_trouble(&error, is_for_all_in_udp) {
                    self.tell_trouble(&error);
                }
            }
        }
    }

    /// Once a second: load, figures, and whether the interface works again.
    fn look(&mut self, now: Now) {
        self.fabric.set_load(self.meter.measure());
        self.listener.listen();
        self.try_again(now);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen::update(&mut seen, &self.fabric, &self.socket, now);
        seen.trouble.clone_from(&self.trouble);
        seen.counts.insert(UNSENT.to_owned(), self.unsent);
    }

    /// Something is wrong with the interface, or another node has the address.
    fn tell_trouble(&mut self, error: &io::Error) {
        if self.trouble.is_empty() {
            self.trouble = error.to_string();
            let trouble = &self.trouble;
            (self.notice)(&format!("fabric: {trouble}; nothing is told to other servers meanwhile"));
            self.retry_wait_ms = (2 * self.retry_wait_ms).clamp(RETRY_MS_MIN, RETRY_MS_MAX);
            self.retry_ms = clock::now_ms() + self.retry_wait_ms;
        }
    }

    /// Tries whether what was wrong is over: less and less often, as long as it comes back.
    fn try_again(&mut self, now: Now) {
        if self.trouble.is_empty() {
            if now.ms > self.retry_ms + 2 * RETRY_MS_MAX {
                self.retry_wait_ms = 0;
            }
        } else if now.ms >= self.retry_ms {
            match self.socket.take_error().and_then(|()| self.socket.greet()) {
                Ok(()) => {
                    self.trouble.clear();
                    (self.notice)("fabric: other servers are told again");
                }
                // The interface was removed: one that comes by that name is another one.
                Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                    if self.trouble != GONE {
                        GONE.clone_into(&mut self.trouble);
                        (self.notice)(&format!("fabric: {GONE}"));
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&mut self) {
        let now = now();
        let due_ms = self.fabric.due_ms(now).min(self.look_ms);
        let due_ms = self.socket.due_ms().map_or(due_ms, |socket_ms| due_ms.min(socket_ms));
        let left_ms = due_ms.saturating_sub(now.ms);
        let left = Timespec { tv_sec: (left_ms / 1_000) as i64, tv_nsec: (left_ms % 1_000 * 1_000_000) as _ };
        let (socket, woken) = (self.socket.as_fd(), self.woken.as_fd());
        let mut awaited = vec![PollFd::new(&socket, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
        let listener = self.listener.as_fd();
        awaited.extend(listener.as_ref().map(|listener| PollFd::new(listener, PollFlags::IN)));
        // EINTR: everything is looked at, and waiting begins anew.
        let _ = poll(&mut awaited, Some(&left));
        let has_failed = awaited[0].revents().contains(PollFlags::ERR);
        let is_asked = awaited.get(2).is_some_and(|listener| !listener.revents().is_empty());
        drop(awaited);
        self.is_asked = is_asked;
        if has_failed && let Err(error) = self.socket.take_error() {
            self.tell_trouble(&error);
        }
    }

    /// Takes the bytes by which the thread was woken.
    fn rest_from_waking(&self) {
        let mut bytes = [0; 256];
        while matches!((&self.woken).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}

/// Publishes what another node told.
fn apply(live: Option<&LiveSites>, told: &ToldUpdate<'_>) -> Became {
    let Some(site) = live.and_then(|live| live.site(told.site)) else { return Became::Refused };
    let Some(publication) = words::publication(told) else { return Became::Refused };
    match site.publish_foreign(publication) {
        Ok(()) => Became::Taken,
        Err(_) => Became::Full,
    }
}

/// Whether an error of sending means that nothing is told to others, and not that one message or node is
/// unlucky. In UDP a message to all that leaves for nobody means that, whatever the reason, unless there is
/// no room just now or it is too long.
fn is_trouble(error: &io::Error, is_for_all_in_udp: bool) -> bool {
    match error.kind() {
        ErrorKind::NetworkDown | ErrorKind::AddrInUse => true,
        ErrorKind::WouldBlock => false,
        _ => {
            let errno = Errno::from_io_error(error);
            is_for_all_in_udp && !matches!(errno, Some(Errno::MSGSIZE | Errno::NOBUFS))
        }
    }
}

fn site(site: &staunch_server::LiveShared) -> FabricSite {
    FabricSite { name: site.site().to_owned(), topics_max: site.topics_max() }
}

fn now() -> Now {
    let wall = clock::unix_time().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { ms: clock::now_ms(), wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_udp_a_message_to_all_that_leaves_for_nobody_is_trouble() {
        let is = |errno: Errno| [false, true].map(|is_for_all| is_trouble(&errno.into(), is_for_all));
        for errno in [Errno::NETDOWN, Errno::ADDRINUSE] {
            assert_eq!(is(errno), [true, true], "{errno}");
        }
        for errno in [Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::PERM, Errno::ACCESS, Errno::INVAL] {
            assert_eq!(is(errno), [false, true], "{errno}");
        }
        for errno in [Errno::AGAIN, Errno::MSGSIZE, Errno::NOBUFS] {
            assert_eq!(is(errno), [false, false], "{errno}");
        }
    }
}
