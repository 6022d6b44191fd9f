//! What a valid frame tells of its sender.
//!
//! It must never let an unproven word move a peer that lives.

use super::control::Control;
use super::table::{Claimant, Entry, Probe, Size};
use super::{Asking, PeerEvent, Peers};
use crate::fault::Fault;
use crate::greeting::{Greeting, Link};
use crate::header::{EVERYBODY, Header, Kind};
use crate::limits::{FRESH_MS, INTRODUCTION_MS, MTU_ETHERNET, REPLY_SPREAD_MS, SIZES_PER_SECOND_MAX};

/// How far a frame can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// There are no keys: nobody can prove anything.
    Open,
    /// The tag is right by the key of the boot number that is believed, and the counter is new.
    Proven,
    /// The tag is right by the key of the boot number in the greeting: only an echo makes it fresh.
    Claimed,
}

impl Peers {
    /// Takes notice of a valid frame: what it tells of its sender, and what it asks.
    ///
    /// # Errors
    /// Why nothing of the frame may be handed on: the sender has this node's address, or not its own.
    #[inline]
    pub fn heard(
        &mut self,
        link: Link,
        header: &Header,
        greeting: Option<&Greeting>,
        trust: Trust,
        now_ms: u64,
    ) -> Result<(), Fault> {
        let source = header.source;
        if source == self.own.address {
            return Err(self.heard_own(link, header, greeting, now_ms));
        }
        if let Some(greeting) = greeting {
            return self.greeted(link, header, greeting, trust, now_ms);
        }
        match self.table.find(source) {
            Some(entry) if entry.link == link => {
                entry.refresh(now_ms);
                Ok(())
            }
            Some(_) if trust == Trust::Proven => {
                // The sender's bytes, but another host may have passed them on: only a greeting tells where
                // the sender is.
                self.introduce(source, link, now_ms);
                Ok(())
            }
            Some(_) => Err(self.claimed(source, link, now_ms)),
            None if trust == Trust::Open => self.learn(source, link, None, now_ms),
            None => Err(Fault::Unknown),
        }
    }

    /// A frame came that cannot be verified, for no boot number of its sender is believed: it is asked.
    pub fn suspect(&mut self, source: u16, link: Link, now_ms: u64) {
        let rests = self.asking.get(&source).is_some_and(|asking| asking.failed_until_ms.is_some());
        if source != self.own.address && !rests {
            self.introduce(source, link, now_ms);
        }
    }

    fn greeted(
        &mut self,
        link: Link,
        header: &Header,
        greeting: &Greeting,
        trust: Trust,
        now_ms: u64,
    ) -> Result<(), Fault> {
        let spread_ms = if header.destination == EVERYBODY { REPLY_SPREAD_MS } else { 0 };
        let delay_ms = self.draw() % (spread_ms + 1);
        // A node that is not believed yet is asked before it is answered: what it sends upon the answer then
        // finds it believed.
        let considered = self.consider(link, header, greeting, trust, now_ms, now_ms + delay_ms);
        let unanswered = !self.answer(link, header, greeting, now_ms, now_ms + delay_ms);
        considered?;
        if unanswered { Err(Fault::Unanswered) } else { Ok(()) }
    }

    /// Answers a challenge; says whether there was none or room for the answer.
    fn answer(&mut self, link: Link, header: &Header, greeting: &Greeting, now_ms: u64, due_ms: u64) -> bool {
        if greeting.challenge == 0 || !matches!(header.kind, Kind::Hello | Kind::Probe) {
            return true;
        }
        let control = Control {
            to: link,
            kind: Kind::HelloReply,
            destination: header.source,
            challenge: 0,
            echo: greeting.challenge,
            frame_bytes: 0,
        };
        if self.has_left {
            return true;
        }
        if !self.has_voice {
            // A PROBE that comes once more was not answered: whoever has the voice is mute.
            let is_repeated = header.kind == Kind::Probe && self.asked == Some(control);
            if is_repeated && self.refused_by.is_none() {
                return self.outbox.reply(now_ms, due_ms, control);
            }
            (self.unheard, self.asked) = (Some(control), Some(control));
            return true;
        }
        self.refused_by.is_some() || self.outbox.reply(now_ms, due_ms, control)
    }

