//! The scenarios of memory: what a server keeps for a reader who waits, shares a topic or has one alone, or
//! has stopped reading.
//!
//! This file owns the bars of the scenarios. Memory is that of the server's processes; the kernel's part is
//! shown, and judged for readers that stand still alone, because there it depends on the server.
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use super::fan_server::{FanOut, TOPIC, available, name, readers_max};
use super::publishing::publish;
use super::readers::{Readers, Reading};
use super::sockets::BufferedSockets;
use super::stalling::{publish_much, stall};
use crate::generator::too_small;
use crate::process::ProcessMemory;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;
use crate::setup::ServerKind;

/// Readers that are held at a time.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    readers: u32,
    what: &'static str,
    /// Half of them read gzip.
    with_gzip: bool,
    alone: bool,
}

impl Crowd {
    const fn sharing(readers: u32, what: &'static str) -> Self {
        Self { readers, what, with_gzip: false, alone: false }
    }
}

const FEW: Crowd = Crowd::sharing(8000, "memory a reader, of 8 000");
const MANY: Crowd = Crowd::sharing(200_000, "memory a reader, of 200 000");
const MILLION: Crowd = Crowd {
    with_gzip: true,
    ..Crowd::sharing(1_000_000, "memory a reader, of a million, half of them gzip")
};
const CROWDS: [Crowd; 5] = [
    FEW,
    Crowd { with_gzip: true, what: "memory a reader, of 8 000, half of them gzip", ..FEW },
    MANY,
    Crowd { with_gzip: true, what: "memory a reader, of 200 000, half of them gzip", ..MANY },
    ALONE,
];
const ALONE: Crowd =
    Crowd { readers: 100_000, what: "memory a reader, each alone", with_gzip: false, alone: true };
const KINDS: [ServerKind; 3] = [ServerKind::Nginx, ServerKind::Uring, ServerKind::Epoll];
const GZIP: &str = "Accept-Encoding: gzip";
/// Those who come and go before memory is looked at first: what is made once is no memory of a reader.
const FIRST_READERS: u32 = 512;
/// The server has dealt with all that came, and has given back what nobody holds.
const SETTLING_TIME: Duration = Duration::from_secs(12);
const VALUE_BYTES: usize = 200;
/// At most a fiftieth of nchan's.
const OF_NCHAN_MAX: f64 = 0.02;
/// 160 MB for a million.
const BYTES_EACH_MAX: f64 = 160.0;
/// What a reader alone on its topic may take more than one who shares it.
const ALONE_MORE_BYTES_MAX: f64 = 512.0;
const ALONE_MORE: &str = "memory a reader, each alone, more than shared";
const STALLED: u32 = 1000;
const STALLED_EACH: &str = "memory a stalled reader";
const STALLED_BYTES_MAX: f64 = 1024.0;
const STALLED_KERNEL: &str = "kernel's memory a stalled reader";
const STALLED_KERNEL_BYTES_MAX: f64 = 64.0 * 1024.0;

/// Runs the scenario. One round: what is measured does not depend on the speed of the machine.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome =
        ScenarioOutcome::new("live-memory", "what is kept for readers that wait, and for stalled ones");
    let kinds = available(&KINDS, setting, &mut outcome);
    setting.expect_steps(kinds.len() * (CROWDS.len() + 1));
    for kind in &kinds {
        for crowd in CROWDS {
            hold_in(*kind, &crowd, setting, &mut outcome);
        }
        if kind.is_ours() {
            setting.step(&format!("{}, stalled readers", name(*kind)));
            if let Err(error) = measure_stalled(*kind, setting, &mut outcome) {
                outcome.errors.push(format!("{}, stalled readers: {error}", name(*kind)));
            }
        }
    }
    for kind in kinds.into_iter().filter(|kind| kind.is_ours()) {
        judge(kind, &mut outcome);
    }
    outcome
}

/// Holds a million readers.
pub(crate) fn run_million(setting: &Setting) -> ScenarioOutcome {
    let title = "1 000 000 readers held by one process, half of them gzip";
    let mut outcome = ScenarioOutcome::new("live-memory-million", title);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(reason) = too_small(&meminfo, MILLION.readers.into()) {
        return outcome.skip(reason);
    }
    setting.expect_steps(1);
    hold_in(ServerKind::Uring, &MILLION, setting, &mut outcome);
    let server = name(ServerKind::Uring);
    outcome.judge(server, MILLION.what, Direction::AtMost, BYTES_EACH_MAX, "B");
    outcome
}

fn judge(kind: ServerKind, outcome: &mut ScenarioOutcome) {
    let server = name(kind);
    let ratios = outcome.ratios(server, name(ServerKind::Nginx), FEW.what);
    let promise = format!("{}, of nchan", FEW.what);
    outcome.bars.push(Bar::judge(server, &promise, Direction::AtMost, OF_NCHAN_MAX, "", ratios));
    if readers_max(kind) >= MANY.readers {
        for crowd in CROWDS.iter().filter(|crowd| crowd.readers == MANY.readers) {
            outcome.judge(server, crowd.what, Direction::AtMost, BYTES_EACH_MAX, "B");
        }
        let (alone, shared) = (outcome.samples(server, ALONE.what), outcome.samples(server, MANY.what));
        let more: Vec<f64> = alone.iter().zip(shared).map(|(alone, shared)| alone - shared).collect();
        let direction = Direction::AtMost;
        outcome.bars.push(Bar::judge(server, ALONE_MORE, direction, ALONE_MORE_BYTES_MAX, "B", more));
    }
    outcome.judge(server, STALLED_EACH, Direction::AtMost, STALLED_BYTES_MAX, "B");
    outcome.judge(server, STALLED_KERNEL, Direction::AtMost, STALLED_KERNEL_BYTES_MAX, "B");
}

