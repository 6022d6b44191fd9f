//! The scenario of quotes: lists of 5 of 5 000 symbols beside a file of the same size, and while symbols
//! change.
//!
//! This file owns the symbols, the script of wrk and the bars. The same script asks for both, so that it
//! costs the generator the same. The rate is judged, and the server's processor time as well: of a generator
//! that is the limit one would learn nothing.
use std::fs;
use std::path::{Path, PathBuf};

use super::fan_server::{FanOut, name, site};
use super::quote_changes::{Changes, first_values, list_bytes};
use super::rounds::measure_ours;
use crate::client::fetch;
use crate::content;
use crate::load::WrkLoad;
use crate::process::Usage;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const FILE: &str = "quotes.txt";
const CONNECTIONS: u32 = 64;
const RATE: &str = "requests per second";
/// What the server could answer with a whole processor.
const CAPACITY: &str = "requests a CPU-second";
const OF_FILE_MIN: f64 = 0.8;
const CHANGING_MIN: f64 = 0.9;
const TORN: &str = "torn lines";
const LOOKS: &str = "lists looked at";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "lists of 5 of 5 000 symbols over 64 kept connections, beside a file of the same size";
    measure_ours("live-quotes", title, setting, measure, judge)
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    File,
    Lists,
    /// Lists while 2 000 symbols change a second.
    ChangingLists,
}

impl Asked {
    const ALL: [Self; 3] = [Self::File, Self::Lists, Self::ChangingLists];

    fn label(self, kind: ServerKind) -> String {
        let what = match self {
            Self::File => "a file",
            Self::Lists => "lists",
            Self::ChangingLists => "lists that change",
        };
        format!("{}, {what}", name(kind))
    }
}

fn judge(kind: ServerKind, outcome: &mut ScenarioOutcome) {
    let [file, lists, changing] = Asked::ALL.map(|asked| asked.label(kind));
    for (own, rival, words, limit) in [
        (&lists, &file, "lists, of a file", OF_FILE_MIN),
        (&changing, &lists, "lists that change, of those that do not", CHANGING_MIN),
    ] {
        for measure in [RATE, CAPACITY] {
            let ratios = outcome.ratios(own, rival, measure);
            let promise = format!("{measure}, {words}");
            outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtLeast, limit, "", ratios));
        }
    }
    let torn = outcome.samples(&changing, TORN).to_vec();
    outcome.bars.push(Bar::judge(name(kind), TORN, Direction::AtMost, 0.0, "", torn));
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let size_bytes = list_bytes(5);
    content::small_file(&site(setting), FILE, size_bytes)?;
    let server = FanOut::start(kind, setting, &[])?;
    first_values(server.address())?;
    for path in ["/list=s0000,s0001,s0002,s0003,s4999", &format!("/{FILE}")] {
        let reply = fetch(server.address(), path)?;
        if (reply.status, reply.body.len()) != (200, size_bytes) {
            return Err(format!("{path} was answered {} with {} bytes", reply.status, reply.body.len()));
        }
    }
    for asked in Asked::ALL {
        let script = script(asked, setting)?;
        let changes = (asked == Asked::ChangingLists).then(|| Changes::begin(server.address()));
        measure_once(&server, &script, &asked.label(kind), setting, outcome)?;
        if let Some(changes) = changes {
            let seen = changes.end()?;
            outcome.add(&asked.label(kind), TORN, "", seen.torn as f64);
            outcome.add(&asked.label(kind), LOOKS, "", seen.lists as f64);
        }
    }
    outcome.note(format!("a list has {size_bytes} bytes, and so has the file"));
    outcome.note(format!("{}: {}", name(kind), server.command));
    Ok(())
}

fn measure_once(
    server: &FanOut,
    script: &Path,
    label: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let load =
        WrkLoad { connections: CONNECTIONS, seconds: setting.seconds, headers: &[], script: Some(script) };
    let url = server.url("/");
    WrkLoad { seconds: 1, ..load.clone() }.run(&url)?;
    let before = Usage::of(server.id());
    let answered = load.run(&url)?;
    let spent_ns = Usage::of(server.id()).since_ns(&before);
    outcome.add(label, RATE, "/s", answered.per_second);
    outcome.add(label, CAPACITY, "", answered.requests as f64 * 1e9 / spent_ns.max(1) as f64);
    Ok(())
}

/// A script that asks for a thousand lists in turn, or for the file as often.
fn script(asked: Asked, setting: &Setting) -> Result<PathBuf, String> {
    let (path, word) = match asked {
        Asked::File => (format!("\"/{FILE}\""), "file"),
        _ => ("\"/list=\" .. table.concat(symbols, \",\")".to_owned(), "lists"),
    };
    let script = format!(
        "local requests, turn = {{}}, 0\n\
         init = function(arguments)\n  math.randomseed(1)\n  for number = 1, 1000 do\n\
         \x20   local symbols = {{}}\n\
         \x20   for place = 1, 5 do symbols[place] = string.format(\"s%04d\", math.random(0, 4999)) end\n\
         \x20   requests[number] = wrk.format(\"GET\", {path})\n  end\nend\n\
         request = function()\n  turn = turn % 1000 + 1\n  return requests[turn]\nend\n"
    );
    let file = setting.scratch.join(format!("live-{word}.lua"));
    fs::write(&file, script).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}
