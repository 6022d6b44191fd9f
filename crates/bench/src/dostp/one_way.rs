//! The scenario of streams one way between two hosts of one LAN: messages that are sent and that arrive in a
//! second, by DOSTP in user space and by UDP, both in batches, each end with a processor of its own.
//!
//! This module owns what is run and how its table is read. Figures of different rounds must never be
//! compared.

use std::time::Duration;

use super::lan::{self, RING_ASLEEP, SERVER_ADDRESS, SPINNING, UDP_ECHO, text};
use crate::report::ScenarioOutcome;
use crate::setting::Setting;

/// Bytes of a message.
const SIZES: [&str; 2] = ["64", "1024"];
/// How long each way sends in a round.
const DURATION: &str = "2s";
/// How long a command is meant to take: two ways, and questions before and behind.
const MEANT: Duration = Duration::from_secs(6);

/// Runs the scenario; it needs root.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("dostp-one-way", "");
    outcome.title = "messages a second one way between two hosts, in batches, in turn".to_owned();
    lan::measured(setting, outcome, measure)
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let [_, generic, native] = SPINNING;
    let ways = [RING_ASLEEP, generic, native];
    let (lan, folder) = lan::begin(setting, setting.rounds as usize * ways.len())?;
    let program = text(&setting.programs.staunch);
    for round in 1..=setting.rounds {
        for way in ways {
            setting.step(&format!("round {round}, {}", way.name));
            let node = lan::serve(setting, &lan, way, &["--discard"], &folder)?;
            for size in SIZES {
                let once = ["--one-way", "--udp-echo", UDP_ECHO, "--rounds", "1", "--duration", DURATION];
                let words = [&*program, "dostp", "bench", SERVER_ADDRESS, "--size", size];
                let words = [&words[..], &way.words(), &once].concat();
                let said = lan.ask(&words, MEANT, &setting.scratch)?;
                let rates = read(&said, size).ok_or_else(|| format!("`staunch dostp bench` says: {said}"))?;
                let udp = format!("UDP beside {}", way.name);
                for (server, rates) in [(way.name, &rates[..2]), (&udp, &rates[2..])] {
                    for (what, rate) in ["sent", "received"].into_iter().zip(rates) {
                        outcome.add(server, &format!("{size} bytes, {what}"), "/s", *rate);
                    }
                }
            }
            if round == 1 {
                outcome.note(format!("{}: {}", way.name, node.command));
            }
        }
    }
    Ok(())
}

/// The rates in the line of a size: sent and received by DOSTP, then by UDP.
fn read(said: &str, size: &str) -> Option<[f64; 4]> {
    let mut lines = said.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<&str>>());
    let words = lines.find(|words| words.first() == Some(&size))?;
    let rates: Vec<f64> = words[1..].iter().map_while(|word| word.parse().ok()).collect();
    match rates[..] {
        [sent, received, udp_sent, udp_received, _] => Some([sent, received, udp_sent, udp_received]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_the_line_of_the_size() {
        let said = "one way to 10.0.0.1 by ring on dv, 64 messages a call, beside UDP\n\
            bytes    DOSTP sent/s  received/s    UDP sent/s  received/s   ratio\n\
            64            1500000     1200000       1000000      600000    2.00\n";
        assert_eq!(read(said, "64"), Some([1_500_000.0, 1_200_000.0, 1_000_000.0, 600_000.0]));
        assert_eq!(read(said, "1024"), None);
        assert_eq!(read("64 1 2 3\n", "64"), None);
    }
}
