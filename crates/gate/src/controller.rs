//! How many connections may come in: from what one tick sees to the orders for the next.
//!
//! It owns the law of control and its state, for one port: another has a controller of its own. It must never
//! read a clock, a file or a map: time is what the observations say. Calls: [`Controller::new`] once,
//! [`Controller::step`] for every tick, in order of time.
//!
//! # The law
//!
//! Written for a tick of 5 ms; any interval is taken as it is. What is measured (`controller/line.rs`):
//!
//! ```text
//! line   connections that began to wait since the head did, no more than wait at all
//! head   age of the one the server began with last: the shortest wait that ended in this tick
//! rate   mean of beginnings a second while head >= interval       (100 ms; 100 connections; 500 ms at most)
//! wait = line / rate                                              (Little: what one who comes now will wait)
//! ```
//!
//! A connection waits from its first bytes on until the server reads: who says nothing stands in no line. A
//! server that speaks before its clients do (`greeting.rs`) keeps them waiting from the handshake on.
//!
//! Of a server that had little to do the rate is what it was asked for, so whether a crowd came is judged by
//! what was begun in the last 10 ms, where that is more. A server that begins with nobody for 50 ms stands
//! still, and its rate is kept. A line that does not move for a second is not believed: the sockets
//! themselves are asked who waits, once a second, and those who do not are left out of it.
//!
//! **Overload** (`crowd.rs`): `head >= 2 ms` and `wait >= trigger` and either `line >= 20` and 20 more came
//! than three times the rate allows, or `line >= 128` and (`wait >= 8 trigger`, also at the rate of the last
//! 2 s, a flood, the accept queue half full, or 0.3 s of drops behind the gate: a quarter of those let in,
//! who are missing); or the accept queue is 95 % full for three ticks.
//!
//! - 2 ms, CoDel's standing queue: somebody who is read at once shows that nobody is in the way.
//! - 50 ms of `trigger`: twice the target, a twentieth of the patience of people; at 0.9 times capacity a
//!   server of 300 us reaches it once in 10^7 moments, and a stall of 20 ms does not reach it.
//! - 400 ms, unless the load jumps: a host that takes a fifth of the server's time for two seconds makes a
//!   line of 200 ms beside nine tenths of the load. Who waits is served; who is shed comes again after 1 s.
//! - 128: below capacity the length of the line, not its time, is what chance bounds: 0.9^128 = 10^-6. So a
//!   server of 4 ms begins to shed at 510 ms of wait when the load creeps up.
//!
//! Nor is it a jump unless more came than usually do since each moment of the last 50 to 250 ms, by 20 and by
//! three deviations: when the host, the way to it or a client of many stood still, who could not come comes
//! all at once. A jump is not found by chance: the tracker rings when 20 more come within 8 ms than three
//! times the rate allows, and the next tick is at once.
//!
//! **Admission** (`budget.rs`), SYN for each interval that passed:
//!
//! ```text
//! budget = max(floor, rate * interval * clamp(1 + (target - line - pending) / (2 * target), 0, 1.5) / yield)
//! target = rate * 25 ms, at least 6, at most half of the accept queue
//! yield  = share of those let in within the last second who came to wait, at least 1/16
//! floor  = rate * interval / 10; 1 while the server begins with nobody
//! ```
//!
//! What left is replaced; the line's error is corrected with 50 ms, twice the target. At `wait = 75 ms`
//! only the floor is let in, which is how a jump to ten times (100 ms of line at 11 ms) is settled at 100 ms.
//! `pending` are those let in who are expected to come and have not, forgotten with 300 ms: without it a
//! round trip of 100 ms makes the loop swing. It is nothing where those let in are dropped. The interval is
//! the one that passed, so a late tick grants what its lateness kept back. A line of 25 ms is what the
//! server works at meanwhile. If SYN are shed for 50 ms while nobody stands in line, the rate is wrong, and
//! more come in, by e each 100 ms, until somebody does. Whatever is believed, the floor comes in: the gate
//! is never the outage.
//!
//! **Parts** (`shares.rs`): known sources first, 1/16 kept for unknown ones; one who comes again last, for
//! fresh ones are still in time. Of unknown ones so many SYN as make the wanted number of connections, by
//! the share that finished lately.
//!
//! **Flood** (`flood.rs`): unknown SYN that cost 20 % of a processor (5 us each, or as measured), of which
//! fewer than half finish, for 10 ms. Then 150 unknown sources a second are probed; those who come again as a
//! kernel does come in. It ends when unknown SYN cost less than 10 % for half a second, or when 70 % of those
//! probed finish.
//!
//! **Standing aside**: an accept queue of at most 16 places bounds the server by itself (`small.rs`). A flood
//! beside which nobody waits for 10 ms, and reception has room, is left to the kernel's cookies: to ask
//! newcomers for proof would cost each of them a second.
//!
//! **Release**: in half a second fewer than 75 % of the rate came, or in two seconds fewer than 85 %, by five
//! deviations of a Poisson count fewer than the rate, and the wait is below the target. Close to capacity
//! that is as rare as it is asked for; and if a release proved wrong within a minute, the next one waits a
//! minute unless fewer than half come. Or in a full minute (ten, after a release that proved wrong) one SYN
//! of a thousand was shed, or fewer: just below capacity neither count would ever say so.
//!
//! **Pressure** (`pressure.rs`): the paper's rule and memory, which know no rate; admission falls from what
//! came in before, by e in 0.5 s, down to a tenth.

