//! Connecting beside accepting in a simulated world: a relay whose peers and upstreams stall, refuse, stay
//! silent and are cut at every byte.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use staunch_netio::simulated::{End, Faults, PeerId, Simulated, Step};
use staunch_netio::{Address, Capacity, Completion, Io, Outgoing, Slot, Target};

const REQUEST: &[u8] = b"a question of some length";
const RESPONSE: &[u8] = b"and an answer that is somewhat longer than that";
const BOTH: Capacity = Capacity { connected: 2, accepted: 3 };

fn upstream() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

fn target() -> Target {
    Target::new(Address::Internet(upstream()))
}

/// A side of a relayed pair.
#[derive(Default)]
struct Half {
    /// The other side; `None` while a connection to an upstream is being made.
    partner: Option<Slot>,
    queued: Vec<u8>,
    sending: bool,
    last: bool,
    closing: bool,
}

/// Accepts, connects to the upstream, and passes bytes on both ways; what fails on one side ends the other.
struct Relay {
    world: Simulated,
    halves: HashMap<Slot, Half>,
    /// Outcomes of connecting, in order; 23 where there was no slot.
    outcomes: Vec<i32>,
    stopped: bool,
}

impl Relay {
    fn new(world: Simulated) -> Self {
        Self { world, halves: HashMap::new(), outcomes: Vec::new(), stopped: false }
    }

    /// Until every peer is done.
    fn run(&mut self) {
        self.world.accept(0);
        for _ in 0..20_000 {
            if self.world.finished() {
                return self.world.check_empty();
            }
            self.world.submit_and_wait(Some(Duration::from_secs(10))).unwrap();
            while let Some(completion) = self.world.next_completion() {
                self.take(completion);
            }
            if std::mem::take(&mut self.stopped) {
                self.world.accept(0);
            }
        }
        panic!("the peers were not done in 20 000 turns");
    }

    fn take(&mut self, completion: Completion) {
        match completion {
            Completion::Accepted { slot, .. } => {
                assert!(!BOTH.is_connected(slot));
                self.halves.insert(slot, Half::default());
                match self.world.connect(&target()) {
                    Ok(upstream) => self.tie(slot, upstream),
                    Err(error) => {
                        self.outcomes.extend(error.raw_os_error());
                        self.close(slot);
                    }
                }
            }
            Completion::Connected { slot, errno } => {
                assert!(BOTH.is_connected(slot));
                self.outcomes.push(errno);
                match self.halves[&slot].partner {
                    Some(partner) if errno == 0 => {
                        self.world.receive(slot);
                        self.world.receive(partner);
                    }
                    _ => self.close(slot),
                }
            }
            Completion::Received { slot, input } => {
                let bytes = self.world.input(&input).to_vec();
                self.world.release(input);
                self.world.pause(slot);
                let Some(to) = self.halves[&slot].partner else { return };
                self.half(to).queued.extend(bytes);
                self.go_on(to);
            }
            Completion::Sent { slot, errno, .. } => {
                self.half(slot).sending = false;
                if errno == 0 { self.go_on(slot) } else { self.close(slot) }
            }
            Completion::Ended { slot, errno: 0 } => {
                let Some(to) = self.halves[&slot].partner else { return };
                self.half(to).last = true;
                self.go_on(to);
            }
            Completion::Ended { slot, .. } => self.close(slot),
            Completion::Closed { slot } => drop(self.halves.remove(&slot)),
            Completion::AcceptStopped { .. } => self.stopped = true,
            Completion::Progress { .. } | Completion::Woken => {}
            Completion::Inspected { .. } | Completion::Ready { .. } => panic!("nobody asks"),
        }
    }

    fn half(&mut self, slot: Slot) -> &mut Half {
        self.halves.get_mut(&slot).expect("an end that is open")
    }

    fn tie(&mut self, slot: Slot, upstream: Slot) {
        let before = self.halves.insert(upstream, Half { partner: Some(slot), ..Half::default() });
        assert!(before.is_none(), "a slot in use");
        self.half(slot).partner = Some(upstream);
    }

    fn go_on(&mut self, slot: Slot) {
        let half = self.half(slot);
        if half.sending || half.closing {
            return;
        }
        if !half.queued.is_empty() {
            half.sending = true;
            let mut outgoing = Box::<Outgoing>::default();
            outgoing.bytes().append(&mut half.queued);
            return self.world.send(slot, outgoing, false);
        }
        let (partner, last) = (half.partner, half.last);
        match partner {
            Some(partner) if !last => self.world.receive(partner),
            // The end of one direction ends the exchange: enough for what is tested here.
            _ => self.close(slot),
        }
    }

    /// Closes an end, and its partner after what is queued for it.
    fn close(&mut self, slot: Slot) {
        let half = self.half(slot);
        if std::mem::replace(&mut half.closing, true) {
            return;
        }
        let partner = half.partner.take();
        self.world.close(slot);
        if let Some(partner) = partner {
            let half = self.half(partner);
            (half.partner, half.last) = (None, true);
            self.go_on(partner);
        }
    }
}

fn client(world: &mut Simulated) -> PeerId {
    world.peer(vec![Step::Send(REQUEST.to_vec()), Step::UntilReceived(RESPONSE.len()), Step::Close])
}

fn answering() -> Vec<Step> {
    vec![Step::UntilReceived(REQUEST.len()), Step::Send(RESPONSE.to_vec()), Step::UntilReceived(usize::MAX)]
}