    fn consider(
        &mut self,
        link: Link,
        header: &Header,
        greeting: &Greeting,
        trust: Trust,
        now_ms: u64,
        ask_ms: u64,
    ) -> Result<(), Fault> {
        let source = header.source;
        let answers = header.kind == Kind::HelloReply && self.is_answer(source, link, greeting.echo, now_ms);
        if answers {
            // A second time the same echo proves nothing.
            let generation = self.generation(source);
            self.generations[generation] = self.generations[generation].wrapping_add(1);
        }
        let Some(entry) = self.table.find(source) else {
            if trust == Trust::Open || answers {
                return self.learn(source, link, Some(greeting), now_ms);
            }
            self.introduce(source, link, ask_ms);
            return Err(Fault::Unknown);
        };
        let is_same = entry.link == link && (trust == Trust::Open || entry.boot == greeting.boot);
        if answers || (is_same && trust == Trust::Open) {
            self.take(link, header, greeting, now_ms);
            return Ok(());
        }
        if is_same {
            self.renew(link, header, greeting, now_ms, ask_ms);
            return Ok(());
        }
        if trust == Trust::Open {
            return Err(self.claimed(source, link, now_ms));
        }
        self.introduce(source, link, ask_ms);
        Err(Fault::Impostor)
    }

    /// Whether this echo answers a challenge of this node's to that address.
    fn is_answer(&self, source: u16, link: Link, echo: u64, now_ms: u64) -> bool {
        if echo == 0 {
            return false;
        }
        // The HELLO of a start is answered by all. It was sent twice, and answers are spread.
        let start = echo == self.hello_challenge && now_ms < self.started_ms + 2 * crate::limits::TRIAL_MS;
        let entry = self.table.get(source);
        let probed = entry
            .and_then(|entry| entry.probe)
            .is_some_and(|probe| probe.challenge == echo && probe.to == link);
        let asked = self.asking.get(&source).is_some_and(|asking| {
            asking.probe.challenge == echo && [link, Link::EVERYBODY].contains(&asking.probe.to)
        });
        let introduced = self.introductions(source, link, now_ms).contains(&echo);
        // A known peer is not moved by an answer to a HELLO: its known link address is asked first.
        probed || asked || introduced || (start && entry.is_none_or(|entry| entry.link == link))
    }

    /// A greeting that is believed, of a peer in the table: it may move, restart, and tell its MTU.
    fn take(&mut self, link: Link, header: &Header, greeting: &Greeting, now_ms: u64) {
        let source = header.source;
        let own_mtu = self.own.mtu;
        let Some(entry) = self.table.find(source) else { return };
        if entry.link != link {
            entry.link = link;
            entry.size = Size::Unasked;
            self.events.push_back(PeerEvent::Moved(source));
        }
        if entry.boot != 0 && entry.boot != greeting.boot {
            entry.size = Size::Unasked;
            self.events.push_back(PeerEvent::Restarted(source));
        }
        if entry.told_mtu.min(own_mtu) != greeting.mtu.min(own_mtu) {
            entry.size = Size::Unasked;
        }
        let is_unasked = entry.size == Size::Unasked;
        entry.boot = greeting.boot;
        entry.told_mtu = greeting.mtu;
        if let Size::Asking(probe) = entry.size
            && probe.challenge == greeting.echo
        {
            entry.size = Size::Large;
        }
        entry.refresh(now_ms);
        if header.kind == Kind::Bye {
            entry.fresh_until_ms = now_ms;
            self.look_at(now_ms);
        }
        self.asking.remove(&source);
        if is_unasked {
            self.ask_size(source, now_ms);
        }
    }

    /// Asks whether larger frames reach a peer that tells a larger MTU, so that already the first message to
    /// it is cut as the later ones. Not too often, for these PROBEs are long; else a message begins to ask.
    fn ask_size(&mut self, source: u16, now_ms: u64) {
        let (own_mtu, challenge) = (self.own.mtu, self.draw());
        let due_ms = now_ms + self.draw() % (REPLY_SPREAD_MS + 1);
        let Some(entry) = self.table.find(source) else { return };
        let could_be_larger = own_mtu.min(entry.told_mtu) > MTU_ETHERNET;
        if could_be_larger && self.has_voice && self.sizes.allows(now_ms, SIZES_PER_SECOND_MAX) {
            entry.size = Size::Asking(Probe::new(challenge, entry.link, due_ms));
            self.look_at(due_ms);
        }
    }

    /// With keys: a greeting of a believed peer that is no echo, and may have been recorded. It ends no
    /// question about the peer; where it tells another MTU the peer is asked.
    fn renew(&mut self, link: Link, header: &Header, greeting: &Greeting, now_ms: u64, ask_ms: u64) {
        let own_mtu = self.own.mtu;
        let Some(entry) = self.table.find(header.source) else { return };
        let has_changed = entry.told_mtu.min(own_mtu) != greeting.mtu.min(own_mtu);
        (entry.heard_ms, entry.fresh_until_ms, entry.stale) = (now_ms, now_ms + FRESH_MS, false);
        if header.kind == Kind::Bye {
            entry.fresh_until_ms = now_ms;
            self.look_at(now_ms);
        }
        if has_changed {
            self.introduce(header.source, link, ask_ms);
        }
    }