mod budget;
mod crowd;
mod flood;
mod greeting;
mod history;
mod line;
mod load;
mod pressure;
mod settings;
mod shares;
mod small;

pub use line::Corrected;
pub use load::Hint;
pub use settings::{Policy, Settings};

use crate::layout::ALARM_NS;
use crate::observation::{KNOWN, Observation, Orders, State, UNKNOWN, VERIFIED};
use budget::{Budget, INTERVAL_NS_LIMIT};
use crowd::Crowd;
use flood::Flood;
use greeting::Greeting;
use history::{GAP_NS, History};
use line::Line;
use load::Load;
use pressure::Pressure;
use shares::{Shares, WINDOW_NS};
use small::Small;

/// So many unknown sources are probed in a second while proof is asked for: 45 in the time in which it is
/// looked who finishes. Each that is forged is answered six times, and kept in mind for a minute.
const PROBES_PER_S: f64 = 150.0;
/// Processor time SYN of known and of verified sources may cost while proof is asked for and nobody waits:
/// far above what people send, far below what starves the server.
const TRUSTED_SHARE: f64 = 0.25;

/// What a step says.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// For the program.
    pub orders: Orders,
    /// When the state changed in this step.
    pub change: Option<Change>,
    /// What the one who runs the server should know.
    pub hint: Option<Hint>,
    /// Whether the sockets themselves are to be asked who waits ([`Observation::sockets_waiting`]).
    pub asks_sockets: bool,
    /// What the law knows of the server.
    pub estimate: Estimate,
}

/// A change of state, to be logged in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The state it was.
    pub from: State,
    /// The state it is.
    pub to: State,
    /// Why, in one sentence with its figures.
    pub reason: String,
}

/// What the law knows of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Connections the server begins in a second when it is busy; 0 until it was.
    pub served_per_s: f64,
    /// Connections that stand in line.
    pub waiting: f64,
    /// How long one who comes now will wait, in seconds.
    pub wait_s: f64,
    /// How long those had waited, in seconds, with whom the server began in this step: the least of them. 0
    /// where it began with nobody.
    pub waited_s: f64,
    /// Share of a processor that the SYN let in cost the kernel.
    pub syn_cost_share: f64,
    /// Processor time of one SYN, in nanoseconds.
    pub syn_cost_ns: f64,
    /// Share of unknown SYN that become connections.
    pub finished_share: f64,
    /// SYN that come in a second.
    pub syn_per_s: f64,
    /// Share of those let in who come to wait; the others say nothing, or have gone.
    pub asking_share: f64,
    /// Whether the server speaks before its clients do.
    pub speaks_first: bool,
    /// Whether the accept queue is so short that the gate stands aside.
    pub small_queue: bool,
    /// Whether a flood is left to the kernel's cookies, for it hinders nobody.
    pub flood_passed: bool,
}

