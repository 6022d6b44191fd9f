//! The load generators that are compared, and their command lines.
//!
//! It must never measure. `taskset` comes from `running.rs`, so it is not among the words.
use std::path::Path;

use super::running;
use crate::account::{self, Account};
use crate::reading::{self, Said};
use crate::setup::Programs;

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// The program `wrk`, by epoll.
    Wrk,
    /// `staunch load` on io_uring.
    Uring,
    /// `staunch load` on epoll.
    Epoll,
    /// The program `oha`, by tokio.
    Oha,
}

/// Kept connections of the open loop at most. The floor answers 120 000 requests a second on 64 connections
/// and 60 000 on 1 000: with ten thousand, one pause of a few milliseconds would overload it for good.
const SLOTS_MAX: &str = "256";

impl Tool {
    /// The generator of this repository, on each of its backends.
    pub(super) const OURS: [Self; 2] = [Self::Uring, Self::Epoll];

    /// Name in tables and plots.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::Uring => "staunch uring",
            Self::Epoll => "staunch epoll",
            Self::Oha => "oha",
        }
    }

    /// What it says in its output about a run in which no request may be lost.
    ///
    /// # Errors
    /// A request that was lost, or words that cannot be read.
    pub(super) fn read(self, output: &str) -> Result<Said, String> {
        match self {
            Self::Wrk => reading::wrk(output),
            Self::Uring | Self::Epoll => account::read(output)?.said(),
            Self::Oha => reading::oha(output),
        }
    }

    /// A closed loop over kept connections, for so many seconds, from a thread on each processor up to this
    /// last one; oha is not asked for one.
    pub(super) fn closed(
        self,
        programs: &Programs,
        last: usize,
        connections: u32,
        seconds: u32,
        url: &str,
    ) -> Vec<String> {
        let (connections, duration) = (connections.to_string(), format!("{seconds}s"));
        let loop_words = ["-c", &connections, "-d", &duration, url];
        match self {
            Self::Wrk => words(&[&["wrk", "-t", &last.to_string(), "--latency"], &loop_words]),
            _ => self.ours(programs, last, &loop_words),
        }
    }

    /// So many requests with a connection for each. Ours only: of wrk one cannot ask it.
    pub(super) fn counted(
        self,
        programs: &Programs,
        requests: u32,
        connections: u32,
        url: &str,
    ) -> Vec<String> {
        let (requests, connections) = (requests.to_string(), connections.to_string());
        self.ours(programs, 1, &["-n", &requests, "-c", &connections, "--no-keep-alive", url])
    }

    /// An open loop over kept connections; wrk has none.
    pub(super) fn open(self, programs: &Programs, rate: u32, seconds: u32, url: &str) -> Vec<String> {
        let (per_second, duration) = (format!("{rate}/s"), format!("{seconds}s"));
        if self == Self::Oha {
            let rate = rate.to_string();
            let program = text(&programs.oha);
            let schedule = ["-q", &rate, "--latency-correction", "-z", &duration, "-c", "64"];
            return words(&[&[&program], &schedule, &["--no-tui", "--output-format", "json", url]]);
        }
        let schedule = ["--rate", &per_second, "--arrivals", "constant", "-d", &duration, "-c", SLOTS_MAX];
        self.ours(programs, 1, &[&schedule[..], &[url]].concat())
    }

    /// An open loop with a connection for each request, whose clients wait a second. Ours only.
    pub(super) fn strangers(self, programs: &Programs, rate: u32, seconds: u32, url: &str) -> Vec<String> {
        let (rate, duration) = (format!("{rate}/s"), format!("{seconds}s"));
        let loop_words = [
            "--rate",
            &rate,
            "--arrivals",
            "constant",
            "--no-keep-alive",
            "--patience",
            "1s",
            "-d",
            &duration,
        ];
        self.ours(programs, 1, &[&loop_words[..], &[url]].concat())
    }

    fn ours(self, programs: &Programs, last: usize, loop_words: &[&str]) -> Vec<String> {
        let program = text(&programs.staunch);
        let io = if self == Self::Uring { "uring" } else { "epoll" };
        let (threads, cpus) = (last.to_string(), running::up_to(last));
        let engine = ["-t", &threads, "--cpus", &cpus, "--io", io, "--quiet", "--json", "-"];
        words(&[&[&program, "load"], &engine, loop_words])
    }
}

fn words(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().into_iter().map(str::to_owned).collect()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_asked_for_the_same() {
        let programs = Programs {
            staunch: "staunch".into(),
            floor: "floor".into(),
            fan: "fan".into(),
            truth: "truth".into(),
            oha: "oha".into(),
            tools: "tools".into(),
        };
        let closed = |tool: Tool| tool.closed(&programs, 1, 64, 4, "http://a/").join(" ");
        let ours = "staunch load -t 1 --cpus 1 --io";
        assert_eq!(closed(Tool::Wrk), "wrk -t 1 --latency -c 64 -d 4s http://a/");
        assert_eq!(closed(Tool::Epoll), format!("{ours} epoll --quiet --json - -c 64 -d 4s http://a/"));
        let beside = Tool::Uring.closed(&programs, 2, 64, 4, "http://a/").join(" ");
        assert!(beside.starts_with("staunch load -t 2 --cpus 1-2 --io uring"), "{beside}");
        let open = |tool: Tool| tool.open(&programs, 1000, 4, "http://a/").join(" ");
        assert!(open(Tool::Uring).starts_with(&format!("{ours} uring ")));
        assert!(open(Tool::Uring).ends_with("--rate 1000/s --arrivals constant -d 4s -c 256 http://a/"));
        assert!(open(Tool::Oha).contains("-q 1000 --latency-correction -z 4s"));
    }
}
