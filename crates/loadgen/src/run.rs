//! A run: the threads' reports are put together step by step, and the outcome is made of them.
//!
//! It must never touch a connection, and never stands in the threads' way: it only listens.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use staunch_netio::host::cpu;
use staunch_netio::{clock, descriptors};

use crate::backend::Backend;
use crate::crew::WorkerThreads;
use crate::describe;
use crate::fault::Fault;
use crate::flood::Flood;
use crate::histogram::Histogram;
use crate::outcome::{Counts, LaneOutcome, Latency, MOMENT_MS, Moment, RunOutcome, TlsOutcome};
use crate::plan::{LaneKind, LanePlan, Plan, SlotPlan};
use crate::probe::ServerProbe;
use crate::tally::{Report, Span, Tally};
use crate::warnings::{self, Effort};
use crate::worker::{GRACE_NS, RunControl, Times};

/// Carries a plan out, and shows every step when it is over. Ends when the plan's time is over, or when the
/// control says so, and the open lanes' answers are there or given up.
///
/// # Errors
/// What keeps the plan from being carried out. What the server does is never an error.
pub fn run(
    plan: &Plan,
    control: &Arc<RunControl>,
    observe: &mut dyn FnMut(&Moment),
) -> Result<RunOutcome, Fault> {
    let backend = Backend::choose(plan.io)?;
    // A limit that cannot be raised shows as requests that could not be begun.
    let _ = descriptors::raise_descriptor_limit();
    let probe = plan.probe.as_ref().map(ServerProbe::open).transpose()?;
    let crew = WorkerThreads::hire(plan, backend, control)?;
    let floods = start_floods(plan)?;
    let times = times(plan);
    let began = clock::unix_time();
    crew.begin(times);
    let mut sheet = Sheet::new(plan, probe);
    while let Ok(report) = crew.reports.recv() {
        sheet.add(report, observe);
        if plan.ends_with_main() && sheet.main_is_over() {
            control.stop();
        }
    }
    sheet.drain(observe);
    crew.dismiss()?;
    sheet.note_lengths(plan, &times);
    let ran_ns = sheet.ended_ns.saturating_sub(times.began_ns);
    let mut outcome = RunOutcome {
        command: plan.command.clone(),
        began,
        target: plan.target.clone(),
        engine: describe::engine(backend.name(), &plan.threads),
        lanes: sheet.lanes,
        floods: floods.into_iter().map(Flood::stop).collect(),
        moments: sheet.moments,
        warnings: Vec::new(),
    };
    let processors = cpu::available_cpus().map_or(1, |cpus| cpus.len());
    let effort = Effort { busy_ns: &sheet.busy_ns, ran_ns, processors };
    outcome.warnings = warnings::of(&outcome, plan, &effort);
    let faults = sheet.probe.iter_mut().flat_map(ServerProbe::take_faults);
    outcome.warnings.extend(faults.map(|fault| format!("The probe: {fault}.")));
    outcome.warnings.extend(outcome.floods.iter().flat_map(|flood| flood.notes.clone()));
    Ok(outcome)
}

fn start_floods(plan: &Plan) -> Result<Vec<Flood>, Fault> {
    let plans = plan.lanes.iter().filter_map(|lane| match &lane.kind {
        LaneKind::Flood(flood) => Some(flood.clone()),
        _ => None,
    });
    plans.map(crate::flood::start).collect()
}