/// The law with its state.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    state: State,
    history: History,
    line: Line,
    crowd: Crowd,
    flood: Flood,
    pressure: Pressure,
    budget: Budget,
    shares: Shares,
    load: Load,
    greeting: Greeting,
    small: Small,
    queue: Option<crate::observation::Queue>,
}

impl Controller {
    /// Nothing seen yet, open.
    pub fn new(settings: Settings) -> Controller {
        Controller {
            settings,
            state: State::Open,
            history: History::default(),
            line: Line::default(),
            crowd: Crowd::default(),
            flood: Flood::new(settings.syn_cost_ns),
            pressure: Pressure::default(),
            budget: Budget::default(),
            shares: Shares::default(),
            load: Load::default(),
            greeting: Greeting::default(),
            small: Small::default(),
            queue: None,
        }
    }

    /// Takes in what a tick has seen, and says what to do until the next.
    pub fn step(&mut self, o: &Observation) -> Decision {
        let interval_ns = o.interval_ns.min(GAP_NS);
        self.see(o, interval_ns);
        let load = self.load.see(o, &self.line, &self.history, &self.settings);
        let small = self.small.see(o, self.line.queue);
        let change = self.change();
        let orders = match self.state {
            State::Open => Orders { window: window(o), alarm: self.alarm(), ..Orders::default() },
            State::Shedding => self.shed(o, interval_ns as f64),
        };
        let orders = Orders { speaks_first: self.greeting.is_first, ..orders };
        let asks_sockets = self.line.doubts(self.state == State::Shedding);
        let hint = self.line.corrected().map(Hint::Corrected).or(small).or(self.flood.passed()).or(load);
        Decision { orders, change, hint, asks_sockets, estimate: self.estimate() }
    }

    fn see(&mut self, o: &Observation, interval_ns: u64) {
        self.queue = o.queue;
        self.history.add(o, interval_ns);
        self.greeting.see(&self.history);
        self.line.see(o, interval_ns, &self.history, !self.flood.verify);
        self.flood.see(o, &self.history, &self.line);
        self.crowd.see(o, &self.line, &self.history, &self.settings, &self.flood);
        self.pressure.see(o, &self.history, &self.settings);
        let tick = self.history.tick();
        let on_their_way = if self.flood.verify { 0.0 } else { self.flood.finished };
        let counted = o.connections.is_some() && !self.flood.dropping();
        self.budget.see(&self.line, &tick, on_their_way, counted);
        self.shares.see(&tick);
    }

    /// The three causes that stand under this policy: a crowd, a flood, pressure.
    fn causes(&self) -> [bool; 3] {
        let by_queue = self.settings.policy != Policy::Paper;
        let by_paper = self.settings.policy != Policy::Queue;
        [
            by_queue && self.crowd.there && !self.small.there,
            by_queue && self.flood.verify,
            by_paper && self.pressure.processor || self.pressure.memory,
        ]
    }

    fn change(&mut self) -> Option<Change> {
        let causes = self.causes();
        let to = if causes.contains(&true) { State::Shedding } else { State::Open };
        let from = std::mem::replace(&mut self.state, to);
        if from == to {
            return None;
        }
        self.shares.begin();
        Some(Change { from, to, reason: self.reason(causes) })
    }

