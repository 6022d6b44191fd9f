//! Shares of the server's processor while something was measured: the server, the reception of its
//! packets, the gate, the host of this virtual machine. It tells a slow gate from a slow minute.
//!
//! It must never judge.

use std::fmt::Write as _;
use std::time::Instant;

use super::bed::Bed;
use super::daemon::GateProcess;
use super::subject::Subject;
use crate::machine::CpuTimes;
use crate::process::Usage;

/// The server's processor.
const PROCESSOR: usize = 0;

/// A look at processor 0 that lasts until it is told.
#[derive(Debug)]
pub(crate) struct Spent {
    began: Instant,
    processor: CpuTimes,
    /// Whose time, of which thread or process, and what it had spent before.
    parts: Vec<(&'static str, u32, Usage)>,
}

impl Spent {
    /// Begins to look.
    ///
    /// # Errors
    /// The server's packets are received by no thread.
    pub(crate) fn begin(server: &Subject, bed: &Bed, daemon: Option<&GateProcess>) -> Result<Self, String> {
        let parts = [("server", server.id()), ("reception", bed.receiver()?)];
        let parts = parts.into_iter().chain(daemon.map(|daemon| ("gate", daemon.id())));
        let parts = parts.map(|(name, id)| (name, id, Usage::of(id))).collect();
        Ok(Self { began: Instant::now(), processor: CpuTimes::read(), parts })
    }

    /// Shares of a processor since then, in percent; the last two are of processor 0 itself.
    pub(crate) fn told(&self) -> String {
        let elapsed_ns = self.began.elapsed().as_nanos() as f64;
        let mut text = String::new();
        for (name, id, before) in &self.parts {
            let percent = 100.0 * Usage::of(*id).since_ns(before) as f64 / elapsed_ns;
            let _ = write!(text, "{name} {percent:.1} %, ");
        }
        let now = CpuTimes::read();
        let idle = 100.0 - now.busy_since(&self.processor, PROCESSOR);
        let stolen = now.stolen_since(&self.processor, PROCESSOR);
        let _ = write!(text, "idle {idle:.1} %, taken by the host {stolen:.1} %");
        text
    }
}
