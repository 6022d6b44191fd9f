//! The scenarios of DOSTP between two hosts of one LAN. The one beside a broker of messages stands here:
//! blocking round trips by DOSTP in user space, by UDP, and as a request with its reply by NATS core.
//!
//! This module owns what is compared. Broker and answering program stand on one host, the asking program on
//! the other, so that a request crosses the cable once each way whoever carries it. Figures of different
//! rounds must never be compared.

mod lan;
mod nats;
mod one_way;

use std::time::Duration;

use self::lan::{DOSTP, Lan, SERVER_ADDRESS, UDP, UDP_ECHO, WAY, text};
use self::nats::Nats;
pub(super) use self::one_way::run as one_way;
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
    if !rustix::process::geteuid().is_root() {
        return outcome.skip("only root may make namespaces");
    }
    if !nats::are_installed(&setting.programs.tools) {
        return outcome.skip("nats-server and nats are not there: cargo xtask install --for bench");
    }
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (lan, node, folder) = lan::begin(setting, &[])?;
    let nats = Nats::start(&setting.programs.tools, &lan, &folder)?;
    for round in 1..=setting.rounds {
        setting.step(&format!("round {round}"));
        for size in SIZES {
            let [dostp, udp] = by_dostp_and_udp(setting, &lan, size)?;
            let nats = nats.ask(&lan, size, TRIPS, MEANT)?;
            let measure = format!("{size} bytes");
            for (server, time_us) in [(DOSTP, dostp), (UDP, udp), (NATS, nats)] {
                outcome.add(server, &measure, "us", time_us);
            }
            for (server, time_us) in [(DOSTP, dostp), (UDP, udp)] {
                outcome.add(server, &format!("{size} bytes, of NATS"), "", time_us / nats);
            }
        }
    }
    outcome.note(format!("{DOSTP}: {}", node.command));
    nats.commands().for_each(|command| outcome.note(format!("{NATS}: {command}")));
    outcome
        .note("a reply by NATS has two bytes, whatever its request has; the others send back all".to_owned());
    Ok(())
}

/// A round of both sides: their p50 in us.
fn by_dostp_and_udp(setting: &Setting, lan: &Lan, size: u32) -> Result<[f64; 2], String> {
    let (program, size, trips) = (text(&setting.programs.staunch), size.to_string(), TRIPS.to_string());
    let once = ["--udp-echo", UDP_ECHO, "--rounds", "1", "--count", &trips, "--size", &size];
    let words = [&[&*program, "dostp", "bench", SERVER_ADDRESS], &WAY[..], &once].concat();
    let said = lan.ask(&words, MEANT, &setting.scratch)?;
    read(&said, &size).ok_or_else(|| format!("`staunch dostp bench` says: {said}"))
}

/// The p50 of both in the line of a size, in us; `None` if there is no such line, or a message was lost.
fn read(said: &str, size: &str) -> Option<[f64; 2]> {
    let mut lines = said.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<&str>>());
    let words = lines.find(|words| words.first() == Some(&size))?;
    match words[1..] {
        [own, own_unit, _, _, "0", other, other_unit, _, _, "0", _] => {
            Some([microseconds(own, own_unit)?, microseconds(other, other_unit)?])
        }
        _ => None,
    }
}

fn microseconds(number: &str, unit: &str) -> Option<f64> {
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1_000.0,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_are_read_from_the_line_of_the_size() {
        let said = "round trips to 10.0.0.1 by ring on dv, beside connected UDP\n\
            bytes   DOSTP p50     p99  lost    UDP p50     p99  lost   ratio\n\
            64        18.5 us  30.1 us     0    22.0 us  1.25 ms     0    0.84\n\
            1024      1.50 ms  30.1 us     0    25.0 us  1.25 ms     0    0.84\n";
        assert_eq!(read(said, "64"), Some([18.5, 22.0]));
        assert_eq!(read(said, "1024"), Some([1_500.0, 25.0]));
        assert_eq!(read(said, "4096"), None);
        // A message that was lost waited for a second.
        assert_eq!(read(&said.replace("30.1 us     0", "30.1 us     1"), "64"), None);
        assert_eq!(read("64  -  -  5  22.0 us  30.0 us  0  -\n", "64"), None);
    }
}
