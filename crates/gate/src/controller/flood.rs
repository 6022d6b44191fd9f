//! Whether SYN come that nobody means: many of them, costing much, of which few become connections.
//!
//! It never says which source lies; it says that a source has to show it is there.

use super::history::{History, Totals, plausible};
use super::line::{FULL_SHARE, Line};
use super::load::Hint;
use crate::observation::{Observation, UNKNOWN};

/// SYN that cost this share of a processor are worth asking for proof; at 5 us they are 40 000 a second.
const HIGH_SHARE: f64 = 0.20;
/// A flood hinders no client while so many do not wait for longer than this, and while reception has this
/// share of its processor left: on a processor of its own it hinders none, and the kernel's cookies let all
/// newcomers in at once.
const HINDERED_COUNT: f64 = 4.0;
const HINDERED_NS: u64 = 10_000_000;
const ROOM_SHARE: f64 = 0.02;
/// A flood that is passed is said again after so long, and is over when it was not seen for the second.
const SAID_NS: u64 = 60_000_000_000;
const PASSED_NS: u64 = 1_000_000_000;
/// Without a tracker nobody knows which became connections, so it takes more.
const HIGH_SHARE_BLIND: f64 = 0.40;
/// Half of the threshold, for half a second, ends it.
const LOW_SHARE: f64 = 0.10;
const LOW_NS: u64 = 500_000_000;
/// Fewer than half of those let in finish their handshake.
const FINISHED_LOW: f64 = 0.5;
/// When most of those probed do, they are people, and not asked any longer.
const FINISHED_HIGH: f64 = 0.7;
/// So many ticks in turn must look like one: a burst is not a flood, and 20 ms are kept.
const SUSPICIONS: u32 = 2;
/// What a look takes in.
const LOOK_NS: u64 = 10_000_000;
/// While the kernel drops handshakes for want of room, that few finish says nothing of who sent them.
const FULL_NS: u64 = 20_000_000;
/// Drops are told 20 times a second; two readings without any say that nobody is dropped any more.
const DROPPING_NS: u64 = 100_000_000;
/// A server that stood still may keep newcomers out until it has caught up; when it does so for longer than
/// this, pauses subtracted, it is a crowd.
const DROPPING_LONG_NS: u64 = 300_000_000;
/// The kernel counts a RST for a connection the server has forgotten as a drop of its listener
/// (net/ipv4/tcp_input.c, tcp_drop_reason). So drops are believed only when in that time they are as many as
/// this share of the SYN let in, and as many of these did not become connections; [`COUNT_LEAST`] at least.
const DROPPED_SHARE: f64 = 0.25;
/// What is said of finished handshakes is a mean over this, several round trips of most people.
const FINISHED_NS: u64 = 300_000_000;
/// Fewer say nothing.
const COUNT_LEAST: u64 = 20;
/// If fewer than one in twenty finish, credits are not multiplied further.
const FINISHED_LEAST: f64 = 0.05;
/// Processor time the kernel spends on a SYN, at the least and most: a measure outside is not one of it.
const COST_NS: (f64, f64) = (1_000.0, 20_000.0);
/// The measured cost is a mean over this.
const COST_MEAN_NS: f64 = 500_000_000.0;
/// Two looks at what a processor does with SYN alone need it to do nearly nothing else.
const COST_FROM_SHARE: f64 = 0.5;

/// What is known of SYN that are not meant.
#[derive(Debug)]
pub(crate) struct Flood {
    /// Unknown sources have to show that they are there.
    pub verify: bool,
    /// Share of unknown SYN let in that become connections, 0.05 to 1.
    pub finished: f64,
    /// Processor time of one SYN.
    pub cost_ns: f64,
    quiet_ns: u64,
    people_ns: u64,
    since_full_ns: u64,
    dropping_ns: u64,
    suspicions: u32,
    passed_ns: u64,
    until_said_ns: u64,
    says: Option<u64>,
}

