//! What the daemon tells: lines when something changes, and the board a few times a second.
//!
//! It owns the words. It must never be asked in order to decide.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use staunch_netio::clock;

use super::plan::Plan;
use super::tally::{ages_since, percentile_ns};
use crate::controller::{Corrected, Decision, Hint, Policy};
use crate::layout::{Counters, Flows, Outcome};
use crate::observation::{Observation, State};
use crate::program::Reject;
use crate::snapshot::{
    self, Board, ClassFigures, ConnectionFigures, DaemonFigures, EstimateFigures, FrameFigures, HostFigures,
    InterfaceFigures, RateFigures, Snapshot, SynFigures,
};

const SECOND_NS: u64 = 1_000_000_000;
/// Between two snapshots, unless the state changes.
const BOARD_NS: u64 = SECOND_NS / 5;
/// Trouble that goes on is said again after so long, and a hint holds.
const AGAIN_NS: u64 = 60 * SECOND_NS;

/// Something happened that an operator wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `start`, `state`, `interface`, `hint`, `trouble` or `end`.
    pub kind: &'static str,
    /// The interface it happened to.
    pub interface: Option<String>,
    /// A sentence.
    pub text: String,
}

/// Who is told.
pub type Say = Arc<dyn Fn(&Event) + Send + Sync>;

/// See the module's text.
pub(super) struct Teller {
    board: Board,
    say: Say,
    fixed: Snapshot,
    started_ns: u64,
    changed_ns: u64,
    /// SYN shed until then.
    shed: u64,
    set_ns: u64,
    daemon: DaemonFigures,
    listen_drops: u64,
    second: Second,
    told: RefCell<Option<(String, u64)>>,
    hinted_ns: u64,
}

/// The last whole second.
#[derive(Default)]
struct Second {
    began_ns: u64,
    before: Counters,
    rates: RateFigures,
    wait_p50_ms: Option<f64>,
    wait_p99_ms: Option<f64>,
}

impl Teller {
    pub(super) fn new(
        plan: &Plan,
        version: &str,
        notes: Vec<String>,
        board: Board,
        say: Say,
        now_ns: u64,
    ) -> Self {
        let fixed = Snapshot {
            version: version.to_owned(),
            process_id: std::process::id(),
            network_namespace: snapshot::namespace().unwrap_or_default(),
            ports: plan.ports.clone(),
            policy: policy_word(plan.settings.policy).to_owned(),
            mode: reject_word(plan.reject).to_owned(),
            dry_run: plan.dry_run,
            state: state_word(State::Open).to_owned(),
            notes,
            ..Snapshot::default()
        };
        board.set(fixed.clone());
        Self {
            board,
            say,
            fixed,
            started_ns: now_ns,
            changed_ns: now_ns,
            shed: 0,
            set_ns: 0,
            daemon: DaemonFigures::default(),
            listen_drops: 0,
            second: Second { began_ns: now_ns, ..Second::default() },
            told: RefCell::new(None),
            hinted_ns: now_ns,
        }
    }

    pub(super) fn board(&self) -> Board {
        self.board.clone()
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.fixed.notes
    }

    /// The loop begins, with a priority or without.
    pub(super) fn begin(&mut self, first: io::Result<()>) {
        self.daemon.runs_first = first.is_ok();
        if let Err(error) = first {
            let note = format!(
                "SCHED_RR: {error}; under load the gate may be late by what others run (CAP_SYS_NICE \
                 would help)"
            );
            self.event("start", None, note.clone());
            self.fixed.notes.push(note);
        }
    }

    /// A tick came more than a tick too late.
    pub(super) fn late(&mut self) {
        self.daemon.late_ticks += 1;
    }

    /// Something became of an interface.
    pub(super) fn interface(&self, name: &str, text: &str) {
        self.event("interface", Some(name), text.to_owned());
    }

    /// A call failed that should not: said once a minute.
    pub(super) fn trouble(&self, what: &str, error: &io::Error) {
        let text = format!("the gate's {what} cannot be reached: {error}");
        let now_ns = clock::now_ns();
        let mut told = self.told.borrow_mut();
        let is_new = told.as_ref().is_none_or(|(last, at_ns)| *last != text || now_ns > at_ns + AGAIN_NS);
        if is_new {
            *told = Some((text.clone(), now_ns));
            self.event("trouble", None, text);
        }
    }

