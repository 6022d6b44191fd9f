//! The scenario of a changing site: one of 100 000 files is replaced while requests go on.
//!
//! It owns the changes and puts the files back. Every answer is compared with the file's two versions: any
//! other bytes, status or broken connection is a failed request.
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::client::HttpClient;
use super::content::{self, Bytes, TREE_FILES};
use super::servers::Server;
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use crate::report::{Bar, Direction, ScenarioOutcome};

const DELAY: &str = "time until a change is served";
const FAILED: &str = "failed requests";
const CHANGES: usize = 50;
const DELAY_MS_MAX: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(5);
const POLL_TIME: Duration = Duration::from_millis(1);
/// Between two requests of the light load.
const LOAD_PAUSE: Duration = Duration::from_millis(2);
/// A change every so often.
const CHANGE_PAUSE: Duration = Duration::from_millis(50);
const SEED: u64 = 5;

/// Runs the scenario, for ours and for those peers that notice changes within seconds. nginx is left out: its
/// open_file_cache answers with the old file until the entry's time is over.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "change",
        "one file of 100 000 replaced by rename, 50 times, under a light load",
    );
    let kinds =
        setting.chosen(&[ServerKind::Uring, ServerKind::Epoll, ServerKind::Lighttpd, ServerKind::H2o]);
    let folder = setting.scratch.join("tree");
    setting.expect_steps(1 + kinds.len());
    setting.step("making 100 000 files");
    if let Err(error) = content::tree(&folder) {
        outcome.errors.push(error);
        return outcome;
    }
    for kind in kinds {
        setting.step(kind.name());
        if let Err(error) = measure(kind, setting, &folder, &mut outcome) {
            outcome.errors.push(format!("{}: {error}", kind.name()));
        }
    }
    for kind in ServerKind::OURS {
        let largest = outcome.samples(kind.name(), DELAY).iter().copied().reduce(f64::max);
        let words = format!("{DELAY}, the longest of {CHANGES}");
        let largest = largest.map_or_else(Vec::new, |largest| vec![largest]);
        outcome.bars.push(Bar::judge(kind.name(), &words, Direction::AtMost, DELAY_MS_MAX, "ms", largest));
        outcome.judge(kind.name(), FAILED, Direction::AtMost, 0.0, "");
    }
    outcome
}

fn measure(
    kind: ServerKind,
    setting: &Setting,
    folder: &Path,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let changed = changed_files();
    for number in &changed {
        content::replace(folder, *number, 0)?;
    }
    let setup = Setup { connections_max: 4096, ..Setup::new(kind, folder, "000/000.txt") };
    let server = setting.start(&setup, &content::tree_path(0), &content::tree_body(0, 0))?;
    let stop = AtomicBool::new(false);
    let (delays, load) = thread::scope(|scope| {
        let load = scope.spawn(|| light_load(server.address, &changed, &stop));
        let delays = changed.iter().map(|number| change(&server, folder, *number)).collect::<Vec<_>>();
        stop.store(true, Ordering::Relaxed);
        (delays, load.join())
    });
    for number in &changed {
        content::replace(folder, *number, 0)?;
    }
    let (requests, mut faults) = load.map_err(|_| "the load ended early".to_owned())?;
    for delay in delays {
        match delay {
            Ok(milliseconds) => outcome.add(kind.name(), DELAY, "ms", milliseconds),
            Err(error) => faults.push(error),
        }
    }
    outcome.add(kind.name(), FAILED, "", faults.len() as f64);
    outcome.add(kind.name(), "requests of the light load", "", f64::from(requests));
    if let Some(fault) = faults.first() {
        outcome.note(format!("{}: the first failed request: {fault}", kind.name()));
    }
    Ok(())
}

/// Changes one file that was served just before, and asks for it every millisecond until it is new. Gives
/// the time from before the change, in ms.
fn change(server: &Server, folder: &Path, number: u32) -> Result<f64, String> {
    let (path, old, new) =
        (content::tree_path(number), content::tree_body(number, 0), content::tree_body(number, 1));
    sleep(CHANGE_PAUSE);
    let mut client = HttpClient::connect(server.address)?;
    if client.get(&path)?.body != old {
        return Err(format!("{path}: wrong bytes before the change"));
    }
    let began = Instant::now();
    content::replace(folder, number, 1)?;
    while began.elapsed() < PATIENCE {
        let reply = client.get(&path)?;
        if reply.status == 200 && reply.body == new {
            return Ok(began.elapsed().as_secs_f64() * 1000.0);
        }
        if reply.status != 200 || reply.body != old {
            return Err(format!("{path}: status {} and neither the old nor the new bytes", reply.status));
        }
        sleep(POLL_TIME);
    }
    Err(format!("{path}: still the old bytes after {} s", PATIENCE.as_secs()))
}

/// Asks for files all over the tree until told to stop. Gives how many requests there were and every fault.
fn light_load(address: SocketAddr, changed: &BTreeSet<u32>, stop: &AtomicBool) -> (u32, Vec<String>) {
    let (mut requests, mut faults) = (0, Vec::new());
    let mut numbers = Bytes::new(SEED + 1);
    let mut client = HttpClient::connect(address);
    while !stop.load(Ordering::Relaxed) {
        let number = (numbers.next_number() % u64::from(TREE_FILES)) as u32;
        requests += 1;
        if let Err(fault) =
            client.as_mut().map_err(|error| error.clone()).and_then(|client| ask(client, number, changed))
        {
            faults.push(fault);
            client = HttpClient::connect(address);
        }
        sleep(LOAD_PAUSE);
    }
    (requests, faults)
}

fn ask(client: &mut HttpClient, number: u32, changed: &BTreeSet<u32>) -> Result<(), String> {
    let path = content::tree_path(number);
    let reply = client.get(&path)?;
    let right = reply.body == content::tree_body(number, 0)
        || (changed.contains(&number) && reply.body == content::tree_body(number, 1));
    if reply.status == 200 && right {
        Ok(())
    } else {
        Err(format!("{path}: status {}, wrong bytes", reply.status))
    }
}

fn changed_files() -> BTreeSet<u32> {
    let mut numbers = Bytes::new(SEED);
    let mut changed = BTreeSet::new();
    while changed.len() < CHANGES {
        changed.insert((numbers.next_number() % u64::from(TREE_FILES)) as u32);
    }
    changed
}