    fn learn(
        &mut self,
        source: u16,
        link: Link,
        greeting: Option<&Greeting>,
        now_ms: u64,
    ) -> Result<(), Fault> {
        let mut entry = Entry::new(source, link, now_ms);
        if let Some(greeting) = greeting {
            entry.boot = greeting.boot;
            entry.told_mtu = greeting.mtu;
        }
        if self.asking.get(&source).is_some_and(|asking| asking.wanted) {
            entry.spoken_ms = Some(now_ms);
        }
        let fresh_until_ms = entry.fresh_until_ms;
        // Without room the question goes on: a message may wait for it to be answered or to fail.
        let gone = self.table.add(entry).map_err(|()| Fault::Unknown)?;
        self.asking.remove(&source);
        self.events.extend(gone.map(PeerEvent::Gone));
        self.events.push_back(PeerEvent::Appeared(source));
        self.look_at(fresh_until_ms);
        self.ask_size(source, now_ms);
        Ok(())
    }

    /// Another link address says it is this peer's: the known one is asked first.
    #[cold]
    fn claimed(&mut self, source: u16, link: Link, now_ms: u64) -> Fault {
        let challenge = self.draw();
        if let Some(entry) = self.table.find(source)
            && entry.claimant.is_none()
        {
            entry.claimant = Some(Claimant { link });
            if entry.probe.is_none() {
                entry.probe = Some(Probe::new(challenge, entry.link, now_ms));
            }
            self.look_at(now_ms);
            self.tick(now_ms);
        }
        Fault::Impostor
    }

    /// A node with keys whose boot number is not believed yet has to answer first. What is asked already goes
    /// on: a recorded greeting must not end a question.
    #[cold]
    fn introduce(&mut self, source: u16, link: Link, ask_ms: u64) {
        let [challenge, _] = self.introductions(source, link, ask_ms);
        match self.asking.get(&source).copied().filter(|asking| asking.failed_until_ms.is_none()) {
            Some(asking) if asking.probe.to == link => {
                // The question may wait for its turn among many; now there is reason not to.
                if ask_ms < asking.first_ms {
                    self.push(ask_ms, Kind::Probe, link, source, asking.probe.challenge, 0);
                    self.asking.insert(source, Asking { first_ms: ask_ms, ..asking });
                }
            }
            // Asked once: the challenge tells by itself that it is this node's.
            Some(_) => {
                let control = Control {
                    to: link,
                    kind: Kind::Probe,
                    destination: source,
                    challenge,
                    echo: 0,
                    frame_bytes: 0,
                };
                self.outbox.question(ask_ms, control);
            }
            None => {
                self.inquire_by(challenge, source, link, false, ask_ms);
            }
        }
    }

    /// The challenges by which a node is asked at a link address to introduce itself, now and in the time
    /// before: nothing need be held to know them again.
    fn introductions(&self, source: u16, link: Link, now_ms: u64) -> [u64; 2] {
        let period = now_ms / INTRODUCTION_MS;
        let generation = self.generations[self.generation(source)].to_be_bytes();
        [period, period.saturating_sub(1)].map(|period| {
            let period = period.to_be_bytes();
            let asked = [b"introduction", &source.to_be_bytes()[..], &link.0, &period, &generation];
            self.random.hash(&asked.concat()).max(1)
        })
    }

    fn generation(&self, source: u16) -> usize {
        usize::from(source) % self.generations.len()
    }

    /// A frame with this node's own address.
    #[cold]
    fn heard_own(&mut self, link: Link, header: &Header, greeting: Option<&Greeting>, now_ms: u64) -> Fault {
        // No other node has this number of 64 random bits.
        if link == self.own.link || greeting.is_some_and(|greeting| greeting.boot == self.own.boot) {
            return Fault::Own;
        }
        let Some(greeting) = greeting else { return Fault::Conflict };
        let in_trial = self.is_in_trial(now_ms);
        if header.kind == Kind::Conflict {
            let answers = greeting.echo != 0 && greeting.echo == self.hello_challenge;
            if in_trial && answers && header.destination == self.own.address && self.refused_by.is_none() {
                self.refused_by = Some(link);
                self.outbox.clear();
                self.hello_again_ms = None;
                self.announce_ms = None;
            }
            return Fault::Conflict;
        }
        let holds = !in_trial || self.own.boot < greeting.boot;
        if holds && self.has_voice && greeting.challenge != 0 && self.refused_by.is_none() {
            let control = Control {
                to: link,
                kind: Kind::Conflict,
                destination: self.own.address,
                challenge: 0,
                echo: greeting.challenge,
                frame_bytes: 0,
            };
            self.outbox.conflict(now_ms, control);
        }
        Fault::Conflict
    }
}
