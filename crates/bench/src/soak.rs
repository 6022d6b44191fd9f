//! `cargo xtask soak`: a long load on both engines. Memory must not grow, and no request may fail.
//!
//! It owns the load's rhythm: rounds of kept connections and of a connection per request, in turn. It must
//! never measure speed; `bench` does.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

/// A round is long enough for every buffer to find its size.
const ROUND_SECONDS: u32 = 30;
/// Memory may differ this much from that after the first two rounds: caches and the allocator settle.
const GROWTH_KIB_MAX: u64 = 16 * 1024;
const ENGINES: &[&str] = &["uring", "epoll"];

/// How long.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Seconds of load on each engine
    #[arg(long, default_value_t = 600)]
    seconds: u32,
}

/// Loads each engine in turn. Fails on the first request that failed, and on growth.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    for engine in ENGINES {
        match soak(root, engine, arguments.seconds) {
            Ok(()) => println!("soak: {engine}: no request failed, memory did not grow"),
            Err(error) => {
                eprintln!("soak: {engine}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn soak(root: &Path, engine: &str, seconds: u32) -> Result<(), String> {
    let server = Server::start(root, engine)?;
    let rounds = seconds.div_ceil(ROUND_SECONDS).max(3);
    let mut settled_kib = 0;
    for round in 1..=rounds {
        load(&server.url, round % 2 == 0)?;
        let resident_kib = resident_kib(server.process.id())?;
        println!("soak: {engine}: round {round} of {rounds}: {resident_kib} KiB resident");
        if round == 2 {
            settled_kib = resident_kib;
        }
        if round > 2 && resident_kib > settled_kib + GROWTH_KIB_MAX {
            return Err(format!("memory grew from {settled_kib} to {resident_kib} KiB"));
        }
    }
    Ok(())
}

/// The server under load; ended when dropped.
struct Server {
    process: Child,
    url: String,
    /// Kept open: the server may print more than its start-up block.
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(root: &Path, engine: &str) -> Result<Self, String> {
        let built = Command::new("cargo").args(["build", "--release", "--package", "staunch"]).status();
        if !built.is_ok_and(|status| status.success()) {
            return Err("the server could not be built".to_owned());
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let mut command = Command::new(target.join("release/staunch"));
        command.arg("serve").arg(root.join("site")).args(["--listen", "127.0.0.1:0", "--io", engine]);
        let mut process = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let output = process.stdout.take().ok_or("the server has no output")?;
        let mut server = Self { process, url: String::new(), output: BufReader::new(output) };
        let mut lines = server.output.by_ref().lines().map_while(Result::ok);
        server.url = lines.find_map(|line| url_in(&line)).ok_or("the server ended before it listened")?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The address in the start-up block.
fn url_in(line: &str) -> Option<String> {
    let start = line.find("http://")?;
    line[start..].split_whitespace().next().map(|url| url.trim_end_matches('/').to_owned())
}

/// A round of wrk.
fn load(url: &str, close_each: bool) -> Result<(), String> {
    let mut wrk = Command::new("wrk");
    wrk.args(["--threads", "1", "--connections", "64", "--duration", &format!("{ROUND_SECONDS}s")]);
    if close_each {
        wrk.args(["--header", "Connection: close"]);
    }
    let output = wrk.arg(format!("{url}/")).output().map_err(|error| format!("wrk: {error}"))?;
    let report = String::from_utf8_lossy(&output.stdout);
    match complaint(&report) {
        None if output.status.success() => Ok(()),
        None => Err(format!("wrk failed: {}", output.status)),
        Some(line) => Err(format!("wrk says: {line}")),
    }
}

/// The line of wrk's report that tells of failed requests, or that there were none at all.
fn complaint(report: &str) -> Option<String> {
    let bad = |line: &&str| line.contains("Socket errors") || line.contains("Non-2xx");
    if let Some(line) = report.lines().find(bad) {
        return Some(line.trim().to_owned());
    }
    let answered = report.lines().find_map(|line| line.trim().split_once(" requests in "));
    match answered.and_then(|(count, _)| count.parse::<u64>().ok()) {
        Some(count) if count > 0 => None,
        _ => Some("no request was answered".to_owned()),
    }
}

fn resident_kib(process: u32) -> Result<u64, String> {
    let status =
        std::fs::read_to_string(format!("/proc/{process}/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    number.ok_or_else(|| "the server is gone".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_requests_are_seen() {
        let good = "Running 30s test\n  1200 requests in 30.00s, 5.00MB read\nRequests/sec: 40\n";
        let cases = [
            (good.to_owned(), None),
            (format!("{good}  Socket errors: connect 0, read 3, write 0, timeout 0"), Some("Socket errors")),
            (format!("{good}  Non-2xx or 3xx responses: 7"), Some("Non-2xx")),
            (good.replace("1200", "0"), Some("no request")),
            (String::new(), Some("no request")),
        ];
        for (report, expected) in cases {
            let found = complaint(&report);
            let as_expected = match expected {
                Some(start) => found.as_deref().is_some_and(|line| line.starts_with(start)),
                None => found.is_none(),
            };
            assert!(as_expected, "{found:?} of {report}");
        }
    }

    #[test]
    fn the_address_is_found() {
        assert_eq!(url_in("listening on http://127.0.0.1:8080"), Some("http://127.0.0.1:8080".to_owned()));
        assert_eq!(url_in("  http://127.0.0.1:8080/  (127.0.0.1)"), Some("http://127.0.0.1:8080".to_owned()));
        assert_eq!(url_in("workers 2"), None);
    }

    #[test]
    fn our_own_memory_is_read() {
        assert!(resident_kib(std::process::id()).is_ok_and(|kib| kib > 0));
    }
}
