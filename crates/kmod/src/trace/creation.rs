//! How long it takes until someone serves a new connection: a thread of the kernel that is made for it, from
//! `kthread_create` to the first run of its function, and a work item, from its queue to its start.
//!
//! Events are arguments, in the order of their times. A thread whose making began unseen must never be given
//! a time: kthreadd is woken once for several that are asked for while it is at work.

use std::collections::BTreeMap;

use serde::Serialize;
use staunch_figures::words;

use super::delays::DelayHistogram;
use super::line::TraceEvent;
use super::tracefs::EventFilter;
use crate::module::NAME;

/// The thread that makes all others of the kernel has this number: it is the second task of each machine.
const KTHREADD: u32 = 2;
/// Functions of the module that work items serve by begin so.
const SERVERS: &str = "khttpd_modes_";
/// Events that are needed beside `sched_switch`.
pub(super) const EVENTS: [EventFilter<'static>; 4] = [
    EventFilter { group: "sched", name: "sched_waking", filter: "pid == 2" },
    EventFilter { group: "sched", name: "sched_process_fork", filter: "parent_pid == 2" },
    EventFilter { group: "workqueue", name: "workqueue_queue_work", filter: "" },
    EventFilter { group: "workqueue", name: "workqueue_execute_start", filter: "" },
];

/// Findings of the events taken so far.
#[derive(Debug, Default)]
pub(super) struct Creations {
    /// From `kthread_create` to the first run of its function, in microseconds, of each thread of the module.
    pub(super) threads: Vec<f64>,
    /// From its queue to its start, in microseconds, of each work item of the module.
    pub(super) items: Vec<f64>,
    /// Threads of the module whose making began unseen, behind that of others.
    pub(super) behind: u64,
    /// Threads of the kernel that were made and are not the module's.
    pub(super) others: u64,
    asked_us: Option<f64>,
    young: BTreeMap<u32, Young>,
    queued: BTreeMap<String, f64>,
}

/// A thread that exists and has not run its function yet.
#[derive(Debug, Default)]
struct Young {
    asked_us: Option<f64>,
    /// The thread has told who asked for it that it is there, and waits to be let go.
    waits: bool,
}

impl Creations {
    /// Takes the next event.
    pub(super) fn take(&mut self, event: &TraceEvent<'_>) {
        match event.name {
            "sched_waking" if number(event, "pid") == Some(KTHREADD) => self.asked_us = Some(event.time_us),
            "sched_process_fork" if number(event, "pid") == Some(KTHREADD) => self.fork(event),
            "sched_switch" => self.switch(event),
            "workqueue_queue_work" => self.queue(event),
            "workqueue_execute_start" => self.start(event),
            _ => {}
        }
    }

    fn fork(&mut self, event: &TraceEvent<'_>) {
        if let Some(child) = number(event, "child_pid") {
            self.young.insert(child, Young { asked_us: self.asked_us.take(), waits: false });
        }
    }

    fn switch(&mut self, event: &TraceEvent<'_>) {
        let left = number(event, "prev_pid").and_then(|pid| self.young.get_mut(&pid));
        if let Some(young) = left {
            // A thread that only had to give way is runnable still.
            young.waits = event.field("prev_state").is_some_and(|state| !state.starts_with('R'));
        }
        let Some(next) = number(event, "next_pid") else { return };
        if self.young.get(&next).is_some_and(|young| young.waits) {
            self.begin(next, event);
        }
    }

    /// The thread runs its function. It has its name by now.
    fn begin(&mut self, pid: u32, event: &TraceEvent<'_>) {
        let Some(young) = self.young.remove(&pid) else { return };
        match (event.field("next_comm") == Some(NAME), young.asked_us) {
            (true, Some(asked_us)) => self.threads.push((event.time_us - asked_us).max(0.0)),
            (true, None) => self.behind += 1,
            (false, _) => self.others += 1,
        }
    }

    fn queue(&mut self, event: &TraceEvent<'_>) {
        let serves = event.field("function").is_some_and(|function| function.starts_with(SERVERS));
        if let Some(work) = event.field("struct").filter(|_| serves) {
            self.queued.insert(work.to_owned(), event.time_us);
        }
    }

    fn start(&mut self, event: &TraceEvent<'_>) {
        let work = event.fields.strip_prefix("work struct ").and_then(|rest| rest.split_once(':'));
        if let Some(queued_us) = work.and_then(|(work, _)| self.queued.remove(work)) {
            self.items.push((event.time_us - queued_us).max(0.0));
        }
    }

    /// The findings, for a report.
    pub(super) fn report(self) -> CreationReport {
        CreationReport {
            threads: DelayHistogram::of(&self.threads),
            items: DelayHistogram::of(&self.items),
            behind: self.behind,
            others: self.others,
        }
    }
}

fn number(event: &TraceEvent<'_>, name: &str) -> Option<u32> {
    event.field(name).and_then(|value| value.parse().ok())
}

/// Times until new connections got a thread or work item; a part of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct CreationReport {
    /// Threads of the module, from `kthread_create` to the first run of their function.
    pub(super) threads: DelayHistogram,
    /// Work items of the module, from the queue to their start.
    pub(super) items: DelayHistogram,
    /// Threads of the module whose making began unseen, behind that of others: no time is known of them.
    pub(super) behind: u64,
    /// Other threads of the kernel that were made meanwhile, as workers of its queues.
    pub(super) others: u64,
}

