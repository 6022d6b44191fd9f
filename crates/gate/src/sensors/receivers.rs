//! How long the kernel's own threads of reception ran: `ksoftirqd` and, where NAPI is threaded, `napi/...`.
//!
//! Their run time is counted in nanoseconds, so it says within 20 ms what the processors' ticks say after
//! 100. It must never search through all processes of the host often: threads are found again every ten
//! seconds, and when one is gone.

use std::fs;
use std::path::{Path, PathBuf};

use super::kept::{Kept, numbers};
use super::pace::{CALM_NS, Closeness, Due, IDLE_NS};

/// Three numbers of at most 20 digits.
const TEXT_BYTES: usize = 128;
/// Which processes, in the file of kthreadd's children: ten thousand of them.
const CHILDREN_BYTES: usize = 64 * 1024;
/// What is counted while a thread runs is brought up to date each tick, up to 4 ms: 20 ms are a fair window.
const WINDOW_NS_MIN: u64 = 20_000_000;
/// A reading takes some 1.5 us for each thread: with this much time for each they take a thousandth of a
/// processor, however many there are.
const WINDOW_NS_EACH: u64 = 1_500_000;
/// Between two searches.
const SEARCH_NS: u64 = 10_000_000_000;
const LOST: &str = "what reception costs is told by the processors' ticks alone, 100 ms late";

/// The kernel's threads of reception, and how long each had run.
pub(super) struct Receivers {
    proc: PathBuf,
    threads: Vec<Thread>,
    search: Due,
    before_ns: u64,
    share: Option<f64>,
}

struct Thread {
    number: u64,
    schedule: Kept,
    ran_ns: u64,
}

impl Receivers {
    pub(super) fn open(proc: &Path) -> Result<Self, String> {
        let proc = proc.to_path_buf();
        if fs::read(proc.join("2/comm")).ok().as_deref() != Some(b"kthreadd\n") {
            return Err(format!("the kernel's threads are not seen from this PID namespace; {LOST}"));
        }
        let mut receivers =
            Self { proc, threads: Vec::new(), search: Due::default(), before_ns: 0, share: None };
        receivers.find();
        if receivers.threads.is_empty() {
            return Err(format!("the kernel tells no run time of ksoftirqd (CONFIG_SCHED_INFO); {LOST}"));
        }
        Ok(receivers)
    }

    /// What the busiest of them takes of a processor, over the latest window.
    pub(super) fn read(&mut self, now_ns: u64, closeness: Closeness) -> Option<f64> {
        if now_ns < self.before_ns + self.window_ns(closeness) {
            return self.share;
        }
        if self.search.is_due(now_ns, SEARCH_NS) {
            self.find();
        }
        let interval_ns = (now_ns - self.before_ns) as f64;
        let most_ns = self.most_ns();
        let is_first = std::mem::replace(&mut self.before_ns, now_ns) == 0;
        self.share = most_ns.filter(|_| !is_first).map(|ran_ns| (ran_ns as f64 / interval_ns).min(1.0));
        self.share
    }

    /// Between two readings.
    pub(super) fn window_ns(&self, closeness: Closeness) -> u64 {
        let least_ns = match closeness {
            Closeness::Idle => IDLE_NS,
            Closeness::Calm => CALM_NS,
            Closeness::Close => WINDOW_NS_MIN,
        };
        least_ns.max(WINDOW_NS_EACH * self.threads.len() as u64)
    }

    /// Reads all threads once, for a caller that measures what it costs.
    pub(super) fn measured(&mut self) {
        self.most_ns();
    }

    /// How long the one ran that ran longest since the reading before. Those that are gone are forgotten.
    fn most_ns(&mut self) -> Option<u64> {
        let mut most_ns = None;
        let count = self.threads.len();
        self.threads.retain_mut(|thread| {
            let Some(ran_ns) = ran_ns(&mut thread.schedule) else { return false };
            let since_ns = ran_ns.saturating_sub(std::mem::replace(&mut thread.ran_ns, ran_ns));
            most_ns = most_ns.max(Some(since_ns));
            true
        });
        if self.threads.len() < count {
            self.search = Due::default();
        }
        most_ns
    }

