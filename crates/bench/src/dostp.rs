//! The scenarios of DOSTP between two hosts of one LAN. The one beside a broker of messages stands here:
//! blocking round trips by DOSTP in user space, by UDP, and as a request with its reply by NATS core.
//!
//! This module owns what is compared. Broker and answering program stand on one host, the asking program on
//! the other, so that a request crosses the cable once each way whoever carries it. Figures of different
//! rounds must never be compared.

mod crowd;
mod lan;
mod loaded;
mod nats;
mod one_way;
mod trips;

use std::time::Duration;

use self::lan::{RING_ASLEEP, UDP};
pub(super) use self::loaded::run as loaded;
use self::nats::Nats;
pub(super) use self::one_way::run as one_way;
pub(super) use self::trips::run as round_trips;
use self::trips::trips;
use super::setting::Setting;
use crate::report::ScenarioOutcome;

/// Bytes of a message.
const SIZES: [u32; 2] = [64, 1_024];
/// Round trips of one way and one size in a round: half a second by the slowest.
const TRIPS: u32 = 5_000;
/// How long all round trips of one command are meant to take.
const MEANT: Duration = Duration::from_secs(10);
const NATS: &str = "NATS core";

/// Runs the scenario beside NATS; it needs root.
pub(super) fn beside_nats(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("dostp-nats", "");
    outcome.title = format!(
        "p50 of {TRIPS} blocking round trips between two hosts, in turn; {}",
        nats::versions(&setting.programs.tools)
    );
    if !nats::are_installed(&setting.programs.tools) {
        return outcome.skip("nats-server and nats are not there: cargo xtask install --for bench");
    }
    lan::measured(setting, outcome, measure)
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (lan, folder) = lan::begin(setting, setting.rounds as usize)?;
    let node = lan::serve(setting, &lan, RING_ASLEEP, &[], &folder)?;
    let nats = Nats::start(&setting.programs.tools, &lan, &folder)?;
    for round in 1..=setting.rounds {
        setting.step(&format!("round {round}"));
        for size in SIZES {
            let [dostp, udp] = trips(setting, &lan, RING_ASLEEP, size, TRIPS)?;
            let nats = nats.ask(&lan, size, TRIPS, MEANT)?;
            let measure = format!("{size} bytes");
            for (server, time_us) in [(RING_ASLEEP.name, dostp), (UDP, udp), (NATS, nats)] {
                outcome.add(server, &measure, "us", time_us);
            }
            for (server, time_us) in [(RING_ASLEEP.name, dostp), (UDP, udp)] {
                outcome.add(server, &format!("{size} bytes, of NATS"), "", time_us / nats);
            }
        }
    }
    outcome.note(format!("{}: {}", RING_ASLEEP.name, node.command));
    nats.commands().for_each(|command| outcome.note(format!("{NATS}: {command}")));
    outcome
        .note("a reply by NATS has two bytes, whatever its request has; the others send back all".to_owned());
    Ok(())
}
