//! The sweep: finds what a server can do, then offers it parts and multiples of that, and keeps what came of
//! it.
//!
//! It must never offer the points in one order only when there are several rounds: what warms up or wears out
//! would look like an effect of the load. Nor may it keep to a capacity that a point has disproved.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::outcome::{Moment, RunOutcome};
use crate::plan::{LaneKind, Plan, SlotPlan};
use crate::run::run;
use crate::schedule::{Arrivals, Profile};
use crate::sweep_outcome::{SweepOutcome, SweepPoint};
use crate::worker::RunControl;

/// Parts and multiples of the capacity that are offered when nothing else is asked for.
pub const FACTORS: &[f64] = &[0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];

/// Connections of the closed loop that finds the capacity.
const CAPACITY_CONNECTIONS: u32 = 64;

/// A point that was answered in time at more than so many times the capacity disproves it: the usual factors
/// above 1 are a tenth apart there, so they would be those of another load.
const CAPACITY_EXCESS_MAX: f64 = 1.1;

/// How often a sweep begins again with a larger capacity. One that still finds more then is not limited by
/// the server, and says so.
const CORRECTIONS_MAX: u32 = 2;

/// What a sweep is to do.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    /// The run of one point; its one lane is replaced by an open loop with the same requests and patience,
    /// its duration is that of one point.
    pub plan: Plan,
    /// How the starts are spread.
    pub arrivals: Arrivals,
    /// What a request travels on.
    pub slots: SlotPlan,
    /// The capacity in requests a second, when it is known already.
    pub capacity_per_s: Option<f64>,
    /// What is offered, as multiples of the capacity.
    pub factors: Vec<f64>,
    /// How often each is offered.
    pub rounds: u32,
    /// Pause between two points, for the server to get rid of what the last one left.
    pub rest: Duration,
}

/// What is going on, for people who wait.
#[derive(Debug, Clone, Copy)]
pub enum SweepStage {
    /// The capacity is being found.
    Capacity,
    /// A point is being measured.
    Point {
        /// Which of all points of all rounds, from 1.
        number: usize,
        /// Which round, from 1.
        round: u32,
        /// The multiple of the capacity.
        factor: f64,
        /// The rate in requests a second.
        rate_per_s: f64,
    },
}

/// What a sweep tells while it goes on.
#[derive(Debug)]
pub enum SweepEvent<'a> {
    /// The next thing begins.
    Begins(SweepStage),
    /// A step of it.
    Step(&'a Moment),
    /// More than the capacity was answered in time: it is measured anew, and the sweep begins again.
    Again {
        /// What was believed to be the capacity, requests a second.
        believed_per_s: f64,
        /// What was answered in time, requests a second.
        found_per_s: f64,
    },
}

impl SweepPlan {
    /// How many points there are in all rounds.
    pub fn points(&self) -> usize {
        self.factors.len() * self.rounds as usize
    }

    /// How long so many points take, the wait for the last answers left out.
    pub fn length_of(&self, points: usize) -> Duration {
        (self.plan.duration.unwrap_or_default() + self.rest) * u32::try_from(points).unwrap_or(u32::MAX)
    }

    /// How long all of it takes, the finding of the capacity included.
    pub fn length(&self) -> Duration {
        let finding = if self.capacity_per_s.is_some() { None } else { self.plan.duration };
        finding.unwrap_or_default() + self.length_of(self.points())
    }
}

/// Carries a sweep out. Ended early, it gives what was measured until then.
///
/// # Errors
/// What keeps a run from being carried out, and a server that answers nothing at all.
pub fn sweep(
    plan: &SweepPlan,
    control: &Arc<RunControl>,
    observe: &mut dyn FnMut(SweepEvent<'_>),
) -> Result<SweepOutcome, Fault> {
    let mut measure = |plan: &Plan, observe: &mut dyn FnMut(SweepEvent<'_>)| {
        run(plan, control, &mut |moment| observe(SweepEvent::Step(moment)))
    };
    sweep_by(plan, control, &mut measure, observe)
}

/// What carries one run out.
type Measure<'a> = dyn FnMut(&Plan, &mut dyn FnMut(SweepEvent<'_>)) -> Result<RunOutcome, Fault> + 'a;

