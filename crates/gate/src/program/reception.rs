//! Where the buffers come from that an interface receives into, and how small its packets are.
//!
//! It owns the programs that count, at trace points alone. It must never change anything.

use std::io;

use aya::maps::{MapData, PerCpuArray};
use aya::programs::{BtfTracePoint, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

use super::loaded::network_namespace;
use super::part::program;
use super::privilege;
use crate::fault::GateError;
use crate::interface;

const OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/reception.bpf.o"));

/// Programs of the object, each with its trace point.
const RAW_PROGRAMS: [(&str, &str); 2] = [("slab_gave", "kmem_cache_alloc"), ("slab_took", "kmem_cache_free")];
const PROGRAMS: [(&str, &str); 8] = [
    ("consumed", "consume_skb"),
    ("pool_took", "page_pool_state_hold"),
    ("page_taken", "mm_page_alloc"),
    ("begins_to_receive", "softirq_entry"),
    ("ends_to_receive", "softirq_exit"),
    ("received_by_napi", "napi_gro_receive_entry"),
    ("received_by_queue", "netif_rx_entry"),
    ("sent", "net_dev_start_xmit"),
];

/// Names of the counts, in the order of `bpf/reception.bpf.c`.
pub const RECEPTION_COUNTS: [&str; 13] = [
    "received small",
    "received large",
    "sent small",
    "sent large",
    "data page_pool",
    "data fragment",
    "data small head",
    "data other",
    "buffer napi",
    "buffer slab",
    "buffer sender",
    "pages pool",
    "pages receiving",
];

/// The counts of one interface. Dropping ends it.
pub struct ReceivedBuffers {
    counts: PerCpuArray<MapData, u64>,
    _ebpf: Ebpf,
}

impl ReceivedBuffers {
    /// Begins to count, for an interface in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Missing capabilities, no such interface, or what the kernel says.
    pub fn watch(interface: &str) -> Result<Self, GateError> {
        privilege::check()?;
        let index = u64::from(interface::find(interface)?);
        let namespace = network_namespace()?;
        let fault = |error: &(dyn std::error::Error + 'static)| {
            GateError::of_kernel("counting where an interface's buffers come from", error)
        };
        let btf = Btf::from_sys_fs().map_err(|error| fault(&error))?;
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&btf));
        loader.override_global("ifindex", &index, true).override_global("namespace", &namespace, true);
        let mut ebpf = loader.load(OBJECT).map_err(|error| fault(&error))?;
        let at = |point: &str, error| GateError::of_kernel(&format!("the trace point {point}"), &error);
        for (name, point) in RAW_PROGRAMS {
            let watcher: &mut RawTracePoint = program(&mut ebpf, name)?;
            watcher.load().and_then(|()| watcher.attach(point)).map_err(|error| at(point, error))?;
        }
        for (name, point) in PROGRAMS {
            let watcher: &mut BtfTracePoint = program(&mut ebpf, name)?;
            let attached = watcher.load(point, &btf).and_then(|()| watcher.attach());
            attached.map_err(|error| at(point, error))?;
        }
        let map = ebpf.take_map("counts").ok_or_else(|| GateError::Kernel("no map of counts".to_owned()))?;
        let counts = PerCpuArray::try_from(map).map_err(|error| fault(&error))?;
        Ok(Self { counts, _ebpf: ebpf })
    }

    /// Numbers since it began, in the order of [`RECEPTION_COUNTS`].
    ///
    /// # Errors
    /// The kernel's, where the counts cannot be read.
    pub fn counted(&self) -> io::Result<[u64; RECEPTION_COUNTS.len()]> {
        let mut sums = [0; RECEPTION_COUNTS.len()];
        for (place, sum) in (0..).zip(&mut sums) {
            *sum = self.counts.get(&place, 0).map_err(io::Error::other)?.iter().sum();
        }
        Ok(sums)
    }
}
