//! Random frames made in the kernel and shown to the gate, by `bpf/storm.bpf.c`: the proof by numbers.
//!
//! It owns the program that makes them. It must never be used to serve.

use std::io;

use aya::maps::Array;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, include_bytes_aligned};

use super::loaded::{load_object, secret};
use super::own::Own;
use super::part::program;
use super::plan::Attach;
use super::prefix::Prefix;
use super::privilege;
use super::sizes::Sizes;
use crate::fault::GateError;
use crate::layout::{self, CLASS_COUNT, ORDERS};
use crate::observation::{Orders, State};

const OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/storm.bpf.o"));
/// As in the program: the room for a frame.
const FRAME_BYTES: usize = 256;
/// The ports the program makes frames for.
const PORTS: [u16; 2] = [80, 443];
/// Frames of one call: some seconds, after which the thread may be stopped.
const CALL_COUNT: u32 = 10_000_000;
/// The orders hold for a day.
const LEASE_NS: u64 = 86_400_000_000_000;

/// A storm of frames, all from one seed, while nobody has a credit.
pub struct Storm {
    ebpf: Ebpf,
}

/// What was made, and what the gate did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StormCount {
    /// Frames.
    pub made: u64,
    /// Those of them that are to be shed.
    pub syn: u64,
    /// Frames that were shed and are none of those.
    pub dropped_wrongly: u64,
    /// Frames that were not shed and are some of those.
    pub passed_wrongly: u64,
    /// The number of the first wrong one, from 1; 0: none.
    pub first_wrong: u64,
}

impl Storm {
    /// Loads it.
    ///
    /// # Errors
    /// As [`super::Program::attach`].
    pub fn load(seed: u64, now_ns: u64) -> Result<Self, GateError> {
        Self::load_at(&PORTS, seed, now_ns)
    }

    /// Loads it with a gate that is wrong: it protects another port. What is counted must show it.
    ///
    /// # Errors
    /// As [`super::Program::attach`].
    pub fn load_wrong(seed: u64, now_ns: u64) -> Result<Self, GateError> {
        Self::load_at(&[8080], seed, now_ns)
    }

    fn load_at(ports: &[u16], seed: u64, now_ns: u64) -> Result<Self, GateError> {
        privilege::check()?;
        let attach = Attach { ports, ..Attach::default() };
        let mut ebpf = load_object(OBJECT, &attach, None, &Sizes::default(), secret(), &[("seed", seed)])?;
        let storm: &mut Xdp = program(&mut ebpf, "staunch_storm")?;
        storm.load().map_err(|error| GateError::of_kernel("loading the storm", &error))?;
        Own::take(&mut ebpf)?.fixed(&Prefix::EVERYTHING)?;
        let orders = Orders { state: State::Shedding, verify: true, ..Orders::default() };
        let words = layout::order_words(&orders, &[0; CLASS_COUNT], now_ns + LEASE_NS);
        let fault = |error: &aya::maps::MapError| GateError::of_kernel("the orders of the storm", error);
        let map = ebpf.map_mut("orders").ok_or_else(|| GateError::Kernel("no map of orders".to_owned()))?;
        let mut map: Array<_, [u64; ORDERS]> = Array::try_from(map).map_err(|error| fault(&error))?;
        for line in 0..ports.len() as u32 {
            map.set(line, words, 0).map_err(|error| fault(&error))?;
        }
        Ok(Self { ebpf })
    }

    /// Makes so many more frames, and says what came of all until now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn run(&mut self, count: u64) -> io::Result<StormCount> {
        let frame = [0; FRAME_BYTES];
        let mut left = count;
        while left > 0 {
            let now = left.min(u64::from(CALL_COUNT));
            let mut options = TestRunOptions::new();
            options.data_in = Some(&frame);
            options.repeat = now as u32;
            let storm: &mut Xdp = program(&mut self.ebpf, "staunch_storm").map_err(io::Error::other)?;
            storm.test_run(options).map_err(io::Error::other)?;
            left -= now;
        }
        let map = self.ebpf.map("storm").ok_or(io::ErrorKind::NotFound)?;
        let map: Array<_, [u64; 5]> = Array::try_from(map).map_err(io::Error::other)?;
        let [made, syn, dropped_wrongly, passed_wrongly, first_wrong] =
            map.get(&0, 0).map_err(io::Error::other)?;
        Ok(StormCount { made, syn, dropped_wrongly, passed_wrongly, first_wrong })
    }
}