fn times(plan: &Plan) -> Times {
    let began_ns = clock::now_ns() + lead_ns(plan);
    let until_ns = plan.duration.map_or(u64::MAX, |duration| {
        began_ns.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    });
    let patience = plan.lanes.iter().filter_map(|lane| lane.patience).max();
    let patience_ns = patience.map_or(0, |patience| u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
    Times { began_ns, until_ns, grace_ns: patience_ns.max(GRACE_NS), spin_ns: SPIN_NS }
}

/// As long as it takes to be woken by a timer, about.
const SPIN_NS: u64 = 20_000;

/// How long before the begin the threads may get ready: kept connections of an open loop are made then.
fn lead_ns(plan: &Plan) -> u64 {
    let prepares = |lane: &LanePlan| matches!(lane.kind, LaneKind::Open { slots: SlotPlan::Kept { .. }, .. });
    if plan.lanes.iter().any(prepares) { LEAD_NS } else { 0 }
}

/// Enough to make some thousand connections.
const LEAD_NS: u64 = 200_000_000;

/// The sheet on which the threads' reports are added up.
struct Sheet {
    /// Reports that wait for those of the other threads.
    waiting: Vec<VecDeque<Report>>,
    over: Vec<bool>,
    main_over: Vec<bool>,
    lanes: Vec<LaneOutcome>,
    /// From the first start to the last end, one per lane.
    spans: Vec<Span>,
    moments: Vec<Moment>,
    /// Connections each thread held when it last reported, one per lane: one that is over has kept its own to
    /// its end.
    held: Vec<Vec<u64>>,
    /// Processor time of each thread so far.
    busy_ns: Vec<u64>,
    probe: Option<ServerProbe>,
    /// When the last thread offered no more, as far as threads are over.
    until_ns: u64,
    /// When the last report was made.
    ended_ns: u64,
}

impl Sheet {
    fn new(plan: &Plan, probe: Option<ServerProbe>) -> Self {
        let threads = plan.threads.len();
        let lanes = offering(plan);
        let lane = |lane: &LanePlan| LaneOutcome {
            name: lane.name.clone(),
            description: describe::lane(lane),
            lasted: Duration::ZERO,
            held: matches!(lane.kind, LaneKind::Hold { .. }).then_some(0),
            counts: Counts::default(),
            statuses: BTreeMap::new(),
            tls: TlsOutcome::default(),
            times: crate::outcome::Times::default(),
        };
        let lanes: Vec<LaneOutcome> = lanes.map(lane).collect();
        Self {
            waiting: (0..threads).map(|_| VecDeque::new()).collect(),
            over: vec![false; threads],
            main_over: vec![false; threads],
            spans: vec![Span::default(); lanes.len()],
            held: vec![vec![0; lanes.len()]; threads],
            lanes,
            moments: Vec::new(),
            busy_ns: vec![0; threads],
            probe,
            until_ns: 0,
            ended_ns: 0,
        }
    }

    /// Takes a report in; when there is one of every thread, the step is complete.
    fn add(&mut self, report: Report, observe: &mut dyn FnMut(&Moment)) {
        let thread = report.thread;
        self.waiting[thread].push_back(report);
        while self.waiting.iter().zip(&self.over).all(|(waiting, over)| *over || !waiting.is_empty()) {
            self.close_step(observe);
            if self.over.iter().all(|over| *over) {
                return;
            }
        }
    }

    /// Whatever is left when the threads are gone.
    fn drain(&mut self, observe: &mut dyn FnMut(&Moment)) {
        while self.waiting.iter().any(|waiting| !waiting.is_empty()) {
            self.close_step(observe);
        }
    }

    fn close_step(&mut self, observe: &mut dyn FnMut(&Moment)) {
        let mut moment = Moment { at_ms: (self.moments.len() as u64 + 1) * MOMENT_MS, ..Moment::default() };
        let mut complete = Histogram::default();
        for thread in 0..self.waiting.len() {
            let Some(report) = self.waiting[thread].pop_front() else { continue };
            self.over[thread] = report.over;
            self.main_over[thread] = report.main_over;
            self.busy_ns[thread] = report.busy_ns;
            self.ended_ns = self.ended_ns.max(report.at_ns);
            if report.over {
                self.until_ns = self.until_ns.max(report.until_ns.min(report.at_ns));
            }
            moment.connections += report.connections;
            moment.in_flight += report.in_flight;
            if let Some(main) = report.tallies.first() {
                moment.counts += main.counts;
                moment.drift_max_ns = moment.drift_max_ns.max(main.drift_max_ns);
                complete.merge(&main.times.complete);
            }
            for (place, tally) in report.tallies.iter().enumerate().take(self.lanes.len()) {
                add_tally(&mut self.lanes[place], tally);
                self.spans[place].merge(&tally.span);
                self.held[thread][place] = tally.held;
            }
            report.give_back();
        }
        moment.held = self.held.iter().flatten().sum();
        moment.latency = Latency {
            p50_ns: complete.percentile(50.0),
            p90_ns: complete.percentile(90.0),
            p99_ns: complete.percentile(99.0),
            max_ns: complete.max(),
        };
        moment.server = self.probe.as_mut().map(|probe| probe.sample(clock::now_ns()));
        observe(&moment);
        self.moments.push(moment);
    }

    /// Whether the main lane has come to its own end on every thread.
    fn main_is_over(&self) -> bool {
        self.main_over.iter().all(|over| *over)
    }

    /// How long each lane was, and how many connections it held at the end.
    fn note_lengths(&mut self, plan: &Plan, times: &Times) {
        let offered_ns = self.until_ns.saturating_sub(times.began_ns);
        for (place, (lane, plan)) in self.lanes.iter_mut().zip(offering(plan)).enumerate() {
            let by_itself = plan.ends_by_itself();
            let lasted_ns = if by_itself { self.spans[place].length_ns() } else { offered_ns };
            lane.lasted = Duration::from_nanos(lasted_ns);
            lane.held = lane.held.map(|_| self.held.iter().map(|held| held[place]).sum());
        }
    }
}

/// The lanes that send requests; those that flood have no connections.
fn offering(plan: &Plan) -> impl Iterator<Item = &LanePlan> {
    plan.lanes.iter().filter(|lane| !matches!(lane.kind, LaneKind::Flood(_)))
}

fn add_tally(lane: &mut LaneOutcome, tally: &Tally) {
    lane.counts += tally.counts;
    lane.times.merge(&tally.times);
    lane.tls.merge(&tally.tls);
    for (status, count) in &tally.statuses {
        *lane.statuses.entry(*status).or_default() += count;
    }
}
