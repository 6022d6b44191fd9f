//! The line of an event in tracefs, taken apart: `TASK-PID [CPU] FLAGS TIME: EVENT: FIELDS`.
//!
//! Reading must never fail: any other line gives `None`.

/// An event, as the kernel printed it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TraceEvent<'a> {
    /// The thread that ran, or was interrupted.
    pub(super) task: &'a str,
    pub(super) pid: u32,
    pub(super) cpu: u32,
    /// Whether the event happened in an interrupt or a softirq, not in the thread.
    pub(super) in_interrupt: bool,
    /// Microseconds since an arbitrary moment, the same for all events.
    pub(super) time_us: f64,
    pub(super) name: &'a str,
    /// All text behind the name.
    pub(super) fields: &'a str,
}

impl<'a> TraceEvent<'a> {
    /// Reads a line; `None` if it tells no event.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        // A task may be named as it likes: the first place that fits is where its name ends.
        line.match_indices(" [").find_map(|(at, _)| Self::read_at(line, at))
    }

    fn read_at(line: &'a str, at: usize) -> Option<Self> {
        let (task, pid) = line[..at].trim().rsplit_once('-')?;
        let (cpu, rest) = line[at + 2..].split_once("] ")?;
        let (flags, rest) = rest.trim_start().split_once(' ')?;
        let (time, rest) = rest.trim_start().split_once(": ")?;
        let (name, fields) = rest.split_once(':')?;
        let time_s: f64 = time.parse().ok().filter(|time: &f64| time.is_finite())?;
        Some(Self {
            task,
            pid: pid.parse().ok()?,
            cpu: cpu.parse().ok()?,
            in_interrupt: matches!(flags.chars().nth(2), Some('s' | 'h' | 'H' | 'z' | 'Z')),
            time_us: time_s * 1e6,
            name,
            fields: fields.trim(),
        })
    }

    /// The value of a field: up to the next blank.
    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        self.fields.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The number of events that were overwritten in the buffers, from the comment line of `trace` that tells it.
pub(super) fn lost(line: &str) -> Option<u64> {
    let words = line.strip_prefix("# entries-in-buffer/entries-written: ")?;
    let (held, written) = words.split_whitespace().next()?.split_once('/')?;
    written.parse::<u64>().ok()?.checked_sub(held.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TraceEvent, lost};

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            " kworker/u2:1-23      [001] ..s2.    12.500000: khttpd_request: connection=00ab path=/a.txt";
        let event = TraceEvent::read(line).expect("an event");
        assert_eq!((event.task, event.pid, event.cpu), ("kworker/u2:1", 23, 1));
        assert!(event.in_interrupt && (event.time_us - 12_500_000.0).abs() < 0.5);
        assert_eq!((event.field("path"), event.field("pat")), (Some("/a.txt"), None));
    }

    #[test]
    fn a_task_may_be_named_as_it_likes() {
        let line = "a-1 [000] x: y-77    [002] d..2.  1.000001: sched_switch: prev_comm=a ==> next_pid=3";
        let event = TraceEvent::read(line).expect("an event");
        assert_eq!((event.task, event.pid, event.cpu), ("a-1 [000] x: y", 77, 2));
    }

    #[test]
    fn what_was_lost_is_told() {
        assert_eq!(lost("# entries-in-buffer/entries-written: 140/250   #P:1"), Some(110));
        assert_eq!(lost("# entries-in-buffer/entries-written: 250/140   #P:1"), None);
        assert_eq!(lost("# tracer: nop"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_left(line in "\\PC{0,120}") {
            let _ = (TraceEvent::read(&line), lost(&line));
        }

        #[test]
        fn an_event_is_read_whatever_its_fields(
            cpu in 0u32..512,
            pid in 0u32..4_194_304,
            fields in "\\PC{0,60}",
        ) {
            let line = format!("  nc-{pid}  [{cpu:03}] d..2.  7.000000: khttpd_wake: {fields}");
            let event = TraceEvent::read(&line).expect("an event");
            prop_assert_eq!((event.cpu, event.pid, event.fields), (cpu, pid, fields.trim()));
        }
    }
}
