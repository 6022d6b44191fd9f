//! The table of peers: who is where, whether it is still there, and what is asked about it.
//!
//! It owns the rules of "Neighbours" and "MTU" in `docs/dostp.md`. It must never read a clock, build a frame,
//! or let an unproven word move a peer that lives.
//!
//! Order of calls: [`Peers::start`]; [`Peers::heard`] for each valid frame, [`Peers::route`] for each
//! message, [`Peers::tick`] when [`Peers::due_ms`] has come; after each of them [`Peers::poll_control`] and
//! [`Peers::poll_event`] until they have nothing.

mod control;
mod heard;
mod table;
mod ticking;

use std::collections::{BTreeMap, VecDeque};

use siphasher::sip::SipHasher24;

pub use self::control::Control;
use self::control::{Outbox, Rate};
pub use self::heard::Trust;
use self::table::{Entry, Probe, Size, Table};
use crate::greeting::Link;
use crate::header::{EVERYBODY, Kind};
use crate::limits::{FRESH_MS, GENERATIONS, HELLO_AGAIN_MS, MTU_ETHERNET, RESOLVING_MAX, TRIAL_MS};

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    /// The address of the node.
    pub address: u16,
    /// Its link address.
    pub link: Link,
    /// Its boot number.
    pub boot: u64,
    /// The MTU of its interface.
    pub mtu: u16,
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// There, in frames of at most so many bytes.
    To {
        /// The link address.
        link: Link,
        /// Bytes of a frame: header, payload, trailer.
        mtu: u16,
    },
    /// The address is asked for; the message has to wait for [`PeerEvent::Appeared`] or
    /// [`PeerEvent::Unreachable`].
    Wait,
    /// No node answers at this address, or it is the node's own, or too many are asked for.
    Unreachable,
}

/// What became of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerEvent {
    /// The peer is known now.
    Appeared(u16),
    /// The peer has another boot number: what was under way from it is void.
    Restarted(u16),
    /// The peer has another link address.
    Moved(u16),
    /// The peer does not answer, or was not heard for long.
    Gone(u16),
    /// The address was asked for, and no peer answered there.
    Unreachable(u16),
    /// Large frames do not reach it, although both ends could take them.
    SmallPath(u16),
}

/// A peer as it is told to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The address of the peer.
    pub address: u16,
    /// Its link address.
    pub link: Link,
    /// Its boot number; 0 if it is not known.
    pub boot: u64,
    /// The largest frame that is sent to it.
    pub mtu: u16,
    /// When it was last heard.
    pub heard_ms: u64,
    /// When something was last sent to it.
    pub spoken_ms: Option<u64>,
    /// Whether it was silent for too long to be sure of.
    pub is_stale: bool,
}

/// An address that is asked for, or a node that has to prove itself.
#[derive(Debug, Clone, Copy)]
struct Asking {
    probe: Probe,
    /// When the first question goes out.
    first_ms: u64,
    /// A message waits for it.
    wanted: bool,
    /// The question failed; until then it is not asked again.
    failed_until_ms: Option<u64>,
}

/// The table of peers of one node.
#[derive(Debug)]
pub struct Peers {
    own: Own,
    table: Table,
    asking: BTreeMap<u16, Asking>,
    outbox: Outbox,
    events: VecDeque<PeerEvent>,
    random: SipHasher24,
    drawn: u64,
    /// How many echoes of nodes were believed, by address: challenges to introduce oneself depend on it.
    generations: Box<[u16; GENERATIONS]>,
    hello_challenge: u64,
    started_ms: u64,
    hello_again_ms: Option<u64>,
    announce_ms: Option<u64>,
    /// When entries and questions are to be looked at.
    look_ms: Option<u64>,
    refused_by: Option<Link>,
    /// Whether this process answers for the node.
    has_voice: bool,
    /// Questions about sizes that greetings have given reason for.
    sizes: Rate,
    /// The answer to a question that this process did not give.
    unheard: Option<Control>,
    /// The last one of them, whether this process has tried to get the voice since or not.
    asked: Option<Control>,
    /// Whether the others were told that the node leaves: then nothing more is said.
    has_left: bool,
}

