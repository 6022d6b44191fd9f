//! The scenario of differences: what a whole match costs whose report is polled every ten seconds, what such
//! a poll costs the server, and what it takes to make a difference.
//!
//! This file owns the match, its polls and the bars. Bytes are of bodies. Brotli's are those of its best
//! ratio, made here of the same versions; the processor time is compared with that of a file of the same text
//! which the server has prepared in Brotli.
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use staunch_dictionary::{Hash, apply, level_for, make};

use super::fan_server::{FanOut, TOKEN, name, site};
use super::rounds::measure_ours;
use crate::client::{HttpClient, Reply};
use crate::load::WrkLoad;
use crate::process::Usage;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

const FILE: &str = "report.json";
/// Lines of a whole match: one every three seconds of a match of nearly five minutes.
const LINES: usize = 91;
const LINE_S: usize = 3;
const POLL_S: usize = 10;
const CONNECTIONS: u32 = 64;
const ACCEPT: &str = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz";
const BYTES: &str = "bytes of a poll";
const CPU: &str = "CPU of a poll";
const OF_BROTLI_MAX: f64 = 0.08;
const OF_PREPARED_MAX: f64 = 1.05;
/// Lengths of values, and within how many milliseconds a difference of one is to be made.
const MADE: [(usize, f64); 2] = [(11_000, 0.3), (1 << 20, 20.0)];
/// Time within which the report has to be there in Brotli, and a difference has to be made.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let title = "polls of a match's report every 10 s as differences, beside Brotli";
    let mut outcome = measure_ours("live-differences", title, setting, measure, judge);
    (0..setting.rounds).for_each(|_| time_making(&mut outcome));
    for (bytes, limit_ms) in MADE {
        let times = outcome.samples("a difference", &making(bytes)).to_vec();
        outcome.bars.push(Bar::judge(
            "a difference",
            &making(bytes),
            Direction::AtMost,
            limit_ms,
            "ms",
            times,
        ));
    }
    outcome
}

fn judge(kind: ServerKind, outcome: &mut ScenarioOutcome) {
    for (measure, limit) in [(BYTES, OF_BROTLI_MAX), (CPU, OF_PREPARED_MAX)] {
        let ratios = outcome.ratios(name(kind), &brotli_label(kind), measure);
        let promise = format!("{measure}, of Brotli's");
        outcome.bars.push(Bar::judge(name(kind), &promise, Direction::AtMost, limit, "", ratios));
    }
}

fn brotli_label(kind: ServerKind) -> String {
    format!("{}, Brotli", name(kind))
}

/// The report of a match with so many lines, the last one first.
fn report(lines: usize) -> String {
    const TEXTS: [&str; 6] = [
        "Lock Rovers keep the ball in the reeds, and the far bank applauds",
        "a long pass of Weir United drifts out with the current",
        "corner for Lock Rovers, taken short and lost",
        "Weir United knock at the gate; it holds",
        "free kick for Lock Rovers, thirty paces out, over the wall and over the dam",
        "the keeper of Weir United has to stretch, and does",
    ];
    let mut state = 7_u64;
    let mut texts: Vec<String> = (0..lines)
        .map(|minute| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (text, number) = (TEXTS[(state >> 33) as usize % TEXTS.len()], state >> 40);
            format!(
                "{{\"minute\":{minute},\"text\":\"Number {number}: {text}.\",\"goal\":{}}}",
                number.is_multiple_of(18)
            )
        })
        .collect();
    texts.reverse();
    format!("{{\"teams\":[\"Lock Rovers\",\"Weir United\"],\"lines\":[{}]}}", texts.join(","))
}

fn measure(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let fault = |path: &PathBuf, error: std::io::Error| format!("{}: {error}", path.display());
    let folder = site(setting);
    let (file, settings) = (folder.join(FILE), setting.scratch.join("differences.toml"));
    fs::create_dir_all(&folder).map_err(|error| fault(&folder, error))?;
    fs::write(&file, report(LINES)).map_err(|error| fault(&file, error))?;
    let rules = "live_topic = [{ match = \"report\", kind = \"json\", dictionary = true }]\n";
    fs::write(&settings, rules).map_err(|error| fault(&settings, error))?;
    let server =
        FanOut::start(kind, setting, &["--config", &settings.to_string_lossy(), "--encodings", "br"])?;
    let polls = poll_match(&server)?;
    outcome.add(name(kind), BYTES, "", polls.bytes as f64 / polls.count as f64);
    outcome.add(&brotli_label(kind), BYTES, "", polls.brotli_bytes as f64 / polls.count as f64);
    outcome.note(format!("{} polls, of values of up to {} bytes", polls.count, report(LINES).len()));
    let dictionary = format!("Available-Dictionary: {}", Hash::of(report(LINES - 3).as_bytes()).to_field());
    until_coded(&server, "/live/report", &format!("{ACCEPT}\r\n{dictionary}\r\n"), 500)?;
    until_coded(&server, &format!("/{FILE}"), &format!("{ACCEPT}\r\n"), report(LINES).len() / 2)?;
    cpu(&server, "/live/report", &[ACCEPT, &dictionary], name(kind), setting, outcome)?;
    cpu(&server, &format!("/{FILE}"), &[ACCEPT], &brotli_label(kind), setting, outcome)?;
    outcome.note(format!("{}: {}", name(kind), server.command));
    Ok(())
}

