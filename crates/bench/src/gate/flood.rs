//! A flood of SYN segments with forged sources, from the clients' end of the cable.
//!
//! It owns the process that floods, which ends when it is dropped. It must never be pointed at anything but
//! the bed.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::bed::{Bed, SERVER_ADDRESS};
use crate::process;

/// Until then the first segments have arrived.
const START: Duration = Duration::from_millis(400);
/// Nothing here floods for longer than this.
const LIMIT: &str = "60s";

/// A flood under way.
#[derive(Debug)]
pub(crate) struct Flooder {
    child: Child,
    /// When it was there, and what had come by then.
    began: Instant,
    before: u64,
}

impl Flooder {
    /// Begins it, at so many segments a second.
    ///
    /// # Errors
    /// The generator cannot be started.
    pub(crate) fn begin(bed: &Bed, staunch: &Path, syn_per_s: u32) -> Result<Self, String> {
        let (to, rate) = (format!("{SERVER_ADDRESS}:80"), format!("{syn_per_s}/s"));
        let mut command = bed.behind_clients("1");
        command.arg(staunch).args(["load", "flood", "--interface", &bed.client_interface, "--to", &to]);
        command.args(["--rate", &rate, "-d", LIMIT, "--cpu", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("staunch load flood: {error}"))?;
        let mut flood = Self { child, began: Instant::now(), before: 0 };
        sleep(START);
        (flood.began, flood.before) = (Instant::now(), bed.came()?);
        Ok(flood)
    }

    /// Ends it. Says how many segments a second came, those the receiver had no time for included.
    ///
    /// # Errors
    /// Packets cannot be counted.
    pub(crate) fn end(self, bed: &Bed) -> Result<f64, String> {
        Ok((bed.came()? - self.before) as f64 / self.began.elapsed().as_secs_f64())
    }
}

impl Drop for Flooder {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        process::collect(&mut self.child);
    }
}
