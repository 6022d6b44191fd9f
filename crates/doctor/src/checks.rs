//! All checks, one file a part of the host, in the order of the report.
//!
//! It owns the list of parts. It must never hold a check that no test and no page names.

mod buffers;
mod cards;
mod containers;
mod descriptors;
mod engines;
mod events;
mod gone;
mod memory;
mod processors;
mod queues;
mod sources;
mod time_wait;
mod watchers;

use crate::check::Check;

/// Parts of the host and what is looked at in each.
pub(crate) const GROUPS: &[(&str, &[Check])] = &[
    ("descriptors", descriptors::CHECKS),
    ("connections that come", queues::CHECKS),
    ("connections that end", time_wait::CHECKS),
    ("buffers and congestion", buffers::CHECKS),
    ("what has happened since start", events::CHECKS),
    ("engines", engines::CHECKS),
    ("processors and time", processors::CHECKS),
    ("memory", memory::CHECKS),
    ("container", containers::CHECKS),
    ("network cards", cards::CHECKS),
    ("what looks at packets", watchers::CHECKS),
    ("settings that are gone", gone::CHECKS),
];
