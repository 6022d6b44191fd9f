//! The scenario `proxy-cost-tunnels`: memory that a proxy keeps for an idle WebSocket.
//!
//! This scenario owns the bars on memory a WebSocket. One process may hold 20 000 descriptors here, and a
//! proxy needs two for each WebSocket, so there are 5 000. Each has carried a byte both ways before memory
//! is looked at.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::front::{Front, FrontPlan, Proxy};
use super::judging::{each_anew, judge_by_best};
use super::upgrading::Upgrading;
use crate::machine;
use crate::process::ProcessMemory;
use crate::report::{Direction, ScenarioOutcome};
use crate::setting::Setting;

const TUNNELS: usize = 5_000;
/// WebSockets that come and go before memory is looked at first: what a proxy allocates once is no memory
/// of a WebSocket.
const FIRST_TUNNELS: usize = 200;
const SETTLING_TIME: Duration = Duration::from_secs(5);
const EACH: &str = "memory a WebSocket, both ends";
const EACH_BYTES_MAX: f64 = 400.0;
/// Of the best peer.
const RATIO_MAX: f64 = 0.1;
const PLAN: FrontPlan = FrontPlan {
    kept: false,
    nginx: "proxy_http_version 1.1; proxy_read_timeout 1h; proxy_set_header Upgrade $http_upgrade; \
        proxy_set_header Connection upgrade;",
    haproxy: &["timeout tunnel 1h"],
    // At most half of these may be WebSockets.
    staunch: &["--proxy-connections", "16384"],
    ready: "/ready",
};

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "5 000 idle WebSockets through a proxy, each with two descriptors there";
    let mut outcome = ScenarioOutcome::new("proxy-cost-tunnels", title);
    let needed = 2 * TUNNELS as u64 + 100;
    if machine::descriptors_max() < needed {
        return outcome.skip(format!("it needs {needed} open files of a process (`ulimit -Hn`)"));
    }
    raise_descriptors();
    each_anew(setting, &mut outcome, |proxy, outcome| measure(proxy, setting, outcome));
    for proxy in Proxy::OURS {
        outcome.judge(proxy.name(), EACH, Direction::AtMost, EACH_BYTES_MAX, "B");
    }
    judge_by_best(EACH, RATIO_MAX, &mut outcome);
    outcome
}

/// Both outer ends are held by this process.
fn raise_descriptors() {
    let limits = getrlimit(Resource::Nofile);
    // If it fails, a WebSocket that cannot be opened says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits });
}

fn measure(proxy: Proxy, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let application = Upgrading::start()?;
    let front = Front::start(proxy, application.address, &PLAN, setting)?;
    outcome.note(front.describe(&setting.programs));
    drop(application.open(front.address, FIRST_TUNNELS)?);
    application.part()?;
    sleep(SETTLING_TIME);
    let before = ProcessMemory::of(front.id());
    let clients = application.open(front.address, TUNNELS)?;
    sleep(SETTLING_TIME);
    let beside = ProcessMemory::of(front.id());
    application.carry(&clients)?;
    let each = |now: u64, then: u64| now.saturating_sub(then) as f64 / TUNNELS as f64;
    let name = proxy.name();
    outcome.add(name, EACH, "B", each(beside.resident_bytes, before.resident_bytes));
    outcome.add(name, "resident memory before", "MiB", before.resident_bytes as f64 / f64::from(1 << 20));
    Ok(())
}
