//! The scenario of round trips between two hosts of one LAN: by each backend of Ethernet and by UDP beside
//! it, each end with a processor of its own, looking all the time or asleep until an answer comes.
//!
//! This module owns what is run and how its table is read. Figures of different rounds must never be
//! compared.

use std::time::Duration;

use super::lan::{self, Lan, RING_ASLEEP, SERVER_ADDRESS, SPINNING, UDP_ECHO, Way, text};
use crate::report::ScenarioOutcome;
use crate::setting::Setting;

/// Bytes of a message.
const SIZES: [u32; 4] = [64, 1_024, 4_096, 16_384];
/// Round trips of one way and one size in a round.
const TRIPS: u32 = 5_000;
/// How long all round trips of one command are meant to take.
const MEANT: Duration = Duration::from_secs(10);

/// Runs the scenario; it needs root.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("dostp-trips", "");
    outcome.title = format!("p50 of {TRIPS} round trips between two hosts, in turn with connected UDP");
    lan::measured(setting, outcome, measure)
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let ways = [&SPINNING[..], &[RING_ASLEEP]].concat();
    let (lan, folder) = lan::begin(setting, setting.rounds as usize * ways.len())?;
    for round in 1..=setting.rounds {
        for &way in &ways {
            setting.step(&format!("round {round}, {}", way.name));
            let node = lan::serve(setting, &lan, way, &[], &folder)?;
            for size in SIZES {
                let [dostp, udp] = trips(setting, &lan, way, size, TRIPS)?;
                outcome.add(way.name, &format!("{size} bytes"), "us", dostp);
                outcome.add(way.name, &format!("{size}, of UDP"), "", dostp / udp);
            }
            if round == 1 {
                outcome.note(format!("{}: {}", way.name, node.command));
            }
        }
    }
    Ok(())
}

/// A round of so many trips by DOSTP and by UDP: their p50 in us.
pub(super) fn trips(
    setting: &Setting,
    lan: &Lan,
    way: Way,
    size: u32,
    count: u32,
) -> Result<[f64; 2], String> {
    trips_with(setting, lan, way, size, count, &[])
}

/// A round of trips with further words of the asking end, such as keys.
pub(super) fn trips_with(
    setting: &Setting,
    lan: &Lan,
    way: Way,
    size: u32,
    count: u32,
    more: &[&str],
) -> Result<[f64; 2], String> {
    let (program, size, trips) = (text(&setting.programs.staunch), size.to_string(), count.to_string());
    let once = ["--udp-echo", UDP_ECHO, "--rounds", "1", "--count", &trips, "--size", &size];
    let words = [&[&*program, "dostp", "bench", SERVER_ADDRESS], &way.words()[..], &once, more].concat();
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
