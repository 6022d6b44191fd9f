//! How maps are taken from an object in the kernel, and what is said when that fails.

use std::io;

use aya::Ebpf;
use aya::maps::Map;

use crate::fault::{GateError, system_error};

/// Prefixes in a list; the map's own size.
pub(super) const PREFIXES_MAX: usize = 4096;

/// Takes a map by its name.
pub(super) fn take(ebpf: &mut Ebpf, name: &str) -> Result<Map, GateError> {
    ebpf.take_map(name).ok_or_else(|| GateError::Kernel(format!("there is no map '{name}'")))
}

/// A map of its type, or the kernel's fault.
pub(super) fn typed<T>(map: Result<T, aya::maps::MapError>) -> Result<T, GateError> {
    map.map_err(|error| GateError::of_kernel("a map", &error))
}

/// The system's error alone; the loader's words add nothing to it.
pub(super) fn plain_error(error: aya::maps::MapError) -> io::Error {
    let errno = system_error(&error).and_then(io::Error::raw_os_error);
    errno.map_or_else(|| io::Error::other(error), io::Error::from_raw_os_error)
}
