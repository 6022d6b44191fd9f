//! What time brings: announcements, repetitions, peers that were silent for too long.

use super::control::Control;
use super::table::{Due, Entry, Probe, Size};
use super::{PeerEvent, Peers};
use crate::header::Kind;
use crate::limits::{GONE_MS, PROBE_AGAIN_MS, UNREACHABLE_MS};

/// What is to be done about a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Probe(Probe),
    /// Ask with a frame of the size that both could take.
    ProbeSize(Probe),
    SmallPath,
    Gone,
}

impl Peers {
    /// Does what is due. Calling it too early or too late does no harm.
    pub fn tick(&mut self, now_ms: u64) {
        if self.refused_by.is_some() || self.has_left {
            return;
        }
        if self.hello_again_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.hello_again_ms = None;
            self.say_hello(now_ms, self.hello_challenge);
        }
        if self.announce_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.say_hello(now_ms, 0);
        }
        if self.look_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.look_ms = None;
            self.look_at_peers(now_ms);
            self.look_at_questions(now_ms);
        }
    }

    fn look_at_peers(&mut self, now_ms: u64) {
        let mut place = 0;
        loop {
            let challenge = self.draw();
            let own_mtu = self.own.mtu;
            let Some(entry) = self.table.at(place) else { break };
            let address = entry.address;
            let step = entry.step(challenge, now_ms);
            let both_mtu = own_mtu.min(entry.told_mtu);
            let next_ms = entry.next_ms();
            match step {
                Step::Nothing => {}
                Step::Probe(probe) => self.send_probe(address, probe, 0, now_ms),
                Step::ProbeSize(probe) => self.send_probe(address, probe, both_mtu, now_ms),
                Step::SmallPath => self.events.push_back(PeerEvent::SmallPath(address)),
                Step::Gone => {
                    self.table.remove(address);
                    self.events.push_back(PeerEvent::Gone(address));
                    continue;
                }
            }
            self.look_at(next_ms);
            // A step may be followed by another one at once.
            if step == Step::Nothing {
                place += 1;
            }
        }
    }

    fn look_at_questions(&mut self, now_ms: u64) {
        let addresses: Vec<u16> = self.asking.keys().copied().collect();
        for address in addresses {
            let Some(asking) = self.asking.get_mut(&address) else { continue };
            if let Some(until_ms) = asking.failed_until_ms {
                if until_ms <= now_ms {
                    self.asking.remove(&address);
                } else {
                    self.look_at(until_ms);
                }
                continue;
            }
            let due = asking.probe.due(now_ms);
            let (probe, wanted) = (asking.probe, asking.wanted);
            match due {
                Due::Wait => self.look_at(probe.next_ms),
                Due::Send => {
                    self.look_at(probe.next_ms);
                    self.send_probe(address, probe, 0, now_ms);
                }
                Due::Failed => {
                    asking.failed_until_ms = Some(now_ms + UNREACHABLE_MS);
                    self.look_at(now_ms + UNREACHABLE_MS);
                    if wanted {
                        self.events.push_back(PeerEvent::Unreachable(address));
                    }
                }
            }
        }
    }

    fn send_probe(&mut self, address: u16, probe: Probe, frame_bytes: u16, now_ms: u64) {
        let control = Control {
            to: probe.to,
            kind: Kind::Probe,
            destination: address,
            challenge: probe.challenge,
            echo: 0,
            frame_bytes,
        };
        self.outbox.push(now_ms, control);
    }
}

impl Entry {
    /// The next thing to be done about this peer, which is noted as done.
    fn step(&mut self, challenge: u64, now_ms: u64) -> Step {
        if !self.stale && self.fresh_until_ms <= now_ms {
            self.stale = true;
            if self.is_spoken_to(now_ms) && self.probe.is_none() {
                self.probe = Some(Probe::new(challenge, self.link, now_ms));
            }
        }
        if let Size::Asking(probe) = &mut self.size {
            match probe.due(now_ms) {
                Due::Wait => {}
                Due::Send => return Step::ProbeSize(*probe),
                Due::Failed => {
                    self.size = Size::Small;
                    return Step::SmallPath;
                }
            }
        }
        if let Some(probe) = &mut self.probe {
            return match probe.due(now_ms) {
                Due::Wait => Step::Nothing,
                Due::Send => Step::Probe(*probe),
                Due::Failed => self.failed(challenge, now_ms),
            };
        }
        if now_ms >= self.heard_ms + GONE_MS { Step::Gone } else { Step::Nothing }
    }

    /// The link address that was asked does not answer: the claimant is asked, if there is one that was not.
    fn failed(&mut self, challenge: u64, now_ms: u64) -> Step {
        let asked = self.probe.map(|probe| probe.to);
        match self.claimant {
            Some(claimant) if asked != Some(claimant.link) => {
                let mut probe = Probe::new(challenge, claimant.link, now_ms);
                probe.due(now_ms);
                self.probe = Some(probe);
                Step::Probe(probe)
            }
            _ => Step::Gone,
        }
    }

    /// When something is to be done about it at the earliest.
    fn next_ms(&self) -> u64 {
        let probe_ms = self.probe.map(|probe| probe.next_ms);
        let size_ms = if let Size::Asking(probe) = self.size { Some(probe.next_ms) } else { None };
        let age_ms = if self.stale { self.heard_ms + GONE_MS } else { self.fresh_until_ms };
        let asked = probe_ms.into_iter().chain(size_ms).min();
        // While a question is open, age decides nothing.
        asked.map_or(age_ms, |at_ms| if probe_ms.is_some() { at_ms } else { at_ms.min(age_ms) })
    }
}

const _: () = assert!(PROBE_AGAIN_MS > 0, "a question that is sent waits before it is looked at again");