/// The polls of one reader over a whole match, added up.
struct Polls {
    count: usize,
    bytes: usize,
    brotli_bytes: usize,
}

/// Publishes a whole match, and polls it as a browser does: with what it has by its hash.
fn poll_match(server: &FanOut) -> Result<Polls, String> {
    let mut client = HttpClient::connect(server.address())?;
    let mut polls = Polls { count: 0, bytes: 0, brotli_bytes: 0 };
    let mut has: Option<String> = None;
    for second in 0..LINES * LINE_S {
        if second.is_multiple_of(LINE_S) {
            put(&mut client, &report(second / LINE_S + 1))?;
        }
        if !second.is_multiple_of(POLL_S) {
            continue;
        }
        let now = report(second / LINE_S + 1);
        let held = has.as_ref().map(|has| Hash::of(has.as_bytes()).to_field());
        let held = held.map_or(String::new(), |hash| format!("Available-Dictionary: {hash}\r\n"));
        let reply = get(&mut client, "/live/report", &format!("{ACCEPT}\r\n{held}"))?;
        let decoded = has.as_ref().and_then(|has| apply(has.as_bytes(), &reply.body, now.len()));
        if has.is_some() && decoded.as_deref() != Some(now.as_bytes()) {
            return Err(format!("poll {} was no difference to what the client has", polls.count));
        }
        polls.count += 1;
        polls.bytes += reply.body.len();
        polls.brotli_bytes += brotli_bytes(now.as_bytes())?;
        has = Some(now);
    }
    Ok(polls)
}

fn put(client: &mut HttpClient, value: &str) -> Result<(), String> {
    let request = format!(
        "PUT /topics/report HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{value}",
        value.len()
    );
    let reply = client.ask(&request)?;
    if reply.status == 200 { Ok(()) } else { Err(format!("a publication was answered {}", reply.status)) }
}

fn get(client: &mut HttpClient, path: &str, lines: &str) -> Result<Reply, String> {
    let reply = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"))?;
    if reply.status == 200 { Ok(reply) } else { Err(format!("{path} was answered {}", reply.status)) }
}

/// Waits until a path is answered with a body that is shorter than this: its coding was made.
fn until_coded(server: &FanOut, path: &str, lines: &str, bytes_max: usize) -> Result<(), String> {
    let mut client = HttpClient::connect(server.address())?;
    let began = Instant::now();
    while get(&mut client, path, lines)?.body.len() > bytes_max {
        if began.elapsed() > PATIENCE {
            return Err(format!("{path} is not coded"));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The server's processor time of a request that is asked again and again.
fn cpu(
    server: &FanOut,
    path: &str,
    headers: &[&str],
    label: &str,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let load = WrkLoad { connections: CONNECTIONS, seconds: setting.seconds, headers, script: None };
    let url = server.url(path);
    WrkLoad { seconds: 1, ..load.clone() }.run(&url)?;
    let before = Usage::of(server.id());
    let answered = load.run(&url)?;
    let spent_ns = Usage::of(server.id()).since_ns(&before);
    outcome.add(label, CPU, "us", spent_ns as f64 / 1e3 / answered.requests.max(1) as f64);
    Ok(())
}

/// Bytes of a value in Brotli at its best ratio.
fn brotli_bytes(value: &[u8]) -> Result<usize, String> {
    let parameters =
        brotli::enc::BrotliEncoderParams { quality: 11, size_hint: value.len(), ..Default::default() };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*value, &mut out, &parameters).map_err(|error| error.to_string())
}

fn making(bytes: usize) -> String {
    format!("made of {bytes} bytes")
}

/// How long differences take that lead from a report to that with a line more.
fn time_making(outcome: &mut ScenarioOutcome) {
    for (bytes, _) in MADE {
        let per_line = report(1000).len() / 1000;
        let lines = bytes / per_line;
        let [before, now] = [report(lines), report(lines + 1)];
        let hash = Hash::of(before.as_bytes());
        let began = Instant::now();
        let made = make(before.as_bytes(), &hash, now.as_bytes(), level_for(now.len()));
        let took_ms = began.elapsed().as_secs_f64() * 1e3;
        outcome.add("a difference", &making(bytes), "ms", took_ms);
        outcome.add(
            "a difference",
            &format!("bytes of {bytes}"),
            "",
            made.map_or(0, |made| made.len()) as f64,
        );
    }
}
