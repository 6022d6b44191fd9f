//! What an unloaded module has left behind: objects of the kernel that its text allocated, its threads,
//! sockets.
//!
//! The kernel notes for each object who allocated it (`slub_debug=U`, which the machine is booted with). A
//! function of a module that is gone has no name any more, so it is printed as a bare address.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::run;

/// The kernel's folder with a file for each kind of object.
const KINDS: &str = "/sys/kernel/debug/slab";
/// Functions that allocate on behalf of their caller, who is the next one.
const ALLOCATORS: [&str; 8] = [
    "__kmalloc",
    "kmalloc_",
    "kmem_cache_alloc",
    "kvmalloc_node",
    "__kvmalloc_node",
    "kstrdup",
    "kmemdup",
    "krealloc",
];
/// How long sockets may take to be freed: their last packets, and what the kernel frees later.
const PATIENCE: Duration = Duration::from_secs(60);

/// What there is at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objects {
    /// Sockets of TCP that are allocated.
    sockets: u64,
    /// Threads of this name.
    threads: usize,
    /// Allocations by text that has no name.
    forgotten: Vec<String>,
}

/// Settings of the network. Connections that nobody owns any more are forgotten soon, once their end was
/// sent twice. Where a thousand end at once and the queue of packets overflows, an end may be lost twice, and
/// its peer never hears of it.
const SETTINGS: [(&str, &str); 3] =
    [("ipv4/tcp_fin_timeout", "1"), ("ipv4/tcp_orphan_retries", "1"), ("core/netdev_max_backlog", "9999")];

/// Makes the kernel's notes readable, and tells the network its settings.
pub(crate) fn prepare() -> Result<(), String> {
    for (name, value) in SETTINGS {
        let path = format!("/proc/sys/net/{name}");
        fs::write(&path, value).map_err(|error| format!("{path}: {error}"))?;
    }
    if Path::new(KINDS).exists() {
        return Ok(());
    }
    run(Command::new("mount").args(["-t", "debugfs", "debug", "/sys/kernel/debug"]))?;
    fs::metadata(KINDS).map(drop).map_err(|error| format!("{KINDS}: {error}"))
}

impl Objects {
    /// What there is now, of a module by this name.
    pub(crate) fn of(module: &str) -> Result<Self, String> {
        Ok(Self { sockets: sockets()?, threads: threads(module)?, forgotten: forgotten()? })
    }

    /// Whether no thread and no object of a module is there that is gone.
    pub(crate) fn is_nothing_of_modules(&self) -> bool {
        self.threads == 0 && self.forgotten.is_empty()
    }

    /// Waits until there is nothing that was not there before.
    pub(crate) fn wait_for_those_before(&self, module: &str) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let now = Self::of(module)?;
            if now.sockets <= self.sockets && now.is_nothing_of_modules() {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                let tcp = read(Path::new("/proc/net/tcp"))? + &read(Path::new("/proc/net/tcp6"))?;
                return Err(format!("left behind: {now:?}; before: {self:?}\n{tcp}"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Sockets, but for connections that are only remembered (TIME-WAIT).
fn sockets() -> Result<u64, String> {
    let text = read(Path::new("/proc/net/sockstat"))?;
    let words: Vec<&str> =
        text.lines().find(|line| line.starts_with("TCP:")).unwrap_or("").split(' ').collect();
    let value = words.windows(2).find(|pair| pair[0] == "alloc").and_then(|pair| pair[1].parse().ok());
    value.ok_or_else(|| format!("sockstat: {text}"))
}

fn threads(module: &str) -> Result<usize, String> {
    let processes = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let names = processes.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    Ok(names.filter(|name| name.trim_end() == module).count())
}

fn forgotten() -> Result<Vec<String>, String> {
    let kinds = fs::read_dir(KINDS).map_err(|error| format!("{KINDS}: {error}"))?;
    let mut found = Vec::new();
    for kind in kinds.filter_map(Result::ok) {
        let name = kind.file_name().to_string_lossy().into_owned();
        let mut lines = forgotten_of(&kind.path());
        if !lines.is_empty() {
            empty_quarantine(&name)?;
            lines = forgotten_of(&kind.path());
        }
        found.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
    }
    Ok(found)
}

/// The notes of a kind. One that is merged with another has none of its own.
fn forgotten_of(kind: &Path) -> Vec<String> {
    let text = fs::read(kind.join("alloc_traces")).unwrap_or_default();
    by_nobody(&String::from_utf8_lossy(&text)).collect()
}

/// KASAN keeps objects for a while that were freed, and they have their notes meanwhile. Whoever shrinks a
/// kind of objects has it give them back.
fn empty_quarantine(kind: &str) -> Result<(), String> {
    let path = format!("/sys/kernel/slab/{kind}/shrink");
    fs::write(&path, "1").map_err(|error| format!("{path}: {error}"))
}

/// The notes on objects whose allocating function has no name. A note is a line with a count and a function,
/// then indented lines with the functions that called it.
fn by_nobody(text: &str) -> impl Iterator<Item = String> {
    let mut notes: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with("        ") {
            notes.last_mut().into_iter().for_each(|note| note.push(line.trim()));
        } else {
            notes.push(vec![line.trim()]);
        }
    }
    notes.into_iter().filter(|note| is_by_nobody(note)).map(|note| note.join(" < "))
}

fn is_by_nobody(note: &[&str]) -> bool {
    let mut functions = note.iter().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let first = words.next()?;
        if first.bytes().all(|byte| byte.is_ascii_digit()) { words.next() } else { Some(first) }
    });
    let caller = functions.find(|name| !ALLOCATORS.iter().any(|allocator| name.starts_with(allocator)));
    caller.is_some_and(|name| name.starts_with("0xffffffff"))
}

#[cfg(test)]
mod tests {
    use super::by_nobody;

    #[test]
    fn an_object_of_a_function_without_name_is_found() {
        let text = "\
      2 khttpd_folder_take+0x31/0x90 [khttpd] age=1 pid=1\n        vfs_read+0x1/0x2\n\
      1 0xffffffffc0001031 age=12/12/12 pid=9 cpus=0\n        kmalloc_trace+0x2a/0xa0\n\
      3 kvmalloc_node+0x4b/0xd0 age=4 pid=1\n        __kmalloc_node+0x4b/0x150\n        \
        kvmalloc_node+0x4b/0xd0\n        0xffffffffc0001042\n        process_one_work+0x1/0x2\n\
      4 __d_alloc+0x2a/0x1e0 age=3 pid=7\n        vfs_path_lookup+0x1/0x2\n        0xffffffffc0001055\n";
        let found: Vec<String> = by_nobody(text).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("1 0xffffffffc0001031") && found[1].starts_with("3 kvmalloc_node"));
    }
}
