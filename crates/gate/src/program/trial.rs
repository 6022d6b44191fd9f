//! The program as a judge of single frames, on no interface: for tests and measurements.
//!
//! It owns a program of its own. It must never be used to serve.

use std::io;
use std::net::IpAddr;

use aya::maps::Array;
use aya::programs::{TestRun, TestRunOptions};

use super::loaded::Loaded;
use super::plan::Attach;
use super::prefix::Prefix;
use super::privilege;
use super::sizes::Sizes;
use crate::fault::GateError;
use crate::layout::{AGAIN_PARTS, AGAIN_WORDS, Counters, KNOWN_WAYS};
use crate::observation::Orders;

/// The largest answer: a frame as long as an Ethernet carries, with tags.
const FRAME_BYTES_MAX: usize = 2048;

/// A program that judges what it is shown.
pub struct Trial {
    loaded: Loaded,
}

/// What the program made of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What it returned: 1 drop, 2 pass, 3 send back.
    pub action: u32,
    /// The frame afterwards.
    pub frame: Vec<u8>,
}

impl Trial {
    /// Loads it. Interface, way and tracker are not looked at. Where no address is named all are this host's.
    ///
    /// # Errors
    /// As [`super::Program::attach`].
    pub fn load(attach: &Attach<'_>, sizes: &Sizes) -> Result<Self, GateError> {
        privilege::check()?;
        let mut loaded = Loaded::plain(attach, sizes)?;
        let own = loaded.take_own()?;
        own.fixed(if attach.addresses.is_empty() { &Prefix::EVERYTHING } else { attach.addresses })?;
        Ok(Self { loaded })
    }

    /// Shows it a frame of at least 14 bytes.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn judge(&mut self, frame: &[u8]) -> io::Result<Judgement> {
        let mut after = vec![0; FRAME_BYTES_MAX];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut after);
        let run = self.loaded.gate().map_err(io::Error::other)?.test_run(options);
        let run = run.map_err(io::Error::other)?;
        after.truncate(run.data_size_out as usize);
        Ok(Judgement { action: run.return_value, frame: after })
    }

    /// Nanoseconds a frame, shown so often.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn cost_ns(&mut self, frame: &[u8], count: u32) -> io::Result<u64> {
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.repeat = count;
        let run = self.loaded.gate().map_err(io::Error::other)?.test_run(options);
        run.map(|run| run.duration.as_nanos() as u64).map_err(io::Error::other)
    }

    /// As [`super::Program::give`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn give(&mut self, orders: &Orders, now_ns: u64) -> io::Result<()> {
        self.loaded.give_all(orders, now_ns)
    }

    /// As [`super::Program::give_line`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn give_line(&mut self, line: usize, orders: &Orders, now_ns: u64) -> io::Result<()> {
        self.loaded.give(line, orders, now_ns)
    }

    /// As [`super::Program::counters`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn counters(&self) -> io::Result<Counters> {
        Ok(Counters::together(&self.line_counters()?))
    }

    /// As [`super::Program::line_counters`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn line_counters(&self) -> io::Result<Vec<Counters>> {
        self.loaded.counters()
    }

    /// How many instructions the program has: of the kernel's, after it was verified, and bytes of the
    /// processor's.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn size(&mut self) -> io::Result<(u32, u32)> {
        let info = self.loaded.gate().map_err(io::Error::other)?.info().map_err(io::Error::other)?;
        // An instruction has eight bytes (linux/bpf.h, struct bpf_insn).
        Ok((info.size_translated().unwrap_or(0) / 8, info.size_jitted()))
    }

    /// Makes this client the only one that is known, which only the tracker does otherwise. There must be one
    /// place for them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn learn(&mut self, client: IpAddr, now_ns: u64) -> io::Result<()> {
        let map = self.loaded.map("known").ok_or(io::ErrorKind::NotFound)?;
        let mut known: Array<_, [u64; 2 * KNOWN_WAYS]> = Array::try_from(map).map_err(io::Error::other)?;
        let mut place = [0; 2 * KNOWN_WAYS];
        (place[0], place[KNOWN_WAYS]) = (client_key(client), now_ns);
        known.set(0, place, 0).map_err(io::Error::other)?;
        let mark = self.loaded.mark(client_key(client));
        let map = self.loaded.map("marks").ok_or(io::ErrorKind::NotFound)?;
        let mut marks: Array<_, u64> = Array::try_from(map).map_err(io::Error::other)?;
        marks.set(0, mark, 0).map_err(io::Error::other)
    }

    /// What is remembered in each part of the table: six SYNs by 21 bits each, the last first. A part must be
    /// of one place.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remembered(&mut self) -> io::Result<[[u64; AGAIN_WORDS]; AGAIN_PARTS]> {
        let map = self.loaded.map("again").ok_or(io::ErrorKind::NotFound)?;
        let again: Array<_, [u64; AGAIN_WORDS]> = Array::try_from(map).map_err(io::Error::other)?;
        let mut parts = [[0; AGAIN_WORDS]; AGAIN_PARTS];
        for (part, index) in parts.iter_mut().zip(0..) {
            *part = again.get(&index, 0).map_err(io::Error::other)?;
        }
        Ok(parts)
    }

    /// Lets it remember something else there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remember(&mut self, parts: &[[u64; AGAIN_WORDS]; AGAIN_PARTS]) -> io::Result<()> {
        let map = self.loaded.map("again").ok_or(io::ErrorKind::NotFound)?;
        let mut again: Array<_, [u64; AGAIN_WORDS]> = Array::try_from(map).map_err(io::Error::other)?;
        for (part, index) in parts.iter().zip(0..) {
            again.set(index, part, 0).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// As in the program: the upper half of an IPv6 address; an IPv4 address in a prefix that no sender has.
fn client_key(client: IpAddr) -> u64 {
    match client {
        IpAddr::V4(address) => 0xffff << 48 | u64::from(u32::from(address)) << 8,
        IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
    }
}
