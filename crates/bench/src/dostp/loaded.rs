//! The scenario of round trips beside crowds of TCP and UDP on the same cable: by a packet ring, asleep and
//! looking, without keys and with them, and by UDP beside each.
//!
//! This module owns which runs there are. Figures of different rounds must never be compared.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::crowd::Crowds;
use super::lan::{self, RING_ASLEEP, SPINNING, UDP, Way, text};
use super::trips;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

/// Bytes of a message.
const SIZES: [u32; 3] = [64, 1_024, 16_384];
/// Round trips of one way and one size in a round.
const TRIPS: u32 = 2_000;
/// The paper has 173 to 179 us by DOSTP and more than 293 by UDP.
const PAPER: f64 = 0.62;

/// A run: a way to the network, its name in results, and further words for the commands of both ends.
struct Kind {
    way: Way,
    name: String,
    words: Vec<String>,
}

/// Runs the scenario; it needs root.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new("dostp-loaded", "");
    outcome.title = format!("p50 of {TRIPS} round trips beside crowds of TCP and UDP on one cable, in turn");
    lan::measured(setting, outcome, measure)
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let (lan, folder) = lan::begin(setting, setting.rounds as usize * 4)?;
    let kinds = kinds(&folder)?;
    let mut crowds = Crowds::begin(setting, &lan, &folder)?;
    for round in 1..=setting.rounds {
        for kind in &kinds {
            setting.step(&format!("round {round}, {}", kind.name));
            let words: Vec<&str> = kind.words.iter().map(String::as_str).collect();
            let node = lan::serve(setting, &lan, kind.way, &words, &folder)?;
            for size in SIZES {
                let [dostp, udp] = trips::trips_with(setting, &lan, kind.way, size, TRIPS, &words)?;
                outcome.add(&kind.name, &format!("{size} bytes"), "us", dostp);
                outcome.add(&format!("{UDP} beside {}", kind.name), &format!("{size} bytes"), "us", udp);
                outcome.add(&kind.name, &format!("{size}, of UDP"), "", dostp / udp);
            }
            if round == 1 {
                outcome.note(format!("{}: {}", kind.name, node.command));
            }
        }
    }
    outcome.note(crowds.told()?);
    let of_udp = outcome.samples(RING_ASLEEP.name, "64, of UDP").to_vec();
    let promise = "64 bytes, of UDP, in a crowd";
    outcome.bars.push(Bar::judge(RING_ASLEEP.name, promise, Direction::AtMost, PAPER, "", of_udp));
    Ok(())
}

/// Asleep and looking, and asleep with keys in both modes.
fn kinds(folder: &Path) -> Result<Vec<Kind>, String> {
    let file = folder.join("key");
    let fault = |error: std::io::Error| format!("{}: {error}", file.display());
    fs::write(&file, "5a".repeat(32)).map_err(fault)?;
    fs::set_permissions(&file, Permissions::from_mode(0o600)).map_err(fault)?;
    let keyed = |mode: &str| Kind {
        way: RING_ASLEEP,
        name: format!("{}, {mode}", RING_ASLEEP.name),
        words: vec!["--key-file".to_owned(), text(&file), "--mode".to_owned(), mode.to_owned()],
    };
    let open = |way: Way| Kind { way, name: way.name.to_owned(), words: Vec::new() };
    let [looking, ..] = SPINNING;
    Ok(vec![open(RING_ASLEEP), open(looking), keyed("mac"), keyed("aead")])
}