    fn reason(&self, causes: [bool; 3]) -> String {
        let last = self.history.last(WINDOW_NS);
        let syn = last.syn_per_s();
        let (wait_ms, rate) = (self.line.shown_wait_s() * 1e3, self.line.shown_rate());
        match causes {
            [true, _, _] => format!(
                "{:.0} connections wait, {wait_ms:.0} ms at the {rate:.0} a second that are served; \
                 {syn:.0} SYN a second come",
                self.line.queue
            ),
            [_, true, _] => format!(
                "{syn:.0} SYN a second come, {:.0} % of those of unknown sources become connections",
                self.flood.finished * 100.0
            ),
            [_, _, true] if self.pressure.memory => format!("memory is short; {syn:.0} SYN a second come"),
            [_, _, true] => format!(
                "the kernel takes more than {:.0} % of a processor with more than {} sockets; \
                 {syn:.0} SYN a second come",
                self.settings.cpu_high * 100.0,
                self.settings.sockets_high
            ),
            _ => format!("{syn:.0} SYN a second come, {rate:.0} can be served, {wait_ms:.0} ms is the wait"),
        }
    }

    /// So many at once are steep, wherever the tick they came in began (`crowd.rs`).
    fn alarm(&self) -> u64 {
        (crowd::STEEP_COUNT + crowd::STEEP_TIMES * self.line.rate * ALARM_NS as f64 / 1e9).ceil() as u64
    }

    fn shed(&mut self, o: &Observation, interval_ns: f64) -> Orders {
        let [crowd, verify, pressure] = self.causes();
        let passed_ns = interval_ns.min(INTERVAL_NS_LIMIT);
        let mut wanted = [passed_ns * TRUSTED_SHARE / self.flood.cost_ns; 3];
        if crowd {
            let budget = self.budget.syn(&self.line, self.queue, &self.settings, passed_ns);
            wanted = self.shares.divide(budget, passed_ns, verify);
        }
        if pressure {
            let paced = self.shares.divide(self.pressure.budget(passed_ns), passed_ns, verify);
            wanted = std::array::from_fn(
                |class| if crowd { wanted[class].min(paced[class]) } else { paced[class] },
            );
        }
        wanted[UNKNOWN] /= self.flood.finished;
        if verify {
            wanted[UNKNOWN] = wanted[UNKNOWN].min(passed_ns * PROBES_PER_S / 1e9);
        }
        let (credits, burst) = self.shares.credits(wanted, passed_ns);
        debug_assert!([KNOWN, VERIFIED, UNKNOWN].iter().all(|class| credits[*class] <= burst[*class]));
        let prefix_limit = if crowd && self.flood.people() { self.prefix_limit(o) } else { 0 };
        let window = window(o);
        Orders { state: State::Shedding, verify, credits, burst, window, prefix_limit, ..Orders::default() }
    }

    fn prefix_limit(&mut self, o: &Observation) -> u32 {
        let short = self.line.wait_s() * 2e9 < self.settings.target_ns as f64;
        let per_second = self.line.rate / self.flood.finished;
        self.shares.prefix_limit(o.prefixes, per_second, short, &self.history)
    }

    fn estimate(&self) -> Estimate {
        let last = self.history.last(WINDOW_NS);
        Estimate {
            served_per_s: self.line.rate,
            waiting: self.line.queue,
            wait_s: self.line.wait_s(),
            waited_s: self.line.waited_s(),
            syn_cost_share: self.flood.share(last.passed_all(), last.at_ns),
            syn_cost_ns: self.flood.cost_ns,
            finished_share: self.flood.finished,
            syn_per_s: last.syn_per_s(),
            asking_share: self.budget.yields,
            speaks_first: self.greeting.is_first,
            small_queue: self.small.there,
            flood_passed: self.flood.is_passing(),
        }
    }
}

/// The window in which prefixes are counted.
fn window(o: &Observation) -> u32 {
    (o.now_ns / WINDOW_NS) as u32
}
