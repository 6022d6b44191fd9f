//! What `strace -f -ttt -T --syscall-times=ns -s 0` writes, read call by call.
//!
//! It owns the form of its lines, and what tells a call that waits from one that works: its arguments. It
//! must never judge a call by its time.

use std::collections::{HashMap, HashSet};

/// One system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its name.
    pub(super) name: String,
    /// Whether it is one that waits for somebody else if there is nothing for it yet.
    pub(super) waits: bool,
    /// Whether it failed.
    pub(super) failed: bool,
    /// When it ended, in nanoseconds since 1970.
    pub(super) ended_ns: u64,
    /// How long it took by the clock, in nanoseconds; 0 if it never returns.
    pub(super) took_ns: u64,
}

/// The number of the first process that is traced.
pub(super) fn first_process(text: &str) -> Option<i32> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Every call that has ended, in the order in which they ended. Lines that are no calls are left out.
pub(super) fn calls(text: &str) -> Vec<Seen> {
    let mut reader = Reader::default();
    text.lines().filter_map(|line| reader.line(line)).collect()
}

#[derive(Default)]
struct Reader<'a> {
    /// First halves of calls, by thread: another thread's call ended before them.
    halves: HashMap<&'a str, &'a str>,
    /// Descriptors whose calls never wait. Processes of one server do the same with theirs, so that it is
    /// enough to know the number.
    prompt: HashSet<i32>,
}

impl<'a> Reader<'a> {
    /// A line such as `812  1700000000.123456 accept(3, NULL, NULL) = 4 <0.000012345>`. In the place of the
    /// arguments may stand `<unfinished ...>`, and later before the rest of it `<... accept resumed>`.
    fn line(&mut self, line: &'a str) -> Option<Seen> {
        let (thread, rest) = line.split_once(' ')?;
        let (moment, rest) = rest.trim_start().split_once(' ')?;
        if let Some(half) = rest.strip_suffix("<unfinished ...>") {
            self.halves.insert(thread, half);
            return None;
        }
        let moment_ns = nanoseconds(moment)?;
        let Some(resumed) = rest.strip_prefix("<... ") else { return self.call(rest, moment_ns, false) };
        let whole = self.halves.remove(thread)?.to_owned() + resumed.split_once(" resumed>")?.1;
        self.call(&whole, moment_ns, true)
    }

    fn call(&mut self, text: &str, moment_ns: u64, moment_is_end: bool) -> Option<Seen> {
        let (name, rest) = text.split_once('(')?;
        let (arguments, rest) = rest.rsplit_once(" = ")?;
        let arguments: Vec<&str> = arguments.trim_end().trim_end_matches(')').split(", ").collect();
        let took_ns = match rest.rsplit_once(" <") {
            Some((_, time)) => nanoseconds(time.strip_suffix('>')?)?,
            None => 0, // exit does not return
        };
        let result = rest.split(' ').next()?;
        let waits = self.waits(name, &arguments);
        self.note(name, &arguments, result);
        let ended_ns = if moment_is_end { moment_ns } else { moment_ns + took_ns };
        Some(Seen { name: name.to_owned(), waits, failed: result == "-1", ended_ns, took_ns })
    }

    /// Remembers which descriptors do not wait.
    fn note(&mut self, name: &str, arguments: &[&str], result: &str) {
        let descriptor = match name {
            "socket" | "accept" | "accept4" | "eventfd2" => result,
            "fcntl" if has(arguments, "F_SETFL") => arguments[0],
            _ => return,
        };
        let Ok(descriptor) = descriptor.parse() else { return };
        if has(arguments, "NONBLOCK") {
            self.prompt.insert(descriptor);
        } else {
            self.prompt.remove(&descriptor);
        }
    }

    fn waits(&self, name: &str, arguments: &[&str]) -> bool {
        let has = |word| has(arguments, word);
        let argument_is = |index: usize, word| arguments.get(index).is_some_and(|argument| *argument == word);
        match name {
            "accept" | "accept4" | "read" | "readv" | "recvfrom" | "recvmsg" => {
                !has("MSG_DONTWAIT") && arguments[0].parse().is_ok_and(|fd| !self.prompt.contains(&fd))
            }
            "futex" => has("FUTEX_WAIT") || has("FUTEX_LOCK_PI"),
            "fcntl" => has("F_SETLKW") && !has("F_UNLCK"),
            "flock" => !has("LOCK_NB") && !has("LOCK_UN"),
            "wait4" | "waitid" => !has("WNOHANG"),
            // How many completions are waited for; how many milliseconds at most.
            "io_uring_enter" => has("IORING_ENTER_GETEVENTS") && !argument_is(2, "0"),
            "poll" => !argument_is(2, "0"),
            "epoll_wait" | "epoll_pwait" => !argument_is(3, "0"),
            "rt_sigtimedwait" | "rt_sigsuspend" | "pause" | "nanosleep" | "clock_nanosleep" | "select"
            | "pselect6" | "ppoll" | "epoll_pwait2" | "restart_syscall" => true,
            _ => false,
        }
    }
}

/// Whether a word stands in the arguments.
fn has(arguments: &[&str], word: &str) -> bool {
    arguments.iter().any(|argument| argument.contains(word))
}

/// Seconds with a point, in nanoseconds.
fn nanoseconds(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.')?;
    let part_ns = format!("{part:0<9.9}").parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part_ns)
}

#[cfg(test)]
mod tests;