impl Peers {
    /// A node that was not started. The seed has to be secret and different at each start.
    pub fn new(own: Own, peers_max: usize, seed: [u8; 16]) -> Self {
        Self {
            own,
            table: Table::new(peers_max),
            asking: BTreeMap::new(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            random: SipHasher24::new_with_key(&seed),
            drawn: 0,
            generations: Box::new([0; GENERATIONS]),
            hello_challenge: 0,
            started_ms: 0,
            hello_again_ms: None,
            announce_ms: None,
            look_ms: None,
            refused_by: None,
            has_voice: true,
            sizes: Rate::default(),
            unheard: None,
            asked: None,
            has_left: false,
        }
    }

    /// Of several processes that share a node, one answers for it and speaks of its address; the others are
    /// silent, unless that one is mute. Whoever begins to speak answers the last question that was not
    /// answered.
    pub fn set_voice(&mut self, has_voice: bool, now_ms: u64) {
        self.has_voice = has_voice;
        if let Some(control) = self.unheard.take().filter(|_| has_voice) {
            self.outbox.reply(now_ms, now_ms, control);
        }
    }

    /// Whether a question came that this process did not answer, for it has no voice.
    pub fn has_unheard(&self) -> bool {
        self.unheard.is_some()
    }

    /// The node starts, or its link has come up: it says so to all.
    pub fn start(&mut self, now_ms: u64) {
        self.refused_by = None;
        self.has_left = false;
        self.started_ms = now_ms;
        self.hello_challenge = self.draw();
        self.hello_again_ms = Some(now_ms + HELLO_AGAIN_MS);
        self.say_hello(now_ms, self.hello_challenge);
    }

    /// A member that only asks and answers nobody's HELLO with one of its own: further sockets of a node that
    /// has a voice already, and nodes in networks where nothing can be sent to all.
    pub fn start_quietly(&mut self, now_ms: u64) {
        self.has_left = false;
        self.started_ms = now_ms.saturating_sub(TRIAL_MS);
    }

    /// The node leaves: the others are told.
    pub fn leave(&mut self, now_ms: u64) {
        self.outbox.clear();
        self.push(now_ms, Kind::Bye, Link::EVERYBODY, EVERYBODY, 0, 0);
        self.announce_ms = None;
        self.hello_again_ms = None;
        self.has_left = true;
    }

    /// The node's own address, link address, boot number and MTU.
    pub fn own(&self) -> Own {
        self.own
    }

    /// Whether the start may still be refused by a holder of the address.
    pub fn is_in_trial(&self, now_ms: u64) -> bool {
        now_ms < self.started_ms + TRIAL_MS
    }

    /// The link address of the node that holds this node's address and has refused its start. Nothing may be
    /// sent any more.
    pub fn refused_by(&self) -> Option<Link> {
        self.refused_by
    }

    /// Where a message to this address goes. The message is taken for sent if there is a route.
    #[inline]
    pub fn route(&mut self, address: u16, now_ms: u64) -> Route {
        if self.refused_by.is_some() {
            return Route::Unreachable;
        }
        if address == EVERYBODY {
            return Route::To { link: Link::EVERYBODY, mtu: self.own.mtu.min(MTU_ETHERNET) };
        }
        let own_mtu = self.own.mtu;
        let Some(entry) = self.table.find(address) else { return self.ask(address, now_ms) };
        entry.spoken_ms = Some(now_ms);
        let route = Route::To { link: entry.link, mtu: entry.mtu(own_mtu) };
        let unsure = entry.stale && entry.probe.is_none();
        let could_be_larger = entry.size == Size::Unasked && own_mtu.min(entry.told_mtu) > MTU_ETHERNET;
        if unsure || could_be_larger {
            self.look_closer(address, now_ms);
        }
        route
    }

    /// A link address that was told by hand or computed, not heard: for networks without broadcast.
    pub fn tell(&mut self, address: u16, link: Link, now_ms: u64) {
        if address != self.own.address && self.table.get(address).is_none() {
            let mut entry = Entry::new(address, link, now_ms);
            entry.stale = true;
            entry.fresh_until_ms = now_ms;
            if let Ok(gone) = self.table.add(entry) {
                self.asking.remove(&address);
                self.events.extend(gone.map(PeerEvent::Gone));
                self.events.push_back(PeerEvent::Appeared(address));
            }
        }
    }

    /// A boot number that was told by another way than a greeting, and is believed.
    pub fn believe(&mut self, address: u16, link: Link, boot: u64, now_ms: u64) {
        self.tell(address, link, now_ms);
        if let Some(entry) = self.table.find(address) {
            entry.boot = boot;
            entry.refresh(now_ms);
        }
    }

    /// The boot number that is believed of a peer; `None` if it is not known.
    pub fn boot(&self, address: u16) -> Option<u64> {
        self.table.get(address).map(|entry| entry.boot).filter(|boot| *boot != 0)
    }

    /// The link address of a peer.
    pub fn link(&self, address: u16) -> Option<Link> {
        self.table.get(address).map(|entry| entry.link)
    }

    /// All peers, in no order.
    pub fn list(&self) -> impl Iterator<Item = Peer> + '_ {
        self.table.iter().map(|entry| Peer {
            address: entry.address,
            link: entry.link,
            boot: entry.boot,
            mtu: entry.mtu(self.own.mtu),
            heard_ms: entry.heard_ms,
            spoken_ms: entry.spoken_ms,
            is_stale: entry.stale,
        })
    }

