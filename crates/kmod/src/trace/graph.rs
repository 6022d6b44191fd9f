//! The kernel's function graph, read: which functions ran, beneath which, and for how long.
//!
//! Lines are `TIME | CPU) TASK-PID | DURATION | CALL`. Reading must never fail: a call of which the buffer
//! has only the begin or only the end is left out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::part::KernelPart;

/// Requests whose graphs are kept, for the one in the middle to be chosen: enough for its time to be typical.
const REQUESTS_MAX: usize = 1000;
/// Calls of one request that are kept: a graph that is longer is not read by people, and takes memory.
const CALLS_MAX: usize = 400;
/// Functions of the module that wait for work for as long as a connection or a thread lasts. They are not
/// counted; each function that they call is taken as an outermost one.
const WAITERS: [&str; 4] = ["khttpd_modes_block", "khttpd_modes_thread", "khttpd_modes_worker", "kthread"];

/// The time of a function in all its calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct FunctionCost {
    pub(super) calls: u64,
    /// With the functions that it called; a call of itself is counted twice.
    pub(super) total_us: f64,
    /// Without the functions that it called and that were traced.
    pub(super) own_us: f64,
}

/// A call within a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Call {
    pub(super) depth: usize,
    pub(super) function: String,
    pub(super) us: f64,
}

/// What the lines taken so far have shown.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) functions: BTreeMap<String, FunctionCost>,
    pub(super) parts: BTreeMap<KernelPart, f64>,
    /// How many outermost calls there were in which requests were parsed.
    pub(super) requests_count: usize,
    /// The first of them, each with the calls beneath it.
    pub(super) requests: Vec<Vec<Call>>,
    stacks: BTreeMap<Thread, Vec<Frame>>,
}

/// A call that has not ended yet.
#[derive(Debug)]
struct Frame {
    function: String,
    part: KernelPart,
    children_us: f64,
    asked: bool,
    /// The calls beneath it that have ended, in the order in which they began.
    calls: Vec<Call>,
}

/// What a line tells: a call begins, begins and ends, ends after so many microseconds, or parsed a request.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    Enter(&'a str),
    Leaf(&'a str, f64),
    Leave(f64),
    Asked,
}

impl Graph {
    /// Takes the next line.
    pub(super) fn take(&mut self, line: &str) {
        let Some((thread, step)) = read(line) else { return };
        let mut stack = self.stacks.remove(&thread).unwrap_or_default();
        match step {
            Step::Enter(function) => stack.push(Frame::new(function, stack.last())),
            Step::Leaf(function, us) => {
                let frame = Frame::new(function, stack.last());
                self.close(&mut stack, frame, us);
            }
            Step::Leave(us) => {
                if let Some(frame) = stack.pop() {
                    self.close(&mut stack, frame, us);
                }
            }
            Step::Asked => {
                if let Some(frame) = stack.last_mut() {
                    frame.asked = true;
                }
            }
        }
        if !stack.is_empty() {
            self.stacks.insert(thread, stack);
        }
    }

    /// Counts a call that has ended, and adds it to the call above it.
    fn close(&mut self, stack: &mut [Frame], frame: Frame, us: f64) {
        let waits = WAITERS.contains(&frame.function.as_str());
        let own_us = (us - frame.children_us).max(0.0);
        if !waits {
            let cost = self.functions.entry(frame.function.clone()).or_default();
            cost.calls += 1;
            cost.total_us += us;
            cost.own_us += own_us;
            *self.parts.entry(frame.part).or_default() += own_us;
        }
        match stack.last_mut().filter(|above| !WAITERS.contains(&above.function.as_str())) {
            Some(above) => above.adopt(frame, us),
            None if frame.asked && !waits => self.keep(frame, us),
            None => {}
        }
    }

    /// Counts a request, and keeps it while there is room.
    fn keep(&mut self, frame: Frame, us: f64) {
        self.requests_count += 1;
        if self.requests.len() < REQUESTS_MAX {
            self.requests.push(frame.whole(us));
        }
    }

    /// The request whose time is the median of all that are kept.
    pub(super) fn typical(&self) -> Option<&[Call]> {
        let mut requests: Vec<&[Call]> = self.requests.iter().map(Vec::as_slice).collect();
        requests.sort_by(|one, other| one[0].us.total_cmp(&other[0].us));
        requests.get(requests.len() / 2).copied()
    }
}