    /// What a tick saw and decided.
    pub(super) fn tick(
        &mut self,
        now_ns: u64,
        seen: &Observation,
        decision: &Decision,
        totals: &Counters,
        interfaces: &dyn Fn() -> Vec<InterfaceFigures>,
    ) {
        self.daemon.ticks += 1;
        self.listen_drops += seen.listen_drops.unwrap_or(0);
        self.say_change(now_ns, decision, totals.shed());
        self.say_hint(now_ns, decision);
        if now_ns >= self.second.began_ns + SECOND_NS {
            self.second = self.second.next(now_ns, totals);
        }
        if decision.change.is_some() || now_ns >= self.set_ns + BOARD_NS {
            self.set_ns = now_ns;
            self.board.set(self.snapshot(now_ns, seen, decision, totals, interfaces()));
        }
    }

    /// The loop ends.
    pub(super) fn end(&self, totals: &Counters) {
        let (seen, shed) = (syn(totals).sum(ClassFigures::seen), totals.shed());
        let would = if self.fixed.dry_run { " would have been" } else { "" };
        self.event("end", None, format!("the gate is taken away; of {seen} SYN {shed}{would} shed"));
    }

    fn say_change(&mut self, now_ns: u64, decision: &Decision, shed: u64) {
        let Some(change) = &decision.change else { return };
        let (from, to) = (state_word(change.from), state_word(change.to));
        let after = (now_ns - self.changed_ns) as f64 / SECOND_NS as f64;
        let meanwhile = match change.from {
            State::Open => String::new(),
            State::Shedding => format!(" and {} SYN shed", shed.saturating_sub(self.shed)),
        };
        let dry = if self.fixed.dry_run { " (dry run: nothing is shed)" } else { "" };
        let text = format!("{from} -> {to} after {after:.1} s{meanwhile}: {}{dry}", change.reason);
        self.event("state", None, text);
        (self.changed_ns, self.shed) = (now_ns, shed);
        self.fixed.changes += 1;
        self.fixed.state = to.to_owned();
        self.fixed.reason = Some(change.reason.clone());
    }

    /// The controller gives a hint again and again while it holds, with a pause of a minute.
    fn say_hint(&mut self, now_ns: u64, decision: &Decision) {
        if let Some(hint) = decision.hint {
            let text = hint_text(hint);
            self.event("hint", None, text.clone());
            self.fixed.hint = Some(text);
            self.hinted_ns = now_ns;
        } else if now_ns > self.hinted_ns + AGAIN_NS + SECOND_NS {
            self.fixed.hint = None;
        }
    }

    fn event(&self, kind: &'static str, interface: Option<&str>, text: String) {
        (self.say)(&Event { kind, interface: interface.map(str::to_owned), text });
    }

    fn snapshot(
        &self,
        now_ns: u64,
        seen: &Observation,
        decision: &Decision,
        totals: &Counters,
        interfaces: Vec<InterfaceFigures>,
    ) -> Snapshot {
        Snapshot {
            uptime_seconds: (now_ns - self.started_ns) as f64 / SECOND_NS as f64,
            state_seconds: (now_ns - self.changed_ns) as f64 / SECOND_NS as f64,
            verify: decision.orders.verify,
            interfaces,
            syn: syn(totals),
            frames: frames(totals),
            rates: self.second.rates,
            connections: totals.flows.as_ref().map(|flows| self.connections(flows)),
            estimate: EstimateFigures {
                served_per_s: decision.estimate.served_per_s,
                wait_ms: decision.estimate.wait_s * 1e3,
                syn_share: decision.estimate.syn_cost_share,
                asking_share: decision.estimate.asking_share,
                speaks_first: decision.estimate.speaks_first,
                small_queue: decision.estimate.small_queue,
                flood_passed: decision.estimate.flood_passed,
            },
            host: self.host(seen),
            daemon: DaemonFigures { busy_seconds: clock::thread_busy_ns() as f64 / 1e9, ..self.daemon },
            ..self.fixed.clone()
        }
    }

    fn connections(&self, flows: &Flows) -> ConnectionFigures {
        ConnectionFigures {
            established: flows.established,
            begun: flows.begun,
            ended: flows.ended,
            abandoned: flows.left_silent + flows.left_waiting,
            spoken: flows.spoken,
            reads: flows.reads,
            waiting: flows.waiting(),
            silent: flows.silent(),
            waits: flows.ages.to_vec(),
            wait_p50_ms: self.second.wait_p50_ms,
            wait_p99_ms: self.second.wait_p99_ms,
        }
    }

