//! A run: the threads' reports are put together step by step, and the outcome is made of them.
//!
//! It must never touch a connection, and never stands in the threads' way: it only listens.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use staunch_netio::{clock, descriptors};

use crate::backend::Backend;
use crate::crew::Crew;
use crate::describe;
use crate::fault::Fault;
use crate::flood::Flood;
use crate::histogram::Histogram;
use crate::outcome::{Counts, LaneOutcome, Latency, MOMENT_MS, Moment, Outcome};
use crate::plan::{LaneKind, LanePlan, Plan, SlotPlan};
use crate::probe::Probe;
use crate::tally::{Report, Tally};
use crate::warnings;
use crate::worker::{Control, GRACE_NS, Times};

/// Carries a plan out, and shows every step when it is over. Ends when the plan's time is over, or when the
/// control says so, and the open lanes' answers are there or given up.
///
/// # Errors
/// What keeps the plan from being carried out. What the server does is never an error.
pub fn run(plan: &Plan, control: &Arc<Control>, observe: &mut dyn FnMut(&Moment)) -> Result<Outcome, Fault> {
    let backend = Backend::choose(plan.io)?;
    // A limit that cannot be raised shows as requests that could not be begun.
    let _ = descriptors::raise_descriptor_limit();
    let probe = plan.probe.as_ref().map(Probe::open).transpose()?;
    let crew = Crew::hire(plan, backend, control)?;
    let floods = start_floods(plan)?;
    let times = times(plan);
    let began = clock::unix_time();
    crew.begin(times);
    let mut sheet = Sheet::new(plan, probe);
    while let Ok(report) = crew.reports.recv() {
        sheet.add(report, observe);
    }
    sheet.drain(observe);
    crew.dismiss()?;
    let offered_ns = sheet.offered_ns(&times, control.is_stopped() || plan.ends_by_itself());
    let mut outcome = Outcome {
        command: plan.command.clone(),
        began,
        offered_for: Duration::from_nanos(offered_ns),
        target: plan.target.clone(),
        engine: describe::engine(backend.name(), &plan.threads),
        lanes: sheet.lanes,
        floods: floods.into_iter().map(Flood::stop).collect(),
        moments: sheet.moments,
        warnings: Vec::new(),
    };
    outcome.warnings = warnings::of(&outcome, plan, &sheet.busy_ns);
    let faults = sheet.probe.iter_mut().flat_map(Probe::take_faults);
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
    lanes: Vec<LaneOutcome>,
    moments: Vec<Moment>,
    /// Connections each thread held when it last reported: one that is over has kept its own to its end.
    held: Vec<u64>,
    /// Processor time of each thread so far.
    busy_ns: Vec<u64>,
    probe: Option<Probe>,
    /// End of the last step in which something was offered.
    last_offer_ms: u64,
}

impl Sheet {
    fn new(plan: &Plan, probe: Option<Probe>) -> Self {
        let threads = plan.threads.len();
        let lanes = plan.lanes.iter().filter(|lane| !matches!(lane.kind, LaneKind::Flood(_)));
        let lane = |lane: &LanePlan| LaneOutcome {
            name: lane.name.clone(),
            description: describe::lane(lane),
            counts: Counts::default(),
            statuses: BTreeMap::new(),
            times: crate::outcome::Times::default(),
        };
        Self {
            waiting: (0..threads).map(|_| VecDeque::new()).collect(),
            over: vec![false; threads],
            lanes: lanes.map(lane).collect(),
            moments: Vec::new(),
            held: vec![0; threads],
            busy_ns: vec![0; threads],
            probe,
            last_offer_ms: 0,
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
            self.busy_ns[thread] = report.busy_ns;
            self.held[thread] = report.held;
            moment.connections += report.connections;
            moment.in_flight += report.in_flight;
            for (lane, tally) in self.lanes.iter_mut().zip(&report.tallies) {
                moment.counts += tally.counts;
                moment.drift_max_ns = moment.drift_max_ns.max(tally.drift_max_ns);
                complete.merge(&tally.times.complete);
                add_tally(lane, tally);
            }
            report.give_back();
        }
        moment.held = self.held.iter().sum();
        if moment.counts.offered > 0 {
            self.last_offer_ms = moment.at_ms;
        }
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

    /// How long was offered: as planned, or until the last request when it ended before.
    fn offered_ns(&self, times: &Times, ended_early: bool) -> u64 {
        let planned_ns = times.until_ns - times.began_ns;
        let last_ns = self.last_offer_ms.max(MOMENT_MS) * 1_000_000;
        if ended_early { planned_ns.min(last_ns) } else { planned_ns }
    }
}

fn add_tally(lane: &mut LaneOutcome, tally: &Tally) {
    lane.counts += tally.counts;
    lane.times.merge(&tally.times);
    for (status, count) in &tally.statuses {
        *lane.statuses.entry(*status).or_default() += count;
    }
}