impl Frame {
    fn new(function: &str, above: Option<&Self>) -> Self {
        let part = KernelPart::of(function).or(above.map(|above| above.part)).unwrap_or(KernelPart::Module);
        Self { function: function.to_owned(), part, children_us: 0.0, asked: false, calls: Vec::new() }
    }

    fn adopt(&mut self, frame: Self, us: f64) {
        self.children_us += us;
        self.asked |= frame.asked;
        let room = CALLS_MAX.saturating_sub(self.calls.len());
        let beneath = frame.whole(us).into_iter().take(room);
        self.calls.extend(beneath.map(|call| Call { depth: call.depth + 1, ..call }));
    }

    /// The ended call, followed by all calls beneath it.
    fn whole(self, us: f64) -> Vec<Call> {
        let mut calls = vec![Call { depth: 0, function: self.function, us }];
        calls.extend(self.calls);
        calls
    }
}

/// A thread: its number, and the processor of one that is idle, for those all have the number 0.
type Thread = (u32, u32);

/// Reads a line: the thread, and what happened; `None` of a line that tells neither.
fn read(line: &str) -> Option<(Thread, Step<'_>)> {
    let mut columns = line.splitn(4, '|');
    let (_time, task) = (columns.next()?, columns.next()?);
    let (duration, call) = (columns.next()?, columns.next()?.trim());
    let (cpu, task) = task.split_once(')')?;
    let pid = task.trim().rsplit_once('-')?.1.parse().ok()?;
    let thread = (pid, if pid == 0 { cpu.trim().parse().ok()? } else { 0 });
    if call.starts_with("/*") {
        return call.starts_with("/* khttpd_request:").then_some((thread, Step::Asked));
    }
    if let Some(function) = call.strip_suffix('{') {
        return Some((thread, Step::Enter(bare(function)?)));
    }
    let us = microseconds(duration)?;
    let step = match call.strip_suffix(';') {
        Some(function) => Step::Leaf(bare(function)?, us),
        None if call.starts_with('}') => Step::Leave(us),
        None => return None,
    };
    Some((thread, step))
}

/// A function's name, without its brackets and the name of its module.
fn bare(call: &str) -> Option<&str> {
    let (name, _) = call.split_once('(')?;
    let name = name.split(' ').next()?;
    // A compiler names variants of a function so: `name.isra.0`, `name.part.1`.
    let name = name.split('.').next()?;
    (!name.is_empty()).then_some(name)
}

