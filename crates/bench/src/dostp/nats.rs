//! NATS core: a broker, a service that answers, and its own tool, which asks and measures.
//!
//! This module owns NATS's command lines and the reading of what they print. Persistence (JetStream) is never
//! on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::lan::{HostService, Lan, SERVER_ADDRESS, text};
use crate::machine;

const BROKER: &str = "nats-server";
const TOOL: &str = "nats";
const PORT: &str = "4222";
const SUBJECT: &str = "echo";
/// The line that the service prints right before it subscribes.
const SERVES: &str = "Starting Core NATS service server, ";

/// How long the service may take from there to its first answer; until then requests fail.
const PATIENCE: Duration = Duration::from_secs(10);

/// Versions of broker and tool.
pub(super) fn versions(tools: &Path) -> String {
    let said = |name| machine::version(&text(&tools.join(name)), "--version");
    format!("{}, nats {}", said(BROKER), said(TOOL))
}

/// Whether both stand where tools are built for measurements.
pub(super) fn are_installed(tools: &Path) -> bool {
    [BROKER, TOOL].iter().all(|name| tools.join(name).is_file())
}

/// A broker with a service.
#[derive(Debug)]
pub(super) struct Nats {
    tool: String,
    folder: PathBuf,
    /// Ended first, or it would look for its broker.
    service: HostService,
    broker: HostService,
}

impl Nats {
    /// Starts both, and waits until the service answers.
    ///
    /// # Errors
    /// A process that cannot be started, or a service that does not answer in time.
    pub(super) fn start(tools: &Path, lan: &Lan, folder: &Path) -> Result<Self, String> {
        let (broker, tool) = (text(&tools.join(BROKER)), text(&tools.join(TOOL)));
        let words = [&*broker, "--addr", SERVER_ADDRESS, "--port", PORT];
        let broker = HostService::start(lan, "broker", &words, "Server is ready", folder)?;
        let url = url();
        let words = [&[&*tool, "bench", "service", "serve", SUBJECT], &connection(&url)[..]].concat();
        let service = HostService::start(lan, "service", &words, SERVES, folder)?;
        let nats = Self { tool, folder: folder.to_path_buf(), service, broker };
        let began = Instant::now();
        loop {
            match nats.ask(lan, 1, 1, PATIENCE) {
                Err(error) if began.elapsed() > PATIENCE => return Err(error),
                Err(_) => {}
                Ok(_) => return Ok(nats),
            }
        }
    }

    /// Requests of so many bytes, one after the other; their p50 in us.
    ///
    /// # Errors
    /// The tool fails, takes much longer than it is meant to, or prints something else.
    pub(super) fn ask(&self, lan: &Lan, size: u32, count: u32, meant: Duration) -> Result<f64, String> {
        let (url, size, count) = (url(), size.to_string(), count.to_string());
        let request =
            [&*self.tool, "bench", "service", "request", SUBJECT, "--size", &size, "--msgs", &count];
        let said = lan.ask(&[&request[..], &connection(&url)].concat(), meant, &self.folder)?;
        read(&said).ok_or_else(|| format!("`nats bench` says: {said}"))
    }

    /// The commands that started both.
    pub(super) fn commands(&self) -> impl Iterator<Item = &str> {
        [&self.broker, &self.service].into_iter().map(|service| &*service.command)
    }
}

fn url() -> String {
    format!("nats://{SERVER_ADDRESS}:{PORT}")
}

/// Flags that stand in every command of the tool. No settings of the user who measures count.
fn connection(url: &str) -> [&str; 4] {
    ["--server", url, "--no-context", "--no-progress"]
}

/// The median among the words `min: 58.00us ~ avg: 4,179.98us ~ ... ~ P50: 177.86us ~ P90: ...`, in us.
fn read(said: &str) -> Option<f64> {
    let words = said.rsplit_once("P50: ")?.1.split_once("us")?.0;
    words.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_read() {
        let said = "NATS Core NATS service requester stats: 5,544 msgs/sec ~ 347 KiB/sec ~ min: 58.00us \
            ~ avg: 179.98us ~ max: 4,658.51us ~ P50: 177.86us ~ P90: 248.91us ~ P99: 326.55us\n";
        assert_eq!(read(said), Some(177.86));
        assert_eq!(read(&said.replace("177.86", "1,177.86")), Some(1_177.86));
        assert_eq!(read("nats: error: no responders\n"), None);
    }
}
