//! Where things stand in the maps shared with the BPF programs: the counterpart of `bpf/gate.h`.
//!
//! It owns the order of the words. It must never open a map.
