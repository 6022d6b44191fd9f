//! What the daemon tells: lines when something changes, and the board a few times a second.
//!
//! It owns the words. It must never be asked in order to decide.

mod figures;
mod port;
mod words;

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use staunch_netio::clock;

use super::plan::Plan;
use super::whole::Whole;
use crate::controller::{Change, Decision};
use crate::layout::Counters;
use crate::observation::{Observation, State};
use crate::snapshot::{
    self, Board, ClassFigures, DaemonFigures, HostFigures, InterfaceFigures, PortFigures, Snapshot,
};
use figures::{Second, frames, syn};
use port::PortTeller;
use words::{policy_word, reject_word, state_word};

const SECOND_NS: u64 = 1_000_000_000;
/// Between two snapshots, unless the state changes.
const BOARD_NS: u64 = SECOND_NS / 5;
/// Trouble that goes on is said again after so long.
const AGAIN_NS: u64 = 60 * SECOND_NS;

/// Something happened that an operator wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `start`, `state`, `interface`, `addresses`, `hint`, `trouble` or `end`.
    pub kind: &'static str,
    /// The interface it happened to.
    pub interface: Option<String>,
    /// The port it happened at.
    pub port: Option<u16>,
    /// A sentence.
    pub text: String,
}

/// The function that is called with each event.
pub type Say = Arc<dyn Fn(&Event) + Send + Sync>;

/// What a tick saw and decided: of each line, in their order, and of all.
#[derive(Clone, Copy)]
pub(super) struct Tick<'a> {
    pub(super) now_ns: u64,
    pub(super) observations: &'a [Observation],
    pub(super) decisions: &'a [Decision],
    pub(super) lines: &'a [Counters],
    pub(super) totals: &'a Counters,
}

