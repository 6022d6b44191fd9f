//! Puts events together to requests: how long each took, and which threads served.
//!
//! Events are arguments, in the order of their times; this file must never read tracefs itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::line::TraceEvent;

/// A request that was answered.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub(super) struct Request {
    /// The beginning of its path.
    pub(super) path: String,
    /// From the last wake of its socket before it was parsed until TCP had the answer.
    pub(super) total_us: f64,
    /// The part of `total_us` until the request was parsed.
    pub(super) waited_us: f64,
    pub(super) began_on: u32,
    pub(super) ended_on: u32,
    /// The thread that gave the answer, or `softirq`.
    pub(super) served_by: String,
    /// Whether the cache had the answer; `None` if it was not asked.
    pub(super) hit: Option<bool>,
}

impl Request {
    pub(super) fn moved(&self) -> bool {
        self.began_on != self.ended_on
    }
}

/// A thread that served, and how often a processor turned to it.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) pid: u32,
    pub(super) switches: u64,
}

/// What the events taken so far have shown.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) requests: Vec<Request>,
    /// Numbers of the module's events, by their names without `khttpd_`.
    pub(super) counts: BTreeMap<String, u64>,
    connections: BTreeMap<String, Connection>,
    names: BTreeMap<u32, String>,
    servers: BTreeSet<u32>,
    switches: BTreeMap<u32, u64>,
}

/// When an event happened, and on which processor.
#[derive(Debug, Clone, Copy)]
struct Moment {
    time_us: f64,
    cpu: u32,
}

#[derive(Debug, Default)]
struct Connection {
    woken: Option<Moment>,
    asked: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    path: String,
    begin: Moment,
    understood_us: f64,
    hit: Option<bool>,
}

impl Seen {
    /// Takes the next event.
    pub(super) fn take(&mut self, event: &TraceEvent<'_>) {
        if event.name == "sched_switch" {
            return self.switch(event);
        }
        let Some(name) = event.name.strip_prefix("khttpd_") else { return };
        *self.counts.entry(name.to_owned()).or_default() += 1;
        // A wake may come from a peer on this machine, a leave from the process that takes the connection:
        // neither thread serves for the module.
        if !event.in_interrupt && !matches!(name, "wake" | "leave") {
            self.servers.insert(event.pid);
            self.names.insert(event.pid, event.task.to_owned());
        }
        if let Some(connection) = event.field("connection") {
            self.advance(name, connection, event);
        }
    }

    fn switch(&mut self, event: &TraceEvent<'_>) {
        let next = event.field("next_pid").and_then(|pid| pid.parse().ok());
        if let Some(pid) = next {
            *self.switches.entry(pid).or_default() += 1;
        }
    }

    fn advance(&mut self, name: &str, connection: &str, event: &TraceEvent<'_>) {
        let now = Moment { time_us: event.time_us, cpu: event.cpu };
        if matches!(name, "close" | "leave") {
            self.connections.remove(connection);
            return;
        }
        let connection = self.connections.entry(connection.to_owned()).or_default();
        match name {
            "accept" => *connection = Connection { woken: Some(now), asked: Vec::new() },
            "wake" => connection.woken = Some(now),
            "request" => connection.asked.push(Asked {
                path: event.field("path").unwrap_or("").to_owned(),
                begin: connection.woken.unwrap_or(now),
                understood_us: now.time_us,
                hit: None,
            }),
            "hit" | "miss" => {
                if let Some(asked) = connection.asked.last_mut() {
                    asked.hit = Some(name == "hit");
                }
            }
            "answer" => {
                let served_by = if event.in_interrupt { "softirq" } else { event.task };
                let asked = connection.asked.drain(..);
                self.requests.extend(asked.map(|asked| asked.answered(now, served_by)));
            }
            _ => {}
        }
    }

    /// Threads that served, those first that a processor turned to most often.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let thread = |pid: &u32| Thread {
            name: self.names.get(pid).cloned().unwrap_or_default(),
            pid: *pid,
            switches: self.switches.get(pid).copied().unwrap_or(0),
        };
        let mut threads: Vec<Thread> = self.servers.iter().map(thread).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.switches));
        threads
    }
}

