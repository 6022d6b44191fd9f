//! A host as its files tell it, beneath a root folder.
//!
//! It owns the reading of /proc and /sys, and the size of the host: memory, processors, kernel. It must never
//! judge. What is not there is `None`; nothing here fails. Two things no file tells, whether io_uring works
//! and how many connections may wait for each listener: they are given from outside.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::limits::{CONNECTION_BYTES, CONNECTIONS_MAX, CONNECTIONS_MIN};

/// A living host, or a recorded one.
pub struct Host {
    root: PathBuf,
    ring: NicRing,
    listeners: Option<Vec<(SocketAddr, u32)>>,
}

/// Whether this process can use io_uring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NicRing {
    /// Tried, and it works; what of it.
    Works(String),
    /// Tried; what keeps it from working.
    Refused(String),
    /// Not tried: the host is a recorded one.
    Untried,
}

/// A network interface with a device behind it.
pub(crate) struct Interface {
    pub(crate) name: String,
    /// Its folder, `sys/class/net/NAME`.
    pub(crate) folder: String,
}

impl Host {
    /// The host whose /proc and /sys stand beneath `root`: `/` for this one.
    pub fn at(root: &Path, ring: NicRing) -> Self {
        Self { root: root.to_path_buf(), ring, listeners: None }
    }

    /// This host with the sockets that listen for TCP: address, and how many connections may wait there.
    pub fn with_listeners(self, listeners: Option<Vec<(SocketAddr, u32)>>) -> Self {
        Self { listeners, ..self }
    }

    /// The folder beneath which the host's files are read.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The sockets that listen for TCP; `None` where the kernel was not asked.
    pub(crate) fn listeners(&self) -> Option<&[(SocketAddr, u32)]> {
        self.listeners.as_deref()
    }

    pub(crate) fn ring(&self) -> &NicRing {
        &self.ring
    }

    /// Where a path without leading slash stands.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A file's content without blanks at its ends. `None` if it is not there or may not be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        fs::read(self.path(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that is one number.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder, sorted; none if it is not there.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A sysctl's value with single blanks between its parts.
    pub(crate) fn sysctl(&self, name: &str) -> Option<String> {
        let text = self.text(&sysctl_path(name))?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// A sysctl that is one number.
    pub(crate) fn sysctl_number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.parse().ok()
    }

    /// A sysctl of several numbers.
    pub(crate) fn sysctl_numbers(&self, name: &str) -> Option<Vec<u64>> {
        self.sysctl(name)?.split(' ').map(|part| part.parse().ok()).collect()
    }

    /// A line `KEY: value` of a file such as /proc/self/status or /proc/meminfo.
    pub(crate) fn field(&self, path: &str, key: &str) -> Option<String> {
        let text = self.text(path)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().to_owned())
    }

    /// Memory in bytes that stands in /proc/meminfo under this name.
    pub(crate) fn memory_field(&self, key: &str) -> Option<u64> {
        let kibibytes: u64 = self.field("proc/meminfo", key)?.split(' ').next()?.parse().ok()?;
        Some(kibibytes.saturating_mul(1024))
    }

    /// All memory, in bytes; the least there may be if nothing tells.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_field("MemTotal").unwrap_or(CONNECTIONS_MIN * CONNECTION_BYTES)
    }

    /// Memory of the host in pages of 4 KiB.
    pub(crate) fn memory_pages(&self) -> u64 {
        self.memory_bytes() / 4096
    }

    /// How many connections a host of this size is expected to hold.
    pub(crate) fn connections(&self) -> u64 {
        (self.memory_bytes() / 4 / CONNECTION_BYTES).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
    }

    /// The processors that are switched on.
    pub(crate) fn processors(&self) -> Vec<usize> {
        self.text("sys/devices/system/cpu/online").as_deref().map_or_else(|| vec![0], numbers_of_list)
    }

    /// Version of the kernel, such as (6, 1).
    pub(crate) fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.text("proc/sys/kernel/osrelease")?;
        let mut parts = release.split(['.', '-']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Whether a word stands on the kernel's command line.
    pub(crate) fn booted_with(&self, word: &str) -> bool {
        self.text("proc/cmdline").is_some_and(|line| line.split_whitespace().any(|part| part == word))
    }

    /// Network interfaces with a device behind them.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        let names = self.names("sys/class/net").into_iter();
        names
            .map(|name| Interface { folder: format!("sys/class/net/{name}"), name })
            .filter(|interface| self.exists(&format!("{}/device", interface.folder)))
            .collect()
    }

    /// A count of /proc/net/netstat or snmp: line `table`, column `name`.
    pub(crate) fn network_count(&self, file: &str, table: &str, name: &str) -> Option<u64> {
        let text = self.text(file)?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(table)?.strip_prefix(':'));
        let at = lines.next()?.split_whitespace().position(|head| head == name)?;
        lines.next()?.split_whitespace().nth(at)?.parse().ok()
    }

    /// A value of the line `TCP:` of /proc/net/sockstat, such as `tw`.
    pub(crate) fn tcp_sockets(&self, name: &str) -> Option<u64> {
        let line = self.field("proc/net/sockstat", "TCP")?;
        let mut words = line.split(' ');
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    }
}

/// Where a sysctl stands beneath the root.
pub(crate) fn sysctl_path(name: &str) -> String {
    format!("proc/sys/{}", name.replace('.', "/"))
}

/// `0,2-4` as numbers. What cannot be read is left out.
pub(crate) fn numbers_of_list(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers_of_list("0,2-4"), [0, 2, 3, 4]);
        assert_eq!(numbers_of_list("7"), [7]);
        assert!(numbers_of_list("").is_empty() && numbers_of_list("x-y").is_empty());
    }

    #[test]
    fn what_is_not_there_is_none() {
        let host = Host::at(Path::new("/no such root"), NicRing::Untried);
        assert!(host.text("proc/stat").is_none() && host.sysctl("net.core.somaxconn").is_none());
        assert!(host.names("sys/class/net").is_empty() && host.interfaces().is_empty());
        assert_eq!(host.processors(), [0]);
        assert_eq!(host.connections(), CONNECTIONS_MIN);
    }
}