fn sweep_by(
    plan: &SweepPlan,
    control: &RunControl,
    measure: &mut Measure<'_>,
    observe: &mut dyn FnMut(SweepEvent<'_>),
) -> Result<SweepOutcome, Fault> {
    let mut capacity = match plan.capacity_per_s {
        Some(known_per_s) => Capacity { per_s: known_per_s, warnings: Vec::new() },
        None => find_capacity(plan, measure, observe)?,
    };
    // A caller that names the capacity has chosen what is offered.
    let mut corrections_left = if plan.capacity_per_s.is_some() { 0 } else { CORRECTIONS_MAX };
    loop {
        let capacity_per_s = capacity.per_s;
        let (points, found_per_s) =
            offer(plan, capacity_per_s, corrections_left > 0, control, measure, observe)?;
        let more = found_per_s > CAPACITY_EXCESS_MAX * capacity_per_s;
        if more && corrections_left > 0 && !control.is_stopped() {
            corrections_left -= 1;
            observe(SweepEvent::Again { believed_per_s: capacity_per_s, found_per_s });
            capacity = find_capacity(plan, measure, observe)?;
            capacity.per_s = capacity.per_s.max(found_per_s);
            continue;
        }
        let patience = plan.plan.lanes.iter().filter_map(|lane| lane.late_after.or(lane.patience)).max();
        let found =
            capacity.warnings.iter().map(|warning| format!("While the capacity was found: {warning}"));
        let notes = more.then(|| exceeded(capacity_per_s, found_per_s)).into_iter().chain(found).collect();
        return Ok(SweepOutcome { capacity_per_s, patience, points, notes });
    }
}

/// Offers all points in all rounds, or until one is answered in time at more than the capacity when `stops`
/// is set and the first round is not over. Returns the points that were measured, and the most that was
/// answered in time, requests a second.
fn offer(
    plan: &SweepPlan,
    capacity_per_s: f64,
    stops: bool,
    control: &RunControl,
    measure: &mut Measure<'_>,
    observe: &mut dyn FnMut(SweepEvent<'_>),
) -> Result<(Vec<SweepPoint>, f64), Fault> {
    let point =
        |&factor: &f64| SweepPoint { factor, offered_per_s: factor * capacity_per_s, rounds: Vec::new() };
    let mut points: Vec<SweepPoint> = plan.factors.iter().map(point).collect();
    let (mut number, mut found_per_s) = (0, 0.0_f64);
    for round in 1..=plan.rounds {
        for place in order(points.len(), round) {
            let more = stops && round == 1 && found_per_s > CAPACITY_EXCESS_MAX * capacity_per_s;
            if control.is_stopped() || more {
                break;
            }
            // tidy: allow(clock): the server rests between two points.
            std::thread::sleep(plan.rest);
            let point = &mut points[place];
            number += 1;
            let (factor, rate_per_s) = (point.factor, point.offered_per_s);
            observe(SweepEvent::Begins(SweepStage::Point { number, round, factor, rate_per_s }));
            let outcome = measure(&point_plan(plan, rate_per_s, round), observe)?;
            found_per_s = found_per_s.max(outcome.rate_per_s());
            point.rounds.push(outcome);
        }
    }
    points.retain(|point| !point.rounds.is_empty());
    Ok((points, found_per_s))
}

/// The capacity of a server, as far as the sweep has found it.
struct Capacity {
    per_s: f64,
    /// What has to be known of the run that found it: it may be the generator's own limit.
    warnings: Vec<String>,
}

/// What is said when the capacity is not one.
fn exceeded(capacity_per_s: f64, found_per_s: f64) -> String {
    format!(
        "{found_per_s:.0} requests a second were answered in time, more than the capacity of \
         {capacity_per_s:.0} that the factors are multiples of: the server does more now than when that was \
         found, or nothing it does limits it; --capacity names a larger one."
    )
}

/// What the server does when a closed loop keeps it busy. There nobody loses patience: where serving all
/// its connections once takes longer than patience lasts, next to nothing would come in time.
fn find_capacity(
    plan: &SweepPlan,
    measure: &mut Measure<'_>,
    observe: &mut dyn FnMut(SweepEvent<'_>),
) -> Result<Capacity, Fault> {
    let mut closed = plan.plan.clone();
    let per_request = plan.slots == SlotPlan::PerRequest;
    for lane in &mut closed.lanes {
        lane.kind = LaneKind::Closed {
            connections: CAPACITY_CONNECTIONS,
            pipeline: 1,
            requests_per_connection: per_request.then_some(1),
            requests: None,
        };
        (lane.patience, lane.late_after) = (None, None);
    }
    observe(SweepEvent::Begins(SweepStage::Capacity));
    let outcome = measure(&closed, observe)?;
    let per_s = outcome.rate_per_s();
    if per_s > 0.0 {
        Ok(Capacity { per_s, warnings: outcome.warnings })
    } else {
        Err(nothing_answered(&outcome))
    }
}

fn nothing_answered(outcome: &RunOutcome) -> Fault {
    let counts = outcome.counts();
    let reason = outcome.main().and_then(|lane| lane.tls.faults.keys().next());
    let why = reason.map_or_else(String::new, |reason| format!(", by TLS: {reason}"));
    Fault::new(format!(
        "{} answered none of {} requests ({} refused, {} reset, {} wrong answers, {} failed{}): \
         there is no capacity to sweep",
        outcome.target, counts.offered, counts.refused, counts.reset, counts.wrong_answer, counts.failed, why
    ))
}

fn point_plan(plan: &SweepPlan, rate_per_s: f64, round: u32) -> Plan {
    let mut point = plan.plan.clone();
    point.seed = point.seed.wrapping_add(u64::from(round));
    for lane in &mut point.lanes {
        lane.kind = LaneKind::Open {
            arrivals: plan.arrivals.clone(),
            profile: Profile::Steady { rate_per_s },
            slots: plan.slots,
        };
    }
    point
}

/// Rising in odd rounds, falling in even ones.
fn order(count: usize, round: u32) -> Vec<usize> {
    let rising = 0..count;
    if round % 2 == 1 { rising.collect() } else { rising.rev().collect() }
}

#[cfg(test)]
mod tests;
