//! Crowds of TCP and of UDP on the cable of the LAN: requests to a web server, and datagrams to a socket that
//! drops them.
//!
//! This module owns both crowds and what is counted of them. They end when this value is dropped; it must
//! never take for a crowd what did not come to the other host.

use std::fs::read_to_string;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::lan::{CLIENT_CPU, HostService, Lan, SERVER_ADDRESS, SERVER_CPU, text};
use crate::setting::Setting;

/// The file that the requests are for, and its bytes: a page of some frames.
const PAGE: &str = "page.html";
const PAGE_BYTES: usize = 16 << 10;
/// Requests a second.
const REQUESTS: &str = "2000/s";
/// The port of the web server, and of the socket that drops.
const WEB_PORT: u16 = 8080;
const DROP_PORT: u16 = 9;
/// Bytes of a datagram, and how many are sent each millisecond.
const DATAGRAM_BYTES: usize = 1_024;
const DATAGRAMS: u32 = 20;
/// The longest that crowds last: longer than all rounds together.
const LIMIT: &str = "1h";
/// After this time requests flow.
const START: Duration = Duration::from_secs(1);

/// Both crowds at work.
#[derive(Debug)]
pub(super) struct Crowds {
    stop: Arc<AtomicBool>,
    came: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
    began: Instant,
    /// The load generator's lines, one each 100 ms.
    lines: PathBuf,
    /// Ended first: it asks the other.
    asking: HostService,
    web: HostService,
}

impl Crowds {
    /// Begins both crowds, and waits until they are there.
    ///
    /// # Errors
    /// A process or a socket that cannot be made.
    pub(super) fn begin(setting: &Setting, lan: &Lan, folder: &Path) -> Result<Self, String> {
        let site = folder.join("site");
        let fault = |error: std::io::Error| format!("{}: {error}", site.display());
        std::fs::create_dir_all(&site).map_err(fault)?;
        std::fs::write(site.join(PAGE), vec![b'x'; PAGE_BYTES]).map_err(fault)?;
        let program = text(&setting.programs.staunch);
        let (listen, root) = (format!("{SERVER_ADDRESS}:{WEB_PORT}"), text(&site));
        let words = [&*program, "serve", &root, "--listen", &listen, "--workers", "1"];
        let web = HostService::start(lan, "web", &words, &listen, folder)?;
        let url = format!("http://{listen}/{PAGE}");
        let lines = folder.join("asking.ndjson");
        let (load, told) = ([&*program, "load", &url, "--rate", REQUESTS, "-c", "16"], text(&lines));
        let words = [&load[..], &["-d", LIMIT, "--ndjson", &told]].concat();
        let asking = HostService::start_asking(lan, "asking", &words, folder)?;
        let (stop, came) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = datagrams(lan, &stop, &came)?;
        sleep(START);
        Ok(Self { stop, came, threads, began: Instant::now(), lines, asking, web })
    }

    /// Tells both crowds in words: how many requests a second were answered, how many datagrams came.
    ///
    /// # Errors
    /// A crowd that is over, or never came.
    pub(super) fn told(&mut self) -> Result<String, String> {
        self.asking.is_there()?;
        self.web.is_there()?;
        let seconds = (self.began.elapsed() + START).as_secs_f64();
        let came = self.came.load(Ordering::Relaxed) as f64 / seconds;
        if came < 1.0 {
            return Err("no datagram of the crowd has come".to_owned());
        }
        let lines =
            read_to_string(&self.lines).map_err(|error| format!("{}: {error}", self.lines.display()))?;
        let answered = answered_per_s(&lines);
        if answered < 1.0 {
            return Err("no request of the crowd was answered".to_owned());
        }
        Ok(format!(
            "crowds: of {REQUESTS} requests for {PAGE_BYTES} bytes by TCP {answered:.0} a second were \
             answered, and {came:.0} datagrams of {DATAGRAM_BYTES} bytes a second came by UDP: {}",
            self.asking.command
        ))
    }
}

/// Whole answers a second, of the load generator's lines. The last line may not be whole yet.
fn answered_per_s(lines: &str) -> f64 {
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let (answered, ms) = lines.fold((0, 0), |(answered, _), line| {
        let count = |name: &str| line["counts"][name].as_u64().unwrap_or(0);
        (answered + count("in_time") + count("late"), line["at_ms"].as_u64().unwrap_or(0))
    });
    answered as f64 * 1e3 / ms.max(1) as f64
}

/// Keeps the calling thread on the processor of a host. Whether it could: a crowd that cannot is none, and is
/// missed by [`Crowds::told`].
fn stays_on(cpu: usize) -> bool {
    let mut own = CpuSet::new();
    own.set(cpu);
    sched_setaffinity(None, &own).inspect_err(|error| eprintln!("crowd: processor {cpu}: {error}")).is_ok()
}

impl Drop for Crowds {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of a crowd was printed; the datagrams that it sent were counted.
            let _ = thread.join();
        }
    }
}

/// Datagrams by a schedule from the host that asks, and a socket on the other one that counts and drops them.
fn datagrams(
    lan: &Lan,
    stop: &Arc<AtomicBool>,
    came: &Arc<AtomicU64>,
) -> Result<Vec<JoinHandle<()>>, String> {
    let dropping = lan.on_server(|| UdpSocket::bind((SERVER_ADDRESS, DROP_PORT)))?;
    dropping.set_read_timeout(Some(Duration::from_millis(100))).map_err(|error| error.to_string())?;
    let sending = lan.on_client(|| UdpSocket::bind(("0.0.0.0", 0)))?;
    let (of_counter, counted) = (Arc::clone(stop), Arc::clone(came));
    let counter = std::thread::spawn(move || {
        let (mut datagram, is_there) = ([0; DATAGRAM_BYTES], stays_on(SERVER_CPU));
        while is_there && !of_counter.load(Ordering::Relaxed) {
            let has_come = dropping.recv(&mut datagram).is_ok();
            counted.fetch_add(u64::from(has_come), Ordering::Relaxed);
        }
    });
    let of_sender = Arc::clone(stop);
    let sender = std::thread::spawn(move || {
        let is_there = stays_on(CLIENT_CPU);
        let (datagram, began) = ([0x5a; DATAGRAM_BYTES], Instant::now());
        let mut turn = 0;
        while is_there && !of_sender.load(Ordering::Relaxed) {
            for _ in 0..DATAGRAMS {
                // A datagram that finds no room is not sent again: the socket at the other end counts.
                let _ = sending.send_to(&datagram, (SERVER_ADDRESS, DROP_PORT));
            }
            turn += 1;
            sleep(Duration::from_millis(turn).saturating_sub(began.elapsed()));
        }
    });
    Ok(vec![counter, sender])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_answers_are_counted_and_a_line_that_is_cut_is_not() {
        let line = |ms, in_time, late| {
            format!("{{\"at_ms\":{ms},\"counts\":{{\"in_time\":{in_time},\"late\":{late},\"refused\":9}}}}\n")
        };
        let lines = line(100, 190, 10) + &line(200, 100, 0) + "{\"at_ms\":300,\"co";
        assert!((answered_per_s(&lines) - 1_500.0).abs() < 1e-9);
        assert!(answered_per_s("") < 1.0);
    }
}
