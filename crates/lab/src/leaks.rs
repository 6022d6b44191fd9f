//! What a server leaves behind: after a load, and after its end.
//!
//! It must never let something go unsaid because something else was found.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use crate::usage::{self, Stat, UsageReading};

/// More of one kind in a sentence nobody reads.
const NAMED_MAX: usize = 5;

/// What a server holds after a load that it did not hold before, a sentence each.
pub(crate) fn after_load(before: &UsageReading, after: &UsageReading) -> Vec<String> {
    let mut leaks = Vec::new();
    let new = |process: &&i32| !before.processes.contains_key(process);
    if after.processes.len() != before.processes.len() {
        let named = after.processes.keys().filter(new).map(|process| format!("process {process}")).collect();
        leaks.push(sentence("processes", before.processes.len(), after.processes.len(), named));
    }
    let (threads_before, threads_after) = (per_process(&before.threads), per_process(&after.threads));
    let (held_before, held_after) =
        (per_process(before.descriptors.keys()), per_process(after.descriptors.keys()));
    for process in before.processes.keys().filter(|process| after.processes.contains_key(process)) {
        let count = |counts: &BTreeMap<i32, usize>| counts.get(process).copied().unwrap_or(0);
        let (was, is) = (count(&threads_before), count(&threads_after));
        if is > was {
            let new = after
                .threads
                .iter()
                .filter(|thread| thread.0 == *process && !before.threads.contains(thread));
            let named = new.map(|(_, thread)| format!("thread {thread}")).collect();
            leaks.push(sentence(&format!("threads of process {process}"), was, is, named));
        }
        let (was, is) = (count(&held_before), count(&held_after));
        if is > was {
            let is_new = |(key, target): &(&(i32, i32), &String)| {
                key.0 == *process && before.descriptors.get(key) != Some(target)
            };
            let new = after.descriptors.iter().filter(is_new);
            let named = new.map(|((_, number), target)| format!("{number} is {target}")).collect();
            leaks.push(sentence(&format!("descriptors of process {process}"), was, is, named));
        }
    }
    leaks
}

fn per_process<'a>(keys: impl IntoIterator<Item = &'a (i32, i32)>) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    for (process, _) in keys {
        *counts.entry(*process).or_default() += 1;
    }
    counts
}

fn sentence(what: &str, was: usize, is: usize, mut named: Vec<String>) -> String {
    let more = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    let mut text = format!("{what}: {was} before the load, {is} after it");
    if !named.is_empty() {
        text += &format!(" ({}", named.join(", "));
        text += &if more > 0 { format!(", and {more} more)") } else { ")".to_owned() };
    }
    text
}

/// What there still is of a server that has ended, a sentence each. Processes that are left are ended.
///
/// Those that have left its group are found as well if this process inherits orphans
/// (`PR_SET_CHILD_SUBREAPER`) and has no other children.
pub(crate) fn after_end(group: Pid, address: SocketAddr, inherits: bool) -> Vec<String> {
    let this = getpid().as_raw_nonzero().get();
    let group_number = group.as_raw_nonzero().get();
    let is_left = |stat: &Stat| stat.group == group_number || (inherits && stat.parent == this);
    let mut leaks = Vec::new();
    for stat in usage::processes().filter(is_left) {
        let kind = if stat.state == 'Z' { "zombie" } else { "process" };
        leaks.push(format!("a {kind} is left: {} ({})", stat.process, stat.name));
        end(&stat);
    }
    // With SO_REUSEADDR, so that connections that have ended (TIME_WAIT) are no matter, but a listener is.
    if let Err(error) = TcpListener::bind(address) {
        leaks.push(format!("port {} is still taken: {error}", address.port()));
    }
    leaks
}

/// Ends what a server of ours has left, and buries it if it is ours by now.
fn end(stat: &Stat) {
    if let Some(process) = Pid::from_raw(stat.process) {
        let _ = kill_process(process, Signal::KILL);
        let _ = waitpid(Some(process), WaitOptions::empty());
    }
}

#[cfg(test)]
mod tests;