    /// The next control frame that is due.
    pub fn poll_control(&mut self, now_ms: u64) -> Option<Control> {
        self.outbox.pop(now_ms)
    }

    /// The oldest change of a peer that was not asked for yet.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// When [`Peers::tick`] or [`Peers::poll_control`] has something to do at the earliest.
    pub fn due_ms(&self) -> Option<u64> {
        [self.outbox.due_ms(), self.hello_again_ms, self.announce_ms, self.look_ms]
            .into_iter()
            .flatten()
            .min()
    }

    /// Asks for an address nothing is known of, for a message that waits.
    fn ask(&mut self, address: u16, now_ms: u64) -> Route {
        if address == self.own.address || address == 0 {
            return Route::Unreachable;
        }
        if let Some(asking) = self.asking.get_mut(&address) {
            if asking.failed_until_ms.is_some_and(|until_ms| now_ms < until_ms) {
                return Route::Unreachable;
            }
            if asking.failed_until_ms.is_none() {
                asking.wanted = true;
                return Route::Wait;
            }
        }
        if self.inquire(address, Link::EVERYBODY, true, now_ms) { Route::Wait } else { Route::Unreachable }
    }

    /// Begins to ask; the first PROBE goes at `first_ms`.
    fn inquire(&mut self, address: u16, to: Link, wanted: bool, first_ms: u64) -> bool {
        let challenge = self.draw();
        self.inquire_by(challenge, address, to, wanted, first_ms)
    }

    /// Begins to ask with this challenge; the first PROBE goes at `first_ms`.
    fn inquire_by(&mut self, challenge: u64, address: u16, to: Link, wanted: bool, first_ms: u64) -> bool {
        if self.asking.len() >= RESOLVING_MAX && !self.asking.contains_key(&address) {
            return false;
        }
        let mut probe = Probe::new(challenge, to, first_ms);
        // The first goes out in the order in which this is called: before the answer to a question.
        probe.due(first_ms);
        self.push(first_ms, Kind::Probe, to, address, probe.challenge, 0);
        self.look_at(probe.next_ms);
        self.asking.insert(address, Asking { probe, first_ms, wanted, failed_until_ms: None });
        true
    }

    /// Starts the questions about a known peer that a message gives reason for.
    #[cold]
    fn look_closer(&mut self, address: u16, now_ms: u64) {
        let challenges = (self.draw(), self.draw());
        let own_mtu = self.own.mtu;
        let Some(entry) = self.table.find(address) else { return };
        if entry.stale && entry.probe.is_none() {
            entry.probe = Some(Probe::new(challenges.0, entry.link, now_ms));
        }
        if entry.size == Size::Unasked && own_mtu.min(entry.told_mtu) > MTU_ETHERNET {
            entry.size = Size::Asking(Probe::new(challenges.1, entry.link, now_ms));
        }
        self.look_at(now_ms);
        self.tick(now_ms);
    }

    fn say_hello(&mut self, now_ms: u64, challenge: u64) {
        self.push(now_ms, Kind::Hello, Link::EVERYBODY, EVERYBODY, challenge, 0);
        let spread_ms = self.draw() % crate::limits::ANNOUNCE_SPREAD_MS;
        self.announce_ms = Some(now_ms + FRESH_MS + spread_ms);
    }

    fn push(
        &mut self,
        due_ms: u64,
        kind: Kind,
        to: Link,
        destination: u16,
        challenge: u64,
        echo: u64,
    ) -> bool {
        self.outbox.push(due_ms, Control { to, kind, destination, challenge, echo, frame_bytes: 0 })
    }

    fn look_at(&mut self, at_ms: u64) {
        self.look_ms = Some(self.look_ms.map_or(at_ms, |look_ms| look_ms.min(at_ms)));
    }

    /// A number nobody can guess, never 0.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.random.hash(&self.drawn.to_le_bytes()).max(1)
    }
}

#[cfg(test)]
mod tests;
