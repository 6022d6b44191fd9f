//! An application that gives files, on CPU 1: the floor, or ours.
//!
//! This module owns the application's process, which ends when its [`Backing`] is dropped. It must never
//! measure.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::fetch;
use crate::servers::pinned;
use crate::setting::Setting;
use crate::{machine, process};

/// A running application.
#[derive(Debug)]
pub(super) struct Backing {
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// The command that started it.
    pub(super) command: String,
    child: Child,
}

impl Backing {
    /// The floor, which answers whatever is asked with this file.
    ///
    /// # Errors
    /// The application does not start, or does not answer within ten seconds.
    pub(super) fn floor(file: &Path, setting: &Setting) -> Result<Self, String> {
        let (program, file) = (setting.programs.floor.to_string_lossy(), file.to_string_lossy());
        Self::start("/", setting, |port| {
            [&*program, "127.0.0.1", &port.to_string(), &file, "1", "0"].map(str::to_owned).to_vec()
        })
    }

    /// Ours with the files of a folder, of which one is at `path`.
    ///
    /// # Errors
    /// The application does not start, or does not answer within ten seconds.
    pub(super) fn files(folder: &Path, path: &str, setting: &Setting) -> Result<Self, String> {
        let (program, folder) = (setting.programs.staunch.to_string_lossy(), folder.to_string_lossy());
        Self::start(path, setting, |port| {
            let listen = format!("127.0.0.1:{port}");
            [&*program, "serve", &folder, "--listen", &listen, "--workers", "1"].map(str::to_owned).to_vec()
        })
    }

    fn start(path: &str, setting: &Setting, words: impl Fn(u16) -> Vec<String>) -> Result<Self, String> {
        let folder = setting.scratch.join("proxied");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let log = folder.join("application.log");
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let port = machine::free_port()?;
        let words = words(port);
        let mut command = pinned(1);
        command.args(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let child = command.spawn().map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let backing = Self { address, command: words.join(" "), child };
        let began = Instant::now();
        while !fetch(address, path).is_ok_and(|reply| reply.status == 200) {
            if began.elapsed() > Duration::from_secs(10) {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("the application does not answer: {}: {}", backing.command, said.trim()));
            }
            sleep(Duration::from_millis(10));
        }
        Ok(backing)
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}
