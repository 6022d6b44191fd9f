//! The host played event by event from a seed: what the formulas say can be counted here.
//!
//! It owns the way to play. It must never use a formula of the model, or it could not check one
//! (a gate's share apart, which is a setting).
//! Order: fill in a [`Scenario`], [`run`] or [`run_with`].

mod machine;
mod measured;
mod random;
mod scenario;

use crate::flow::Flow;
use crate::host::{Fault, above_zero, at_least_zero};
use machine::Simulator;
pub use measured::Measured;
pub use scenario::{Arrival, Scenario};

/// Plays a scenario with the gate as it is in the formulas: it chooses at random.
pub fn run(scenario: &Scenario) -> Result<Measured, Fault> {
    check(scenario)?;
    let flow = Flow::of(&scenario.host, &scenario.load);
    let share = |passed: f64, offered: f64| if offered > 0.0 { passed / offered } else { 0.0 };
    let requests = share(flow.admitted_per_s, scenario.load.requests_per_s);
    let flood = share(flow.flood_per_s, scenario.load.flood_per_s);
    run_with(scenario, |arrival| arrival.chance < if arrival.is_request { requests } else { flood })
}

/// Plays a scenario with a rule of one's own: it is asked for each packet whether it is let in. The gate's
/// cost is that of `host.gate`, 0 if there is none.
pub fn run_with(scenario: &Scenario, admit: impl FnMut(&Arrival) -> bool) -> Result<Measured, Fault> {
    check(scenario)?;
    Ok(Simulator::new(scenario, admit).play())
}

fn check(scenario: &Scenario) -> Result<(), Fault> {
    scenario.host.check()?;
    scenario.load.check()?;
    at_least_zero("the time of a handshake in seconds", scenario.handshake_s)?;
    above_zero("the time of sending after the warm-up in seconds", scenario.sending_s - scenario.warm_up_s)?;
    above_zero("the load in packets a second", scenario.load.requests_per_s + scenario.load.flood_per_s)
}
