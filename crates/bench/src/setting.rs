//! What every scenario is given: servers, rounds, folders and a progress bar.
//!
//! It owns the choice of servers and the words of the progress bar. It must never measure.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::servers::Server;
use super::setup::{Programs, ServerKind, Setup};

/// What a scenario works with.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Root of the repository.
    pub(super) root: PathBuf,
    /// `target/bench`: files to serve, configurations, logs.
    pub(super) scratch: PathBuf,
    /// Programs built for this run.
    pub(super) programs: Programs,
    /// The servers to measure.
    pub(super) kinds: Vec<ServerKind>,
    /// How often each is measured.
    pub(super) rounds: u32,
    /// How long each measurement is, in seconds.
    pub(super) seconds: u32,
    /// Whether counted instructions are recorded as what later runs are judged by.
    pub(super) record: bool,
    /// The bar that shows how far a scenario is.
    pub(super) progress: ProgressBar,
}

impl Setting {
    /// Rounds of a whole run, unless others are asked for.
    pub(super) const ROUNDS: u32 = 5;

    /// A bar for one scenario; hidden when standard error is no terminal.
    ///
    /// # Panics
    /// When the template of the bar is malformed, which a test of it would show.
    pub(super) fn new_bar(name: &str) -> ProgressBar {
        let style =
            ProgressStyle::with_template("{prefix:>12} {bar:32} {pos:>3}/{len} {elapsed:>4} {wide_msg}");
        let bar = ProgressBar::new(1).with_style(style.expect("template")).with_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    }

    /// The chosen servers whose configuration is made for files over plain HTTP.
    pub(super) fn for_files(&self) -> Vec<ServerKind> {
        let others = [ServerKind::Haproxy, ServerKind::Caddy];
        self.kinds.iter().copied().filter(|kind| !others.contains(kind)).collect()
    }

    /// Those of the chosen servers that are among `kinds`, in the chosen order.
    pub(super) fn chosen(&self, kinds: &[ServerKind]) -> Vec<ServerKind> {
        self.kinds.iter().copied().filter(|kind| kinds.contains(kind)).collect()
    }

    /// Says how many steps the scenario has.
    pub(super) fn expect_steps(&self, steps: usize) {
        self.progress.set_length(steps as u64);
    }

    /// Says what the scenario does now; the step before is done.
    pub(super) fn step(&self, words: &str) {
        if !self.progress.message().is_empty() {
            self.progress.inc(1);
        }
        self.progress.set_message(words.to_owned());
    }

    /// Starts a server and waits for its first right answer.
    ///
    /// # Errors
    /// It does not start or answers wrongly.
    pub(super) fn start(&self, setup: &Setup<'_>, path: &str, body: &[u8]) -> Result<Server, String> {
        let mut server = Server::start(setup, &self.programs, &self.scratch)?;
        server.wait_ready(path, body)?;
        Ok(server)
    }
}
