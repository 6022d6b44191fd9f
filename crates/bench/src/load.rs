//! The load: wrk and curl beside the server's CPU 0, and what they report.
//!
//! It owns their command lines and the reading of their output. It must never hide a failed request: every
//! error they report comes back as an error.
//!
//! One thread of wrk is busier than a fast server, which then waits for it and is paid for waking up. Where
//! there is a third processor wrk gets two.

use std::path::Path;
use std::process::{Command, Output};

use super::machine;

/// How wrk is to load a server.
#[derive(Debug, Clone)]
pub(super) struct WrkLoad<'a> {
    /// Connections kept open at a time.
    pub(super) connections: u32,
    /// Length in seconds.
    pub(super) seconds: u32,
    /// Further header lines.
    pub(super) headers: &'a [&'a str],
    /// A Lua script that makes the requests.
    pub(super) script: Option<&'a Path>,
}

impl WrkLoad<'_> {
    /// The command as a reader may repeat it.
    pub(super) fn command(&self, url: &str) -> Vec<String> {
        let last = *processors().end();
        let cpus = format!("1-{last}");
        let mut words: Vec<String> = ["taskset", "-c", &cpus, "wrk"].map(str::to_owned).to_vec();
        words.extend([
            format!("-t{last}"),
            format!("-c{}", self.connections),
            format!("-d{}s", self.seconds),
        ]);
        for header in self.headers {
            words.extend(["-H".to_owned(), (*header).to_owned()]);
        }
        if let Some(script) = self.script {
            words.extend(["-s".to_owned(), script.to_string_lossy().into_owned()]);
        }
        words.push(url.to_owned());
        words
    }

    /// Runs wrk to its end.
    ///
    /// # Errors
    /// wrk cannot be run, or any request failed, timed out or got another status than 2xx.
    pub(super) fn run(&self, url: &str) -> Result<Answered, String> {
        let output = run(&self.command(url))?;
        parse_wrk(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Those wrk runs on.
pub(super) fn processors() -> std::ops::RangeInclusive<usize> {
    1..=if machine::processors() > 2 { 2 } else { 1 }
}

/// What wrk counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answered {
    /// Requests answered in full.
    pub(super) requests: u64,
    /// Requests answered in a second.
    pub(super) per_second: f64,
}

/// Downloads one URL some times, `parallel` at a time, to /dev/null, with curl and these further options.
///
/// # Errors
/// Any download that does not end with status 200 and exactly `size_bytes`.
pub(super) fn download(
    url: &str,
    options: &[&str],
    times: usize,
    parallel: usize,
    size_bytes: u64,
) -> Result<(), String> {
    let mut words: Vec<String> =
        ["taskset", "-c", "1", "curl", "-s", "-S"].iter().map(|word| (*word).to_owned()).collect();
    words.extend(options.iter().map(|word| (*word).to_owned()));
    words.extend(["-w".to_owned(), "%{http_code} %{size_download}\n".to_owned()]);
    if parallel > 1 {
        words.extend(["--parallel".to_owned(), "--parallel-max".to_owned(), parallel.to_string()]);
    }
    for _ in 0..times {
        words.extend(["-o".to_owned(), "/dev/null".to_owned(), url.to_owned()]);
    }
    let output = run(&words)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = format!("200 {size_bytes}");
    let right = text.lines().filter(|line| *line == expected).count();
    if right == times {
        Ok(())
    } else {
        Err(format!("{right} of {times} downloads came whole: {}", text.trim()))
    }
}

fn run(words: &[String]) -> Result<Output, String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} ({}): {}", words.get(3).map_or("", String::as_str), output.status, said.trim()))
}

/// Reads what wrk prints.
///
/// # Errors
/// A request that failed, or output that is not wrk's.
pub(super) fn parse_wrk(text: &str) -> Result<Answered, String> {
    let faults = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("Socket errors:") || line.starts_with("Non-2xx"));
    let faults: Vec<&str> = faults.collect();
    if !faults.is_empty() {
        return Err(format!("wrk: {}", faults.join("; ")));
    }
    let requests = number_before(text, " requests in ").ok_or("wrk printed no count")?;
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    let per_second: f64 = rate.ok_or("wrk printed no rate")?;
    if requests == 0 { Err("wrk got no answer".to_owned()) } else { Ok(Answered { requests, per_second }) }
}

fn number_before(text: &str, words: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(words)?.0.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n\
        \x20 89250 requests in 2.01s, 446.09MB read\nRequests/sec:  44402.98\n";

    #[test]
    fn a_good_run_is_read() {
        assert_eq!(parse_wrk(GOOD), Ok(Answered { requests: 89_250, per_second: 44_402.98 }));
    }

    #[test]
    fn no_error_is_hidden() {
        let errors = format!("{GOOD}  Socket errors: connect 0, read 12, write 0, timeout 0\n");
        assert!(parse_wrk(&errors).is_err());
        assert!(parse_wrk(&format!("{GOOD}  Non-2xx or 3xx responses: 5\n")).is_err());
        assert!(parse_wrk("unable to connect\n").is_err());
    }
}