/// A duration: a mark for a long one, a number, its unit.
fn microseconds(text: &str) -> Option<f64> {
    let number = text.trim().trim_start_matches(['+', '!', '#', '*', '@', '$', ' ']).strip_suffix("us")?;
    number.trim().parse().ok().filter(|us: &f64| us.is_finite() && *us >= 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Graph, REQUESTS_MAX, Step, read};
    use crate::trace::part::KernelPart;

    fn graph(text: &str) -> Graph {
        let mut graph = Graph::default();
        text.lines().for_each(|line| graph.take(line));
        graph
    }

    /// A line of the thread 7.
    fn line(duration: &str, call: &str) -> String {
        format!("   9.228386 |   0)   kworker-7   | {duration} |  {call}\n")
    }

    #[test]
    fn a_line_is_taken_apart() {
        let said = |text: &str| read(text).map(|(thread, step)| format!("{thread:?} {step:?}"));
        assert_eq!(
            read(&line("+ 24.727 us ", "x.isra.0 [khttpd]();")),
            Some(((7, 0), Step::Leaf("x", 24.727)))
        );
        assert_eq!(read(&line("! 361.342 us", "}")), Some(((7, 0), Step::Leave(361.342))));
        assert_eq!(read(&line("             ", "y() {")), Some(((7, 0), Step::Enter("y"))));
        assert_eq!(
            read(&line("             ", "/* khttpd_request: connection=a */")),
            Some(((7, 0), Step::Asked))
        );
        assert_eq!(said(&line("             ", "/* khttpd_hit: connection=a */")), None);
        assert_eq!(said(" 0)   ksoftir-14   =>   kworker-24"), None);
        assert_eq!(said("               |"), None);
    }

    #[test]
    fn a_graph_of_linux_6_1_is_read() {
        let graph = graph(include_str!("captured/graph-6.1.txt"));
        let root = &graph.functions["khttpd_listen_ready"];
        assert!(
            root.calls == 1 && (root.total_us - 361.342).abs() < 1e-6 && (root.own_us - 164.106).abs() < 1e-6
        );
        assert!((graph.functions["insert_work"].total_us - 66.409).abs() < 1e-6);
        // All time of a root is in one part or another.
        let whole: f64 = graph.parts.values().sum();
        assert!((whole - 361.342).abs() < 0.01, "{whole}");
        assert!((graph.parts[&KernelPart::Module] - 164.106).abs() < 1e-6);
    }

    #[test]
    fn a_graph_of_linux_6_12_that_is_cut_off_is_read() {
        let graph = graph(include_str!("captured/graph-6.12.txt"));
        assert!((graph.functions["khttpd_request_parse"].total_us - 54.662).abs() < 1e-6);
        assert_eq!(graph.functions["khttpd_request_line"].calls, 5);
        // The call that understood the request did not end in it.
        assert!(graph.requests.is_empty());
    }

    #[test]
    fn idle_processors_do_not_share_a_stack() {
        let idle = |cpu: u32, duration: &str, call: &str| {
            format!(" 1.0 |   {cpu})    <idle>-0   | {duration} | {call}\n")
        };
        let text = [
            idle(0, "           ", "f() {"),
            idle(1, "           ", "g() {"),
            idle(0, "  3.000 us ", "}"),
            idle(1, "  9.000 us ", "}"),
        ];
        let graph = graph(&text.concat());
        assert!((graph.functions["f"].own_us - 3.0).abs() < 1e-9);
        assert!((graph.functions["g"].own_us - 9.0).abs() < 1e-9);
    }

    #[test]
    fn requests_that_are_not_kept_are_counted() {
        let request = [
            line("             ", "khttpd_serve [khttpd]() {"),
            line("             ", "/* khttpd_request: connection=a path=/ */"),
            line("  5.000 us   ", "}"),
        ];
        let graph = graph(&request.concat().repeat(REQUESTS_MAX + 3));
        assert_eq!((graph.requests_count, graph.requests.len()), (REQUESTS_MAX + 3, REQUESTS_MAX));
    }

    #[test]
    fn a_request_is_the_outermost_call_that_does_not_wait() {
        let text = [
            line("             ", "khttpd_modes_block [khttpd]() {"),
            line("  9.000 us   ", "schedule();"),
            line("             ", "khttpd_serve [khttpd]() {"),
            line("             ", "/* khttpd_request: connection=a path=/ */"),
            line("  2.000 us   ", "tcp_sendmsg();"),
            line("  5.000 us   ", "}"),
        ];
        let graph = graph(&text.concat());
        let calls: Vec<(usize, &str)> =
            graph.typical().expect("one").iter().map(|call| (call.depth, call.function.as_str())).collect();
        assert_eq!(calls, [(0, "khttpd_serve"), (1, "tcp_sendmsg")]);
        assert!(
            (graph.parts[&KernelPart::Tcp] - 2.0).abs() < 1e-9
                && (graph.parts[&KernelPart::Module] - 3.0).abs() < 1e-9
        );
    }

    proptest! {
        /// Whatever is cut off or mixed up: it is read, and no time is below 0.
        #[test]
        fn any_lines_are_read(lines in prop::collection::vec((0usize..5, 0u32..3, 0u32..100_000), 0..80)) {
            let calls = ["f() {", "g();", "}", "/* khttpd_request: a */", "nothing"];
            let mut graph = Graph::default();
            for (call, pid, us) in &lines {
                let call = calls[*call];
                graph.take(&format!(" 1.0 |  0)  t-{pid}  | ! {us}.5 us |  {call}"));
            }
            for cost in graph.functions.values() {
                prop_assert!(cost.own_us >= 0.0 && cost.own_us <= cost.total_us);
            }
        }

        #[test]
        fn any_line_is_read_or_left(line in "\\PC{0,120}") {
            let _ = read(&line);
        }
    }
}
