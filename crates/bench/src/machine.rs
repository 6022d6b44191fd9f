//! What the measurement ran on: processor, kernel, versions, commit.
//!
//! It owns questions to the system and to tools about themselves. It must never change anything.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Processor, cores, kernel and memory, as names and values.
pub(crate) fn describe() -> Vec<(String, String)> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or_else(|| "?".to_owned(), |pair| pair.1.trim().to_owned())
    };
    let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
    vec![
        ("CPU".to_owned(), value(&processors, "model name")),
        ("cores".to_owned(), cores.to_string()),
        ("kernel".to_owned(), kernel.trim().to_owned()),
        ("memory".to_owned(), value(&memory, "MemTotal")),
        ("load before".to_owned(), load_average()),
    ]
}

/// How many processors there are.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The load average of the last minute, as text.
pub(super) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().next().unwrap_or("?").to_owned()
}

/// Short hash of the commit, with `-dirty` when tracked files have changed.
pub(crate) fn commit(root: &Path) -> String {
    let in_root = |arguments: &[&str]| output("git", &[&["-C", &root.to_string_lossy()], arguments].concat());
    let hash = in_root(&["rev-parse", "--short=10", "HEAD"]);
    let dirty = !in_root(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
    let hash = if hash.is_empty() { "unknown".to_owned() } else { hash };
    if dirty { format!("{hash}-dirty") } else { hash }
}

/// The present moment in UTC as `YYYY-MM-DD HH:MM`.
pub(super) fn now_text() -> String {
    output("date", &["-u", "+%Y-%m-%d %H:%M"])
}

/// First line of what a tool says about its version, on either stream.
pub(super) fn version(tool: &str, flag: &str) -> String {
    let Ok(said) = Command::new(tool).arg(flag).output() else { return "not installed".to_owned() };
    let text = [said.stdout, said.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("?").trim().to_owned()
}

/// Whether a program stands in a folder of PATH, or in one that only root's PATH has.
pub(super) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

/// A port that is free now on every local address.
///
/// # Errors
/// When the system has none.
pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("0.0.0.0", 0)).map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// The hard limit of open descriptors of this process.
pub(super) fn descriptors_max() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    line.and_then(|line| line.split_ascii_whitespace().nth(4)?.parse().ok()).unwrap_or(1024)
}

/// What became of the time of each CPU between two calls, in hundredths; see [`CpuTimes::busy_since`].
#[derive(Debug, Clone)]
pub(super) struct CpuTimes(Vec<Ticks>);

/// Since the machine began.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    idle: u64,
    stolen: u64,
    all: u64,
}

impl CpuTimes {
    /// Reads the times of all CPUs.
    pub(super) fn read() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let lines = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
        Self(lines.map(Self::parse).collect())
    }

    /// Percent of the time since `before` in which a CPU was not idle; 0 for a CPU that does not exist.
    pub(super) fn busy_since(&self, before: &Self, cpu: usize) -> f64 {
        100.0 - self.percent_since(before, cpu, |ticks| ticks.idle).unwrap_or(100.0)
    }

    /// Percent of the time since `before` in which the host of this virtual machine had a CPU for others; 0
    /// where it does not say so, and for a CPU that does not exist.
    pub(super) fn stolen_since(&self, before: &Self, cpu: usize) -> f64 {
        self.percent_since(before, cpu, |ticks| ticks.stolen).unwrap_or(0.0)
    }

    /// A sentence for a report, where the host of this virtual machine had a hundredth of a CPU's time or
    /// more for others since `before`: times were longer meanwhile, and a generator came to fewer requests.
    pub(super) fn told_of_the_host(&self, before: &Self) -> Option<String> {
        let most = (0..self.0.len()).map(|cpu| self.stolen_since(before, cpu)).fold(0.0, f64::max);
        (most >= 1.0)
            .then(|| format!("the host took up to {most:.0} % of a processor's time for others meanwhile"))
    }

    fn percent_since(&self, before: &Self, cpu: usize, of: fn(&Ticks) -> u64) -> Option<f64> {
        let (now, then) = (self.0.get(cpu)?, before.0.get(cpu)?);
        let (part, all) = (of(now).saturating_sub(of(then)), now.all.saturating_sub(then.all));
        (all > 0).then(|| 100.0 * part as f64 / all as f64)
    }

    fn parse(line: &str) -> Ticks {
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
        let idle = ticks.get(3).unwrap_or(&0) + ticks.get(4).unwrap_or(&0);
        Ticks { idle, stolen: *ticks.get(7).unwrap_or(&0), all: ticks.iter().take(8).sum() }
    }
}

fn output(tool: &str, arguments: &[&str]) -> String {
    let said = Command::new(tool).args(arguments).output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_share_counts_idle_and_waiting_as_idle() {
        let before = CpuTimes(vec![CpuTimes::parse("cpu0 0 0 0 0 0 0 0 0 0 0")]);
        let now = CpuTimes(vec![CpuTimes::parse("cpu0 10 0 5 60 20 0 0 5 0 0")]);
        assert!((now.busy_since(&before, 0) - 20.0).abs() < 1e-9);
        assert!((now.stolen_since(&before, 0) - 5.0).abs() < 1e-9);
        assert!(now.busy_since(&before, 1).abs() < 1e-9);
        let said = "the host took up to 5 % of a processor's time for others meanwhile";
        assert_eq!(now.told_of_the_host(&before).as_deref(), Some(said));
        assert_eq!(now.told_of_the_host(&now), None);
    }

    #[test]
    fn this_machine_has_a_description() {
        assert!(describe().iter().all(|(_, value)| !value.is_empty()));
        assert!(descriptors_max() > 0);
    }
}