impl Flood {
    /// Nothing seen yet.
    pub(crate) fn new(cost_ns: u64) -> Flood {
        let cost_ns = (cost_ns as f64).clamp(COST_NS.0, COST_NS.1);
        Flood {
            verify: false,
            finished: 1.0,
            cost_ns,
            quiet_ns: 0,
            people_ns: 0,
            since_full_ns: FINISHED_NS,
            dropping_ns: 0,
            suspicions: 0,
            passed_ns: PASSED_NS,
            until_said_ns: 0,
            says: None,
        }
    }

    /// Whether a flood is left to the kernel's cookies.
    pub(crate) fn is_passing(&self) -> bool {
        self.passed_ns < PASSED_NS
    }

    /// The hint that a flood is left to the kernel's cookies, when it is to be said.
    pub(crate) fn passed(&self) -> Option<Hint> {
        self.says.map(|syn_per_s| Hint::FloodPassed { syn_per_s })
    }

    /// Whether most unknown SYN let in become connections.
    pub(crate) fn people(&self) -> bool {
        self.finished >= FINISHED_HIGH
    }

    /// Whether those who are let in are dropped behind the gate: there is no place, or the server keeps
    /// newcomers out itself.
    pub(crate) fn dropping(&self) -> bool {
        self.since_full_ns < DROPPING_NS
    }

    /// Whether those who are let in are dropped for longer than at the end of a standstill.
    pub(crate) fn keeps_dropping(&self) -> bool {
        self.dropping_ns >= DROPPING_LONG_NS
    }

    /// Takes a tick in.
    pub(crate) fn see(&mut self, o: &Observation, history: &History, line: &Line) {
        let full = o.queue.is_some_and(|queue| queue.fullest_share >= FULL_SHARE) || dropped(o, history);
        let tick = history.tick();
        self.since_full_ns = if full { 0 } else { self.since_full_ns.saturating_add(tick.at_ns) };
        self.dropping_ns = match self.dropping() {
            true => (self.dropping_ns + tick.at_ns).min(DROPPING_LONG_NS),
            false => self.dropping_ns.saturating_sub(tick.at_ns),
        };
        if o.connections.is_some() && self.since_full_ns >= FINISHED_NS {
            self.follow_finished(&history.last(FINISHED_NS));
        }
        self.passed_ns = self.passed_ns.saturating_add(tick.at_ns);
        self.until_said_ns = self.until_said_ns.saturating_sub(tick.at_ns);
        self.says = None;
        if self.verify {
            self.see_end(o, history);
        } else if self.suspected_again(o, history, line.rate) {
            if hinders(o, line) {
                (self.verify, self.suspicions, self.quiet_ns, self.people_ns) = (true, 0, 0, 0);
                self.passed_ns = PASSED_NS;
            } else {
                self.pass(history);
            }
        }
        self.measure(o, &tick);
    }

    /// Share of a processor that so many SYN cost the kernel.
    pub(crate) fn share(&self, syn: u64, time_ns: u64) -> f64 {
        syn as f64 * self.cost_ns / time_ns.max(1) as f64
    }

    /// Those who ask in earnest: while proof is asked for, first SYN of unknown sources count as far as they
    /// became connections.
    pub(crate) fn earnest(&self, totals: &Totals) -> f64 {
        let [known, verified, unknown] = totals.syn.map(|count| count as f64);
        known + verified + unknown * if self.verify { self.finished * 0.5 } else { 1.0 }
    }

    /// Leaves a flood to the kernel, and says so when it begins and once a minute.
    fn pass(&mut self, history: &History) {
        if !self.is_passing() {
            self.until_said_ns = 0;
        }
        self.passed_ns = 0;
        if self.until_said_ns == 0 {
            self.until_said_ns = SAID_NS;
            self.says = Some(history.last(LOOK_NS).syn_per_s() as u64);
        }
    }