/// Holds a crowd, where the server can and it is asked of it: nchan is looked at with few readers of plain
/// text alone.
fn hold_in(kind: ServerKind, crowd: &Crowd, setting: &Setting, outcome: &mut ScenarioOutcome) {
    setting.step(&format!("{}, {}", name(kind), crowd.what));
    if crowd.readers > readers_max(kind) || (crowd.with_gzip && !kind.is_ours()) {
        return;
    }
    if let Err(error) = hold(kind, crowd, setting, outcome) {
        outcome.errors.push(format!("{}, {}: {error}", name(kind), crowd.what));
    }
}

fn hold(
    kind: ServerKind,
    crowd: &Crowd,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let server = FanOut::of_readers(kind, crowd.readers, &[], setting)?;
    if crowd.with_gzip {
        check_gzip(&server)?;
    }
    come_and_go(&server, setting)?;
    let before = ProcessMemory::of(server.id());
    let fields: &[Option<&str>] = if crowd.with_gzip { &[None, Some(GZIP)] } else { &[None] };
    let count = crowd.readers / fields.len() as u32;
    let mut readers = Vec::new();
    for (group, field) in (1..).zip(fields) {
        let reading = Reading { count, alone: crowd.alone, field: *field, group, ..Reading::default() };
        readers.push(Readers::start(&server, &reading, setting)?);
    }
    readers.iter_mut().try_for_each(Readers::wait)?;
    publish(&server, &"x".repeat(VALUE_BYTES))?;
    sleep(SETTLING_TIME);
    let after = ProcessMemory::of(server.id());
    let kernel = BufferedSockets::of_port(server.port())?;
    let open: u64 = readers.iter().filter_map(|some| Some(some.standing()?.open)).sum();
    if open != u64::from(crowd.readers) {
        return Err(format!("only {open} of {} readers stayed", crowd.readers));
    }
    let each = |bytes: u64| bytes as f64 / f64::from(crowd.readers);
    let resident_bytes = after.resident_bytes.saturating_sub(before.resident_bytes);
    outcome.add(name(kind), crowd.what, "B", each(resident_bytes));
    outcome.add(name(kind), &format!("kernel's {}", crowd.what), "B", each(kernel.bytes));
    outcome.note(format!("{}: {}", name(kind), server.command));
    Ok(())
}

/// The first readers come, and are gone again.
fn come_and_go(server: &FanOut, setting: &Setting) -> Result<(), String> {
    let reading = Reading { count: FIRST_READERS, ..Reading::default() };
    Readers::start(server, &reading, setting)?.wait()?;
    publish(server, &"x".repeat(VALUE_BYTES))?;
    sleep(SETTLING_TIME);
    Ok(())
}

/// Whether a reader that takes gzip is given it.
fn check_gzip(server: &FanOut) -> Result<(), String> {
    let text = |error: std::io::Error| format!("a reader of gzip: {error}");
    let mut stream = TcpStream::connect(server.address()).map_err(text)?;
    let request = format!("GET /events?topic={TOPIC}&from=now HTTP/1.1\r\nHost: localhost\r\n{GZIP}\r\n\r\n");
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(text)?;
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut head = vec![0; 4096];
    let length = stream.read(&mut head).map_err(text)?;
    let head = String::from_utf8_lossy(&head[..length]).to_ascii_lowercase();
    if head.contains("content-encoding: gzip") {
        return Ok(());
    }
    Err(format!("a reader of gzip was answered {}", head.lines().next().unwrap_or("nothing")))
}

fn measure_stalled(kind: ServerKind, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let server = FanOut::start(kind, setting, &["--send-timeout", "600s"])?;
    publish_much(&server)?;
    come_and_go(&server, setting)?;
    let before = ProcessMemory::of(server.id());
    let (readers, _) = stall(&server, STALLED, 1, setting)?;
    sleep(SETTLING_TIME);
    let after = ProcessMemory::of(server.id());
    let sockets = BufferedSockets::of_port(server.port())?;
    drop(readers);
    if sockets.waiting < u64::from(STALLED) {
        return Err(format!("only {} of {STALLED} readers stood still to the end", sockets.waiting));
    }
    let each = |bytes: u64| bytes as f64 / f64::from(STALLED);
    let resident_bytes = after.resident_bytes.saturating_sub(before.resident_bytes);
    outcome.add(name(kind), STALLED_EACH, "B", each(resident_bytes));
    outcome.add(name(kind), STALLED_KERNEL, "B", each(sockets.bytes));
    Ok(())
}
