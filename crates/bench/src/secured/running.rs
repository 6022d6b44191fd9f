//! The servers of one scenario over TLS, all running at once with one certificate and one small file.
//!
//! It owns them. It must never measure.

use crate::content;
use crate::pair::Pair;
use crate::report::ScenarioOutcome;
use crate::servers::Server;
use crate::setting::Setting;
use crate::setup::{ServerKind, Setup};

/// Servers that answered rightly once.
pub(super) struct Running {
    pub(super) servers: Vec<Server>,
    pub(super) pair: Pair,
    /// Path of the small file.
    pub(super) path: String,
}

impl Running {
    /// Starts them. What one that does not start says is an error of the outcome, and the others go on.
    ///
    /// # Errors
    /// No certificate or file can be made.
    pub(super) fn start(
        kinds: &[ServerKind],
        file_bytes: usize,
        setting: &Setting,
        outcome: &mut ScenarioOutcome,
    ) -> Result<Self, String> {
        let pair = Pair::make(&setting.scratch.join("secured"))?;
        let folder = setting.scratch.join("files");
        let file = format!("{file_bytes}.txt");
        let (path, body) = (format!("/{file}"), content::small_file(&folder, &file, file_bytes)?);
        let mut servers = Vec::new();
        for kind in kinds {
            setting.step(&format!("starting {}", kind.name()));
            let setup = Setup { pair: Some(&pair), ..Setup::new(*kind, &folder, &file) };
            match setting.start(&setup, &path, &body) {
                Ok(server) => {
                    outcome.note(format!("{}: {}", kind.name(), server.command));
                    servers.push(server);
                }
                Err(error) => outcome.errors.push(error),
            }
        }
        Ok(Self { servers, pair, path })
    }

    /// Each goes first in its turn, so that no place in a round favours one.
    pub(super) fn next_round(&mut self) {
        if !self.servers.is_empty() {
            self.servers.rotate_left(1);
        }
    }
}
