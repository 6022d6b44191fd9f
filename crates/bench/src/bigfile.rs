//! The scenario of one big file: processor time per GiB, and whether memory stays flat.
//!
//! It owns the downloads. The file is pseudo-random, whole on the disk and in the page cache, and is read by
//! curl, alone and four at a time.
use super::content::{self, BIG_BYTES};
use super::load::download;
use super::process::{ProcessMemory, Usage};
use super::servers::Server;
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use crate::report::{Bar, Direction, ScenarioOutcome};

const COST_ALONE: &str = "CPU per GiB, one at a time";
const COST_TOGETHER: &str = "CPU per GiB, four at a time";
const GROWTH: &str = "resident memory, growth";
/// Memory counts as flat when it grows by less than this: 1/1024 of the file.
const GROWTH_MIB_MAX: f64 = 1.0;
/// Downloads of one measurement.
const DOWNLOADS: usize = 4;
const FILE: &str = "big.bin";
const CHECK_FILE: &str = "100.txt";

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("bigfile", "a file of 1 GiB, read by curl alone and four at a time");
    if let Err(error) = measure(setting, &mut outcome) {
        outcome.errors.push(error);
    }
    judge(setting, &mut outcome);
    outcome
}

fn measure(setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let mut kinds = setting.for_files();
    kinds.retain(|kind| *kind != ServerKind::Floor);
    setting.expect_steps(1 + kinds.len() * (1 + setting.rounds as usize));
    setting.step("making the file");
    content::big_file(&folder, FILE)?;
    let check_body = content::small_file(&folder, CHECK_FILE, 100)?;
    let mut servers = Vec::new();
    for kind in kinds {
        setting.step(&format!("starting {}", kind.name()));
        let setup = Setup::new(kind, &folder, CHECK_FILE);
        let started = setting.start(&setup, &format!("/{CHECK_FILE}"), &check_body);
        match started.and_then(|server| check_bytes(&server, &folder).map(|()| server)) {
            Ok(server) => servers.push(server),
            Err(error) => outcome.errors.push(error),
        }
    }
    for round in 1..=setting.rounds {
        for server in &servers {
            setting.step(&format!("round {round}, {}", server.kind.name()));
            if let Err(error) = measure_once(server, outcome) {
                outcome.errors.push(format!("{}, round {round}: {error}", server.kind.name()));
            }
        }
    }
    Ok(())
}

/// A download compared byte by byte with the file.
fn check_bytes(server: &Server, folder: &std::path::Path) -> Result<(), String> {
    let script = r#"curl -s -S "$1" | cmp - "$2""#;
    let file = folder.join(FILE);
    let output = std::process::Command::new("sh")
        .args(["-c", script, "sh", &server.url(&format!("/{FILE}"))])
        .arg(&file)
        .output()
        .map_err(|error| format!("sh: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{} gives other bytes: {}", server.kind.name(), String::from_utf8_lossy(&said).trim()))
}

fn measure_once(server: &Server, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let url = server.url(&format!("/{FILE}"));
    let gibibytes = DOWNLOADS as f64 * BIG_BYTES as f64 / (1_u64 << 30) as f64;
    let memory_before = ProcessMemory::of(server.id());
    for (measure, parallel) in [(COST_ALONE, 1), (COST_TOGETHER, DOWNLOADS)] {
        let before = Usage::of(server.id());
        download(&url, &[], DOWNLOADS, parallel, BIG_BYTES)?;
        let spent_ns = Usage::of(server.id()).since_ns(&before);
        outcome.add(server.kind.name(), measure, "s", spent_ns as f64 / 1e9 / gibibytes);
    }
    let memory = ProcessMemory::of(server.id());
    let mebibytes = |bytes: u64| bytes as f64 / (1_u64 << 20) as f64;
    let growth = mebibytes(memory.resident_bytes) - mebibytes(memory_before.resident_bytes);
    outcome.add(server.kind.name(), GROWTH, "MiB", growth.max(0.0));
    outcome.add(server.kind.name(), "resident memory, peak", "MiB", mebibytes(memory.peak_bytes));
    Ok(())
}

fn judge(setting: &Setting, outcome: &mut ScenarioOutcome) {
    let peers: Vec<&'static str> =
        setting.chosen(&ServerKind::PEERS).into_iter().map(ServerKind::name).collect();
    for kind in ServerKind::OURS {
        for measure in [COST_ALONE, COST_TOGETHER] {
            let best = outcome.cheapest(&peers, measure);
            let samples = best.map_or_else(Vec::new, |best| outcome.ratios(kind.name(), best, measure));
            let words = format!(
                "{measure}, of the best peer{}",
                best.map_or(String::new(), |name| format!(" ({name})"))
            );
            outcome.bars.push(Bar::judge(kind.name(), &words, Direction::AtMost, 1.0, "", samples));
        }
        outcome.judge(kind.name(), GROWTH, Direction::AtMost, GROWTH_MIB_MAX, "MiB");
    }
}
