//! The scenario `slow`: slowhttptest in its four modes with 10 000 connections, beside honest clients.
//!
//! It owns the bar on how long the honest wait. They are an open loop of few requests, so that what they see
//! is the server's doing and not their own. Before each attack they are measured alone; beside it, once all
//! its connections stand, or no more come. The server's processor time is steadier than a percentile, so it
//! is reported too.
use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::generator::{self, Honest};
use super::process::{self, Usage};
use super::servers::{Server, pinned};
use super::setting::Setting;
use super::setup::{ServerKind, Setup};
use super::{content, machine};
use crate::report::{Bar, Direction, ScenarioOutcome};

/// A way to be slow.
struct Mode {
    name: &'static str,
    arguments: &'static [&'static str],
}

const MODES: [Mode; 4] = [
    Mode { name: "slow heads", arguments: &["-H"] },
    Mode { name: "slow bodies", arguments: &["-B", "-s", "8192", "-t", "POST"] },
    Mode { name: "many ranges", arguments: &["-R", "-a", "0", "-b", "3000"] },
    Mode {
        name: "slow readers",
        arguments: &["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"],
    },
];
/// Asked for by the bar.
const CONNECTIONS: usize = 10_000;
/// So many of them are begun each second.
const CONNECTIONS_PER_S: &str = "4000";
/// No more come when none has for so long.
const STANDSTILL: Duration = Duration::from_secs(4);
const BUILD_UP_MAX: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The honest: a tenth of what the server can do.
const HONEST_PER_S: u32 = 5000;
const RATIO_MAX: f64 = 1.5;
const FILE: &str = "5000.txt";
const FILE_BYTES: usize = 5000;

/// Runs the scenario.
pub(super) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "slow",
        "5 000 honest requests a second beside slowhttptest with 10 000 connections, in four modes",
    );
    let kinds = setting.chosen(&ServerKind::OURS);
    if let Err(error) = measure(&kinds, setting, &mut outcome) {
        outcome.errors.push(error);
    }
    for kind in kinds {
        for mode in &MODES {
            let ratios = outcome.samples(kind.name(), &ratio_words(mode)).to_vec();
            let (words, direction) = (ratio_words(mode), Direction::AtMost);
            outcome.bars.push(Bar::judge(kind.name(), &words, direction, RATIO_MAX, "", ratios));
            let lost = outcome.samples(kind.name(), &lost_words(mode)).to_vec();
            outcome.bars.push(Bar::judge(kind.name(), &lost_words(mode), direction, 0.0, "", lost));
        }
    }
    outcome
}

fn measure(kinds: &[ServerKind], setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let folder = setting.scratch.join("files");
    let body = content::small_file(&folder, FILE, FILE_BYTES)?;
    setting.expect_steps(setting.rounds as usize * kinds.len() * MODES.len());
    for round in 1..=setting.rounds {
        for kind in kinds {
            for mode in &MODES {
                setting.step(&format!("round {round}, {}, {}", kind.name(), mode.name));
                let setup = Setup { connections_max: 16_000, ..Setup::new(*kind, &folder, FILE) };
                let server = setting.start(&setup, &format!("/{FILE}"), &body)?;
                if let Err(error) = measure_once(&server, mode, setting, outcome) {
                    outcome.errors.push(format!("{}, {}: {error}", kind.name(), mode.name));
                }
                server.check(&format!("/{FILE}"), &body)?;
            }
        }
    }
    Ok(())
}

fn measure_once(
    server: &Server,
    mode: &Mode,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let (name, url) = (server.kind.name(), server.url(&format!("/{FILE}")));
    let (alone, alone_ns) = honest(server, &url, setting);
    let alone = alone?;
    let mut attacker = attack(mode, &url, setting)?;
    let standing = build_up(server.address.port());
    let (beside, beside_ns) = honest(server, &url, setting);
    process::end(&process::descendants(attacker.id()));
    // Collects the ended child; there is nothing to do about a failure.
    let _ = attacker.wait();
    let beside = beside?;
    outcome.add(name, &format!("{}: connections that stood", mode.name), "", standing as f64);
    if standing == 0 {
        outcome.note(format!("{}: {name} answers them at once, so that none stands", mode.name));
    }
    outcome.add(name, &format!("{}: honest p99", mode.name), "ms", beside.p99_ms);
    outcome.add(name, &ratio_words(mode), "", beside.p99_ms / alone.p99_ms.max(f64::MIN_POSITIVE));
    let cpu_ratio = beside_ns as f64 / alone_ns.max(1) as f64;
    outcome.add(name, &format!("{}: CPU of the server, of undisturbed", mode.name), "", cpu_ratio);
    outcome.add(name, &lost_words(mode), "", beside.lost as f64);
    Ok(())
}

/// What the honest see, and the processor time that the server spends meanwhile.
fn honest(server: &Server, url: &str, setting: &Setting) -> (Result<Honest, String>, u64) {
    let before = Usage::of(server.id());
    let seen = generator::honest(setting, url, HONEST_PER_S);
    (seen, Usage::of(server.id()).since_ns(&before))
}

/// Waits until all connections of the attack stand, or no more come. Says how many stand then.
fn build_up(port: u16) -> usize {
    let started = Instant::now();
    let (mut most, mut grown) = (0, started);
    loop {
        let standing = established(Ipv4Addr::LOCALHOST, port);
        if standing > most {
            (most, grown) = (standing, Instant::now());
        }
        if standing >= CONNECTIONS || grown.elapsed() > STANDSTILL || started.elapsed() > BUILD_UP_MAX {
            return standing;
        }
        sleep(LOOK_INTERVAL);
    }
}

fn attack(mode: &Mode, url: &str, setting: &Setting) -> Result<Child, String> {
    let connections = CONNECTIONS.to_string();
    let seconds = (u64::from(setting.seconds) + 30 + BUILD_UP_MAX.as_secs()).to_string();
    // Neither the server's processor nor that of the honest, where there are so many.
    pinned(if machine::processors() > 2 { 2 } else { 1 })
        .args(["slowhttptest", "-c", &connections, "-r", CONNECTIONS_PER_S, "-i", "2", "-p", "3"])
        .args(["-l", &seconds, "-u", url])
        .args(mode.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("slowhttptest: {error}"))
}

/// Connections of a local port, from the server's side: other addresses may have the port for something else.
fn established(ip: Ipv4Addr, port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let local = format!("{:08X}:{port:04X}", u32::from_ne_bytes(ip.octets()));
    let remote_of_ours = |line: &'_ str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_ours = words.next() == Some(&local);
        let (remote, state) = (words.next()?, words.next()?);
        (is_ours && state == ESTABLISHED).then(|| remote.to_owned())
    };
    // The table shows a connection twice where others come and go while it is read.
    table.lines().filter_map(remote_of_ours).collect::<BTreeSet<String>>().len()
}

fn ratio_words(mode: &Mode) -> String {
    format!("{}: honest p99, of undisturbed", mode.name)
}

fn lost_words(mode: &Mode) -> String {
    format!("{}: honest not answered", mode.name)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_are_counted_on_the_servers_side() {
        let ip = Ipv4Addr::new(127, 77, 0, 1);
        let listener = TcpListener::bind((ip, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let streams: Vec<TcpStream> =
            (0..3).map(|_| TcpStream::connect(address).expect("the queue has room")).collect();
        // The table does not always show each of them.
        let most = (0..1_000).map(|_| established(ip, address.port())).find(|count| *count >= 3);
        assert_eq!(most, Some(3));
        drop(streams);
    }
}
