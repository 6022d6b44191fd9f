//! Frames made and sent inside the kernel: the program of `bpf/flood.bpf.c`, run on live frames.
//!
//! It owns the loaded program and the map of its progress. It must never decide where to send, or for how
//! long: the program is told both before it is loaded. Order: `are_taken`, `load`, `run` until stopped.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aya::maps::{Array, MapData};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use staunch_netio::host::route::{self, Link};

use super::frame::Template;

const OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/flood.bpf.o"));
/// How many frames are made in one go; the kernel sends 16 together in any case. As many pages are kept to be
/// used again: of fewer the receiver would have to give some back to the system, beside what it does with
/// them.
const BATCH_COUNT: u32 = 256;
/// At a low rate fewer, so that none waits for longer than this for others.
const BATCH_S: f64 = 0.001;
/// So many frames at most are made by a call: minutes of work. Each new call costs some 20 ms.
const CALL_COUNT: u32 = u32::MAX;
/// The unit of an interval: 2^-10 ns, as in the program.
const TIME_SHIFT: u32 = 10;
/// How many frames tell whether any are taken: more than the kernel sends by itself when an interface is new.
const TRIAL_COUNT: u32 = 64;
/// How often it is looked whether they were counted: the receiver may have to wait for its processor.
const LOOK_COUNT: u32 = 200;
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// What the program says of itself while it runs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FloodProgress {
    /// Frames handed to the interface.
    pub(super) sent: u64,
    /// Frames that were due while the thread was not running, and are not made up for.
    pub(super) given_up: u64,
    /// From the first look at the clock until the last.
    pub(super) ran_ns: u64,
}

/// The map, to be read by any thread.
pub(super) struct FrameCounts {
    map: Array<MapData, [u64; 5]>,
}

impl FrameCounts {
    /// What has been done until now.
    pub(super) fn progress(&self) -> FloodProgress {
        let [started_ns, _, sent, given_up, seen_ns] = self.map.get(&0, 0).unwrap_or_default();
        FloodProgress { sent, given_up, ran_ns: seen_ns.saturating_sub(started_ns) }
    }
}

/// The program, loaded.
pub(super) struct LiveFrames {
    ebpf: Ebpf,
    frame: Vec<u8>,
    batch: u32,
}

/// Loads the program for this interface.
///
/// # Errors
/// What the kernel does not allow or cannot do, in a few words.
pub(super) fn load(
    template: &Template,
    link: &Link,
    rate_per_s: Option<f64>,
    duration: Option<Duration>,
) -> Result<(LiveFrames, FrameCounts), String> {
    let mut frame = [0; 10];
    for (word, bytes) in frame.iter_mut().zip(template.bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    let tail = template.bytes.last_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let duration_ns = duration.map_or(u64::MAX, |duration| duration.as_nanos() as u64);
    let interval = interval(rate_per_s);
    let is_ipv6 = u32::from(template.is_ipv6);
    let mut loader = EbpfLoader::new();
    loader
        .btf(None)
        .override_global("ifindex", &link.index, true)
        .override_global("is_ipv6", &is_ipv6, true)
        .override_global("interval", &interval, true)
        .override_global("duration_ns", &duration_ns, true)
        .override_global("seed", &template.seed, true)
        .override_global("source_count", &template.source_count, true)
        .override_global("source_first", &template.source_first, true)
        .override_global("source_low", &template.source_low, true)
        .override_global("source_mask", &template.source_mask, true)
        .override_global("internet_sum", &template.internet_sum, true)
        .override_global("segment_sum", &template.segment_sum, true)
        .override_global("frame", &frame, true)
        .override_global("frame_tail", &tail, true);
    let mut ebpf = loader.load(OBJECT).map_err(|error| chain(&error))?;
    let program: &mut Xdp = program(&mut ebpf).map_err(|error| chain(&error))?;
    program.load().map_err(|error| refusal(&error))?;
    let map = ebpf.take_map("progress").ok_or("the program has no map")?;
    let map = Array::try_from(map).map_err(|error| chain(&error))?;
    Ok((LiveFrames { ebpf, frame: template.bytes.clone(), batch: batch(rate_per_s) }, FrameCounts { map }))
}

/// Whether an interface takes live frames: a veth throws them away without a word unless its other end is
/// ready for them. Found out by sending some to nobody; the other end throws those away by their hardware
/// address.
///
/// # Errors
/// What the kernel does not allow or cannot do, in a few words.
pub(super) fn are_taken(template: &Template, link: &Link, interface: &str) -> Result<bool, String> {
    let mut to_nobody = template.clone();
    // The sender's own address is not the receiver's.
    to_nobody.bytes.copy_within(6..12, 0);
    let counted =
        || route::link(interface).map(|link| link.sent + link.dropped).map_err(|error| error.to_string());
    let before = counted()?;
    let (mut live, _) = load(&to_nobody, link, None, None)?;
    live.call(TRIAL_COUNT).map_err(|error| chain(&error))?;
    for _ in 0..LOOK_COUNT {
        if counted()? >= before + u64::from(TRIAL_COUNT) {
            return Ok(true);
        }
        staunch_netio::clock::pause(LOOK_PAUSE);
    }
    Ok(false)
}

impl LiveFrames {
    /// Makes frames until told to stop. The thread has to be interrupted then.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<(), String> {
        while !stop.load(Ordering::Relaxed) {
            match self.call(CALL_COUNT) {
                Err(ProgramError::SyscallError(error))
                    if error.io_error.kind() == io::ErrorKind::Interrupted => {}
                other => other.map_err(|error| chain(&error))?,
            }
        }
        Ok(())
    }

    fn call(&mut self, count: u32) -> Result<(), ProgramError> {
        let mut options = TestRunOptions::new();
        options.data_in = Some(&self.frame);
        options.repeat = count;
        options.attrs = TestRunAttrs::new().xdp_live_frames(self.batch.min(count));
        program(&mut self.ebpf)?.test_run(options).map(|_| ())
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut Xdp, ProgramError> {
    ebpf.program_mut("flood").ok_or(ProgramError::NotLoaded)?.try_into()
}

/// How many frames are made in one go.
fn batch(rate_per_s: Option<f64>) -> u32 {
    rate_per_s.map_or(BATCH_COUNT, |rate| ((rate * BATCH_S) as u32).clamp(1, BATCH_COUNT))
}

/// Between two frames. 0: none.
fn interval(rate_per_s: Option<f64>) -> u64 {
    let unit_per_s = 1e9 * f64::from(1_u32 << TIME_SHIFT);
    rate_per_s.map_or(0, |rate| ((unit_per_s / rate).round() as u64).max(1))
}

/// Why the kernel does not take the program: what its verifier says only if it says anything.
fn refusal(error: &ProgramError) -> String {
    let ProgramError::LoadError { io_error, verifier_log } = error else { return chain(error) };
    let log = verifier_log.to_string();
    if log.trim().is_empty() { io_error.to_string() } else { format!("{io_error}: {}", log.trim()) }
}

/// An error with those behind it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests;
