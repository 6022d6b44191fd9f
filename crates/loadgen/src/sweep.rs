//! The sweep: finds what a server can do, then offers it parts and multiples of that, and keeps what came of
//! it.
//!
//! It must never offer the points in one order only when there are several rounds: what warms up or wears out
//! would look like an effect of the load.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;
use crate::outcome::{Moment, Outcome};
use crate::plan::{LaneKind, Plan, SlotPlan};
use crate::run::run;
use crate::schedule::{Arrivals, Profile};
use crate::sweep_outcome::{SweepOutcome, SweepPoint};
use crate::worker::Control;

/// Parts and multiples of the capacity that are offered when nothing else is asked for.
pub const FACTORS: &[f64] = &[0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];

/// Connections of the closed loop that finds the capacity.
const CAPACITY_CONNECTIONS: u32 = 64;

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
pub enum Stage {
    /// The capacity is being found.
    Capacity,
    /// A point is being measured.
    Point {
        /// Which round, from 1.
        round: u32,
        /// The multiple of the capacity.
        factor: f64,
        /// The rate in requests a second.
        rate_per_s: f64,
    },
}

/// Carries a sweep out. Ended early, it gives what was measured until then.
///
/// # Errors
/// What keeps a run from being carried out, and a server that answers nothing at all.
pub fn sweep(
    plan: &SweepPlan,
    control: &Arc<Control>,
    observe: &mut dyn FnMut(Stage, &Moment),
) -> Result<SweepOutcome, Fault> {
    let capacity_per_s = match plan.capacity_per_s {
        Some(known) => known,
        None => find_capacity(plan, control, observe)?,
    };
    let mut points: Vec<SweepPoint> = plan
        .factors
        .iter()
        .map(|&factor| SweepPoint { factor, offered_per_s: factor * capacity_per_s, rounds: Vec::new() })
        .collect();
    for round in 1..=plan.rounds {
        for place in order(points.len(), round) {
            if control.is_stopped() {
                break;
            }
            // tidy: allow(clock): the server rests between two points.
            std::thread::sleep(plan.rest);
            let point = &mut points[place];
            let stage = Stage::Point { round, factor: point.factor, rate_per_s: point.offered_per_s };
            let outcome = run(&point_plan(plan, point.offered_per_s, round), control, &mut |moment| {
                observe(stage, moment)
            })?;
            point.rounds.push(outcome);
        }
    }
    points.retain(|point| !point.rounds.is_empty());
    let patience = plan.plan.lanes.iter().filter_map(|lane| lane.late_after.or(lane.patience)).max();
    Ok(SweepOutcome { capacity_per_s, patience, points })
}

/// What the server does when a closed loop keeps it busy. There nobody loses patience: where serving all
/// its connections once takes longer than patience lasts, next to nothing would come in time.
fn find_capacity(
    plan: &SweepPlan,
    control: &Arc<Control>,
    observe: &mut dyn FnMut(Stage, &Moment),
) -> Result<f64, Fault> {
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
    let outcome = run(&closed, control, &mut |moment| observe(Stage::Capacity, moment))?;
    let rate = outcome.rate_per_s();
    if rate > 0.0 { Ok(rate) } else { Err(nothing_answered(&outcome)) }
}

fn nothing_answered(outcome: &Outcome) -> Fault {
    let counts = outcome.counts();
    Fault::new(format!(
        "{} answered none of {} requests ({} refused, {} reset, {} wrong answers): \
         there is no capacity to sweep",
        outcome.target, counts.offered, counts.refused, counts.reset, counts.wrong_answer
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
mod tests {
    use super::*;

    #[test]
    fn rounds_go_up_and_down() {
        assert_eq!(order(3, 1), [0, 1, 2]);
        assert_eq!(order(3, 2), [2, 1, 0]);
        assert!(FACTORS.is_sorted() && FACTORS.contains(&0.25) && FACTORS.contains(&20.0));
    }
}
