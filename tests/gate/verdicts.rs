//! The table of verdicts, `verdicts.txt`, by test run.
//!
//! It owns the states. It must never decide what is right: the table does.

use staunch_gate::layout::{Counters, Outcome};
use staunch_gate::observation::Orders;
use staunch_gate::program::{Attach, Prefix, Reject, Trial};
use staunch_netio::clock::now_ns;

use crate::packet::packet;
use crate::trial::{self, DROP, ONE_PLACE, PASS, PORTS, REPLY};

const TABLE: &str = include_str!("verdicts.txt");
/// Older than any lease.
const LATE_NS: u64 = 10_000_000_000;

/// A line of the table.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) state: &'static str,
    pub(crate) words: &'static str,
    verdict: u32,
    counted: &'static str,
}

impl Line {
    pub(crate) fn is_dropped(&self) -> bool {
        self.verdict == DROP
    }
}

/// The lines of the table that describe a frame.
pub(crate) fn lines() -> Vec<Line> {
    let meant = TABLE.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    meant
        .map(|(index, line)| {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            let [state, words, verdict, counted] = columns[..] else { panic!("line {}: {line}", index + 1) };
            let verdict = match verdict {
                "drop" => DROP,
                "pass" => PASS,
                "reply" => REPLY,
                _ => panic!("line {}: there is no verdict '{verdict}'", index + 1),
            };
            Line { number: index + 1, state, words, verdict, counted }
        })
        .collect()
}

fn load(state: &str) -> Option<Trial> {
    let list: [Prefix; 2] = ["203.0.113.0/24", "2001:db8:bad::/48"].map(|text| text.parse().unwrap());
    let plain = Attach { ports: &PORTS, ..Attach::default() };
    let attach = match state {
        "allow" => Attach { allow: &list, ..plain },
        "deny" => Attach { deny: &list, ..plain },
        "dry" => Attach { dry_run: true, ..plain },
        "reset" => Attach { reject: Reject::Reset, ..plain },
        "other-port" => Attach { ports: &[8443], ..plain },
        _ => plain,
    };
    trial::load(&attach, &ONE_PLACE)
}

/// Gives the orders of a line. The known client has the only place, so it is learnt before each frame.
fn prepare(trial: &mut Trial, line: &Line) {
    let orders = match line.state {
        "open" | "deny" => Orders::default(),
        "known" => trial::ration([1, 0, 0]),
        "shed" | "late" | "dry" | "allow" | "reset" | "other-port" => trial::shed(),
        other => panic!("line {}: there is no state '{other}'", line.number),
    };
    let beat = if line.state == "late" { now_ns() - LATE_NS } else { now_ns() + trial::HOUR_NS };
    trial.give(&orders, beat).expect("orders");
    let known = if line.words.contains("ipv6") { "2001:db8:9::7" } else { "192.0.2.9" };
    trial.learn(known.parse().unwrap(), 1).expect("a client");
}

/// How often what the column names was counted.
fn counted(counters: &Counters, name: &str) -> u64 {
    match name {
        "other" => counters.other,
        "small" => counters.small,
        "large" => counters.large,
        "fragment" => counters.fragments,
        "malformed" => counters.malformed,
        "passed" => counters.with(Outcome::Passed),
        "credit" => counters.with(Outcome::Credit),
        "deny" => counters.with(Outcome::Deny),
        "allowed" => counters.with(Outcome::Allowed),
        "lease-over" => counters.with(Outcome::LeaseOver),
        _ => panic!("there is no counter '{name}'"),
    }
}

/// Every frame is counted once: as what it is.
fn total(counters: &Counters) -> u64 {
    let frames = counters.other + counters.small + counters.large + counters.fragments + counters.malformed;
    frames + (0..3).map(|class| counters.syn(class)).sum::<u64>()
}

#[test]
fn every_verdict_is_that_of_the_table() {
    let lines = lines();
    let mut states: Vec<&str> = lines.iter().map(|line| line.state).collect();
    states.sort_unstable();
    states.dedup();
    let mut wrong = Vec::new();
    for state in states {
        let Some(mut trial) = load(state) else { return };
        for line in lines.iter().filter(|line| line.state == state) {
            prepare(&mut trial, line);
            let before = trial.counters().expect("counters");
            let judged = trial.judge(&packet(line.words)).expect("a judgement");
            let after = trial.counters().expect("counters");
            let is_counted = counted(&after, line.counted) == counted(&before, line.counted) + 1
                && total(&after) == total(&before) + 1;
            if judged.action != line.verdict || !is_counted {
                wrong.push(format!("line {}: {} {}: {after:?}", line.number, line.words, judged.action));
            }
            let is_untouched = judged.frame == packet(line.words);
            assert_eq!(is_untouched, line.verdict != REPLY, "line {}", line.number);
        }
    }
    assert!(lines.len() > 100 && wrong.is_empty(), "{}", wrong.join("\n"));
}
