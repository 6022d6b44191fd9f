//! How many buffers (sk_buff) the network stack is given by an interface: the proof that a SYN which is shed
//! takes none.
//!
//! It owns the program that counts. It must never change anything.

use std::io;

use aya::maps::{MapData, PerCpuArray};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

use super::loaded::network_namespace;
use super::part::program;
use super::privilege;
use crate::fault::GateError;
use crate::interface;

const OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/buffers.bpf.o"));

/// The count of one interface. Dropping ends it.
pub struct Buffers {
    counts: PerCpuArray<MapData, u64>,
    _ebpf: Ebpf,
}

impl Buffers {
    /// Begins to count, for an interface in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Missing capabilities, no such interface, or what the kernel says.
    pub fn watch(interface: &str) -> Result<Self, GateError> {
        privilege::check()?;
        let index = u64::from(interface::find(interface)?);
        let namespace = network_namespace()?;
        let fault = |error: &(dyn std::error::Error + 'static)| {
            GateError::of_kernel("counting the buffers of an interface", error)
        };
        let btf = Btf::from_sys_fs().map_err(|error| fault(&error))?;
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&btf));
        loader.override_global("ifindex", &index, true).override_global("namespace", &namespace, true);
        let mut ebpf = loader.load(OBJECT).map_err(|error| fault(&error))?;
        let watcher: &mut BtfTracePoint = program(&mut ebpf, "gate_buffers")?;
        let attached = watcher.load("netif_receive_skb", &btf).and_then(|()| watcher.attach());
        attached.map_err(|error| fault(&error))?;
        let map =
            ebpf.take_map("buffers").ok_or_else(|| GateError::Kernel("no map of buffers".to_owned()))?;
        let counts = PerCpuArray::try_from(map).map_err(|error| fault(&error))?;
        Ok(Self { counts, _ebpf: ebpf })
    }

    /// Buffers since it began.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn counted(&self) -> io::Result<u64> {
        let counts = self.counts.get(&0, 0).map_err(io::Error::other)?;
        Ok(counts.iter().sum())
    }
}
