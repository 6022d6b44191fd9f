//! Readers that stay while something else is measured: a `staunch load live` beside it.
//!
//! This file owns the process of the generator, which ends when its [`Readers`] are dropped. It must never
//! measure.
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::fan_server::FanOut;
use crate::setting::Setting;
use crate::{load, process, servers};

/// How long readers may take to come, in the generator's words and here.
const JOIN_WITHIN: &str = "300s";
const PATIENCE: Duration = Duration::from_secs(310);
/// Longer than any scenario.
const STAY: &str = "2h";
/// Readers of one source address: those of two processes still have ports to spare.
const SOURCE_READERS_MAX: u32 = 10_000;

/// How many readers there are, and how they read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading<'a> {
    pub(super) count: u32,
    /// Whether each is alone on its topic.
    pub(super) alone: bool,
    /// Whether they stop reading once they are there.
    pub(super) stalled: bool,
    /// A further field of their requests.
    pub(super) field: Option<&'a str>,
    /// Updates a second that are published to them meanwhile; none: nobody publishes.
    pub(super) rate: Option<u32>,
    /// Told apart by it: the readers of several processes come from different addresses.
    pub(super) group: u8,
}

/// Readers that have come, or are about to.
#[derive(Debug)]
pub(super) struct Readers {
    child: Child,
    told: PathBuf,
}

impl Readers {
    /// Readers begin to come.
    ///
    /// # Errors
    /// The generator cannot be started.
    pub(super) fn start(server: &FanOut, reading: &Reading<'_>, setting: &Setting) -> Result<Self, String> {
        let last = *load::processors().end();
        let told = setting.scratch.join(format!("run/live/readers-{}.log", reading.group));
        let errors = File::create(&told).map_err(|error| format!("{}: {error}", told.display()))?;
        let mut command = servers::pinned(format!("1-{last}"));
        command.arg(&setting.programs.staunch).args(words(server, reading));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().map_err(|error| format!("staunch load live: {error}"))?;
        Ok(Self { child, told })
    }

    /// Waits until all have come.
    ///
    /// # Errors
    /// Some do not come.
    pub(super) fn wait(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match self.standing() {
                Some(ReadersStanding { open, wanted, .. }) if open == wanted => return Ok(()),
                Some(ReadersStanding { open, wanted, .. }) => {
                    return Err(format!("only {open} of {wanted} readers came"));
                }
                None => {}
            }
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || began.elapsed() > PATIENCE {
                let text = fs::read_to_string(&self.told).unwrap_or_default();
                return Err(format!("readers did not come: {}", text.lines().last().unwrap_or("")));
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// How many are there, and what they have had: as told within the last second. `None` before all came.
    pub(super) fn standing(&self) -> Option<ReadersStanding> {
        let text = fs::read_to_string(&self.told).unwrap_or_default();
        text.lines().rev().find_map(ReadersStanding::read)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        process::collect(&mut self.child);
    }
}

fn words(server: &FanOut, reading: &Reading<'_>) -> Vec<String> {
    let count = reading.count.to_string();
    let url = server.events();
    let mut words: Vec<String> =
        ["load", "live", &url, "--threads", "1", "--connections", &count, "--join-within", JOIN_WITHIN]
            .map(str::to_owned)
            .to_vec();
    words.extend(["--duration", STAY].map(str::to_owned));
    if reading.alone {
        words.extend(["--topics", &count].map(str::to_owned));
    }
    if reading.stalled {
        words.extend(["--stalled", &count].map(str::to_owned));
    }
    if let Some(field) = reading.field {
        words.extend(["--header", field].map(str::to_owned));
    }
    if let Some(rate) = reading.rate {
        words.extend(["--may-skip", "--rate", &format!("{rate}/s")].map(str::to_owned));
        words.extend(server.publishing());
    }
    if reading.count > SOURCE_READERS_MAX {
        words.extend(["--source".to_owned(), sources(reading)]);
    }
    words
}

/// Addresses of the loopback network, of this group alone.
fn sources(reading: &Reading<'_>) -> String {
    let hosts = 1..=reading.count.div_ceil(SOURCE_READERS_MAX);
    hosts.map(|host| format!("127.{}.0.{host}", 16 + reading.group)).collect::<Vec<_>>().join(",")
}

/// A line of the generator, once all have come or were waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadersStanding {
    /// Readers that are there.
    pub(super) open: u64,
    /// Readers that are meant to be.
    pub(super) wanted: u64,
    /// Deliveries so far.
    pub(super) delivered: u64,
}

impl ReadersStanding {
    fn read(line: &str) -> Option<Self> {
        let (_, behind) = line.split_once(" updating ")?;
        let (readers, rest) = behind.split_once(" readers")?;
        let (open, wanted) = readers.split_once('/')?;
        let delivered = rest.split(", ").find_map(|part| part.trim().strip_suffix(" delivered"));
        let number = |text: &str| text.replace(' ', "").parse::<u64>().ok();
        Some(Self {
            open: number(open)?,
            wanted: number(wanted)?,
            delivered: delivered.and_then(number).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_generator() {
        let line = "  9.1 s  [####................] updating    199 998/200 000 readers  4 published, \
                    1 600 000 delivered, delay at most 1.2 s, 3 passed over";
        let expected = ReadersStanding { open: 199_998, wanted: 200_000, delivered: 1_600_000 };
        assert_eq!(ReadersStanding::read(line), Some(expected));
        assert_eq!(ReadersStanding::read("  0.1 s  [....] connecting  5/10 readers"), None);
    }

    #[test]
    fn sources_of_groups_differ() {
        let reading = Reading { count: 25_000, group: 1, ..Reading::default() };
        assert_eq!(sources(&reading), "127.17.0.1,127.17.0.2,127.17.0.3");
    }
}
