//! The scenario of idle connections: memory for each, and wake-ups while nothing happens.
//!
//! It owns no connection: a [`Crowd`] does. Memory is that of the server's processes; the kernel's own
//! memory for a socket is the same for every server and is not counted.
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::Duration;

use super::crowd::{Crowd, Speech};
use super::process::{ProcessMemory, context_switches};
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use super::{content, machine};
use crate::report::{Bar, Direction, ScenarioOutcome};

const RESIDENT: &str = "resident memory a connection";
const WAKE_UPS: &str = "wake-ups in 10 s";
/// Connections of ours, and of a peer whose table of descriptors is long enough.
const CONNECTIONS: u32 = 100_000;
/// Those who come and go before memory is looked at first.
const FIRST_CONNECTIONS: u32 = 512;
const IDLE_TIME: Duration = Duration::from_secs(10);
const SETTLING_TIME: Duration = Duration::from_secs(2);
const RESIDENT_BYTES_MAX: f64 = 160.0;
const FILE: &str = "100.txt";
const PATH: &str = "/100.txt";

/// Runs the scenario. One round: what is measured does not depend on the speed of the machine.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "idle",
        "100 000 kept connections that have made one request each and then sleep",
    );
    let kinds = setting.for_files();
    setting.expect_steps(kinds.len());
    for kind in &kinds {
        setting.step(kind.name());
        if let Err(error) = measure(*kind, setting, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
    }
    outcome.note("the aim for resident memory is 128 B a connection; the bar is 160 B".to_owned());
    for kind in ServerKind::OURS {
        let (resident, wake_ups) = (
            outcome.samples(kind.name(), RESIDENT).to_vec(),
            outcome.samples(kind.name(), WAKE_UPS).to_vec(),
        );
        outcome.bars.push(Bar::judge(
            kind.name(),
            RESIDENT,
            Direction::AtMost,
            RESIDENT_BYTES_MAX,
            "B",
            resident,
        ));
        outcome.bars.push(Bar::judge(kind.name(), WAKE_UPS, Direction::AtMost, 0.0, "", wake_ups));
    }
    outcome
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("idle");
    let body = content::small_file(&folder, FILE, 100)?;
    let count = connections(kind);
    // Staunch begins to close idle connections for new ones at four fifths of its table, which may not need
    // more than the descriptors there are.
    let connections_max = count / 25 * 32;
    let limit = connections_max.to_string();
    let setup = Setup {
        address: Ipv4Addr::UNSPECIFIED,
        connections_max,
        arguments: &["--max-connections", &limit],
        ..Setup::new(kind, &folder, FILE)
    };
    let server = setting.start(&setup, PATH, &body)?;
    // What a server makes once, whoever comes, is no memory of a connection.
    let first = Crowd::gather(server.address.port(), Speech::Plain, PATH, FIRST_CONNECTIONS);
    first.map_err(|error| format!("{error}; {}", server.last_words()))?.disperse();
    sleep(SETTLING_TIME);
    let before = ProcessMemory::of(server.id());
    let crowd = Crowd::gather(server.address.port(), Speech::Plain, PATH, count)
        .map_err(|error| format!("{error}; {}", server.last_words()))?;
    sleep(SETTLING_TIME);
    let after = ProcessMemory::of(server.id());
    let switches_before = context_switches(server.id());
    sleep(IDLE_TIME);
    let switches = context_switches(server.id()).saturating_sub(switches_before);
    let alive = crowd.disperse();
    if alive != count {
        return Err(format!(
            "only {alive} of {count} connections were still open after {} s",
            IDLE_TIME.as_secs()
        ));
    }
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / f64::from(count);
    let name = kind.name();
    outcome.add(name, RESIDENT, "B", each(before.resident_bytes, after.resident_bytes));
    outcome.add(
        name,
        "anonymous memory a connection",
        "B",
        each(before.anonymous_bytes, after.anonymous_bytes),
    );
    outcome.add(name, WAKE_UPS, "", switches as f64);
    outcome.add(name, "connections held", "", f64::from(count));
    outcome.note(format!("{name}: {}", server.command));
    Ok(())
}

/// io_uring's direct descriptors are no entries of the process's own table, so only there does its limit not
/// matter. nginx closes idle connections when less than 1/16 of its table is free, and lighttpd wants two
/// descriptors for each.
fn connections(kind: ServerKind) -> u32 {
    let limit = u32::try_from(machine::descriptors_max()).unwrap_or(u32::MAX);
    match kind {
        ServerKind::Uring => CONNECTIONS,
        ServerKind::Lighttpd => CONNECTIONS.min(limit / 8 * 3),
        _ => CONNECTIONS.min(limit / 4 * 3),
    }
}
