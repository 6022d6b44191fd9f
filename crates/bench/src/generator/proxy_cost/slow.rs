//! The scenario `proxy-cost-slow`: slow readers and slow senders beside an application at ten times its peak.
//!
//! This scenario owns the bars on goodput beside slow clients and on memory for each reader: that of the
//! process and of its sockets on both sides, because a proxy may leave an answer to the kernel. Readers
//! come first, as fast as the application answers them; memory is looked at once all of them read. Then
//! senders come, and the crowd; the first seconds of the crowd do not count. The crowd is over before the
//! first reader has read all.

use std::time::Duration;

use super::super::front::{Front, FrontPlan, Proxy};
use super::super::running;
use super::super::tool::Tool;
use super::super::truth::TruthServer;
use super::judging::each_anew;
use super::slow_clients::{SlowClients, Wanted};
use crate::account::{self, Account as _};
use crate::live::BufferedSockets;
use crate::process::ProcessMemory;
use crate::report::{Bar, Direction, ScenarioOutcome};
use crate::setting::Setting;

const WORKERS: u32 = 8;
const SERVICE_TIME: &str = "200ms";
const PEAK_PER_S: u32 = 40;
const OVERLOAD: u32 = 10;
const WANTED: Wanted = Wanted { readers: 1_000, answer_bytes: 64 * 1024, senders: 100, body_bytes: 100_000 };
/// All readers stand after some 35 s where none is refused, and the first has read all after 65 s.
const READERS_PATIENCE: Duration = Duration::from_secs(55);
const SENDERS_PATIENCE: Duration = Duration::from_secs(10);
/// Seconds before those that count, in which a proxy may learn.
const LEARNING_S: u32 = 10;
/// The most seconds that count: readers have to stand to their end.
const COUNTED_S_MAX: u32 = 10;
const GOODPUT: &str = "answered in time, of the peak";
const GOODPUT_MIN: f64 = 0.97;
const EACH: &str = "memory a slow reader, kernel's included";
const PROCESS: &str = "process's memory a slow reader";
const KERNEL: &str = "kernel's memory a slow reader";
/// Of nginx.
const RATIO_MAX: f64 = 0.5;

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "proxy-cost-slow",
        "1 000 readers of 64 KiB and 100 senders of 100 kB at 1 kB/s beside 8 x 200 ms at ten times its peak",
    );
    each_anew(setting, &mut outcome, |proxy, outcome| measure(proxy, setting, outcome));
    for proxy in Proxy::OURS {
        outcome.judge(proxy.name(), GOODPUT, Direction::AtLeast, GOODPUT_MIN, "");
        let ratios = outcome.ratios(proxy.name(), Proxy::Nginx.name(), EACH);
        let promise = format!("{EACH}, of nginx");
        outcome.bars.push(Bar::judge(proxy.name(), &promise, Direction::AtMost, RATIO_MAX, "", ratios));
    }
    outcome
}

fn measure(proxy: Proxy, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<(), String> {
    let application = TruthServer::start_sleeping(&setting.programs, SERVICE_TIME, WORKERS, None, &[])?;
    let behind = application.address()?;
    let front = Front::start(proxy, behind, &FrontPlan::PLAIN, setting)?;
    outcome.note(front.describe(&setting.programs));
    let before = ProcessMemory::of(front.id());
    let clients = SlowClients::start(front.address, WANTED);
    clients.await_readers(READERS_PATIENCE)?;
    let beside = ProcessMemory::of(front.id());
    let kernel_bytes = BufferedSockets::of_port(front.address.port())?.bytes
        + BufferedSockets::to_port(behind.port())?.bytes;
    clients.call_senders(SENDERS_PATIENCE)?;
    let goodput = crowd(&front, setting, outcome)?;
    let (reading, sending, refused) = clients.standing();
    drop(clients);
    let each = |bytes: u64| bytes as f64 / WANTED.readers as f64;
    let name = proxy.name();
    outcome.add(name, GOODPUT, "", goodput / f64::from(PEAK_PER_S));
    let process_bytes = beside.resident_bytes.saturating_sub(before.resident_bytes);
    outcome.add(name, EACH, "B", each(process_bytes + kernel_bytes));
    outcome.add(name, PROCESS, "B", each(process_bytes));
    outcome.add(name, KERNEL, "B", each(kernel_bytes));
    outcome.add(name, "readers at the end", "", reading as f64);
    outcome.add(name, "senders at the end", "", sending as f64);
    outcome.add(name, "readers refused at first", "", refused as f64);
    Ok(())
}

/// Right answers in time, a second, of a crowd of strangers.
fn crowd(front: &Front, setting: &Setting, outcome: &mut ScenarioOutcome) -> Result<f64, String> {
    let seconds = LEARNING_S + setting.seconds.min(COUNTED_S_MAX);
    let url = format!("http://{}/ok", front.address);
    let words = Tool::Uring.strangers(&setting.programs, PEAK_PER_S * OVERLOAD, seconds, &url);
    let watched = running::run(&words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?;
    watched.disturbance(front.proxy.name()).into_iter().for_each(|note| outcome.note(note));
    Ok(report.in_time_between(f64::from(LEARNING_S), f64::from(seconds)))
}