impl Asked {
    fn answered(self, now: Moment, served_by: &str) -> Request {
        Request {
            path: self.path,
            total_us: (now.time_us - self.begin.time_us).max(0.0),
            waited_us: (self.understood_us - self.begin.time_us).max(0.0),
            began_on: self.begin.cpu,
            ended_on: now.cpu,
            served_by: served_by.to_owned(),
            hit: self.hit,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Seen;
    use crate::trace::line::TraceEvent;

    fn seen(text: &str) -> Seen {
        let mut seen = Seen::default();
        text.lines().filter_map(TraceEvent::read).for_each(|event| seen.take(&event));
        seen
    }

    #[test]
    fn a_request_lasts_from_its_wake_to_its_answer() {
        let seen = seen(
            "\
            nc-9 [001] ..s2. 1.000100: khttpd_wake: connection=a\n\
            w-7 [000] ..... 1.000130: khttpd_request: connection=a path=/x\n\
            w-7 [000] ..... 1.000131: khttpd_hit: connection=a\n\
            w-7 [000] ..... 1.000150: khttpd_answer: connection=a\n\
            w-7 [000] d..2. 1.000160: sched_switch: prev_comm=w prev_pid=7 ==> next_comm=nc next_pid=9\n\
            nc-9 [000] d..2. 1.000170: sched_switch: prev_comm=nc prev_pid=9 ==> next_comm=w next_pid=7\n",
        );
        let [request] = &seen.requests[..] else { panic!("{:?}", seen.requests) };
        assert!((request.total_us - 50.0).abs() < 0.5 && (request.waited_us - 30.0).abs() < 0.5);
        assert!(request.moved() && request.hit == Some(true) && request.served_by == "w");
        let threads = seen.threads();
        assert_eq!((threads.len(), threads[0].pid, threads[0].switches), (1, 7, 1));
    }

    /// Two requests that came together: the first is answered where it came in, the second, which is the last
    /// on its connection, by a work item. The third takes a file that the cache has not.
    #[test]
    fn events_of_linux_6_12_are_read() {
        let seen = seen(include_str!("captured/events-6.12-softirq.txt"));
        let told: Vec<(&str, &str, Option<bool>)> = seen
            .requests
            .iter()
            .map(|request| (request.path.as_str(), request.served_by.as_str(), request.hit))
            .collect();
        let expected = [
            ("/a.txt", "softirq", Some(true)),
            ("/a.txt", "kworker/u4:1", Some(true)),
            ("/big.bin", "kworker/u4:1", Some(false)),
        ];
        assert_eq!(told, expected);
        assert!(
            (seen.requests[0].total_us - 468.0).abs() < 0.5
                && (seen.requests[0].waited_us - 142.0).abs() < 0.5
        );
        assert_eq!((seen.counts["accept"], seen.counts["close"]), (2, 2));
        assert!(
            seen.threads().iter().all(|thread| thread.name.starts_with("kworker/") && thread.switches > 0)
        );
    }

    #[test]
    fn one_send_may_answer_several_and_an_end_none() {
        let ask = "nc-9 [000] ..s2. 1.0: khttpd_request: connection=a path=/x\n";
        let answer = "nc-9 [000] ..s2. 1.1: khttpd_answer: connection=a\n";
        let close = "w-7 [000] ..... 1.2: khttpd_close: connection=a\n";
        assert_eq!(seen(&[ask, ask, answer].concat()).requests.len(), 2);
        let leave = close.replace("close", "leave");
        for end in [close, &leave] {
            assert_eq!(seen(&[ask, end, answer].concat()).requests.len(), 0);
        }
        assert!(seen(&leave).threads().is_empty() && seen(close).threads().len() == 1);
        assert_eq!(seen(&[ask, answer].concat()).requests[0].served_by, "softirq");
    }

    proptest! {
        /// In whatever order events come: no more are answered than were parsed, and no time is below 0.
        #[test]
        fn no_more_is_answered_than_was_asked(
            steps in prop::collection::vec((0usize..8, 0u8..3, 0u32..9), 0..60),
        ) {
            let names = ["accept", "wake", "request", "hit", "answer", "close", "expire", "leave"];
            let mut text = String::new();
            for (name, connection, time) in &steps {
                let name = names[*name];
                text += &format!("w-7 [000] ..... 1.{time}: khttpd_{name}: connection={connection} path=/\n");
            }
            let seen = seen(&text);
            let asked = seen.counts.get("request").copied().unwrap_or(0) as usize;
            prop_assert!(seen.requests.len() <= asked);
            for request in &seen.requests {
                prop_assert!(request.total_us >= 0.0 && request.waited_us >= 0.0);
            }
        }
    }
}