impl CreationReport {
    /// The histograms that have something in them, each with its title.
    pub(super) fn histograms(&self) -> impl Iterator<Item = (&'static str, &DelayHistogram)> {
        [
            ("Threads, from kthread_create to the first run of their function", &self.threads),
            ("Work items, from the queue to their start", &self.items),
        ]
        .into_iter()
        .filter(|(_, delays)| delays.count > 0)
    }

    /// In a sentence, what the histograms leave out.
    pub(super) fn beside(&self) -> String {
        let (behind, others) = (words::count(self.behind), words::count(self.others));
        format!("made meanwhile: {others} other threads of the kernel, and {behind} of the module unseen")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Creations;
    use crate::trace::line::TraceEvent;

    fn seen(text: &str) -> Creations {
        let mut creations = Creations::default();
        text.lines().filter_map(TraceEvent::read).for_each(|event| creations.take(&event));
        creations
    }

    const ASKED: &str = "w-7 [000] d..2. 1.000100: sched_waking: comm=kthreadd pid=2 prio=120\n";
    const FORKED: &str = "kthreadd-2 [000] ..... 1.000120: sched_process_fork: comm=kthreadd pid=2 \
        child_comm=kthreadd child_pid=9\n";

    const WORKER: &str = "a-1 [000] ..... 1.0:";

    /// The processor turns to the thread 9, of this name, or away from it.
    fn turn(time: &str, to: &str) -> String {
        format!(
            "w-7 [000] d..2. {time}: sched_switch: prev_comm=w prev_pid=7 prev_state=S \
             ==> next_comm={to} next_pid=9\n"
        )
    }

    fn away(time: &str, state: &str) -> String {
        format!(
            "kthreadd-9 [000] d..2. {time}: sched_switch: prev_comm=kthreadd prev_pid=9 prev_state={state} \
             ==> next_comm=w next_pid=7\n"
        )
    }

    /// The thread runs, gives way, runs on, waits to be let go, and runs its function.
    fn made(name: &str) -> String {
        let turns = [turn("1.000130", "kthreadd"), away("1.000135", "R+"), turn("1.000140", "kthreadd")];
        [turns.concat(), away("1.000150", "D"), turn("1.000180", name), turn("1.000900", name)].concat()
    }

    #[test]
    fn a_thread_is_made_from_the_asking_to_its_function() {
        let creations = seen(&[ASKED, FORKED, &made("khttpd")].concat());
        let [us] = creations.threads[..] else { panic!("{creations:?}") };
        assert!((us - 80.0).abs() < 0.5 && creations.young.is_empty(), "{creations:?}");
    }

    /// kthreadd is woken once for both: nothing tells when the second one was asked for.
    #[test]
    fn a_thread_behind_another_has_no_time() {
        let second = [FORKED, &made("khttpd")].concat().replace("pid=9", "pid=10");
        let creations = seen(&[ASKED, FORKED, &made("khttpd"), &second].concat());
        assert_eq!((creations.threads.len(), creations.behind, creations.others), (1, 1, 0));
        let creations = seen(&[ASKED, FORKED, &made("kworker/0:1")].concat());
        assert_eq!((creations.threads.len(), creations.behind, creations.others), (0, 0, 1));
    }

    #[test]
    fn a_work_item_waits_from_its_queue_to_its_start() {
        let queue = "nc-9 [000] d.s3. 1.000100: workqueue_queue_work: work struct=00a1 \
            function=khttpd_modes_ready [khttpd] workqueue=khttpd req_cpu=8192 cpu=4294967295\n";
        let start = "kworker/u4:1-7 [000] ..... 1.000130: workqueue_execute_start: work struct 00a1: \
            function khttpd_modes_ready [khttpd]\n";
        let creations = seen(&[queue, start, start].concat());
        assert!(creations.items.len() == 1 && (creations.items[0] - 30.0).abs() < 0.5, "{creations:?}");
        let creations = seen(&[&queue.replace("khttpd_modes", "vmstat"), start].concat());
        assert!(creations.items.is_empty() && creations.queued.is_empty(), "{creations:?}");
    }

    proptest! {
        /// In whatever order events come, no more is told than was made or queued, and no time is below 0.
        #[test]
        fn no_more_is_told_than_happened(steps in prop::collection::vec((0usize..8, 0u32..9), 0..60)) {
            let lines = [
                ASKED.to_owned(), FORKED.to_owned(), turn("1.0", "khttpd"), turn("1.0", "kworker"),
                away("1.0", "D"), away("1.0", "R"),
                format!("{WORKER} workqueue_queue_work: work struct=1 function=khttpd_modes_x\n"),
                format!("{WORKER} workqueue_execute_start: work struct 1: function x\n"),
            ];
            let at = |line: &str, time| {
                line.replace("1.000100", "1.0").replace("1.0:", &format!("1.{time}:"))
            };
            let text: String = steps.iter().map(|(step, time)| at(&lines[*step], time)).collect();
            let creations = seen(&text);
            let of = |step| steps.iter().filter(|(taken, _)| *taken == step).count();
            let threads = creations.threads.len() as u64 + creations.behind + creations.others;
            prop_assert!(threads <= of(1) as u64 && creations.items.len() <= of(6));
            prop_assert!(creations.threads.iter().chain(&creations.items).all(|us| *us >= 0.0));
        }
    }
}