#[test]
fn bytes_go_both_ways_however_they_are_cut() {
    for seed in 0..100 {
        for faults in [Faults::NONE, Faults::GENTLE] {
            let mut relay = Relay::new(Simulated::new(seed, faults, BOTH));
            let clients: Vec<_> = (0..2).map(|_| client(&mut relay.world)).collect();
            let upstreams: Vec<_> =
                (0..2).map(|_| relay.world.listener_at(upstream(), answering())).collect();
            relay.run();
            assert_eq!(relay.outcomes, [0, 0], "seed {seed}");
            for (client, upstream) in clients.into_iter().zip(upstreams) {
                assert_eq!(relay.world.transcript(client).received, RESPONSE, "seed {seed}");
                assert_eq!(relay.world.transcript(upstream).received, REQUEST, "seed {seed}");
            }
        }
    }
}

/// The upstream breaks off, or ends in order, after each number of bytes it has sent.
#[test]
fn an_answer_is_cut_at_every_byte() {
    for length in 0..=RESPONSE.len() {
        for end in [Step::Reset, Step::Close] {
            for (seed, faults) in [(1, Faults::NONE), (2, Faults::GENTLE), (3, Faults::GENTLE)] {
                let mut relay = Relay::new(Simulated::new(seed, faults, BOTH));
                let client = client(&mut relay.world);
                let part = RESPONSE[..length].to_vec();
                let upstream = relay.world.listener_at(
                    upstream(),
                    vec![Step::UntilReceived(REQUEST.len()), Step::Send(part), Step::Wait(50), end.clone()],
                );
                relay.run();
                let seen = &relay.world.transcript(client).received;
                assert!(RESPONSE[..length].starts_with(seen), "{length}: {seen:?}");
                assert!(end == Step::Reset || seen.len() == length, "{length}: {seen:?}");
                assert_eq!(relay.world.transcript(upstream).received, REQUEST);
            }
        }
    }
}

/// The upstream takes each number of bytes, and breaks off.
#[test]
fn a_request_is_cut_at_every_byte() {
    for length in 0..REQUEST.len() {
        for (seed, faults) in [(1, Faults::NONE), (2, Faults::GENTLE)] {
            let mut relay = Relay::new(Simulated::new(seed, faults, BOTH));
            let client = client(&mut relay.world);
            let cut = vec![Step::TakeUpTo(length), Step::UntilReceived(length), Step::Reset];
            let upstream = relay.world.listener_at(upstream(), cut);
            relay.run();
            assert_eq!(relay.world.transcript(upstream).received, REQUEST[..length]);
            assert_eq!(relay.world.transcript(client).received, b"");
            assert!(relay.world.transcript(client).ended.is_some());
        }
    }
}

/// The upstream takes nothing for an hour, then all; so does the client.
#[test]
fn peers_that_stall_hold_back_and_lose_nothing() {
    for seed in 0..50 {
        let mut relay = Relay::new(Simulated::new(seed, Faults::GENTLE, BOTH));
        let script = vec![
            Step::Stall,
            Step::Send(REQUEST.to_vec()),
            Step::Wait(3_600_000),
            Step::Read,
            Step::UntilReceived(RESPONSE.len()),
            Step::Close,
        ];
        let client = relay.world.peer(script);
        let stalls = [Step::TakeUpTo(3), Step::Wait(1_800_000), Step::Read].into_iter().chain(answering());
        let upstream = relay.world.listener_at(upstream(), stalls.collect());
        relay.run();
        assert_eq!(relay.world.transcript(client).received, RESPONSE, "seed {seed}");
        assert_eq!(relay.world.transcript(upstream).received, REQUEST, "seed {seed}");
    }
}

#[test]
fn an_upstream_refuses_or_stays_silent() {
    let mut relay = Relay::new(Simulated::new(1, Faults::NONE, BOTH));
    let refused = client(&mut relay.world);
    relay.run();
    assert_eq!(relay.outcomes, [111]);
    assert_eq!(relay.world.transcript(refused).ended, Some(End::Reset));
    let mut relay = Relay::new(Simulated::new(1, Faults::NONE, BOTH));
    let ignored = client(&mut relay.world);
    relay.world.deaf_at(upstream());
    let began_ms = relay.world.now_ms();
    relay.run();
    assert_eq!(relay.outcomes, [110]);
    assert!(relay.world.transcript(ignored).ended_ms >= began_ms + 127_000);
}

/// Each kind of slot runs out by itself.
#[test]
fn slots_to_connect_with_run_out_and_accepting_goes_on() {
    let mut relay = Relay::new(Simulated::new(1, Faults::NONE, BOTH));
    relay.world.deaf_at(upstream());
    let clients: Vec<_> = (0..9).map(|_| client(&mut relay.world)).collect();
    relay.run();
    assert_eq!(relay.outcomes.iter().filter(|&&errno| errno == 110).count(), 2, "{:?}", relay.outcomes);
    assert_eq!(relay.outcomes.iter().filter(|&&errno| errno == 23).count(), 7, "{:?}", relay.outcomes);
    assert!(clients.iter().all(|&client| relay.world.transcript(client).ended.is_some()));
}

#[test]
fn a_hostile_world_gives_prefixes_only() {
    for seed in 0..300 {
        let mut relay = Relay::new(Simulated::new(seed, Faults::HOSTILE, BOTH));
        let clients: Vec<_> = (0..6).map(|_| client(&mut relay.world)).collect();
        let upstreams: Vec<_> = (0..4).map(|_| relay.world.listener_at(upstream(), answering())).collect();
        relay.run();
        for client in clients {
            assert!(RESPONSE.starts_with(&relay.world.transcript(client).received), "seed {seed}");
        }
        for upstream in upstreams {
            assert!(REQUEST.starts_with(&relay.world.transcript(upstream).received), "seed {seed}");
        }
    }
}
