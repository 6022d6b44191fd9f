//! What the fabric knows, in the words of the server's figures.

use std::collections::BTreeMap;

use staunch_dostp::fabric::{Fabric, FabricCounts, FabricNode, NodeLoad, Now};
use staunch_dostp::{Fault, Socket};
use staunch_server::metrics::{FabricFigures, FabricLoad, FabricNodeFigures};

use super::words::Handle;

/// Brings figures up to this moment.
pub(super) fn update(figures: &mut FabricFigures, fabric: &Fabric<Handle>, socket: &Socket, now: Now) {
    let node = |node: FabricNode| FabricNodeFigures {
        address: socket.full_address(node.address),
        load: node.load.as_ref().map(load),
        topics: node.topics,
        silent_ms: node.silent_ms,
        silent: node.is_silent,
        behind: node.is_behind,
    };
    let (topics, marks) = fabric.topics();
    (figures.topics, figures.marks) = (topics as u64, marks as u64);
    figures.load = load(fabric.load());
    figures.nodes = fabric.nodes(now).into_iter().map(node).collect();
    let unsent = figures.counts.get(UNSENT).copied().unwrap_or(0);
    figures.counts = counts(fabric.counts());
    figures.counts.insert(UNSENT.to_owned(), unsent);
    let (_, drops, overrun) = socket.counts();
    let frame = |fault: Fault| (format!("frame_{}", fault.name()), drops.of(fault));
    figures.counts.extend(TOLD_FAULTS.map(frame));
    figures.counts.insert("frame_overrun".to_owned(), overrun);
}

/// What becomes of frames that nodes of a fabric lose: another key, a recorded frame, another node with the
/// address, a node that is not believed yet, messages of which a part is missing, and no room for them.
const TOLD_FAULTS: [Fault; 7] =
    [Fault::Auth, Fault::Replay, Fault::Conflict, Fault::Unknown, Fault::Expired, Fault::Room, Fault::Queue];

/// Messages that could not be sent.
pub(super) const UNSENT: &str = "unsent";

fn load(load: &NodeLoad) -> FabricLoad {
    FabricLoad {
        requests_per_second: load.requests_per_second,
        busy_permille: load.busy_permille,
        workers: load.workers,
        connections: load.connections,
        readers: load.readers,
        version: load.version.clone(),
    }
}

fn counts(counts: &FabricCounts) -> BTreeMap<String, u64> {
    let named = [
        ("messages_told", counts.messages_told),
        ("messages_heard", counts.messages_heard),
        ("messages_realtime_told", counts.realtime_told),
        ("messages_realtime_heard", counts.realtime_heard),
        ("messages_late", counts.late),
        ("updates_told", counts.records_told),
        ("updates_taken", counts.taken),
        ("updates_known", counts.known),
        ("updates_without_room", counts.no_room),
        ("updates_refused", counts.refused),
        ("updates_ahead", counts.ahead),
        ("updates_too_long", counts.too_long),
        ("unknown_site", counts.unknown_site),
        ("topics_full", counts.full),
        ("malformed", counts.malformed),
        ("foreign", counts.foreign),
        ("nodes_full", counts.nodes_full),
        ("asked", counts.asked),
        ("pages_heard", counts.pages_heard),
        ("unanswered", counts.unanswered),
        ("answered", counts.answered),
        ("answers_put_off", counts.unanswered_here),
    ];
    named.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