/// The figures of all ports, as the daemon gives them out.
pub(super) struct Teller {
    board: Board,
    say: Say,
    fixed: Snapshot,
    ports: Vec<PortTeller>,
    started_ns: u64,
    /// Since when anybody is shed somewhere, or nobody is.
    changed_ns: u64,
    set_ns: u64,
    daemon: DaemonFigures,
    second: Second,
    told: RefCell<Option<(String, u64)>>,
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
        let ports: Vec<PortTeller> = plan.ports.iter().map(|port| PortTeller::new(*port, now_ns)).collect();
        let fixed = Snapshot {
            version: version.to_owned(),
            process_id: std::process::id(),
            network_namespace: snapshot::namespace().unwrap_or_default(),
            ports: plan.ports.clone(),
            policy: policy_word(plan.settings.policy).to_owned(),
            mode: reject_word(plan.reject).to_owned(),
            dry_run: plan.dry_run,
            state: state_word(State::Open).to_owned(),
            by_port: ports.iter().map(|port| port.fixed().clone()).collect(),
            notes,
            ..Snapshot::default()
        };
        board.set(fixed.clone());
        Self {
            board,
            say,
            fixed,
            ports,
            started_ns: now_ns,
            changed_ns: now_ns,
            set_ns: 0,
            daemon: DaemonFigures::default(),
            second: Second::new(now_ns),
            told: RefCell::new(None),
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

    /// Something became of the host's addresses.
    pub(super) fn addresses(&self, text: &str) {
        self.event("addresses", None, text.to_owned());
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
        tick: &Tick<'_>,
        whole: &Whole,
        interfaces: &dyn Fn() -> Vec<InterfaceFigures>,
    ) {
        let now_ns = tick.now_ns;
        self.daemon.ticks += 1;
        self.second.see(now_ns, tick.totals);
        for (place, decision) in tick.decisions.iter().enumerate() {
            self.ports[place].see(now_ns, &tick.observations[place], &tick.lines[place]);
            if let Some(change) = &decision.change {
                self.say_change(place, now_ns, change, tick.lines[place].shed());
            }
            if let Some(text) = self.ports[place].hinted(now_ns, decision.hint) {
                self.of_port("hint", place, text);
            }
        }
        let state = state_word(if whole.sheds { State::Shedding } else { State::Open });
        if self.fixed.state != state {
            (self.fixed.state, self.changed_ns) = (state.to_owned(), now_ns);
        }
        let is_changed = tick.decisions.iter().any(|decision| decision.change.is_some());
        if is_changed || now_ns >= self.set_ns + BOARD_NS {
            self.set_ns = now_ns;
            self.board.set(self.snapshot(tick, whole, interfaces()));
        }
    }

    /// The loop ends.
    pub(super) fn end(&self, totals: &Counters) {
        let (seen, shed) = (syn(totals).sum(ClassFigures::seen), totals.shed());
        let would = if self.fixed.dry_run { " would have been" } else { "" };
        self.event("end", None, format!("the gate is taken away; of {seen} SYN {shed}{would} shed"));
    }

    fn say_change(&mut self, place: usize, now_ns: u64, change: &Change, shed: u64) {
        let dry = if self.fixed.dry_run { " (dry run: nothing is shed)" } else { "" };
        let text = self.ports[place].changed(now_ns, change, shed);
        self.of_port("state", place, format!("{text}{dry}"));
        self.fixed.changes += 1;
        self.fixed.reason = Some(self.named(place, &change.reason));
    }

    /// Says something of a port, which is named where there are several.
    fn of_port(&self, kind: &'static str, place: usize, text: String) {
        let (text, port) = (self.named(place, &text), Some(self.ports[place].port()));
        (self.say)(&Event { kind, interface: None, port, text });
    }

    fn named(&self, place: usize, text: &str) -> String {
        match &self.ports[..] {
            [_] => text.to_owned(),
            ports => format!("port {}: {text}", ports[place].port()),
        }
    }

    fn event(&self, kind: &'static str, interface: Option<&str>, text: String) {
        (self.say)(&Event { kind, interface: interface.map(str::to_owned), port: None, text });
    }

    fn snapshot(&self, tick: &Tick<'_>, whole: &Whole, interfaces: Vec<InterfaceFigures>) -> Snapshot {
        let &Tick { now_ns, observations, decisions, lines, totals } = tick;
        let each = self.ports.iter().zip(observations).zip(decisions).zip(lines);
        let by_port: Vec<PortFigures> =
            each.map(|(((port, seen), decision), line)| port.figures(now_ns, seen, decision, line)).collect();
        let hints = by_port.iter().enumerate();
        let hint = hints.filter_map(|(place, port)| Some(self.named(place, port.hint.as_ref()?))).next();
        Snapshot {
            uptime_seconds: (now_ns - self.started_ns) as f64 / SECOND_NS as f64,
            state_seconds: (now_ns - self.changed_ns) as f64 / SECOND_NS as f64,
            verify: whole.verify,
            hint,
            interfaces,
            syn: syn(totals),
            frames: frames(totals),
            rates: self.second.rates,
            connections: self.second.connections(totals),
            estimate: figures::estimate(&whole.estimate),
            host: host(observations, &by_port),
            by_port,
            daemon: DaemonFigures { busy_seconds: clock::thread_busy_ns() as f64 / 1e9, ..self.daemon },
            ..self.fixed.clone()
        }
    }
}

/// The host is seen alike from each port; accept queues are added up.
fn host(observations: &[Observation], by_port: &[PortFigures]) -> HostFigures {
    let Some(seen) = observations.first() else { return HostFigures::default() };
    let (cpu, memory) = (seen.cpu.as_ref(), seen.memory.as_ref());
    let sum =
        |of: fn(&PortFigures) -> Option<u64>| by_port.iter().filter_map(of).reduce(|all, one| all + one);
    HostFigures {
        listeners: sum(|port| port.queue.listeners.map(u64::from)).map(|count| count as u32),
        accept_queue: sum(|port| port.queue.waiting),
        accept_queue_limit: sum(|port| port.queue.limit),
        kernel_share: cpu.map(|cpu| cpu.kernel_share),
        user_share: cpu.map(|cpu| cpu.user_share),
        receive_share: seen.receive_share,
        sockets: seen.sockets,
        memory_available_share: memory.map(|memory| memory.available_share),
        tcp_memory_share: memory.map(|memory| memory.tcp_share),
        listen_drops: sum(|port| port.queue.drops),
    }
}