    fn host(&self, seen: &Observation) -> HostFigures {
        let (queue, cpu, memory) = (seen.queue.as_ref(), seen.cpu.as_ref(), seen.memory.as_ref());
        HostFigures {
            listeners: queue.map(|queue| queue.listeners),
            accept_queue: queue.map(|queue| queue.waiting),
            accept_queue_limit: queue.map(|queue| queue.limit),
            kernel_share: cpu.map(|cpu| cpu.kernel_share),
            user_share: cpu.map(|cpu| cpu.user_share),
            receive_share: seen.receive_share,
            sockets: seen.sockets,
            memory_available_share: memory.map(|memory| memory.available_share),
            tcp_memory_share: memory.map(|memory| memory.tcp_share),
            listen_drops: seen.listen_drops.map(|_| self.listen_drops),
        }
    }
}

impl Second {
    /// The one that ends now.
    fn next(&self, now_ns: u64, totals: &Counters) -> Self {
        let seconds = (now_ns - self.began_ns) as f64 / SECOND_NS as f64;
        let (now, before) = (syn(totals), syn(&self.before));
        let rate = |of: fn(&ClassFigures) -> u64| now.sum(of).saturating_sub(before.sum(of)) as f64 / seconds;
        let begun = |totals: &Counters| totals.flows.as_ref().map_or(0, |flows| flows.begun);
        let flows = totals.flows.as_ref();
        let ages = flows.map(|flows| ages_since(self.before.flows.as_ref(), flows));
        let milliseconds = |share| {
            let ns = percentile_ns(ages.as_ref()?, share)?;
            Some(ns as f64 / 1e6)
        };
        Self {
            began_ns: now_ns,
            before: totals.clone(),
            rates: RateFigures {
                offered_per_s: rate(ClassFigures::seen),
                passed_per_s: rate(ClassFigures::let_in),
                shed_per_s: rate(ClassFigures::shed),
                begun_per_s: begun(totals).saturating_sub(begun(&self.before)) as f64 / seconds,
            },
            wait_p50_ms: milliseconds(0.5),
            wait_p99_ms: milliseconds(0.99),
        }
    }
}

fn syn(totals: &Counters) -> SynFigures {
    let [known, verified, unknown] = totals.outcomes.each_ref().map(|outcomes| {
        let count = |outcome: Outcome| outcomes[outcome as usize];
        ClassFigures {
            passed: count(Outcome::Passed),
            allowed: count(Outcome::Allowed),
            lease_over: count(Outcome::LeaseOver),
            shed_credit: count(Outcome::Credit),
            shed_fair: count(Outcome::Fair),
            shed_deny: count(Outcome::Deny),
        }
    });
    SynFigures { known, verified, unknown }
}

fn frames(totals: &Counters) -> FrameFigures {
    FrameFigures {
        other: totals.other,
        small: totals.small,
        large: totals.large,
        fragments: totals.fragments,
        malformed: totals.malformed,
        answered: totals.answered,
        dry: totals.dry,
    }
}

fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::LoadWithoutSyn { reads_per_s, syn_per_s } => format!(
            "the server is at its limit by {reads_per_s} reads a second on standing connections, at \
             {syn_per_s} SYN a second: shedding SYN does not help; limit requests in the server"
        ),
        Hint::SmallQueue { places } => format!(
            "accept queue of {places} bounds this server; raise its backlog: until then all are let in"
        ),
        Hint::FloodPassed { syn_per_s } => format!(
            "{syn_per_s} SYN a second come that few stand behind; nobody waits because of them and reception \
             has room, so they are left to the kernel's SYN cookies"
        ),
        Hint::Corrected(Corrected { thought, waiting }) => format!(
            "{thought} connections seemed to wait and the line did not move for a second; by their sockets \
             {waiting} do, and only these are counted from now on"
        ),
    }
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Shedding => "shedding",
    }
}

fn policy_word(policy: Policy) -> &'static str {
    match policy {
        Policy::Queue => "queue",
        Policy::Paper => "paper",
        Policy::Either => "either",
    }
}

fn reject_word(reject: Reject) -> &'static str {
    match reject {
        Reject::Drop => "drop",
        Reject::Reset => "reset",
        Reject::Cookie => "cookie",
    }
}
