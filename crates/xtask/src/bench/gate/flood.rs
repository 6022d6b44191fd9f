//! A flood of SYN segments with forged sources, from the clients' end of the cable.
//!
//! It owns the process that floods, which ends when it is dropped. It must never be pointed at anything but
//! the bed.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::bed::{Bed, SERVER_ADDRESS};
use crate::bench::process;

/// Until then the first segments have arrived.
const START: Duration = Duration::from_millis(400);
/// Nothing here floods for longer than this.
const LIMIT: &str = "60s";

/// Less of what was wanted is no flood to judge by.
const SHARE_MIN: f64 = 0.8;

/// A flood under way.
#[derive(Debug)]
pub(crate) struct Flood {
    child: Child,
    syn_per_s: u32,
    /// When it was there, and what had come by then.
    began: Instant,
    before: u64,
}

impl Flood {
    /// Begins it, at so many segments a second.
    ///
    /// # Errors
    /// The generator cannot be started.
    pub(crate) fn begin(bed: &Bed, staunch: &Path, syn_per_s: u32) -> Result<Self, String> {
        let (to, rate) = (format!("{SERVER_ADDRESS}:80"), format!("{syn_per_s}/s"));
        let mut command = bed.behind_clients("1");
        command.arg(staunch).args(["load", "flood", "--interface", &bed.client_interface, "--to", &to]);
        command.args(["--rate", &rate, "-d", LIMIT, "--cpu", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("staunch load flood: {error}"))?;
        let mut flood = Self { child, syn_per_s, began: Instant::now(), before: 0 };
        sleep(START);
        (flood.began, flood.before) = (Instant::now(), bed.came()?);
        Ok(flood)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Much less came than was wanted: what the generator says.
    pub(crate) fn end(mut self, bed: &Bed) -> Result<(), String> {
        let came_per_s = (bed.came()? - self.before) as f64 / self.began.elapsed().as_secs_f64();
        process::end(&process::descendants(self.child.id()));
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            // What cannot be read is not said.
            let _ = errors.read_to_string(&mut said);
        }
        if came_per_s >= SHARE_MIN * f64::from(self.syn_per_s) {
            return Ok(());
        }
        Err(format!("of {} SYN/s came {came_per_s:.0}: {}", self.syn_per_s, said.trim().replace('\n', "; ")))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}