    /// Finds those that are new.
    fn find(&mut self) {
        for number in self.kernel_threads() {
            let folder = self.proc.join(number.to_string());
            if self.threads.iter().any(|thread| thread.number == number) || !is_receiver(&folder) {
                continue;
            }
            if let Ok(mut schedule) = Kept::open(&folder.join("schedstat"), TEXT_BYTES)
                && let Some(ran_ns) = ran_ns(&mut schedule)
            {
                self.threads.push(Thread { number, schedule, ran_ns });
            }
        }
    }

    /// The kernel's threads are children of the second process. A kernel that does not list children is asked
    /// for all processes.
    fn kernel_threads(&self) -> Vec<u64> {
        let children = Kept::open(&self.proc.join("2/task/2/children"), CHILDREN_BYTES);
        if let Some(text) = children.ok().as_mut().and_then(Kept::read_words) {
            return numbers(text).collect();
        }
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }
}

fn is_receiver(folder: &Path) -> bool {
    let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
    name.starts_with("ksoftirqd/") || name.starts_with("napi/")
}

/// The first of three: run time, time it waited, how often it ran.
fn ran_ns(schedule: &mut Kept) -> Option<u64> {
    numbers(schedule.read()?).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn thread(root: &Path, number: u32, name: &str, ran_ns: u64) {
        write(root, &format!("{number}/comm"), &format!("{name}\n"));
        write(root, &format!("{number}/schedstat"), &format!("{ran_ns} 7 9\n"));
    }

    #[test]
    fn threads_are_found_and_their_share_is_that_of_the_busiest() {
        let root = std::env::temp_dir().join(format!("staunch-receivers-{}", std::process::id()));
        thread(&root, 2, "kthreadd", 5);
        assert!(Receivers::open(&root).is_err_and(|note| note.contains("CONFIG_SCHED_INFO")));
        thread(&root, 14, "ksoftirqd/0", 1_000);
        thread(&root, 20, "napi/eth0-3", 2_000);
        thread(&root, 30, "ksoftirqd/1", 0);
        write(&root, "2/task/2/children", "14 20 ");
        let mut receivers = Receivers::open(&root).unwrap();
        assert_eq!(receivers.threads.len(), 2);
        assert_eq!(receivers.read(1_000_000_000, Closeness::Close), None);
        thread(&root, 14, "ksoftirqd/0", 10_001_000);
        thread(&root, 20, "napi/eth0-3", 16_002_000);
        assert_eq!(receivers.read(1_010_000_000, Closeness::Close), None);
        assert_eq!(receivers.read(1_020_000_000, Closeness::Close), Some(0.8));
        // A thread is gone, and another has come: it is found at the next reading.
        write(&root, "20/schedstat", "");
        write(&root, "2/task/2/children", "14 30 ");
        assert_eq!(receivers.read(1_040_000_000, Closeness::Close), Some(0.0));
        receivers.read(1_060_000_000, Closeness::Close);
        thread(&root, 30, "ksoftirqd/1", 5_000_000);
        assert_eq!(receivers.read(1_080_000_000, Closeness::Close), Some(0.25));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn without_a_list_of_children_all_processes_are_looked_at() {
        let root = std::env::temp_dir().join(format!("staunch-receivers-all-{}", std::process::id()));
        thread(&root, 2, "kthreadd", 5);
        thread(&root, 14, "ksoftirqd/0", 1_000);
        thread(&root, 99, "nginx", 1_000);
        assert_eq!(Receivers::open(&root).unwrap().threads.len(), 1);
        fs::write(root.join("2/comm"), "sh\n").unwrap();
        assert!(Receivers::open(&root).is_err_and(|note| note.contains("PID namespace")));
        fs::remove_dir_all(&root).unwrap();
    }
}
