//! Sweeps of a server that is made up: what is offered, in which order, and what becomes of a wrong capacity.

use super::*;
use crate::report::made_up;
use crate::simulation::open_plan;

fn plan(factors: &[f64], rounds: u32) -> SweepPlan {
    SweepPlan {
        plan: open_plan(),
        arrivals: Arrivals::Poisson,
        slots: SlotPlan::PerRequest,
        capacity_per_s: None,
        factors: factors.to_vec(),
        rounds,
        rest: Duration::ZERO,
    }
}

/// An outcome in which so many a second were answered in time.
fn answered(rate_per_s: f64) -> RunOutcome {
    let mut outcome = made_up::overload();
    outcome.lanes[0].counts.in_time = (rate_per_s * 10.0) as u64;
    outcome.warnings.clear();
    outcome
}

/// Sweeps a server that a closed loop gets so much out of, and an open one at most so much. Returns what was
/// offered in open loops, how often it began again, and the outcome.
fn swept(plan: &SweepPlan, closed_per_s: f64, open_per_s: f64) -> (Vec<f64>, usize, SweepOutcome) {
    let (mut offered, mut again) = (Vec::new(), 0);
    let mut measure = |plan: &Plan, _: &mut dyn FnMut(SweepEvent<'_>)| match &plan.lanes[0].kind {
        LaneKind::Open { profile: Profile::Steady { rate_per_s }, .. } => {
            offered.push(*rate_per_s);
            Ok(answered(rate_per_s.min(open_per_s)))
        }
        _ => Ok(answered(closed_per_s)),
    };
    let mut count = |event: SweepEvent<'_>| again += usize::from(matches!(event, SweepEvent::Again { .. }));
    let outcome = sweep_by(plan, &RunControl::default(), &mut measure, &mut count).unwrap();
    (offered, again, outcome)
}

#[test]
fn rounds_go_up_and_down() {
    assert_eq!(order(3, 1), [0, 1, 2]);
    assert_eq!(order(3, 2), [2, 1, 0]);
    assert!(FACTORS.is_sorted() && FACTORS.contains(&0.25) && FACTORS.contains(&20.0));
}

#[test]
fn a_capacity_that_holds_is_kept() {
    let (offered, again, outcome) = swept(&plan(&[0.5, 1.0, 2.0], 2), 1_000.0, 1_090.0);
    assert_eq!(offered, [500.0, 1_000.0, 2_000.0, 2_000.0, 1_000.0, 500.0]);
    assert_eq!((again, outcome.capacity_per_s), (0, 1_000.0));
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
}

#[test]
fn a_point_above_the_capacity_begins_the_sweep_again() {
    let (offered, again, outcome) = swept(&plan(&[0.5, 2.0, 3.0], 1), 450.0, 908.0);
    assert_eq!(
        offered,
        [225.0, 900.0, 450.0, 1_800.0, 2_700.0],
        "450 were believed, 900 are answered in time"
    );
    assert_eq!((again, outcome.capacity_per_s), (1, 900.0));
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    assert!(outcome.points.iter().all(|point| point.offered_per_s == point.factor * 900.0));
}

#[test]
fn a_server_without_a_limit_is_said_to_have_none() {
    let (offered, again, outcome) = swept(&plan(&[2.0], 1), 100.0, f64::INFINITY);
    assert_eq!((offered.as_slice(), again), ([200.0, 400.0, 800.0].as_slice(), 2));
    assert_eq!(outcome.capacity_per_s, 400.0);
    assert!(
        outcome.notes[0].starts_with("800 requests a second were answered in time"),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn a_capacity_that_was_named_is_kept_and_the_excess_is_said() {
    let named = SweepPlan { capacity_per_s: Some(100.0), ..plan(&[1.0, 2.0, 3.0], 1) };
    let (offered, again, outcome) = swept(&named, 0.0, 150.0);
    assert_eq!((offered.as_slice(), again), ([100.0, 200.0, 300.0].as_slice(), 0));
    assert_eq!((outcome.capacity_per_s, outcome.notes.len()), (100.0, 1));
}

#[test]
fn what_was_said_while_the_capacity_was_found_is_said_of_the_sweep() {
    let mut measure = |plan: &Plan, _: &mut dyn FnMut(SweepEvent<'_>)| {
        let mut outcome = answered(100.0);
        if matches!(plan.lanes[0].kind, LaneKind::Closed { .. }) {
            outcome.warnings.push("The generator's processor was busy.".to_owned());
        }
        Ok(outcome)
    };
    let control = RunControl::default();
    let outcome = sweep_by(&plan(&[1.0], 1), &control, &mut measure, &mut |_| {}).unwrap();
    assert_eq!(outcome.notes, ["While the capacity was found: The generator's processor was busy."]);
}

#[test]
fn a_server_that_nobody_believes_has_no_capacity() {
    let mut measure = |_: &Plan, _: &mut dyn FnMut(SweepEvent<'_>)| {
        let mut outcome = answered(0.0);
        outcome.lanes[0].tls.count_faults("the certificate has expired", 7);
        Ok(outcome)
    };
    let control = RunControl::default();
    let fault = sweep_by(&plan(&[1.0], 1), &control, &mut measure, &mut |_| {}).unwrap_err().to_string();
    assert!(fault.contains("failed, by TLS: the certificate has expired"), "{fault}");
}

#[test]
fn how_long_it_takes_is_known_before() {
    let plan = SweepPlan { rest: Duration::from_secs(1), ..plan(&[0.5, 1.0, 2.0], 3) };
    assert_eq!(plan.points(), 9);
    assert_eq!(plan.length(), Duration::from_secs(1 + 9 * 2));
    let known = SweepPlan { capacity_per_s: Some(5.0), ..plan };
    assert_eq!(known.length(), Duration::from_secs(9 * 2));
}
