//! Descriptors: each connection on epoll needs one, each ring of io_uring a table of them.
//!
//! It must never count sockets of others: limits of a process are judged as this one has them.

use crate::check::{Check, Judge, Verdict, Wanted};
use crate::host::Host;
use crate::limits::{DESCRIPTORS_HARD_MIN, FILLED_PERCENT_MAX};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "RLIMIT_NOFILE",
        rule: "hard limit at least a connection for each 16 KiB of memory, from 65536 to 1048576",
        reason: "Most descriptors of one process; the server raises the soft limit to the hard one by \
                 itself. It also sizes the tables of io_uring, and with epoll it is the number of \
                 connections.",
        source: "getrlimit(2)",
        judge: Judge::Host(process_limit),
    },
    Check {
        name: "fs.file-max",
        rule: "at least twice as many as one process may have connections",
        reason: "Most open files of all processes together. Beyond it every accept fails with ENFILE.",
        source: "Documentation/admin-guide/sysctl/fs.rst",
        judge: Judge::Number(|host| Wanted::at_least(2 * host.connections())),
    },
    Check {
        name: "fs.nr_open",
        rule: "at least as many as one process may have connections",
        reason: "The greatest RLIMIT_NOFILE that anybody may set, root included.",
        source: "Documentation/admin-guide/sysctl/fs.rst",
        judge: Judge::Number(|host| Wanted::at_least(host.connections())),
    },
    Check {
        name: "fs.file-nr",
        rule: "below 80 % of fs.file-max",
        reason: "Files that are open on this host now, of all processes.",
        source: "Documentation/admin-guide/sysctl/fs.rst",
        judge: Judge::Host(open_files),
    },
    Check {
        name: "fs.inotify.max_user_watches",
        rule: "at least 65536",
        reason: "Folders that one user may watch. Where it is reached, a change of content is seen a \
                 second later, by looking.",
        source: "inotify(7)",
        // Each folder takes a watch, and trees of tens of thousands of folders are served.
        judge: Judge::Number(|_| Wanted::at_least(65_536)),
    },
];

fn process_limit(host: &Host) -> Verdict {
    let Some(limits) = host.text("proc/self/limits") else { return Verdict::not_here() };
    let Some(line) = limits.lines().find_map(|line| line.strip_prefix("Max open files")) else {
        return Verdict::unknown("no line `Max open files`");
    };
    let mut words = line.split_whitespace();
    let (soft, hard) = (words.next().unwrap_or("?"), words.next().unwrap_or("?"));
    let value = format!("soft {soft}, hard {hard}");
    let allowed: Option<u64> = if hard == "unlimited" { Some(u64::MAX) } else { hard.parse().ok() };
    let wanted = host.connections();
    match allowed {
        None => Verdict::unknown(value),
        Some(allowed) if allowed >= wanted => Verdict::ok(value),
        Some(allowed) => {
            let advice = format!("hard {wanted}: LimitNOFILE= of the unit, or limits.conf(5)");
            if allowed < DESCRIPTORS_HARD_MIN {
                Verdict::matters(value, advice)
            } else {
                Verdict::advise(value, advice)
            }
        }
    }
}

fn open_files(host: &Host) -> Verdict {
    let Some(numbers) = host.sysctl_numbers("fs.file-nr") else { return Verdict::not_here() };
    let [open, _, most] = numbers[..] else { return Verdict::unknown("not three numbers") };
    let value = format!("{open} of {most}");
    if open.saturating_mul(100) < most.saturating_mul(FILLED_PERCENT_MAX) {
        Verdict::ok(open)
    } else {
        Verdict::matters(value, "find out who holds them, or raise fs.file-max")
    }
}