    fn suspected_again(&mut self, o: &Observation, history: &History, rate: f64) -> bool {
        self.suspicions = if self.suspected(o, history, rate) { self.suspicions + 1 } else { 0 };
        self.suspicions >= SUSPICIONS
    }

    fn suspected(&self, o: &Observation, history: &History, rate: f64) -> bool {
        let look = history.last(LOOK_NS);
        let passed = look.passed_all();
        if look.at_ns < LOOK_NS || look.syn[UNKNOWN] < COUNT_LEAST {
            return false;
        }
        let share = self.share(look.syn[UNKNOWN], look.at_ns);
        match o.connections {
            Some(_) => {
                let few =
                    (look.established as f64) < passed as f64 * FINISHED_LOW || self.finished < FINISHED_LOW;
                share >= HIGH_SHARE && few && self.since_full_ns >= FULL_NS
            }
            None => share >= HIGH_SHARE_BLIND && passed as f64 * 1e9 / look.at_ns as f64 > 4.0 * rate,
        }
    }

    fn see_end(&mut self, o: &Observation, history: &History) {
        let tick = history.tick();
        let last = history.last(FINISHED_NS);
        let quiet = self.share(last.syn[UNKNOWN], last.at_ns) < LOW_SHARE;
        let people =
            o.connections.is_some() && last.passed[UNKNOWN] >= COUNT_LEAST && self.finished >= FINISHED_HIGH;
        self.quiet_ns = if quiet { self.quiet_ns.saturating_add(tick.at_ns) } else { 0 };
        self.people_ns = if people { self.people_ns.saturating_add(tick.at_ns) } else { 0 };
        if self.quiet_ns >= LOW_NS || self.people_ns >= LOW_NS {
            self.verify = false;
        }
    }

    /// Known and verified sources are taken to finish; what is left of the handshakes are those of unknown
    /// ones.
    fn follow_finished(&mut self, last: &Totals) {
        let [known, verified, unknown] = last.passed;
        if unknown >= COUNT_LEAST {
            let finished = last.established.saturating_sub(known + verified) as f64 / unknown as f64;
            self.finished = finished.clamp(FINISHED_LEAST, 1.0);
        }
    }

    /// When SYN take most of the processor that receives, its share divided by their number is what one
    /// costs.
    fn measure(&mut self, o: &Observation, tick: &Totals) {
        let passed = tick.passed_all() + plausible(o.elsewhere);
        let Some(share) = o.receive_share.filter(|share| (COST_FROM_SHARE..=1.0).contains(share)) else {
            return;
        };
        if passed < COUNT_LEAST || self.share(passed, tick.at_ns) < COST_FROM_SHARE {
            return;
        }
        let cost = (share * tick.at_ns as f64 / passed as f64).clamp(COST_NS.0, COST_NS.1);
        let weight = tick.at_ns as f64 / (tick.at_ns as f64 + COST_MEAN_NS);
        self.cost_ns += (cost - self.cost_ns) * weight;
    }
}

/// Whether anybody is hindered, as far as can be seen; always where nobody counts connections.
fn hinders(o: &Observation, line: &Line) -> bool {
    let waits = line.head_ns >= HINDERED_NS && line.queue >= HINDERED_COUNT;
    let share = o.receive_share.into_iter().chain(o.cpu.map(|cpu| cpu.kernel_share)).fold(0.0, f64::max);
    o.connections.is_none() || waits || share > 1.0 - ROOM_SHARE
}

/// Whether it was just told that those who are let in are dropped.
fn dropped(o: &Observation, history: &History) -> bool {
    let last = history.last(DROPPING_NS);
    let many = (last.passed_all() as f64 * DROPPED_SHARE).max(COUNT_LEAST as f64);
    let missing = last.passed_all().saturating_sub(last.established) as f64;
    let told = o.listen_drops.is_some_and(|drops| drops > 0);
    told && last.dropped as f64 >= many && (o.connections.is_none() || missing >= many)
}
